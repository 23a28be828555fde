"""Readers without work take a part of a busy one's stream: the service's counters say that it happened, and every row is there once, whatever goes wrong with
a cut (spec: runtime.md "Work sharing", bigquery-source.md "Cut")."""

import json
import re
import signal
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from harness import CUT_FAIL_POINTS, TABLE, Server, assert_manifest_is_true, read_result, run_headrace, start_headrace, write_parquet

ROWS = 600_000  # 90 MB of Arrow buffers: enough to be cut more than seven times
READERS = 8
# Slow enough that readers without work find some: two seconds for the whole table.
PACE = ["--throttle", "45MiB", "--message-bytes", "256KiB"]


@pytest.fixture(scope="module")
def table():
    ids = pa.array(range(ROWS), pa.int64())
    names = pc.binary_join_element_wise(ids.cast(pa.string()), pa.scalar("x" * 120), "-")
    return pa.table({"id": ids, "name": names})


@pytest.fixture(scope="module")
def table_file(table, tmp_path_factory):
    return write_parquet(table, tmp_path_factory.mktemp("huge") / "t.parquet")


@pytest.fixture
def start(headrace, table_file, tmp_path):
    """start(*options, pace=PACE) starts a service of the table."""
    running = []

    def start_server(*options, pace=PACE):
        running.append(Server(headrace, tmp_path, "--load", f"{TABLE}={table_file}", *pace, *options))
        running[-1].start()
        return running[-1]

    yield start_server
    for server in running:
        server.stop()


