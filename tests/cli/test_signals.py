"""Signals and the end of the program: what was decided stays, and what is told is so."""

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from harness import TABLE, make_table, start_headrace, wait_until, write_parquet


def test_a_signal_after_the_report_changes_nothing(serve, headrace, tmp_path):
    server = serve({TABLE: make_table(2_000, seed=3)}, "--throttle", "200KiB", "--message-rows", "200")
    process = start_headrace(headrace, "copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint,
                             "--metrics-port", 0, "--json")
    try:
        found = wait_until(lambda: re.search(r"metrics at http://127\.0\.0\.1:([0-9]+)/", process.stderr.readline()), 20, "the address")
        # A connection that asks nothing keeps the server of the metrics, and so the program, for a moment.
        with socket.create_connection(("127.0.0.1", int(found[1]))):
            assert json.loads(process.stdout.readline())["outcome"] == "done"
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_lock_is_free_before_the_end_is_told(serve, headrace, tmp_path):
    """Who reads that a job can be resumed resumes it: here the report waits for a reader, and the lock must not."""
    server = serve({TABLE: make_table(20_000, seed=4)}, "--throttle", "300KiB", "--message-rows", "200")
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    try:
        while True:
            os.write(writes, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writes, True)
    process = start_headrace(headrace, "copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--json",
                             "--checkpoint", f"{tmp_path}/job", "--checkpoint-interval", "100ms", stdout=writes, stderr=subprocess.DEVNULL)
    os.close(writes)
    try:
        wait_until(lambda: (tmp_path / "job" / "chk-0000000002.committed").exists(), 30, "a checkpoint")
        process.send_signal(signal.SIGTERM)

        def unlocked():
            with open(tmp_path / "job" / "lock", "rb") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
            return True

        wait_until(unlocked, 20, "the lock")
        assert process.poll() is None, "the report has nowhere to go yet"
        with open(reads, "rb") as report:
            text = report.read().lstrip(b"x")
        assert json.loads(text)["outcome"] == "stopped"
        assert process.wait(20) == 4
    finally:
        process.kill()
        process.wait(20)


def test_serve_can_be_stopped_as_soon_as_it_answers(headrace, tmp_path):
    table = write_parquet(make_table(10, seed=5), tmp_path / "t.parquet")
    for _ in range(8):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        process = start_headrace(headrace, "serve", "--load", f"{TABLE}={table}", "--port", port)

        def answers():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/headrace/health", timeout=5) as answer:
                    return answer.status == 200
            except (urllib.error.URLError, ConnectionError):
                return False

        try:
            deadline = time.monotonic() + 20
            while not answers():
                assert time.monotonic() < deadline, "the service does not answer"
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=20)
            assert process.returncode == 0, err
        finally:
            process.kill()
            process.communicate()


def test_an_old_ready_file_does_not_stand_for_a_new_service(run, tmp_path):
    ready = tmp_path / "ready.json"
    ready.write_text('{"grpc": "127.0.0.1:1", "admin": "127.0.0.1:2"}\n')
    (tmp_path / "bad.parquet").write_text("no Parquet")
    run("serve", "--load", f"{TABLE}={tmp_path}/bad.parquet", "--ready-file", ready, code=1, seconds=20)
    assert not ready.exists()
