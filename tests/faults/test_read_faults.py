"""Faults between the service and a copy. Each test proves by the server's counters that its fault fired, and at which offset every stream was reopened."""

import json
import time

import pytest

from harness import TABLE, Server, assert_manifest_is_true, assert_same_rows, make_table, read_result, run_headrace, start_headrace, wait_until, write_parquet

ROWS = 2_900
PER_MESSAGE = 500
MESSAGES = [min(PER_MESSAGE, ROWS - start) for start in range(0, ROWS, PER_MESSAGE)]
# The limit for every error that no retry can mend.
CLEAR_ERROR_SECONDS = 10


@pytest.fixture(scope="module")
def table():
    return make_table(ROWS, seed=11)


@pytest.fixture(scope="module")
def table_file(table, tmp_path_factory):
    return write_parquet(table, tmp_path_factory.mktemp("table") / "t.parquet")


@pytest.fixture
def start_server(headrace, table_file, tmp_path):
    running = []

    def start(*arguments, load=table_file):
        running.append(Server(headrace, tmp_path, "--load", f"{TABLE}={load}", "--message-rows", PER_MESSAGE, *arguments))
        running[-1].start()
        return running[-1]

    yield start
    for server in running:
        server.stop()


def copy(headrace, server, target, *more, streams=1, **how):
    return run_headrace(headrace, "copy", f"bq:{TABLE}", f"{target}/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", streams, *more, **how)


def status(code, message="scripted", **more):
    return {"status": {"code": code, "message": message, **more}}


def rule(action, method="ReadRows", call=1, **more):
    return {"method": method, "call": call, "action": action, **more}


# About ten seconds for the table; a service that is started again knows nothing of it.
SLOWED_DOWN = rule({"throttle_bytes_per_second": 60_000}, call="every")


@pytest.mark.parametrize("code", ["UNAVAILABLE", "INTERNAL"])
@pytest.mark.parametrize("after", [*range(len(MESSAGES)), "after_last"])
def test_a_status_after_each_message(headrace, start_server, table, tmp_path, code, after):
    """Specs 24, 30 and the retry table: a reopen goes on behind the rows that came, also when all came and only the OK is missing (R1)."""
    server = start_server()
    message = "Received RST_STREAM with error code 2" if code == "INTERNAL" else "try again"
    server.set_faults(rule(status(code, message), after_messages=after))
    copy(headrace, server, tmp_path / "out")
    assert_same_rows(read_result(tmp_path / "out"), table)
    assert server.faults_fired() == [1]
    received = sum(MESSAGES) if after == "after_last" else sum(MESSAGES[:after])
    assert server.opens() == {0: [0, received]}


def test_every_stream_fails_in_its_own_place(headrace, start_server, table, tmp_path):
    server = start_server()
    server.set_faults(*[rule(status("UNAVAILABLE"), match={"stream": stream}, after_messages=stream % 3) for stream in range(4)])
    copy(headrace, server, tmp_path / "out", streams=4)
    assert_same_rows(read_result(tmp_path / "out"), table)
    assert server.faults_fired() == [1, 1, 1, 1]
    assert {stream: offsets[0] for stream, offsets in server.opens().items()} == {0: 0, 1: 0, 2: 0, 3: 0}
    assert {stream: len(offsets) for stream, offsets in server.opens().items()} == {0: 2, 1: 2, 2: 2, 3: 2}


def test_many_faults_in_a_row_renew_the_budget_after_each_row(headrace, start_server, table, tmp_path):
    """Twenty-five attempts without progress, not twenty-five attempts: a delivered row renews them."""
    server = start_server()
    server.set_faults(rule(status("UNAVAILABLE"), call="every", times=5, after_messages=1))
    copy(headrace, server, tmp_path / "out", "--retry-max-attempts", 2)
    assert_same_rows(read_result(tmp_path / "out"), table)
    assert server.faults_fired() == [5]
    assert server.opens() == {0: [0, 500, 1000, 1500, 2000, 2500]}


@pytest.mark.parametrize("after", [0, 2, 5])
def test_the_connection_is_dropped(headrace, start_server, table, tmp_path, after):
    server = start_server()
    server.set_faults(rule({"drop": True}, after_messages=after))
    copy(headrace, server, tmp_path / "out")
    assert_same_rows(read_result(tmp_path / "out"), table)
    assert server.faults_fired() == [1]
    first, second = server.opens()[0]
    # What was on the way when the connection broke may be lost; nothing else may be asked for again.
    assert first == 0 and second <= sum(MESSAGES[:after]) and second % PER_MESSAGE == 0


