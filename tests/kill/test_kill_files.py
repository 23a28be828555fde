"""kill -9 and resume with every format at either end: files as the source (their positions are rows of a part), files as the result.

test_kill.py has the full set of steps for BigQuery to Parquet; here each format gets the moments that depend on it.
"""

import csv
import json
import os
import random
import signal

import fastavro
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import checkpoints
from harness import FAIL_POINTS, MANIFEST, TABLE, Server, manifest, run_headrace, start_headrace, write_parquet

ROWS = 20_000
FILES = 3
FORMATS = ["parquet", "arrow", "arrows", "csv", "ndjson", "avro"]
# One moment of each kind: rows in an open file, files named by a checkpoint but not renamed, one of them renamed, all renamed but no manifest.
STEPS = ["file.temp_created:3", "checkpoint.renamed:3", "commit.item:2", "finish.before"]


def row(i):
    """Text that a reader which cuts lines at the wrong place would spoil."""
    return {"id": i, "name": f'{"x" * (i % 50)}"\n,{i}' if i % 7 else "", "half": i / 2 if i % 11 else None}


@pytest.fixture(scope="module")
def rows():
    return [row(i) for i in range(ROWS)]


@pytest.fixture(scope="module")
def table(rows):
    return pa.Table.from_pylist(rows, pa.schema([("id", pa.int64()), ("name", pa.string()), ("half", pa.float64())]))


def write_csv(part, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.write("id,name,half\n")
        for one in part:
            quoted = '"' + one["name"].replace('"', '""') + '"'
            file.write(f'{one["id"]},{quoted},{"" if one["half"] is None else one["half"]}\n')


def write_ndjson(part, path):
    path.write_text("".join(json.dumps(one) + "\n" for one in part))


AVRO_SCHEMA = {"type": "record", "name": "row", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"},
                                                           {"name": "half", "type": ["null", "double"]}]}


def write_avro(part, path):
    with open(path, "wb") as file:
        fastavro.writer(file, AVRO_SCHEMA, part, codec="deflate", sync_interval=4000)


def write_arrow(part, path, opener):
    table = pa.Table.from_pylist(part, pa.schema([("id", pa.int64()), ("name", pa.string()), ("half", pa.float64())]))
    with opener(str(path), table.schema) as writer:
        for batch in table.to_batches(max_chunksize=500):
            writer.write_batch(batch)


WRITERS = {"csv": write_csv, "ndjson": write_ndjson, "avro": write_avro,
           "parquet": lambda part, path: pq.write_table(pa.Table.from_pylist(part), path, row_group_size=700),
           "arrow": lambda part, path: write_arrow(part, path, pa.ipc.new_file), "arrows": lambda part, path: write_arrow(part, path, pa.ipc.new_stream)}


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return [{"id": int(one["id"]), "name": one["name"], "half": float(one["half"]) if one["half"] else None} for one in csv.DictReader(file)]


def read_avro(path):
    with open(path, "rb") as file:
        return list(fastavro.reader(file))


def read_stream(path):
    with pa.ipc.open_stream(str(path)) as reader:
        return reader.read_all().to_pylist()


def read_ndjson(path):
    return [{**one, "id": int(one["id"])} for one in map(json.loads, path.read_text().splitlines())]  # INT64 is a string in JSON


READERS = {"csv": read_csv, "avro": read_avro, "arrows": read_stream, "parquet": lambda path: pq.ParquetFile(path).read().to_pylist(),
           "arrow": lambda path: feather.read_table(path).to_pylist(), "ndjson": read_ndjson}


def assert_result(target, kind, rows):
    listed = manifest(target)
    assert listed["format"] == kind
    names = [entry["name"] for entry in listed["files"]]
    assert sorted(names + [MANIFEST]) == sorted(os.listdir(target)), "a file that no manifest names"
    found = []
    for entry in listed["files"]:
        part = READERS[kind](target / entry["name"])
        assert len(part) == entry["rows"]
        found += part
    found.sort(key=lambda one: one["id"])
    assert [one["id"] for one in found] == [one["id"] for one in rows], "lost or doubled rows"
    assert found == rows


@pytest.fixture(scope="module")
def server(headrace, table, tmp_path_factory):
    directory = tmp_path_factory.mktemp("server")
    path = write_parquet(table, directory / "t.parquet")
    with Server(headrace, directory, "--load", f"{TABLE}={path}", "--message-rows", "250") as running:
        yield running


PACE = ["--checkpoint-interval", "50ms", "--max-rows-per-second", str(ROWS)]


def of_table(server, kind):
    return [f"bq:{TABLE}", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 4, "--format", kind]


