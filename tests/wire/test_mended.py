"""Faults on the wire that another attempt mends: exactly the right rows, each stream reopened where it broke, and the proxy's word that the fault fired."""

import random
import shutil
import time

import pyarrow as pa
import pytest

import harness
import wire_frames as h2
from wire_copy import PER_MESSAGE, ROWS, SLOW, Wire
from wire_faults import (MALFORMED, AcceptFault, Close, Delay, EndStream, Fault, Freeze, GoAway, Mangle, Raw, Reset, Stall, Starve, Storm, Trailers, Trickle, http_answer,
                         random_faults, status_trailers)
from wire_proxy import WireProxy

pytestmark = pytest.mark.timeout(60 * SLOW)

# Places within a call of six messages of about 100 KiB, and how many of its rows have passed there.
PLACES = [
    ({"when": "request"}, 0),
    ({"when": "headers"}, 0),
    ({"messages": 0}, 0),
    ({"messages": 0, "bytes": 1}, 0),
    ({"messages": 1}, 500),
    ({"messages": 2, "bytes": 4}, 1000),
    ({"messages": 2, "bytes": 5}, 1000),
    ({"messages": 3, "share": 0.5}, 1500),
    ({"frames": 2}, 1000),  # as many as the first window of a connection (64 KiB, RFC 9113) makes of these messages, however they are packed
    ({"messages": 5, "share": 0.999}, 2500),
    ({"messages": 6}, ROWS),
    ({"when": "trailers"}, ROWS),
]


def name_of(place):
    return " ".join(f"{key} {value}" for key, value in place.items())


@pytest.mark.parametrize("code", [*range(14), 0xDEAD])
def test_a_reset_with_any_code(wire, code):
    """gRPC makes another status of each code; none of them is the service's word (facts R13)."""
    wire.proxy.set_faults(Fault(Reset(code), call=1, messages=2, share=0.5))
    wire.assert_mended()
    wire.assert_reopened_once(1000)


@pytest.mark.parametrize("place,received", PLACES, ids=lambda value: name_of(value) if isinstance(value, dict) else str(value))
def test_a_reset_at_any_place(wire, place, received):
    """Specs 24, 27, 30. At the end too: all rows came, and only the status is missing."""
    wire.proxy.set_faults(Fault(Reset(h2.INTERNAL_ERROR), call=1, **place))
    counters = wire.assert_mended()
    if "frames" not in place:
        wire.assert_reopened_once(received)
    assert counters["connections"] == 1, "a reset stream costs no connection"


@pytest.mark.parametrize("how", ["close", "reset", "half"])
@pytest.mark.parametrize("place,received", [PLACES[0], PLACES[5], PLACES[11]], ids=lambda value: name_of(value) if isinstance(value, dict) else str(value))
def test_the_connection_ends(wire, how, place, received):
    """FIN, RST, and half closed: U84, and the server that is restarted."""
    wire.proxy.set_faults(Fault(Close(how), call=1, **place))
    counters = wire.assert_mended()
    wire.assert_reopened_once(received)
    assert counters["connections"] == 2 and counters["counts"]["connections ended: " + how] == 1


@pytest.mark.parametrize("last", ["current", "all"])
def test_a_graceful_goaway_costs_nothing(wire, last):
    """The call in flight goes on to its end; the next one goes over another connection."""
    wire.proxy.set_faults(Fault(GoAway(last), call=1, messages=1))
    counters = wire.assert_mended("--readers", "1", "--channels", "1", streams=2)
    assert wire.proxy.opens() == {0: [0], 1: [0]}
    assert [call["connection"] for call in counters["calls"]["ReadRows"]] == [1, 2]


@pytest.mark.parametrize("fault,connections", [
    (GoAway("before"), 2),
    (GoAway(0, h2.NO_ERROR), 2),
    (GoAway("current", h2.INTERNAL_ERROR, b"dying", close=True), 2),
    (GoAway("current", h2.ENHANCE_YOUR_CALM, b"too_many_pings", close=True), 2),
    (GoAway("all", h2.NO_ERROR, b"max_age", close=True), 2),
], ids=str)
def test_a_goaway_that_disowns_the_call(wire, fault, connections):
    """U84: "draining" never reaches the user."""
    wire.proxy.set_faults(Fault(fault, call=1, messages=2, share=0.5))
    counters = wire.assert_mended()
    wire.assert_reopened_once(1000)
    assert counters["connections"] == connections


