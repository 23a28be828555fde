"""kill -9 at any moment, then resume: every row once, files and manifest consistent, one session, nothing sent again that a checkpoint covers.

The program dies by SIGKILL: at random moments (from outside) and at every named step (from inside, base/fail_point.h).
"""

import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest

import checkpoints
from harness import (FAIL_POINTS, TABLE, Server, assert_manifest_is_true, assert_same_rows, make_table, manifest, read_result, run_headrace,
                     start_headrace, wait_until, write_parquet)

ROWS = 40_000
STREAMS = 4
SMALL_MESSAGES = ["--message-rows", "500"]
SANITIZED = "SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", "")
# Rows a second that leave time for several checkpoints; a sanitized build takes longer for each. What is left at the end goes faster.
PACE = "10000" if SANITIZED else "30000"
LAST_PACE = ["--max-rows-per-second", "40000" if SANITIZED else "120000"]


@pytest.fixture(scope="module")
def table():
    return make_table(ROWS, seed=7)


@pytest.fixture(scope="module")
def table_file(table, tmp_path_factory):
    return write_parquet(table, tmp_path_factory.mktemp("table") / "t.parquet")


@pytest.fixture
def server(headrace, table_file, tmp_path):
    with Server(headrace, tmp_path, "--load", f"{TABLE}={table_file}", *SMALL_MESSAGES) as running:
        yield running


def copy_arguments(server, target, job, *more):
    return ["copy", f"bq:{TABLE}", f"{target}/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", STREAMS, "--checkpoint", job,
            "--max-rows-per-batch", "500", *more]


def assert_nothing_covered_was_sent_again(server, positions):
    """`positions`: what the checkpoints said at each resume, {stream: [rows]}. Each reopen asks for exactly that row: nothing before it is sent again
    (runtime.md: but for one message a stream, which this program does not need)."""
    for index, offsets in server.opens().items():
        for offset in offsets[1:]:
            assert offset in positions.get(index, set()), f"stream {index} was reopened at {offsets}, its checkpoints said {positions.get(index)}"


def positions_in(job, into):
    """Adds to `into` the row at which the newest checkpoint says each stream goes on. A stream in nobody's hands is still to be read from its start
    (or finished: then reading it again would double its rows, which the comparison of the rows finds)."""
    state = checkpoints.newest(job)
    held_streams = set()
    for held in state.ledger.assigned if state is not None else ():
        name = held.split.source_descriptor.decode("latin-1")
        index = int(re.search(r"/streams/(\d+)", name).group(1))
        position = held.split.position.decode("latin-1")
        into.setdefault(index, set()).add(int(position.split("@")[0]) if position else 0)
        held_streams.add(index)
    for index in set(range(STREAMS)) - held_streams:
        into.setdefault(index, set()).add(0)


def finish(headrace, server, table, target, job, positions, *resume_arguments):
    positions_in(job, positions)
    out, err = run_headrace(headrace, "resume", job, *LAST_PACE, *resume_arguments)
    assert_same_rows(read_result(target), table)
    assert_manifest_is_true(target)
    assert manifest(target)["total_rows"] == ROWS
    # A job that is done says so and does nothing.
    before = sorted(os.listdir(target))
    run_headrace(headrace, "resume", job)
    assert sorted(os.listdir(target)) == before
    return out, err


# In which of the steps (and passes) a second session is right: the process died between the service's answer and the first state that could name it.
# The first state written is checkpoint 0 (configured), the second checkpoint 1 (planned and prepared).
BEFORE_THE_PLAN_IS_DURABLE = {("job.planned", 1), ("job.prepared", 1), ("checkpoint.temp_written", 2)}
NOTHING_IS_DURABLE = {("checkpoint.temp_written", 1)}
OTHERS = [(), ("--readers", 1, "--writers", 1), ("--readers", 3, "--writers", 2), ("--readers", 2, "--writers", 5)]


PASSES = [(step, 1) for step in FAIL_POINTS]
PASSES += [(step, time) for step in FAIL_POINTS if not step.startswith(("job.", "finish.")) for time in (2, 4)]


