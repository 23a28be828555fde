"""headrace bench: what it says follows from what was read, and nothing is written."""

import json
import os
import signal
import time

from harness import TABLE, make_table, start_headrace, wait_until, write_parquet


def test_a_table_is_read_whole_and_measured(serve, run, tmp_path):
    table = make_table(5_000, seed=9)
    server = serve({TABLE: table}, "--message-rows", 500)
    arguments = ["bench", f"bq:{TABLE}", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 2]
    seen = json.loads(run(*arguments, "--json")[0])
    assert seen["rows"] == 5_000 and seen["whole"] and seen["responses"] == 10 and seen["retries"] == 0
    assert seen["received_bytes"] > 0 and seen["column_bytes"] > 0 and seen["peak_bytes"] > 0
    assert abs(seen["rows_per_second"] * seen["seconds"] - 5_000) < 1
    assert seen["seconds"] > 0 and seen["cpu_seconds"] > 0 and seen["cores"] == os.cpu_count()
    text = run(*arguments)[0]
    for part in (f"bq:{TABLE}", "5,000 rows", "(all of them)", "rows a second", "10 responses", "ns a row", "limit"):
        assert part in text
    assert not list(tmp_path.glob("*.parquet"))


def test_projection_and_restriction_are_measured_as_asked(serve, run):
    server = serve({TABLE: make_table(2_000, seed=3)})
    where = ["--bigquery-storage-endpoint", server.endpoint, "--json"]
    everything = json.loads(run("bench", f"bq:{TABLE}", *where)[0])
    some = json.loads(run("bench", f"bq:{TABLE}", *where, "--selected-fields", "id", "--row-restriction", "id < 100")[0])
    assert some["rows"] == 100 and some["column_bytes"] < everything["column_bytes"] / 20


def test_the_time_ends_it(serve, run):
    server = serve({TABLE: make_table(20_000, seed=4)}, "--message-rows", 50, "--throttle", 100_000)
    seen = json.loads(run("bench", f"bq:{TABLE}", "--bigquery-storage-endpoint", server.endpoint, "--duration", "3s", "--json")[0])
    assert not seen["whole"] and 0 < seen["rows"] < 20_000 and seen["seconds"] >= 3


def test_a_signal_ends_it_with_what_was_seen(serve, headrace):
    server = serve({TABLE: make_table(20_000, seed=4)}, "--message-rows", 50, "--throttle", 100_000)
    process = start_headrace(headrace, "bench", f"bq:{TABLE}", "--bigquery-storage-endpoint", server.endpoint, "--duration", "0", "--json")
    wait_until(lambda: sum(stream["rows_sent"] for stream in server.counters()["streams"]) > 500, 60, "the first rows")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    seen = json.loads(out)
    assert process.returncode == 0 and not seen["whole"] and 0 < seen["rows"] < 20_000


def silent(serve):
    """A service that sends a little and is then silent, far beyond the test's patience."""
    server = serve({TABLE: make_table(20_000, seed=4)}, "--message-rows", 500)
    server.set_faults({"method": "ReadRows", "after_messages": 2, "action": {"delay_ms": 120_000}})
    return server


def test_the_time_ends_the_wait_for_a_service_that_is_silent(serve, run):
    server = silent(serve)
    start = time.monotonic()
    seen = json.loads(run("bench", f"bq:{TABLE}", "--bigquery-storage-endpoint", server.endpoint, "--duration", "3s", "--json", seconds=60)[0])
    assert time.monotonic() - start < 20
    assert not seen["whole"] and 0 < seen["rows"] < 20_000 and 3 <= seen["seconds"] < 15


def test_a_signal_ends_the_wait_for_a_service_that_is_silent(serve, headrace):
    server = silent(serve)
    process = start_headrace(headrace, "bench", f"bq:{TABLE}", "--bigquery-storage-endpoint", server.endpoint, "--duration", "0", "--json")
    wait_until(lambda: sum(stream["rows_sent"] for stream in server.counters()["streams"]) > 500, 60, "the first rows")
    time.sleep(2)  # until the program has what was sent
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - start < 10
    seen = json.loads(out)
    assert process.returncode == 0 and not seen["whole"] and 0 < seen["rows"] < 20_000, err


def test_files_are_measured_too(run, tmp_path):
    path = write_parquet(make_table(3_000, seed=5), tmp_path / "t.parquet")
    seen = json.loads(run("bench", path, "--json")[0])
    assert seen["rows"] == 3_000 and seen["whole"] and seen["responses"] is None and seen["received_bytes"] > 0
    assert "from files" in (text := run("bench", path)[0]) and "received" not in text


def test_what_cannot_be_measured_is_refused(run, tmp_path):
    path = write_parquet(make_table(10, seed=5), tmp_path / "t.parquet")
    assert "writers" in run("bench", path, "--writers", 2, code=2)[1]
    assert "readers" in run("bench", path, "--readers", 100_000, code=2)[1]
    assert "row-restriction" in run("bench", path, "--row-restriction", "x", code=2)[1]
    assert "duration" in run("plan", path, "--duration", "1s", code=2)[1]
    run("bench", tmp_path / "nothing.parquet", code=1)