@pytest.mark.parametrize("place,received", [PLACES[4], PLACES[7], PLACES[11]], ids=lambda value: name_of(value) if isinstance(value, dict) else str(value))
@pytest.mark.parametrize("action", [EndStream(), Trailers(((b"x-front-end", b"restarted"),))], ids=["no trailers", "no status"])
def test_an_end_without_a_status(wire, action, place, received):
    """The stream ends in good order as HTTP sees it. Without gRPC's status that is no end of the rows."""
    wire.proxy.set_faults(Fault(action, call=1, **place))
    wire.assert_mended()
    wire.assert_reopened_once(received)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_front_end_that_answers_in_http(wire, status):
    wire.proxy.set_faults(Fault(http_answer(status), call=1, when="request"))
    wire.assert_mended()
    assert wire.proxy.opens() == {0: [0, 0]}


# What gRPC may take without a word. Of the others of MALFORMED it breaks the connection or the stream.
HARMLESS = {"data of stream 0", "a push that nobody allowed", "a window that overflows", "a message flag that does not exist"}
IN_THE_ROWS = {"a message that says it is compressed"}


@pytest.mark.parametrize("what", [name for name in MALFORMED if name not in IN_THE_ROWS])
def test_a_frame_that_breaks_the_protocol(wire, what):
    wire.proxy.set_faults(Fault(Raw(MALFORMED[what], over=False), call=1, messages=2))
    wire.assert_mended("--idle-limit", 1000)
    (offsets,) = wire.proxy.opens().values()
    assert len(offsets) >= (1 if what in HARMLESS else 2), offsets


@pytest.mark.parametrize("kind", ["settings", "ping", "window", "unknown"])
def test_a_storm_of_small_frames(wire, kind):
    """Two thousand SETTINGS, PINGs (each answered), window updates, frames of unknown types with odd flags and padding."""
    wire.proxy.set_faults(Fault(Storm(kind, 2_000), call=1, messages=2, share=0.5))
    counters = wire.assert_mended()
    assert wire.proxy.opens() == {0: [0]}
    if kind == "ping":
        assert counters["counts"]["own pings answered"] == 2_000


def test_trickling_and_waiting_are_no_faults(wire):
    """Slow, but each message comes within the idle limit: nothing is opened again (U88)."""
    wire.proxy.set_faults(Fault(Trickle(30_000, 0.02), stream=0, messages=1, bytes=7), Fault(Delay(0.7), stream=1, messages=1))
    wire.assert_mended("--readers", "2", streams=2)
    assert wire.proxy.opens() == {0: [0], 1: [0]}


@pytest.mark.parametrize("action,place,received", [*[(action, *PLACES[number]) for action in (Stall(), Freeze()) for number in (0, 7, 11)], (Trickle(10, 0.05), *PLACES[7])],
                         ids=lambda value: name_of(value) if isinstance(value, dict) else str(value))
def test_silence_longer_than_the_idle_limit(wire, action, place, received):
    """U65, U67, U72: the call is given up, and the next one goes over another connection, since the same path would be as silent."""
    wire.proxy.set_faults(Fault(action, call=1, **place))
    counters = wire.assert_mended("--idle-limit", 1200)
    assert wire.proxy.opens()[0][0] == 0 and received in wire.proxy.opens()[0]
    assert counters["connections"] >= 2
    first, second = counters["calls"]["ReadRows"][:2]
    assert second["connection"] != first["connection"]


def test_a_window_that_is_not_renewed(wire):
    """The client's updates are lost in the middle of a call: what the service may send runs out, and that is a silence like any other."""
    wire.proxy.set_faults(Fault(Starve(), call=1, messages=1))
    # With little memory, so that the windows have a size of their own: wide ones would hold all of these rows, and never be renewed.
    counters = wire.assert_mended("--idle-limit", 1200, "--memory-limit", "40MiB")
    assert counters["counts"]["window updates lost"] > 0
    first, second = counters["calls"]["ReadRows"][:2]
    assert second["connection"] == first["connection"] + 1
    assert 0 < wire.proxy.opens()[0][1] < ROWS