def test_the_server_is_restarted(headrace, start_server, table, tmp_path):
    """Killed and started again on its ports, with the same table: the session's name is all it needs."""
    server = start_server()
    server.set_faults(SLOWED_DOWN)
    target = tmp_path / "out"
    process = start_headrace(headrace, "copy", f"bq:{TABLE}", f"{target}/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 2)
    try:
        wait_until(lambda: sum(stream["rows_sent"] for stream in server.counters()["streams"]) >= 2 * PER_MESSAGE, 60, "the first messages")
        before = server.counters()
        server.restart()
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    finally:
        process.kill()
        process.wait()
    assert_same_rows(read_result(target), table)
    assert before["sessions_created"] == 1 and server.counters()["sessions_created"] == 0
    reopened = [offset for offsets in server.opens().values() for offset in offsets]
    assert reopened and any(offset > 0 for offset in reopened), "after the restart no stream went on in its middle"
    for stream in server.counters()["streams"]:
        assert stream["opens"][0]["offset"] + stream["rows_sent"] <= ROWS


def test_exhausted_with_retry_info_waits_as_told(headrace, start_server, table, tmp_path):
    server = start_server()
    server.set_faults(rule(status("RESOURCE_EXHAUSTED", retry_delay_ms=700), after_messages=2))
    started = time.monotonic()
    copy(headrace, server, tmp_path / "out")
    assert time.monotonic() - started >= 0.7
    assert_same_rows(read_result(tmp_path / "out"), table)
    assert server.faults_fired() == [1]
    assert server.opens() == {0: [0, 1000]}


def error_of(headrace, server, target, *more, **how):
    """A copy that must fail clearly and soon: (the words for people, the error for programs)."""
    started = time.monotonic()
    out, err = copy(headrace, server, target, "--json", *more, code=1, seconds=60, **how)
    assert time.monotonic() - started < CLEAR_ERROR_SECONDS
    assert not (target / "_headrace_manifest.json").exists()
    leftovers = list(target.iterdir()) if target.exists() else []
    assert leftovers == [], "a failed copy without a checkpoint leaves nothing behind"
    error = json.loads(out)["error"]
    return error["message"], error


@pytest.mark.parametrize("method,code", [("ReadRows", "RESOURCE_EXHAUSTED"), ("ReadRows", "PERMISSION_DENIED"), ("ReadRows", "FAILED_PRECONDITION"),
                                         ("ReadRows", "INVALID_ARGUMENT"), ("ReadRows", "NOT_FOUND"), ("ReadRows", "DATA_LOSS"),
                                         ("ReadRows", "INTERNAL"), ("CreateReadSession", "PERMISSION_DENIED"), ("CreateReadSession", "RESOURCE_EXHAUSTED"),
                                         ("CreateReadSession", "INVALID_ARGUMENT"), ("CreateReadSession", "UNAUTHENTICATED")])
def test_what_no_retry_can_mend(headrace, start_server, tmp_path, method, code):
    server = start_server()
    server.set_faults(rule(status(code, "the service's own words"), method=method, call="every", after_messages=2 if method == "ReadRows" else 0))
    err, error = error_of(headrace, server, tmp_path / "out")
    assert server.faults_fired() == [1], "it was tried again"
    assert error["code"] == code and "the service's own words" in err
    if method == "ReadRows":
        assert "/streams/0" in err and "1000" in err, "the error names stream and offset"
        assert server.opens() == {0: [0]}
    if code == "PERMISSION_DENIED" and method == "CreateReadSession":
        assert "bigquery.readsessions.create" in err and "roles/bigquery.readSessionUser" in err


def test_an_unknown_table(headrace, start_server, tmp_path):
    server = start_server()
    out, err = run_headrace(headrace, "copy", "bq:test-project.data.absent", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, code=1, seconds=CLEAR_ERROR_SECONDS)
    assert "test-project" in err and "absent" in err and "NOT_FOUND" in err


def test_a_view(headrace, start_server, tmp_path):
    """R14: the service's code is INVALID_ARGUMENT; the error says what the name is and what can be done."""
    server = start_server("--view", "test-project.data.v")
    out, err = run_headrace(headrace, "copy", "bq:test-project.data.v", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, code=1, seconds=CLEAR_ERROR_SECONDS)
    assert "non-table entities" in err and "view" in err


def test_an_offset_beyond_the_end(headrace, start_server, tmp_path):
    """R2: the table shrank while the server was away; the stream has fewer rows than were already read."""
    table_file = write_parquet(make_table(ROWS, seed=3), tmp_path / "changing.parquet")
    server = start_server(load=table_file)
    server.set_faults(SLOWED_DOWN)
    target = tmp_path / "out"
    process = start_headrace(headrace, "copy", f"bq:{TABLE}", f"{target}/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 1)
    try:
        wait_until(lambda: sum(stream["rows_sent"] for stream in server.counters()["streams"]) >= 2 * PER_MESSAGE, 60, "the first messages")
        server.stop()
        write_parquet(make_table(10, seed=3), table_file)
        server.start()
        started = time.monotonic()  # from here on there is somebody who can answer
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - started < CLEAR_ERROR_SECONDS
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1, err
    assert "FAILED_PRECONDITION" in err and "/streams/0" in err
    assert list(server.opens().values()) == [[offset] for offset in [next(iter(server.opens()[0]))]] and server.opens()[0][0] > 10
    assert not list(target.glob("*"))


def test_a_server_that_never_comes_back(headrace, start_server, tmp_path):
    server = start_server()
    server.set_faults(rule(status("UNAVAILABLE", "gone"), call="every", after_messages=1))
    server.set_faults(rule(status("UNAVAILABLE", "gone"), call="every"))
    started = time.monotonic()
    _, err = copy(headrace, server, tmp_path / "out", "--retry-max-attempts", 4, code=1)
    assert time.monotonic() - started < CLEAR_ERROR_SECONDS
    assert "UNAVAILABLE" in err and "4" in err
    assert server.faults_fired() == [4]


def test_a_failure_with_a_checkpoint_can_be_resumed(headrace, start_server, table, tmp_path):
    server = start_server()
    target, job = tmp_path / "out", tmp_path / "job"
    server.set_faults(rule(status("PERMISSION_DENIED"), call="every", after_messages=3))
    _, err = copy(headrace, server, target, "--checkpoint", job, code=1)
    assert f"headrace resume {job}" in err
    server.set_faults()
    run_headrace(headrace, "resume", job)
    assert_same_rows(read_result(target), table)
    assert_manifest_is_true(target)
    assert server.counters()["sessions_created"] == 1