@pytest.mark.parametrize("step,time_passed", PASSES)
def test_killed_at_every_named_step(headrace, server, table, tmp_path, step, time_passed):
    target, job = tmp_path / "out", tmp_path / "job"
    # Slow enough for several checkpoints.
    arguments = copy_arguments(server, target, job, "--checkpoint-interval", "50ms", "--max-rows-per-second", PACE, "--readers", 2, "--writers", 2)
    process = start_headrace(headrace, *arguments, "--fail-point", f"{step}:{time_passed}")
    _, err = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, f"the step was not reached: {process.returncode}\n{err}"

    positions = {}
    if (step, time_passed) in NOTHING_IS_DURABLE:
        _, err = run_headrace(headrace, "resume", job, code=1)
        assert "no checkpoint" in err
        run_headrace(headrace, *arguments)  # the same command again is all there is to do
    index = FAIL_POINTS.index(step)
    finish(headrace, server, table, target, job, positions, *OTHERS[index % len(OTHERS)])
    planned_twice = (step, time_passed) in BEFORE_THE_PLAN_IS_DURABLE
    assert server.counters()["sessions_created"] == (2 if planned_twice else 1)
    if not planned_twice:
        assert_nothing_covered_was_sent_again(server, positions)


@pytest.mark.parametrize("step", [step for step in FAIL_POINTS if not step.startswith("job.")])
def test_resume_itself_is_killed_at_every_named_step(headrace, server, table, tmp_path, step):
    target, job = tmp_path / "out", tmp_path / "job"
    slow = ("--checkpoint-interval", "50ms", "--max-rows-per-second", PACE)
    process = start_headrace(headrace, *copy_arguments(server, target, job, *slow, "--fail-point", "commit.item:2"))
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    positions = {}
    positions_in(job, positions)
    process = start_headrace(headrace, "resume", job, *slow, "--fail-point", step)
    _, err = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, f"the step was not reached: {process.returncode}\n{err}"
    finish(headrace, server, table, target, job, positions)
    assert server.counters()["sessions_created"] == 1
    assert_nothing_covered_was_sent_again(server, positions)


def kill_at_random_moments(headrace, server, table, tmp_path, seed, kills, seconds=1.2):
    """One job that is killed `kills` times at random moments of its life, each time resumed with other numbers of readers and writers."""
    dice = random.Random(seed)
    target, job = tmp_path / "out", tmp_path / "job"
    pace = ["--checkpoint-interval", "60ms", "--max-rows-per-second", str(ROWS / seconds)]
    positions = {}
    # The first life is too slow to end before its moment.
    arguments = copy_arguments(server, target, job, *pace[:-1], str(ROWS / seconds / 5))
    died = 0
    for _ in range(kills):
        process = start_headrace(headrace, *arguments)
        deadline = time.monotonic() + dice.uniform(0.02, seconds / 2)
        wait_until(lambda: process.poll() is not None or time.monotonic() > deadline, 30, "the moment to kill")
        process.kill()
        _, err = process.communicate(timeout=30)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, err
            break
        died += 1
        if checkpoints.newest_file(job) is None:
            continue  # died before anything was persisted: the same command again
        positions_in(job, positions)
        arguments = ["resume", job, *pace, "--readers", dice.randrange(1, 6), "--writers", dice.randrange(1, 4)]
    assert died > 0
    finish(headrace, server, table, target, job, positions)
    # A kill between the service's answer and the first state that names the session leaves a session that nobody reads.
    sessions = server.counters()["sessions_created"]
    read_sessions = {stream["name"].rsplit("/streams/", 1)[0] for stream in server.counters()["streams"] if stream["rows_sent"]}
    assert len(read_sessions) == 1 and sessions <= 1 + died
    assert_nothing_covered_was_sent_again(server, positions)
    return died


