"""Resident memory stays within docs/guarantees.md "Memory": one and a half times `memory_limit`, and the program itself."""

import json
import os
import random
import re
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from harness import TABLE, Server, read_result, run_headrace, start_headrace, wait_until, write_parquet

MIB = 1 << 20
# The program with its buffers, gRPC's threads and the allocator's slack (docs/guarantees.md).
BASE = 200 * MIB


def narrow(rows, width=120):
    ids = pa.array(range(rows), pa.int64())
    return pa.table({"id": ids, "name": pc.binary_join_element_wise(ids.cast(pa.string()), pa.scalar("x" * width), "-")})


def incompressible(rows, width=120):
    dice = random.Random(1)
    block = [dice.randbytes(width) for _ in range(1000)]
    return pa.table({"id": pa.array(range(rows), pa.int64()), "name": pa.array([block[i % 1000] for i in range(rows)], pa.binary())})


def wide(rows, columns=1000):
    ids = pa.array(range(rows), pa.int64())
    return pa.table({"id": ids, **{f"c{i}": pc.add(ids, i) for i in range(1, columns)}})


@pytest.fixture
def copied(headrace, tmp_path):
    """copied(table, limit, serve options, *copy options) -> report, after the rows were counted."""

    def copy(table, limit, serve, *arguments, seconds=300):
        file = write_parquet(table, tmp_path / "t.parquet")
        with Server(headrace, tmp_path, "--load", f"{TABLE}={file}", *serve) as server:
            out, _ = run_headrace(headrace, "copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--json", "--memory-limit",
                                  f"{limit}MiB", *arguments, seconds=seconds)
        report = json.loads(out.strip().splitlines()[-1])
        report = report.get("report", report)
        assert report["rows_written"] == table.num_rows
        assert report["peak_resident_bytes"] > 0
        return report

    return copy


def assert_within(report, limit):
    # Rows and report were right; what is resident is mostly the sanitizer's own.
    if "SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", ""):
        pytest.skip("resident memory of a sanitized build proves nothing")
    resident = report["peak_resident_bytes"]
    assert resident <= limit * MIB * 3 // 2 + BASE, f"{resident / MIB:.0f} MiB resident with memory_limit {limit} MiB"


def test_many_readers_and_a_small_limit(copied):
    report = copied(narrow(300_000), 64, [], "--max-stream-count", 64, "--readers", 64)
    assert_within(report, 64)


def test_a_slow_consumer_holds_no_more(copied):
    """The rows wait in the service, not here."""
    report = copied(narrow(300_000), 32, [], "--max-stream-count", 8, "--readers", 8, "--max-bytes-per-second", "15MiB")
    assert_within(report, 32)


@pytest.mark.parametrize("codec", [["--compression", "zstd"], ["--response-compression", "lz4"]])
def test_what_becomes_twenty_times_as_large_when_decompressed(copied, codec):
    report = copied(narrow(400_000, 400), 64, ["--message-bytes", "32MiB"], "--max-stream-count", 4, "--readers", 4, *codec)
    assert report["bytes_in_memory"] > 8 * report["bytes_read"], "the table is not compressible enough for this test"
    assert_within(report, 64)


@pytest.mark.long
def test_streams_of_large_messages(copied):
    """32 streams of messages of 32 MiB."""
    report = copied(narrow(640, 1_600_000), 512, ["--message-bytes", "32MiB"], "--max-stream-count", 32, "--readers", 32)
    assert_within(report, 512)


@pytest.mark.long
def test_a_message_of_128_mib(headrace, tmp_path):
    """The largest of the service (fact R10), with a limit that is smaller: it is let through alone."""
    table = pa.table({"id": [0, 1, 2], "name": pa.array([bytes([i]) * (128 * MIB - 1000) for i in range(3)], pa.binary())})
    file = tmp_path / "t.arrow"
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    with Server(headrace, tmp_path, "--load", f"{TABLE}={file}") as server:
        run_headrace(headrace, "copy", f"bq:{TABLE}", f"{tmp_path}/out.parquet", "--bigquery-storage-endpoint", server.endpoint, "--memory-limit", "64MiB",
                     "--max-stream-count", 1, "--work-sharing", "false", seconds=200)
        sent = server.counters()["streams"][0]
        assert sent["messages_sent"] == 3 and sent["bytes_sent"] > 3 * 127 * MIB, sent
    assert read_result(tmp_path / "out.parquet").equals(table.cast(read_result(tmp_path / "out.parquet").schema))


@pytest.mark.long
def test_a_table_of_fifty_times_the_limit(copied):
    report = copied(incompressible(5_200_000, 150), 16, [], "--max-stream-count", 4, "--readers", 4, seconds=600)
    assert report["bytes_in_memory"] >= 50 * 16 * MIB
    assert_within(report, 16)


@pytest.mark.long
def test_wide_rows(copied):
    # Besides the limit: about a hundred kilobytes a column and Parquet writer.
    report = copied(wide(60_000), 64, [], "--max-stream-count", 2, "--readers", 2, "--writers", 1)
    report["peak_resident_bytes"] -= 1000 * 100_000
    assert_within(report, 64)


def resident(process):
    text = open(f"/proc/{process.pid}/status", encoding="ascii").read()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) * 1024


@pytest.mark.long
def test_a_thousand_checkpoints_hold_no_more_than_a_hundred(headrace, tmp_path):
    table = narrow(1_500_000)
    file = write_parquet(table, tmp_path / "t.parquet")
    job = tmp_path / "job"

    def checkpoints():
        numbers = [int(found.group(1)) for path in job.glob("chk-*") if (found := re.fullmatch(r"chk-0*(\d+)", path.name))]
        return max(numbers, default=0)

    with Server(headrace, tmp_path, "--load", f"{TABLE}={file}") as server:
        process = start_headrace(headrace, "copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--checkpoint", job,
                                 "--checkpoint-interval", "20ms", "--max-rows-per-second", 10_000, "--max-rows-per-batch", 500, "--memory-limit", "64MiB", "--quiet")
        try:
            wait_until(lambda: checkpoints() >= 100 or process.poll() is not None, 120, "checkpoint 100")
            early = [resident(process) for _ in range(60) if time.sleep(0.05) is None]
            wait_until(lambda: checkpoints() >= 1000 or process.poll() is not None, 400, "checkpoint 1000")
            assert process.poll() is None, "it ended before checkpoint 1000"
            late = [resident(process) for _ in range(60) if time.sleep(0.05) is None]
        finally:
            process.kill()
            process.communicate()
    # The least of three seconds: what comes and goes with the batches on their way is no growth.
    assert min(late) <= 1.05 * min(early), f"{early} then {late}"


def test_batches_of_one_row(headrace, tmp_path):
    """Of these nearly everything is the batches' own objects: 400,000 rows of two BOOLs waited as 550 MiB for a writer that counted their values."""
    rows = 300_000
    file = write_parquet(pa.table({"a": [i % 3 == 0 for i in range(rows)], "b": [i % 5 == 0 for i in range(rows)]}), tmp_path / "t.parquet")
    out, _ = run_headrace(headrace, "copy", file, tmp_path / "out.parquet", "--max-rows-per-batch", 1, "--memory-limit", "32MiB", "--json")
    report = json.loads(out.strip().splitlines()[-1])
    report = report.get("report", report)
    assert report["rows_written"] == rows
    assert_within(report, 32)
