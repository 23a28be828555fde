"""A long copy under everything at once: a fault every few thousand rows, drawn by a seed, restarts of the service, kills and resumes, cuts, checkpoints; in the end
every row is there once. HEADRACE_SOAK_SECONDS says how long (1,800 unless told otherwise); a short one runs always."""

import itertools
import os
import random
import signal
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from harness import TABLE, Server, assert_manifest_is_true, read_result, run_headrace, start_headrace, write_parquet

ROWS = 1_500_000
MENDED = [{"status": {"code": "UNAVAILABLE"}}, {"status": {"code": "INTERNAL", "message": "Received RST_STREAM with error code 2"}},
          {"status": {"code": "RESOURCE_EXHAUSTED", "message": "slow down", "retry_delay_ms": 20}}, {"drop": True}, {"delay_ms": 30}, {"duplicate": True}, {"skip": True}]


def numbered(rows):
    ids = pa.array(range(rows), pa.int64())
    return pa.table({"id": ids, "name": pc.binary_join_element_wise(ids.cast(pa.string()), pa.scalar("x" * 60), "-")})


def one_copy(headrace, server, table, directory, dice, deadline, rate):
    """A copy that dies and is resumed, while the service restarts, until it is complete. Answers how often each happened."""
    target, job = directory / "out", directory / "job"
    seen = {"faults": 0, "deaths": 0, "restarts": 0}

    def rules():
        server.set_faults({"method": "ReadRows", "every_rows": 4000, "seed": dice.randrange(1 << 30), "actions": MENDED},
                          {"method": "SplitReadStream", "call": 2, "action": {"status": {"code": "UNAVAILABLE"}}})

    rules()
    pace = ["--checkpoint-interval", "150ms", "--max-rows-per-second", rate]
    arguments = ["copy", f"bq:{TABLE}", f"{target}/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 3, "--checkpoint", job, "--quiet",
                 "--readers", 4, "--source-format", dice.choice(["arrow", "avro"]), *pace]
    for _ in range(200):
        process = start_headrace(headrace, *arguments)
        try:
            until = time.monotonic() + dice.uniform(0.5, 8)
            restart_at = time.monotonic() + dice.uniform(0.3, 4)
            while process.poll() is None and time.monotonic() < until:
                if restart_at is not None and time.monotonic() > restart_at:
                    seen["faults"] += sum(server.faults_fired())
                    server.restart()
                    rules()
                    seen["restarts"] += 1
                    restart_at = None
                time.sleep(0.01)
            if process.poll() is None:
                process.send_signal(dice.choice([signal.SIGKILL, signal.SIGTERM]))
                seen["deaths"] += 1
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        if process.returncode == 0:
            break
        young = process.returncode == -signal.SIGTERM and not any(job.glob("chk-*"))  # it had not yet learnt to stop
        assert process.returncode in (-signal.SIGKILL, 4, 1) or young, err
        # Before the first checkpoint there is nothing to resume.
        arguments = ["resume", job, "--quiet", "--readers", dice.randrange(1, 7), *pace] if any(job.glob("chk-*")) else arguments
        if time.monotonic() > deadline + 120:
            run_headrace(headrace, "resume", job, seconds=300)
            break
    seen["faults"] += sum(server.faults_fired())
    result = read_result(target)
    assert result.num_rows == table.num_rows
    assert result.sort_by("id").combine_chunks().equals(table.combine_chunks())
    assert_manifest_is_true(target)
    return seen


def soak(headrace, tmp_path, seconds, rows, rate, seed):
    dice = random.Random(seed)
    table = numbered(rows)
    file = write_parquet(table, tmp_path / "t.parquet")
    total = {"faults": 0, "deaths": 0, "restarts": 0}
    deadline = time.monotonic() + seconds
    with Server(headrace, tmp_path, "--load", f"{TABLE}={file}", "--message-rows", 700, limit_seconds=seconds + 1200) as server:
        for number in itertools.count():
            directory = tmp_path / f"copy-{number}"
            directory.mkdir()
            for name, count in one_copy(headrace, server, table, directory, dice, deadline, rate).items():
                total[name] += count
            if time.monotonic() > deadline:
                break
    print(f"soak of {seconds} s, seed {seed}: {number + 1} copies, {total}")
    assert total["faults"] > 10 and total["restarts"] > 0
    return total


@pytest.mark.timeout(300)
def test_a_short_soak(headrace, tmp_path):
    soak(headrace, tmp_path, seconds=10, rows=200_000, rate=40_000, seed=1)


@pytest.mark.long
@pytest.mark.timeout(4000)
def test_soak(headrace, tmp_path):
    total = soak(headrace, tmp_path, seconds=int(os.environ.get("HEADRACE_SOAK_SECONDS", "1800")), rows=ROWS, rate=60_000, seed=int(time.time()) % 100_000)
    assert total["deaths"] > 0
