"""Starts the real programs for the suites: `headrace serve` on a free port, `headrace` with a deadline, tables to move and ways to compare them."""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time
import urllib.request
from datetime import date, datetime, time as clock_time, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

import canary

TABLE = "test-project.data.t"
MANIFEST = "_headrace_manifest.json"
# The named steps, in order, as base/fail_point.h lists them: those of every job with checkpoints, and those of a cut.
_STEPS = re.findall(r'^ +"([a-z_.]+)",', (pathlib.Path(__file__).resolve().parents[1] / "src/headrace/base/fail_point.h").read_text(), re.M)
FAIL_POINTS = [step for step in _STEPS if not step.startswith("cut.")]
CUT_FAIL_POINTS = [step for step in _STEPS if step.startswith("cut.")]
# Sanitizer builds reserve terabytes of address space, so only plain builds get the limit.
SERVER_ADDRESS_SPACE = 8 << 30


class Server:
    """`headrace serve` as a process of its own. Start it with `with`; ports stay the same over `restart`."""

    def __init__(self, program, directory, *arguments, limit_seconds=600):
        self.program = str(program)
        self.directory = pathlib.Path(directory)
        self.arguments = [str(argument) for argument in arguments]
        self.limit_seconds = limit_seconds
        self.process = None
        self.grpc = self.admin = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        ready = self.directory / f"ready-{time.monotonic_ns()}.json"
        # Small tables in several streams, which the real service does not give.
        command = [*_limited_address_space(), "timeout", "--kill-after=5", str(self.limit_seconds), self.program, "serve", "--ready-file", str(ready), "--streams-as-asked", *self.arguments]
        if self.grpc:
            command += ["--grpc-port", self.grpc.rsplit(":", 1)[1], "--port", self.admin.rsplit(":", 1)[1]]
        self.log = open(self.directory / "server.log", "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait_until(lambda: ready.exists() or self.process.poll() is not None, 60, "the server's ready file")
        if not ready.exists():
            raise AssertionError(f"headrace serve ended with {self.process.returncode}: {(self.directory / 'server.log').read_text()[-4000:]}")
        addresses = json.loads(ready.read_text())
        self.grpc, self.admin = addresses["grpc"], addresses["admin"]

    def stop(self, how=signal.SIGTERM):
        if self.process is None:
            return
        # The signal goes to the program itself: `timeout` is its parent and passes TERM on, but not KILL.
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False).stdout.split()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), how)
        try:
            self.process.wait(20)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self.log.close()
            self.process = None

    def restart(self, how=signal.SIGKILL):
        self.stop(how)
        self.start()

    @property
    def endpoint(self):
        return "http://" + self.grpc

    def counters(self):
        with urllib.request.urlopen(f"http://{self.admin}/headrace/counters", timeout=10) as answer:
            return json.load(answer)

    def set_faults(self, *rules):
        request = urllib.request.Request(f"http://{self.admin}/headrace/faults", data=json.dumps({"rules": list(rules)}).encode(), method="POST",
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status in (200, 204)

    def faults_fired(self):
        return [rule["fired"] for rule in self.counters()["faults"]]

    def opens(self):
        """{stream index: [offset of each ReadRows call]}, without the parts of streams that were split."""
        return {stream["index"]: [call["offset"] for call in stream["opens"]] for stream in self.counters()["streams"] if stream["part"] == "original"}


def _limited_address_space():
    """A command in front of the server's. Not a preexec_fn: with one Python forks, which a gRPC client in this process does not always survive."""
    return [] if "SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", "") else ["prlimit", f"--as={SERVER_ADDRESS_SPACE}"]


