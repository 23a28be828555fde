"""Faults on the wire that no attempt mends: a clear error (code, stream, offset) within the limits, nothing left behind; never a hang, never wrong rows."""

import json
import re
import shutil
import time

import pytest

import harness
import wire_frames as h2
from wire_copy import SLOW
from wire_faults import MALFORMED, AcceptFault, Close, EndStream, Fault, Freeze, Mangle, Noise, Raw, Reset, Stall, Trickle, http_answer

pytestmark = pytest.mark.timeout(60 * SLOW)


def opened_again_at(wire):
    """Behind the two messages that came once, or before one that was on its way when the call broke."""
    (offsets,) = wire.proxy.opens().values()
    assert offsets[1] in (0, 500, 1000), offsets
    return offsets[1]


def again_and_again(action, calls=4):
    """Two messages come once; after that every call ends with half a message."""
    return [Fault(action, call=1, messages=2, share=0.5), *[Fault(action, call=call, messages=0, share=0.5) for call in range(2, calls + 1)]]


@pytest.mark.parametrize("action,code", [(Reset(h2.INTERNAL_ERROR), "INTERNAL"), (Reset(h2.REFUSED_STREAM), "UNAVAILABLE"), (Reset(h2.CANCEL), "CANCELLED"),
                                         (Reset(h2.ENHANCE_YOUR_CALM), "RESOURCE_EXHAUSTED"), (Close("close"), "UNAVAILABLE"), (Close("reset"), "UNAVAILABLE"),
                                         (EndStream(), "UNKNOWN")], ids=lambda value: str(value))
def test_half_a_message_each_time(wire, action, code):
    """No row comes, so the attempts are not renewed: as many calls as are allowed, all at the same offset, and no more."""
    wire.proxy.set_faults(*again_and_again(action))
    message, error = wire.clear_error("--retry-max-attempts", "4", within=20)
    assert error["code"] == code
    at = opened_again_at(wire)
    assert wire.proxy.opens() == {0: [0, at, at, at]}
    assert "/streams/0" in message and f"offset {at} " in message and "4 times" in message and "retry_max_attempts" in message


# With little memory windows have a size of their own. gRPC finds others by pings, and where a proxy holds data back but no pings they are soon too many for a server that has nothing left to
# send: it ends the connection, which is another fault than the one that is meant here.
NO_PROBING = ["--memory-limit", "40MiB"]


@pytest.mark.parametrize("action", [Stall(), Freeze(), Trickle(1, 0.2)], ids=["the stream", "the connection", "a byte at a time"])
def test_silence_each_time(wire, action):
    """Ends within idle limit times attempts (and what the waits between them take)."""
    wire.proxy.set_faults(*again_and_again(action, calls=3))
    message, error = wire.clear_error("--retry-max-attempts", "3", "--idle-limit", 1000, *NO_PROBING, within=20)
    assert error["code"] == "DEADLINE_EXCEEDED"
    assert "/streams/0" in message and "offset 1000" in message and "idle limit" in message
    assert len({call["connection"] for call in wire.proxy.counters()["calls"]["ReadRows"]}) == 3
    assert wire.proxy.opens() == {0: [0, 1000, 1000]}


def test_the_total_limit_ends_it(wire):
    wire.proxy.set_faults(Fault(Trickle(2_000, 0.05), times=0, messages=0))
    message, error = wire.clear_error("--total-limit", 1500, *NO_PROBING, within=15)
    assert "/streams/0" in message and "offset" in message and error["code"] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize("status,code", [(400, "INTERNAL"), (401, "UNAUTHENTICATED"), (403, "PERMISSION_DENIED"), (404, "UNIMPLEMENTED")])
@pytest.mark.parametrize("method", ["CreateReadSession", "ReadRows"])
def test_a_front_end_that_refuses(wire, method, status, code):
    """Tried once: the next answer would be the same."""
    wire.proxy.set_faults(Fault(http_answer(status), method=method, call=1, when="request"))
    message, error = wire.clear_error(within=10)
    assert error["code"] == code and str(status) in message
    assert len(wire.proxy.counters()["calls"][method]) == 1
    assert ("/streams/0" if method == "ReadRows" else harness.TABLE) in message


@pytest.mark.parametrize("unit", [1, 40_000])
@pytest.mark.parametrize("how", ["drop", "duplicate", "swap"])
def test_bytes_are_lost_or_doubled_inside_of_a_message(wire, how, unit):
    """The message's length no longer fits its content. An error that says where; or another attempt, if gRPC noticed first; never other rows."""
    wire.proxy.set_faults(Fault(Mangle(how, unit), call=1, messages=2, bytes=300))
    out, err = wire.copy("--idle-limit", 1000, code=None)
    assert wire.proxy.fired() == [1]
    if (wire.target / harness.MANIFEST).exists():
        harness.assert_same_rows(harness.read_result(wire.target), wire.table)
    else:
        assert "/streams/0" in out and "at offset 1000" in out and '"code"' in out, out
        assert not wire.target.exists() or list(wire.target.iterdir()) == []