def copy_arguments(server, target, *more, readers=READERS):
    return ["copy", f"bq:{TABLE}", f"{target}/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 1, "--readers", readers, "--json", *more]


def assert_rows_once(target, table):
    result = read_result(target)
    assert result.num_rows == table.num_rows
    assert result.sort_by("id").select(["id", "name"]).combine_chunks().equals(table.combine_chunks())
    assert_manifest_is_true(target)


def report_of(out):
    return json.loads(out.strip().splitlines()[-1])


def parts(server):
    return [stream for stream in server.counters()["streams"] if stream["part"] != "original"]


def test_one_huge_stream_is_shared_by_eight_readers(headrace, start, table, tmp_path):
    server = start(pace=["--throttle", "20MiB", "--message-bytes", "256KiB"])  # time for seven cuts
    out, _ = run_headrace(headrace, *copy_arguments(server, tmp_path / "out"))
    assert_rows_once(tmp_path / "out", table)
    counters = server.counters()
    report = report_of(out)["report"] if "report" in report_of(out) else report_of(out)
    assert counters["splits_accepted"] >= 7
    assert report["cuts"] >= 7
    assert counters["sessions_created"] == 1
    # The server sent each row once, but for what was on its way to a call that was left for its near part.
    sent = sum(stream["rows_sent"] for stream in counters["streams"])
    window = 16 << 20
    assert sent - ROWS <= counters["splits_accepted"] * (window // 150)


@pytest.mark.parametrize("option,readers", [(["--work-sharing", "false"], READERS), (["--ordered"], 1)])
def test_off_is_off(headrace, start, table, tmp_path, option, readers):
    server = start()
    run_headrace(headrace, *copy_arguments(server, tmp_path / "out", *option, readers=readers))
    assert_rows_once(tmp_path / "out", table)
    assert server.counters()["split_calls"] == 0


@pytest.mark.parametrize("wire", [["--source-format", "avro"], ["--compression", "zstd"], ["--response-compression", "lz4"], ["--row-restriction", "id >= 0"],
                                  ["--selected-fields", "name,id"]])
def test_parts_are_read_as_the_stream_is(headrace, start, table, tmp_path, wire):
    server = start()
    run_headrace(headrace, *copy_arguments(server, tmp_path / "out"), *wire)
    assert_rows_once(tmp_path / "out", table)
    if wire[0] not in ("--compression", "--response-compression"):  # those make the table small enough to be read before anybody asks
        assert server.counters()["splits_accepted"] >= 1


def status(code, **more):
    return {"method": "SplitReadStream", "action": {"status": {"code": code, "message": "scripted"}}, **more}


@pytest.mark.parametrize("code,asked_again", [("UNIMPLEMENTED", False), ("PERMISSION_DENIED", False), ("NOT_FOUND", False), ("RESOURCE_EXHAUSTED", True)])
def test_a_refused_split_changes_nothing(headrace, start, table, tmp_path, code, asked_again):
    server = start()
    server.set_faults(status(code))
    run_headrace(headrace, *copy_arguments(server, tmp_path / "out"))
    assert_rows_once(tmp_path / "out", table)
    fired = server.faults_fired()[0]
    assert fired >= 1
    if not asked_again:
        assert fired == 1, "the stream is not asked again"
    assert not parts(server)


def test_a_split_that_fails_in_passing_is_tried_again(headrace, start, table, tmp_path):
    server = start()
    server.set_faults(status("UNAVAILABLE", times=2))
    run_headrace(headrace, *copy_arguments(server, tmp_path / "out"))
    assert_rows_once(tmp_path / "out", table)
    assert server.faults_fired() == [2]
    assert server.counters()["splits_accepted"] >= 1


def test_a_server_that_ignores_offsets_of_parts_is_noticed(headrace, start, table, tmp_path):
    server = start("--ignore-offsets", "children")
    _, err = run_headrace(headrace, *copy_arguments(server, tmp_path / "out"))
    assert_rows_once(tmp_path / "out", table)
    assert "ignores offsets" in err
    counters = server.counters()
    assert 1 <= counters["split_calls"] <= READERS
    # A cut before anything was received has a near part without an offset, which the server cannot ignore.
    opened = [(part["part"], part["opens"][0]["offset"]) for part in parts(server) if part["opens"]]
    believed = opened.count(("primary", 0))
    assert sum(name == "remainder" for name, _ in opened) <= believed, "no far part is read when the near one is not believed"


def test_the_stream_may_end_before_the_split_is_answered(headrace, start, table, tmp_path):
    server = start()
    server.set_faults({"method": "SplitReadStream", "action": {"delay_ms": 60_000}})
    run_headrace(headrace, *copy_arguments(server, tmp_path / "out"), seconds=50)
    assert_rows_once(tmp_path / "out", table)
    assert not parts(server)


def test_a_near_part_that_cannot_be_opened_is_left(headrace, start, table, tmp_path):
    server = start()
    # The first call is the stream itself, the next one the near part of the first split.
    server.set_faults({"method": "ReadRows", "call": 2, "action": {"status": {"code": "UNAVAILABLE", "message": "scripted"}}})
    run_headrace(headrace, *copy_arguments(server, tmp_path / "out"))
    assert_rows_once(tmp_path / "out", table)
    assert server.faults_fired() == [1]


def test_a_reader_that_fails_while_it_is_asked_hands_back_the_whole_stream(headrace, start, table, tmp_path):
    server = start()
    server.set_faults({"method": "SplitReadStream", "call": 1, "action": {"delay_ms": 3000}},
                      {"method": "ReadRows", "call": 1, "after_messages": 20, "action": {"status": {"code": "UNAVAILABLE", "message": "scripted"}}})
    job = tmp_path / "job"
    out, _ = run_headrace(headrace, *copy_arguments(server, tmp_path / "out", "--checkpoint", job, "--retry-max-attempts", 1, "--restart-attempts", 5,
                                                    "--restart-delay", "10ms"))
    assert_rows_once(tmp_path / "out", table)
    assert server.faults_fired() == [1, 1]
    assert server.counters()["sessions_created"] == 1


@pytest.mark.parametrize("passed", [1, 3])
@pytest.mark.parametrize("step", CUT_FAIL_POINTS)
def test_killed_at_every_step_of_a_cut(headrace, start, table, tmp_path, step, passed):
    server = start()
    target, job = tmp_path / "out", tmp_path / "job"
    process = start_headrace(headrace, *copy_arguments(server, target, "--checkpoint", job, "--checkpoint-interval", "40ms", "--fail-point", f"{step}:{passed}"))
    _, err = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, f"the step was not reached: {process.returncode}\n{err}"
    run_headrace(headrace, "resume", job, "--readers", 1 + passed)
    assert_rows_once(target, table)
    assert server.counters()["sessions_created"] == 1


def test_checkpoints_between_and_behind_cuts_hold_both_parts(headrace, start, table, tmp_path):
    """Killed again and again by its own checkpoints while streams are being cut, and resumed with other numbers of readers."""
    server = start()
    target, job = tmp_path / "out", tmp_path / "job"
    arguments = copy_arguments(server, target, "--checkpoint", job, "--checkpoint-interval", "60ms")
    deaths = 0
    for life, step in enumerate(["checkpoint.renamed:4", "commit.before:3", "checkpoint.barrier:3", "commit.recorded:2"]):
        process = start_headrace(headrace, *arguments, "--fail-point", step)
        _, err = process.communicate(timeout=120)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, err
        deaths += 1
        arguments = ["resume", job, "--readers", 3 + life, "--checkpoint-interval", "60ms"]
    assert deaths >= 2
    run_headrace(headrace, "resume", job)
    assert_rows_once(target, table)
    assert server.counters()["sessions_created"] == 1


def test_the_report_and_the_server_agree(headrace, start, table, tmp_path):
    server = start()
    out, _ = run_headrace(headrace, *copy_arguments(server, tmp_path / "out"))
    text = out + json.dumps(report_of(out))
    made = int(re.search(r'"cuts": ?(\d+)', text).group(1))
    far_read = {part["name"] for part in parts(server) if part["part"] == "remainder" and part["opens"]}
    assert made == len(far_read) > 0


def seconds_of(headrace, serve_options, tables, tmp_path, readers, *arguments):
    with Server(headrace, tmp_path, *tables, *serve_options) as server:
        began = time.monotonic()
        run_headrace(headrace, "copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--readers", readers, "--overwrite", *arguments)
        return time.monotonic() - began, server.counters()


@pytest.mark.long
def test_skewed_streams_take_little_longer_than_balanced_ones(headrace, tmp_path):
    """Streams of 10 MB/s each. Skew 10:1: of two streams of the same number of rows one has rows ten times as long."""
    def rows(first_width, second_width, count):
        ids = pa.array(range(count), pa.int64())
        widths = [first_width] * (count // 2) + [second_width] * (count - count // 2)
        return pa.table({"id": ids, "name": pa.array(["x" * width for width in widths])})

    options = ["--stream-throttle", "10MB", "--message-bytes", "256KiB"]
    count, wide = 200_000, 1820
    skewed = write_parquet(rows(wide, wide // 10, count), tmp_path / "skewed.parquet")
    balanced = write_parquet(rows((wide + wide // 10) // 2, (wide + wide // 10) // 2, count), tmp_path / "balanced.parquet")
    ratios = []
    for _ in range(3):
        even, _ = seconds_of(headrace, options, ["--load", f"{TABLE}={balanced}"], tmp_path, 2, "--max-stream-count", 2, "--work-sharing", "false")
        skew, counters = seconds_of(headrace, options, ["--load", f"{TABLE}={skewed}"], tmp_path, 2, "--max-stream-count", 2)
        assert counters["splits_accepted"] >= 1
        ratios.append(skew / even)
    print("skewed / balanced:", [round(ratio, 2) for ratio in ratios])
    assert sorted(ratios)[1] <= 1.3