def wait_until(condition, seconds, what):
    """Polls `condition` until it is true; AssertionError naming `what` when `seconds` have passed."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"no sign of {what} within {seconds} s"
        time.sleep(0.005)
    return answer


def start_headrace(program, *arguments, **popen):
    popen.setdefault("stdout", subprocess.PIPE)
    popen.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([str(program), *map(str, arguments)], stdin=subprocess.DEVNULL, text=True, **popen)


def run_headrace(program, *arguments, code=0, seconds=120, **popen):
    """Runs the program to its end; checks the exit code; answers (stdout, stderr)."""
    process = start_headrace(program, *arguments, **popen)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"headrace {' '.join(map(str, arguments))} did not end within {seconds} s\n{out}\n{err}") from None
    assert not (found := canary.found_in(out or "") + canary.found_in(err or "")), f"a canary is in the output: {found}"
    if code is not None:
        assert process.returncode == code, f"exit code {process.returncode}, not {code}: headrace {' '.join(map(str, arguments))}\n{out}\n{err}"
    return out, err


def make_table(rows, seed=1):
    """Random rows of every scalar type, a list and a struct, with nulls; `id` is the row number."""
    generator = random.Random(seed)

    def column(make):
        return [None if generator.random() < 0.1 else make() for _ in range(rows)]

    day = date(1, 1, 1)
    start = datetime(1, 1, 1)
    last_day = (date(9999, 12, 31) - day).days
    last_micro = int((datetime(9999, 12, 31, 23, 59, 59, 999999) - start) / timedelta(microseconds=1))
    columns = {
        "id": pa.array(range(rows), pa.int64()),
        "Flag": pa.array(column(lambda: generator.random() < 0.5), pa.bool_()),
        "score": pa.array(column(lambda: generator.uniform(-1e9, 1e9)), pa.float64()),
        "name": pa.array(column(lambda: generator.choice(["", "a", "Ærø", "x" * generator.randrange(40)])), pa.string()),
        "payload": pa.array(column(lambda: generator.randbytes(generator.randrange(12))), pa.binary()),
        "amount": pa.array(column(lambda: Decimal(generator.randrange(-(10**20), 10**20)).scaleb(-9)), pa.decimal128(38, 9)),
        "day": pa.array(column(lambda: day + timedelta(days=generator.randrange(last_day + 1))), pa.date32()),
        "at_time": pa.array(column(lambda: clock_time(generator.randrange(24), 5, 6, generator.randrange(10**6))), pa.time64("us")),
        "civil": pa.array(column(lambda: start + timedelta(microseconds=generator.randrange(last_micro + 1))), pa.timestamp("us")),
        "moment": pa.array(column(lambda: (start + timedelta(microseconds=generator.randrange(last_micro + 1))).replace(tzinfo=timezone.utc)),
                           pa.timestamp("us", "UTC")),
        "tags": pa.array([[generator.choice(["p", "q", ""]) for _ in range(generator.randrange(4))] for _ in range(rows)], pa.list_(pa.string())),
        "place": pa.array(column(lambda: {"lat": generator.random(), "label": generator.choice([None, "h", "w"])}),
                          pa.struct([("lat", pa.float64()), ("label", pa.string())])),
    }
    return pa.table(columns)


def write_parquet(table, path):
    pq.write_table(table, path)
    return path


def read_result(path):
    """The rows of a finished result, read by pyarrow: the files of a directory in the manifest's order, or the one file."""
    path = pathlib.Path(path)
    if path.is_file():
        return pq.ParquetFile(path).read()
    names = [entry["name"] for entry in manifest(path)["files"]]
    return pa.concat_tables([pq.ParquetFile(path / name).read() for name in names])


def manifest(directory):
    return json.loads((pathlib.Path(directory) / MANIFEST).read_text())


def plain(table):
    """The table without field metadata and nullability: what can be compared by value and type."""
    fields = [pa.field(field.name, _plain_type(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields)).combine_chunks()


def _plain_type(kind):
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _plain_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(kind.field(i).name, _plain_type(kind.field(i).type)) for i in range(kind.num_fields)])
    return kind


def assert_same_rows(result, expected, key="id"):
    """Each row exactly once with every value unchanged, in any order."""
    ids = sorted(result[key].to_pylist())
    wanted = sorted(expected[key].to_pylist())
    if ids != wanted:
        lost, doubled = set(wanted) - set(ids), {i for i, j in zip(ids, ids[1:]) if i == j}
        raise AssertionError(f"{len(ids)} rows, not {len(wanted)}: lost {sorted(lost)[:20]} ({len(lost)}), doubled {sorted(doubled)[:20]} ({len(doubled)})")
    left, right = plain(result.sort_by(key)), plain(expected.sort_by(key))
    assert left.schema == right.schema, f"{left.schema}\n{right.schema}"
    assert left.equals(right), "same rows, other values"


def assert_order_within_streams(result, expected, key="id"):
    """The rows are made of runs that rise: `expected` is sorted by `key` and each stream is a contiguous part of it."""
    ids = result[key].to_pylist()
    falls = sum(1 for i, j in zip(ids, ids[1:]) if j < i)
    assert falls < len(ids) / 2, "the order within streams is lost"
    assert expected[key].to_pylist() == sorted(ids)


def assert_manifest_is_true(directory):
    """Every file that the manifest names is there with its size, rows and checksum, and there is nothing else."""
    import hashlib

    directory = pathlib.Path(directory)
    listed = manifest(directory)
    names = [entry["name"] for entry in listed["files"]]
    assert sorted(names + [MANIFEST]) == sorted(os.listdir(directory)), "files that no manifest names, or named ones that are missing"
    for entry in listed["files"]:
        content = (directory / entry["name"]).read_bytes()
        assert len(content) == entry["bytes"]
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
        assert pq.ParquetFile(directory / entry["name"]).metadata.num_rows == entry["rows"]
    assert sum(entry["rows"] for entry in listed["files"]) == listed["total_rows"]