@pytest.mark.parametrize("how", ["reset", "close", "http1", "refuse"])
def test_the_first_connections_fail(wire, how):
    """The call after a failed connection waits for the next one. It is a matter of tenths of a second, not of gRPC's look every five."""
    wire.proxy.set_faults(AcceptFault(how, times=2 if how != "refuse" else 1, seconds=0.5))
    started = time.monotonic()
    counters = wire.assert_mended()
    assert time.monotonic() - started < 8 * SLOW
    assert counters["connections"] == (3 if how != "refuse" else 2)
    assert len(counters["calls"]["CreateReadSession"]) == 1 and wire.proxy.opens() == {0: [0]}  # the others never got out of the program


@pytest.mark.parametrize("how", ["reset", "refuse"])
def test_a_broken_connection_cannot_be_made_again_at_once(wire, how):
    """A server that is restarted: the few attempts that are allowed are enough, because each waits for a connection."""
    wire.proxy.set_faults(Fault(Close("reset"), call=1, messages=2, share=0.5), AcceptFault(how, connection=2, seconds=0.8))
    wire.assert_mended("--retry-max-attempts", "4")
    wire.assert_reopened_once(1000)


def test_a_connection_that_is_accepted_and_never_speaks(wire):
    wire.proxy.set_faults(AcceptFault("silent", connection=1))
    counters = wire.assert_mended("--connect-limit", 2000)
    assert counters["connections"] >= 2


def test_a_connection_without_a_window(wire):
    """No byte may be sent on it: the attempt limit ends the first call, and the connection is not used again."""
    wire.proxy.set_faults(AcceptFault("no_window", connection=1))
    counters = wire.assert_mended("--attempt-limit", 1000)
    calls = counters["calls"]["CreateReadSession"]
    assert len(calls) >= 2 and calls[-1]["connection"] > 1 and counters["counts"]["window updates lost"] > 0


@pytest.mark.parametrize("action,when", [(Reset(h2.INTERNAL_ERROR), "headers"), (Reset(h2.REFUSED_STREAM), "request"), (Reset(h2.ENHANCE_YOUR_CALM), "trailers"),
                                         (Close("reset"), "headers"), (Close("half"), "trailers"), (GoAway("before"), "request"), (EndStream(), "request"),
                                         (EndStream(), "trailers"), (http_answer(503), "request"), (http_answer(500), "headers"), (Freeze(), "request"), (Freeze(), "trailers")],
                         ids=lambda value: value if isinstance(value, str) else type(value).__name__)
def test_the_session_is_asked_for_again(wire, action, when):
    """Before the service saw the request, before it answered, and after its answer, which is then lost: one more session, and its streams are read."""
    wire.proxy.set_faults(Fault(action, method="CreateReadSession", call=1, when=when))
    counters = wire.assert_mended(*(["--attempt-limit", 3000] if isinstance(action, Freeze) else []))
    assert len(counters["calls"]["CreateReadSession"]) == 2
    assert len({call["stream"] for call in counters["calls"]["ReadRows"]}) == 1


def test_half_of_the_session_comes(wire):
    wire.proxy.set_faults(Fault(Close(), method="CreateReadSession", call=1, share=0.5))
    assert len(wire.assert_mended()["calls"]["CreateReadSession"]) == 2


def test_each_stream_breaks_in_its_own_place(wire):
    actions = [Reset(h2.CANCEL), Reset(h2.REFUSED_STREAM), EndStream(), status_trailers(14, "try again")]
    wire.proxy.set_faults(*[Fault(action, stream=index, messages=1, share=0.5) for index, action in enumerate(actions)])
    wire.assert_mended("--readers", "4", streams=4)
    opens = wire.proxy.opens()
    assert sorted(opens) == [0, 1, 2, 3] and all(len(offsets) == 2 for offsets in opens.values()), opens


def test_a_connection_takes_all_its_streams_with_it(wire):
    """The second call reaches the server late, so the first one's answer has begun and is held; the connection ends when the second one's begins."""
    wire.proxy.set_faults(Fault(Stall(), call=1, when="headers"), Fault(Delay(2), call=2, when="request"), Fault(Close("reset"), call=2, when="headers"))
    wire.assert_mended("--readers", "2", "--channels", "1", streams=2)
    assert {index: len(offsets) for index, offsets in wire.proxy.opens().items()} == {0: 2, 1: 2}


def test_progress_renews_the_attempts(wire):
    """U87. One message, then half of the next, in each call: six faults, and two attempts in a row are allowed."""
    wire.proxy.set_faults(Fault(Reset(h2.INTERNAL_ERROR), times=0, messages=1, share=0.5))
    wire.assert_mended("--retry-max-attempts", "3")
    assert wire.proxy.opens()[0] == sorted(set(range(0, ROWS, PER_MESSAGE)) | set(wire.proxy.opens()[0]))
    assert wire.proxy.fired()[0] >= 5