@pytest.mark.parametrize("seed", range(5))
def test_killed_at_random_moments(headrace, server, table, tmp_path, seed):
    # Five jobs with up to four kills each: twenty moments.
    kill_at_random_moments(headrace, server, table, tmp_path, seed, kills=4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_killed_at_many_random_moments(headrace, server, table, tmp_path, seed):
    kill_at_random_moments(headrace, server, table, tmp_path, seed, kills=8, seconds=2.5)


def killed_job(headrace, server, tmp_path, step="checkpoint.renamed:2"):
    target, job = tmp_path / "out", tmp_path / "job"
    process = start_headrace(headrace, *copy_arguments(server, target, job, "--checkpoint-interval", "50ms", "--max-rows-per-second", PACE,
                                                       "--fail-point", step))
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    return target, job


def test_a_second_resume_is_refused(headrace, server, table, tmp_path):
    target, job = killed_job(headrace, server, tmp_path)
    first = start_headrace(headrace, "resume", job, "--max-rows-per-second", "15000")
    try:
        already = checkpoints.newest_file(job)
        wait_until(lambda: first.poll() is not None or checkpoints.newest_file(job) != already or server.counters()["read_rows_calls"] > STREAMS, 30,
                   "the first resume's reads")
        assert first.poll() is None
        first.send_signal(signal.SIGSTOP)  # it holds the directory as long as the second one takes
        _, err = run_headrace(headrace, "resume", job, code=1, seconds=10)
        assert "lock" in err and str(job) in err
        first.send_signal(signal.SIGCONT)
        _, err = first.communicate(timeout=120)
        assert first.returncode == 0, err
    finally:
        first.kill()
        first.wait()
    assert_same_rows(read_result(target), table)
    assert_manifest_is_true(target)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied"])
def test_a_damaged_newest_checkpoint_is_an_error_and_not_an_older_state(headrace, server, tmp_path, damage):
    target, job = killed_job(headrace, server, tmp_path, step="commit.before:3")
    path = checkpoints.newest_file(job)
    kept = path.read_bytes()
    assert len(list(job.glob("chk-*"))) > 1, "an older checkpoint must be there to be tempted by"
    if damage == "flipped":
        middle = len(kept) // 2
        path.write_bytes(kept[:middle] + bytes([kept[middle] ^ 1]) + kept[middle + 1 :])
    else:
        path.write_bytes(kept[: len(kept) // 2] if damage == "truncated" else b"")
    files = sorted(os.listdir(target))
    _, err = run_headrace(headrace, "resume", job, code=1, seconds=10)
    assert path.name in err
    assert sorted(os.listdir(target)) == files, "a refused resume may not touch the target"
    # Nothing was lost by trying.
    path.write_bytes(kept)
    run_headrace(headrace, "resume", job, *LAST_PACE)
    assert_manifest_is_true(target)


def limit_file_size(size):
    """A file may not grow beyond `size`: the write fails with EFBIG, as with ENOSPC on a full disk."""

    def apply():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return apply


def test_no_room_for_data_is_an_error_that_can_be_resumed(headrace, server, table, tmp_path):
    target, job = tmp_path / "out", tmp_path / "job"
    _, err = run_headrace(headrace, *copy_arguments(server, target, job), code=1, seconds=60, preexec_fn=limit_file_size(100_000))
    assert "cannot write" in err and "resume" in err
    assert not (target / "_headrace_manifest.json").exists()
    positions = {}
    finish(headrace, server, table, target, job, positions)
    assert server.counters()["sessions_created"] == 1


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("full", ["data", "state"])
def test_a_full_disk_is_an_error_that_can_be_resumed(headrace, server, table, tmp_path, small_disk, full):
    """ENOSPC itself, on a file system of 300 kB: in the files of the result, or in the checkpoint directory."""
    target = (small_disk if full == "data" else tmp_path) / "out"
    job = (small_disk if full == "state" else tmp_path) / "job"
    if full == "state":
        # The first checkpoints fit; then something else fills the disk.
        process = start_headrace(headrace, *copy_arguments(server, target, job, "--checkpoint-interval", "30ms", "--max-rows-per-second", "10000"))
        wait_until(lambda: process.poll() is not None or (checkpoints.newest_file(job) or pathlib.Path()).name >= "chk-0000000003", 60, "the third checkpoint")
        filler = small_disk / "filler"
        deadline = time.monotonic() + 60
        with open(filler, "wb", buffering=0) as out:
            while process.poll() is None and time.monotonic() < deadline:  # also what an older checkpoint leaves
                try:
                    out.write(b"x" * 4096)
                except OSError:
                    time.sleep(0.001)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1, err
        filler.unlink()
    else:
        _, err = run_headrace(headrace, *copy_arguments(server, target, job), code=1, seconds=60)
    assert "No space left" in err and "resume" in err
    assert not (target / "_headrace_manifest.json").exists()
    if full == "data":
        subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    finish(headrace, server, table, target, job, {})
    assert server.counters()["sessions_created"] == 1


def test_kill_without_a_checkpoint_directory_leaves_no_result(headrace, server, tmp_path):
    """All or nothing: what is left of a killed job is not taken for a result, by nobody."""
    target = tmp_path / "out"
    process = start_headrace(headrace, "copy", f"bq:{TABLE}", f"{target}/", "--bigquery-storage-endpoint", server.endpoint, "--fail-point", "commit.before")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert not [name for name in os.listdir(target) if not name.startswith(".")]
    _, err = run_headrace(headrace, "copy", f"bq:{TABLE}", f"{target}/", "--bigquery-storage-endpoint", server.endpoint, code=None)
    shutil.rmtree(target)
    run_headrace(headrace, "copy", f"bq:{TABLE}", f"{target}/", "--bigquery-storage-endpoint", server.endpoint)
    assert_manifest_is_true(target)
