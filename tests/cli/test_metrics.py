"""--metrics-port, and the progress of streams that the service slows down or leaves waiting."""

import json
import re
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest

from harness import TABLE, assert_same_rows, make_table, read_result, start_headrace, wait_until

ROWS = 20_000
# A line of Prometheus' text format 0.0.4.
COMMENT = re.compile(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)")
SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"\})? (-?[0-9]+)')


@pytest.fixture(scope="module")
def table():
    return make_table(ROWS, seed=13)


def parse(text):
    """{sample: value}; every line must be one of the format, each family in one piece with HELP and TYPE first."""
    values, types = {}, {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if comment := COMMENT.fullmatch(line):
            kind, name, rest = comment.groups()
            if kind == "TYPE":
                assert name not in types and rest in ("counter", "gauge"), line
                types[name] = rest
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        assert sample[1] == list(types)[-1], f"{line} is not behind its TYPE"
        assert sample[1].endswith("_total") == (types[sample[1]] == "counter"), line
        values[sample[1] + (sample[2] or "")] = int(sample[3])
    return values


class Copy:
    """A copy that runs beside the test; its standard error is read as it comes."""

    def __init__(self, headrace, *arguments):
        self.process = start_headrace(headrace, *arguments)
        self.errors = []
        self.reader = threading.Thread(target=lambda: self.errors.extend(iter(self.process.stderr.readline, "")))
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(20)
        self.reader.join(20)
        self.process.stdout.close()
        self.process.stderr.close()

    def wait_for(self, pattern, seconds=30):
        def look():
            return next((found for line in list(self.errors) if (found := re.search(pattern, line))), None) or self.process.poll() is not None

        found = wait_until(look, seconds, pattern)
        assert found is not True, f"the copy ended with {self.process.returncode}: {self.errors}"
        return found

    def end(self):
        code = self.process.wait(60)
        self.reader.join(20)
        return code, self.process.stdout.read()


def scrape(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return parse(answer.read().decode())


def test_a_throttled_copy_is_scraped_while_it_runs(serve, headrace, table, tmp_path):
    server = serve({TABLE: table}, "--throttle", "400KiB", "--message-rows", "500")
    server.set_faults({"method": "ReadRows", "after_messages": 1, "times": 1, "action": {"status": {"code": "UNAVAILABLE"}}})
    arguments = ["copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 2, "--metrics-port", 0, "--json"]
    with Copy(headrace, *arguments) as copy:
        url = copy.wait_for(r"metrics at (http://127\.0\.0\.1:[0-9]+/metrics)")[1]
        first = scrape(url)
        assert first["headrace_splits_returned_total"] == 0, "what did not happen is there"
        wait_until(lambda: copy.process.poll() is not None or scrape(url)["headrace_rows_read_total"] > first["headrace_rows_read_total"] + 1000, 30, "rows")

        def both_throttled():
            values = scrape(url)
            retried = values.get('headrace_read_retries_total{code="UNAVAILABLE"}') == 1
            return values["headrace_throttled_splits"] > 0 and values["headrace_open_splits"] == 2 and retried and values

        later = wait_until(both_throttled, 30, "a throttled split of two, one of them opened again")
        assert later["headrace_stalled_splits"] == 0 and "headrace_read_retries_total" not in later
        copy.wait_for(r'"throttled_splits": ?[12]')
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(url.replace("/metrics", "/"), timeout=10)
        code, out = copy.end()
    assert code == 0
    report = json.loads(out)
    assert report["counters"]["readRetries.UNAVAILABLE"] == 1 and report["counters"]["rowsRead"] == ROWS
    assert report["counters"]["bytesRead"] == report["bytes_read"], "nothing came twice, so that both count the same"
    assert server.faults_fired() == [1]
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", int(re.search(r":([0-9]+)/", url)[1])), timeout=5).close()
    assert_same_rows(read_result(tmp_path / "out"), table)


def test_a_port_that_is_taken_names_the_option_and_leaves_nothing(serve, run, table, tmp_path):
    server = serve({TABLE: table})
    arguments = ["copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--checkpoint", f"{tmp_path}/job"]
    taken = server.admin.rsplit(":", 1)[1]
    _, err = run(*arguments, "--metrics-port", taken, code=1)
    assert "--metrics-port" in err and taken in err
    for wrong in ("-1", "65536", "x"):
        _, err = run(*arguments, "--metrics-port", wrong, code=2)
        assert "metrics" in err
    assert server.counters()["sessions_created"] == 0
    assert not (tmp_path / "job").exists() and not (tmp_path / "out").exists()
    run("plan", f"bq:{TABLE}", "--bigquery-storage-endpoint", server.endpoint, "--metrics-port", 0, code=2)


def test_resume_serves_metrics_too_and_does_not_inherit_the_port(serve, headrace, run, table, tmp_path):
    server = serve({TABLE: table}, "--throttle", "500KiB", "--message-rows", "500")
    arguments = ["copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--checkpoint", f"{tmp_path}/job",
                 "--checkpoint-interval", "100ms", "--metrics-port", 0]
    with Copy(headrace, *arguments) as copy:
        copy.wait_for("metrics at ")
        wait_until(lambda: (tmp_path / "job" / "chk-0000000002.committed").exists() or copy.process.poll() is not None, 30, "a checkpoint")
        copy.process.kill()
    with Copy(headrace, "resume", tmp_path / "job", "--metrics-port", 0) as resumed:
        values = scrape(resumed.wait_for(r"metrics at (\S+)")[1])
        assert values["headrace_read_sessions_created_total"] == 0
        resumed.process.kill()
    _, err = run("resume", tmp_path / "job")
    assert "metrics at" not in err
    assert_same_rows(read_result(tmp_path / "out"), table)


@pytest.mark.long
@pytest.mark.parametrize("how", ["--json", "lines"])
def test_a_stream_that_the_service_leaves_waiting_is_shown_as_stalled(serve, headrace, table, tmp_path, how):
    """In real time: ten seconds without an answer. src/headrace/cli/progress_test.cc has it in virtual time."""
    server = serve({TABLE: table}, "--message-rows", "500")
    server.set_faults({"method": "ReadRows", "after_messages": 2, "times": 1, "action": {"delay_ms": 20_000}})
    arguments = ["copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, *(["--json"] if how == "--json" else [])]
    start = time.monotonic()
    with Copy(headrace, *arguments) as copy:
        copy.wait_for(r'"stalled_splits": ?1' if how == "--json" else r"  1 stalled")
        assert time.monotonic() - start > 10
        assert copy.end()[0] == 0
    assert_same_rows(read_result(tmp_path / "out"), table)