def test_an_attempt_limit_ends_calls_and_not_the_copy(wire):
    """U78, U88: each call may take two seconds, which is enough for a message or more, and not for all."""
    wire.proxy.set_faults(Fault(Trickle(8_000, 0.05 * SLOW), times=0, messages=0))
    wire.assert_mended("--attempt-limit", 2000)
    (offsets,) = wire.proxy.opens().values()
    assert len(offsets) >= 2 and offsets[-1] > 0, offsets


def test_small_messages_in_fragments(small_messages):
    """Frames of a hundred bytes, so that every prefix and message is cut somewhere; and a reset in the middle of many small messages."""
    small_messages.proxy.fragment = 100
    small_messages.proxy.set_faults(Fault(Reset(h2.INTERNAL_ERROR), call=1, messages=70, share=0.3), Fault(Close("reset"), call=2, messages=33))
    small_messages.assert_mended()
    (offsets,) = small_messages.proxy.opens().values()
    assert len(offsets) == 3 and offsets[1] <= 1400, offsets


def test_a_large_message_is_cut(headrace, serve, tmp_path):
    """A message of 24 MiB: near its end, in its middle, and then whole."""
    generator = random.Random(5)
    table = pa.table({"id": pa.array(range(24)), "blob": pa.array([generator.randbytes(1 << 20) for _ in range(24)])})
    server = serve({harness.TABLE: table}, "--message-rows", 24, "--message-bytes", "60MiB")
    with WireProxy(server.grpc) as proxy:
        wire = Wire(headrace, table, server, proxy, tmp_path)
        proxy.set_faults(Fault(Reset(h2.INTERNAL_ERROR), call=1, share=0.98), Fault(Close("reset"), call=2, share=0.5))
        counters = wire.assert_mended("--parquet-compression", "none")
    assert [call["offset"] for call in counters["calls"]["ReadRows"]] == [0, 0, 0]
    assert counters["faults"][0]["at"][0]["bytes"] > 23 << 20


@pytest.mark.parametrize("place", [{"messages": 2}, {"messages": 2, "share": 0.5}], ids=name_of)
def test_a_status_of_ok_before_the_end(wire, place):
    """Messages are lost and the call ends well. The fractions tell: the last one was not 1, so the stream is asked once more, at the rows received."""
    wire.proxy.set_faults(Fault(status_trailers(0, ""), call=1, **place))
    wire.assert_mended()
    wire.assert_reopened_once(1000, least=1000)


@pytest.mark.parametrize("place", [{"messages": 0}, {"messages": 0, "share": 0.5}], ids=name_of)
def test_a_status_of_ok_before_the_first_message(wire, place):
    """Nothing has told anything yet: it might be a stream without rows."""
    wire.proxy.set_faults(Fault(status_trailers(0, ""), call=1, **place))
    wire.assert_mended()
    (offsets,) = wire.proxy.opens().values()
    assert offsets == [0, 0], offsets


@pytest.mark.parametrize("how", ["drop", "duplicate", "swap", "flag"])
def test_whole_messages_are_lost_or_doubled(small_messages, how):
    """What no protocol below notices (gRPC 1.51 drops a message with a flag that does not exist without a word). Each response says which part of its stream it is."""
    small_messages.proxy.set_faults(Fault(Mangle(how), call=1, messages=4))
    small_messages.assert_mended()
    if how != "duplicate":
        small_messages.assert_reopened_once(80, least=80)
        return
    # Of a doubled message the first one is right. The bytes that nobody has asked for may overflow a window later, which is another fault.
    (offsets,) = small_messages.proxy.opens().values()
    assert offsets[:2] == [0, 100], offsets


def test_the_faults_of_a_seed_are_always_the_same():
    assert random_faults(7, 9, 4) == random_faults(7, 9, 4)
    assert random_faults(7, 9, 4) != random_faults(8, 9, 4)


@pytest.mark.parametrize("seed", range(4))
def test_faults_by_seed(wire, seed):
    assert wire.run_seed(seed) > 0


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_many_seeds(wire):
    """Random faults, a hundred and fifty times."""
    fired = 0
    for seed in range(1000, 1150):
        fired += wire.run_seed(seed)
        shutil.rmtree(wire.target)
    assert fired > 150