def run_noise(wire, seed):
    wire_form = [["--source-format", "avro"], ["--compression", "lz4"], ["--compression", "zstd"], ["--source-format", "arrow"],
                 ["--source-format", "avro", "--response-compression", "lz4"]][seed % 5]
    distance = [30, 300, 3_000, 100_000][seed % 4]
    wire.proxy.set_faults(Fault(Noise(seed, distance), call=1, messages=seed % 2, bytes=[0, 5, 20][seed % 3]))
    out, err = wire.copy("--idle-limit", 500, "--retry-max-attempts", "3", *wire_form, code=None, seconds=30)
    assert wire.proxy.fired() == [1]
    if (wire.target / harness.MANIFEST).exists():
        return
    error = json.loads(out)["error"]
    assert error["code"] in ("DATA_LOSS", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN"), (seed, out, err)
    assert "/streams/0" in error["message"] and "offset" in error["message"], (seed, out)
    assert not wire.target.exists() or list(wire.target.iterdir()) == []


@pytest.mark.parametrize("seed", range(10))
def test_noise_in_the_messages(wire, seed):
    """Bits fall over, in each form that rows have on the wire. Where the form notices it, an error; none has a checksum, so a value may be another one. Never a crash, never a hang."""
    run_noise(wire, seed)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_noise_by_many_seeds(wire):
    for seed in range(100, 400):
        run_noise(wire, seed)
        shutil.rmtree(wire.target, ignore_errors=True)


def test_a_message_that_says_it_is_compressed(wire):
    """Once is a fault on the way; whoever says so three times means it."""
    compressed = Raw(MALFORMED["a message that says it is compressed"], over=False)
    wire.proxy.set_faults(Fault(compressed, call=1, messages=2), Fault(compressed, call=2, messages=0), Fault(compressed, call=3, messages=0))
    message, _ = wire.clear_error(within=10)
    assert "/streams/0" in message and f"at offset {opened_again_at(wire)}:" in message


@pytest.mark.parametrize("how", ["reset", "http1"])
def test_no_connection_is_ever_made_again(wire, how):
    """The session is there, and then nobody answers any more: the attempts end it, in their number."""
    wire.proxy.set_faults(Fault(Close("reset"), call=1, messages=2, share=0.5), *[AcceptFault(how, connection=number, times=1) for number in range(2, 5)],
                          *[AcceptFault(how, connection=number, times=0) for number in range(5, 60)])
    started = time.monotonic()
    out, _ = wire.copy("--retry-max-attempts", "3", code=1)
    assert time.monotonic() - started < 20 * SLOW
    assert "/streams/0" in out and re.search(r"offset (0|500|1000)\b", out) and "UNAVAILABLE" in out
    assert wire.proxy.opens() == {0: [0]}
    assert [fault["fired"] for fault in wire.proxy.counters()["faults"]][:2] == [1, 1]


def test_a_failure_in_the_middle_can_be_resumed(wire, headrace, tmp_path):
    """Behind the same proxy, when it is well again: no session is made anew, no row comes twice."""
    job = tmp_path / "job"
    wire.proxy.set_faults(*again_and_again(Reset(h2.INTERNAL_ERROR), calls=2))
    out, _ = wire.copy("--retry-max-attempts", "2", "--checkpoint", str(job), code=1)
    assert f"headrace resume {job}" in out
    wire.proxy.set_faults()
    harness.run_headrace(headrace, "resume", job, seconds=40 * SLOW)
    harness.assert_same_rows(harness.read_result(wire.target), wire.table)
    assert "CreateReadSession" not in wire.proxy.counters()["calls"]


@pytest.mark.long
@pytest.mark.timeout(240)
def test_twenty_five_attempts_without_progress(wire):
    """The default, with its growing waits: about a minute and a half."""
    wire.proxy.set_faults(*again_and_again(Reset(h2.INTERNAL_ERROR), calls=40))
    started = time.monotonic()
    out, _ = wire.copy("--retry-max-attempts", "25", code=1, seconds=230)
    assert time.monotonic() - started < 220
    at = opened_again_at(wire)
    assert "25 times" in out and f"offset {at} " in out
    assert wire.proxy.opens() == {0: [0] + [at] * 24}


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("quiet_seconds", [0, 75])
def test_keepalive_notices_a_dead_path(wire, quiet_seconds):
    """No idle limit, and the path dies under a call that waits; also after a time without messages in which the connection was well. 30 s and 10 s, and what a reopen takes."""
    wire.proxy.set_faults(Fault(Stall(), call=1, messages=2, share=0.5))
    process = harness.start_headrace(wire.headrace, "copy", f"bq:{harness.TABLE}", f"{wire.target}/", "--bigquery-storage-endpoint", wire.proxy.endpoint, "--max-stream-count", 1,
                                     "--idle-limit", "0")
    try:
        harness.wait_until(lambda: wire.proxy.fired() == [1], 20, "the stall")
        time.sleep(quiet_seconds)
        wire.proxy.freeze_all()
        started = time.monotonic()
        _, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
        assert time.monotonic() - started < 60
    finally:
        process.kill()
        process.wait()
    harness.assert_same_rows(harness.read_result(wire.target), wire.table)
    wire.assert_reopened_once(1000)