@pytest.fixture(scope="module")
def of_files(rows, tmp_path_factory):
    """of_files(format) -> arguments that read FILES files, in several splits each where the format has parts"""

    def make(kind):
        directory = tmp_path_factory.mktemp(kind)
        for number in range(FILES):
            WRITERS[kind](rows[number * ROWS // FILES:(number + 1) * ROWS // FILES], directory / f"{number}.{kind}")
        parts = [] if kind == "arrows" else ["--split-bytes", "60000"]
        return [f"{directory}/*.{kind}", *parts, "--format", "parquet"]

    return make


def killed_once(headrace, arguments, target, job, step):
    process = start_headrace(headrace, "copy", *arguments[:1], f"{target}/", *arguments[1:], "--checkpoint", job, "--max-rows-per-batch", "250", *PACE,
                             "--readers", 2, "--writers", 2, "--fail-point", step)
    _, err = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, f"the step was not reached: {process.returncode}\n{err}"


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "parquet"])
def test_a_result_of_every_format(headrace, server, rows, tmp_path, kind, step):
    target, job = tmp_path / "out", tmp_path / "job"
    killed_once(headrace, of_table(server, kind), target, job, step)
    run_headrace(headrace, "resume", job, "--readers", 3, "--writers", 1)
    assert_result(target, kind, rows)


@pytest.mark.parametrize("step", ["checkpoint.renamed:2", "commit.item:3"])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_source_of_every_format(headrace, of_files, rows, tmp_path, kind, step):
    target, job = tmp_path / "out", tmp_path / "job"
    killed_once(headrace, of_files(kind), target, job, step)
    out, _ = run_headrace(headrace, "resume", job, "--readers", 3, "--writers", 1, "--json", cwd="/")
    assert json.loads(out)["resumed"]
    assert_result(target, "parquet", rows)


def kill_at_random_moments(headrace, arguments, target, job, seed, kills, seconds):
    dice = random.Random(seed)
    pace = ["--checkpoint-interval", "60ms", "--max-rows-per-second", str(ROWS / seconds)]
    # The first life is too slow to end before its moment.
    command = ["copy", *arguments[:1], f"{target}/", *arguments[1:], "--checkpoint", job, "--max-rows-per-batch", "250", *pace[:-1], str(ROWS / seconds / 5)]
    died = 0
    for _ in range(kills):
        process = start_headrace(headrace, *command)
        try:
            process.wait(timeout=dice.uniform(0.05, seconds / 2))
        except Exception:  # pylint: disable=broad-except
            process.kill()
        _, err = process.communicate(timeout=30)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, err
            break
        died += 1
        if checkpoints.newest_file(job) is not None:
            command = ["resume", job, *pace, "--readers", dice.randrange(1, 6), "--writers", dice.randrange(1, 4)]
    assert died > 0
    run_headrace(headrace, *([*command[:2], *pace] if command[0] == "resume" else command))


@pytest.mark.parametrize("kind", ["csv", "avro"])
def test_files_killed_at_random_moments(headrace, of_files, rows, tmp_path, kind):
    kill_at_random_moments(headrace, of_files(kind), tmp_path / "out", tmp_path / "job", seed=kind, kills=4, seconds=1.2)
    assert_result(tmp_path / "out", "parquet", rows)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", FORMATS)
def test_files_killed_at_many_random_moments(headrace, of_files, rows, tmp_path, kind, seed):
    kill_at_random_moments(headrace, of_files(kind), tmp_path / "out", tmp_path / "job", seed=f"{kind}{seed}", kills=8, seconds=2.5)
    assert_result(tmp_path / "out", "parquet", rows)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", FORMATS)
def test_results_killed_at_many_random_moments(headrace, server, rows, tmp_path, kind, seed):
    kill_at_random_moments(headrace, of_table(server, kind), tmp_path / "out", tmp_path / "job", seed=f"{kind}{seed}", kills=8, seconds=2.5)
    assert_result(tmp_path / "out", kind, rows)


def test_a_source_file_that_changed_is_refused_by_name(headrace, of_files, tmp_path):
    arguments = of_files("csv")
    target, job = tmp_path / "out", tmp_path / "job"
    killed_once(headrace, arguments, target, job, "checkpoint.renamed:2")
    for number in range(FILES):
        path = arguments[0].replace("*", str(number))
        with open(path, "ab") as file:
            file.write(b"99999,new,1\n")
    _, err = run_headrace(headrace, "resume", job, code=1, seconds=20)
    assert "changed" in err and ".csv" in err
    assert not (target / MANIFEST).exists()
