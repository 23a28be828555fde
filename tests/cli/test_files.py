"""Files at either end of `headrace copy`: every format, standard streams, directories, patterns and lists; what schema and plan say of them."""

import csv
import fcntl
import gzip
import io
import json
import os
import signal
import subprocess
import termios
import time
from datetime import datetime, timezone
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import MANIFEST, TABLE, assert_same_rows, make_table, manifest, plain, read_result, wait_until, write_parquet

ROWS = 1_500
FORMATS = ["parquet", "arrow", "arrows", "csv", "ndjson", "avro"]
SCALARS = ["id", "Flag", "score", "name", "payload", "amount", "day", "at_time", "civil", "moment"]
TEXT = ("csv", "ndjson")
# Of these a CSV without a schema holds every value: FLOAT64 has not all digits of NUMERIC, which is an error.
GUESSED = ",".join(name for name in SCALARS if name != "amount")


@pytest.fixture(scope="module")
def table():
    return make_table(ROWS, seed=11)


@pytest.fixture(scope="module")
def parquet(table, tmp_path_factory):
    return write_parquet(table, tmp_path_factory.mktemp("in") / "t.parquet")


@pytest.fixture(scope="module")
def scalars(table, tmp_path_factory):
    """Without ARRAY and STRUCT, which CSV has not."""
    return write_parquet(table.select(SCALARS), tmp_path_factory.mktemp("in") / "scalars.parquet")


def source_of(kind, parquet, scalars):
    return scalars if kind == "csv" else parquet


def ids_of(content, kind):
    """The id column as a reader of others sees it."""
    if kind == "parquet":
        return pq.read_table(io.BytesIO(content))["id"].to_pylist()
    if kind == "arrow":
        return pa.ipc.open_file(io.BytesIO(content)).read_all()["id"].to_pylist()
    if kind == "arrows":
        return pa.ipc.open_stream(io.BytesIO(content)).read_all()["id"].to_pylist()
    if kind == "avro":
        return [row["id"] for row in fastavro.reader(io.BytesIO(content))]
    if kind == "csv":
        return [int(row["id"]) for row in csv.DictReader(io.StringIO(content.decode(), newline=""))]
    return [int(json.loads(line)["id"]) for line in content.decode().splitlines()]


def pipe(headrace, *arguments, data=b"", code=0, seconds=60):
    """Runs the program with bytes on standard input -> (bytes of standard output, text of standard error)"""
    done = subprocess.run([str(headrace), *map(str, arguments)], input=data, capture_output=True, timeout=seconds, check=False)
    assert done.returncode == code, f"{done.returncode}, not {code}: {done.stderr.decode()}"
    return done.stdout, done.stderr.decode()


@pytest.mark.parametrize("kind", FORMATS)
def test_there_and_back(run, parquet, scalars, table, tmp_path, kind):
    """Parquet -> format -> Parquet: the same values; a reader of others sees each row."""
    source = source_of(kind, parquet, scalars)
    there, back = tmp_path / f"x.{kind}", tmp_path / "back.parquet"
    run("copy", source, there)
    assert ids_of(there.read_bytes(), kind) == list(range(ROWS))
    options = []
    if kind in TEXT:
        (tmp_path / "schema.json").write_text(run("schema", source, "--json")[0])
        options = ["--schema", tmp_path / "schema.json"]
    run("copy", there, back, *options)
    assert plain(read_result(back)).equals(plain(table.select(SCALARS) if kind == "csv" else table))


@pytest.mark.parametrize("kind", FORMATS)
def test_from_bigquery_to_a_directory_and_back(serve, run, table, tmp_path, kind):
    rows = table.select(SCALARS) if kind == "csv" else table
    server = serve({TABLE: rows})
    out, _ = run("copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--format", kind, "--max-stream-count", 3, "--bigquery-storage-endpoint", server.endpoint,
                 "--json")
    assert json.loads(out)["rows_written"] == ROWS
    listed = manifest(tmp_path / "out")
    assert listed["format"] == kind and all(entry["name"].endswith(f".{kind}") for entry in listed["files"])
    run("copy", f"{tmp_path}/out/", tmp_path / "back.parquet")  # the manifest has the types, also of text
    assert_same_rows(read_result(tmp_path / "back.parquet"), rows)


def test_text_without_a_schema_gets_the_narrowest_types(run, tmp_path):
    (tmp_path / "x.csv").write_text('a,b,c,d\n1,2024-05-01,x,\n2,2024-05-02,"",NA\n')
    run("copy", tmp_path / "x.csv", tmp_path / "x.parquet", "--csv-null-values", ",NA")
    result = pq.read_table(tmp_path / "x.parquet")
    assert result.to_pydict()["a"] == [1, 2] and result.to_pydict()["c"] == ["x", ""] and result["d"].null_count == 2
    assert result.schema.field("b").type == pa.date32()
    (tmp_path / "x.ndjson").write_text('{"a": 1, "b": {"c": [1, 2]}}\n{"A": 2}\n')
    run("copy", tmp_path / "x.ndjson", tmp_path / "y.parquet")
    assert pq.read_table(tmp_path / "y.parquet").to_pylist() == [{"a": 1, "b": {"c": [1, 2]}}, {"a": 2, "b": None}]


@pytest.mark.parametrize("kind, field, text, options, value", [
    ("ndjson", {"type": "STRING"}, '{"x": 5}', [], "5"),
    ("ndjson", {"type": "STRING"}, '{"x": 5}', ["--strict"], None),
    ("csv", {"type": "DATETIME"}, "x\n2024-05-01", [], datetime(2024, 5, 1)),
    ("csv", {"type": "DATETIME"}, "x\n2024-05-01", ["--strict"], None),
    ("csv", {"type": "NUMERIC", "precision": 4, "scale": 1}, "x\n1.25", [], None),
    ("csv", {"type": "NUMERIC", "precision": 4, "scale": 1}, "x\n1.25", ["--rounding", "half_even"], Decimal("1.2")),
    ("csv", {"type": "NUMERIC", "precision": 4, "scale": 1}, "x\n1.25", ["--rounding", "half_away_from_zero"], Decimal("1.3")),
    ("ndjson", {"type": "TIMESTAMP"}, '{"x": 1500}', [], None),
    ("ndjson", {"type": "TIMESTAMP"}, '{"x": 1500}', ["--epoch-unit", "millis"], datetime(1970, 1, 1, 0, 0, 1, 500000, timezone.utc)),
    ("csv", {"type": "TIMESTAMP"}, "x\n1500", ["--epoch-unit", "seconds"], datetime(1970, 1, 1, 0, 25, tzinfo=timezone.utc)),
    ("ndjson", {"type": "INT64"}, '{"x": 1, "y": 2}', [], None),
    ("ndjson", {"type": "INT64"}, '{"x": 1, "y": 2}', ["--ignore-unknown-values"], 1),
    ("csv", {"type": "STRING"}, "7", ["--csv-header", "false"], "7"),
])
def test_options_that_say_how_values_are_read(run, tmp_path, kind, field, text, options, value):
    """`value` None: the copy fails and names the value."""
    (tmp_path / f"x.{kind}").write_text(text + "\n")
    schema = json.dumps([{"name": "x", **field}])
    _, err = run("copy", tmp_path / f"x.{kind}", tmp_path / "y.parquet", "--schema", schema, *options, code=1 if value is None else 0)
    if value is None:
        assert f"x.{kind}" in err and "line" in err
    else:
        assert pq.read_table(tmp_path / "y.parquet")["x"].to_pylist() == [value]


@pytest.mark.parametrize("extension, options", [(".csv.gz", []), (".csv.zst", []), (".ndjson.gz", []), (".x.csv", ["--csv-compression", "none"]),
                                                (".avro", ["--avro-compression", "zstd"]), (".avro", ["--avro-compression", "none"]),
                                                (".arrow", ["--arrow-compression", "zstd"]), (".arrows", ["--arrow-compression", "lz4"])])
def test_compression_of_single_files(run, scalars, table, tmp_path, extension, options):
    path = tmp_path / f"x{extension}"
    run("copy", scalars, path, "--selected-fields", GUESSED, *options)
    start = path.read_bytes()[:400]
    if extension.endswith(".gz"):
        assert start[:2] == b"\x1f\x8b"
    if extension.endswith(".zst"):
        assert start[:4] == b"\x28\xb5\x2f\xfd"
    if extension == ".avro":
        with open(path, "rb") as file:
            assert fastavro.reader(file).codec == {"zstd": "zstandard", "none": "null"}[options[1]]
    run("copy", path, tmp_path / "back.parquet", "--selected-fields", "id,name")
    assert read_result(tmp_path / "back.parquet")["name"].to_pylist() == table["name"].to_pylist()


@pytest.mark.parametrize("kind", TEXT)
def test_compression_of_files_in_a_directory(run, scalars, tmp_path, kind):
    run("copy", scalars, f"{tmp_path}/out/", "--format", kind, f"--{kind}-compression", "gzip")
    assert all(entry["name"].endswith(f".{kind}.gz") for entry in manifest(tmp_path / "out")["files"])
    assert sum(1 for _ in gzip.open(tmp_path / "out" / manifest(tmp_path / "out")["files"][0]["name"])) > 0
    run("copy", f"{tmp_path}/out/", tmp_path / "back.parquet")
    assert sorted(read_result(tmp_path / "back.parquet")["id"].to_pylist()) == list(range(ROWS))


def test_csv_nulls_and_nested_columns_as_they_are_asked_for(run, parquet, table, tmp_path):
    run("copy", parquet, tmp_path / "x.csv", "--csv-null-value", "NULL", "--csv-nested", "json", "--selected-fields", "id,name,tags,place")
    with open(tmp_path / "x.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["NULL" if name is None else name for name in table["name"].to_pylist()]
    assert [json.loads(row["tags"]) for row in rows] == table["tags"].to_pylist()
    (tmp_path / "s.json").write_text(run("schema", parquet, "--json", "--selected-fields", "id,name,tags,place")[0])
    run("copy", tmp_path / "x.csv", tmp_path / "y.parquet", "--schema", tmp_path / "s.json", "--csv-null-values", "NULL")
    assert plain(read_result(tmp_path / "y.parquet")).equals(plain(table.select(["id", "name", "tags", "place"])))


# Standard streams -------------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", FORMATS)
def test_standard_output_holds_data_only(headrace, parquet, scalars, kind):
    out, err = pipe(headrace, "copy", source_of(kind, parquet, scalars), "-", "--format", kind)
    assert sorted(ids_of(out, kind)) == list(range(ROWS))
    assert "1,500 rows" in err, "the report goes to standard error"
    out, err = pipe(headrace, "copy", source_of(kind, parquet, scalars), "-", "--format", kind, "--quiet")
    assert sorted(ids_of(out, kind)) == list(range(ROWS)) and err == ""


def test_json_goes_to_standard_error_beside_data(headrace, parquet):
    out, err = pipe(headrace, "copy", parquet, "-", "--format", "ndjson", "--json")
    assert len(ids_of(out, "ndjson")) == ROWS
    report = json.loads(err.splitlines()[-1])
    assert report["outcome"] == "done" and report["rows_written"] == ROWS
    out, err = pipe(headrace, "copy", "absent.parquet", "-", "--format", "ndjson", "--json", code=1)
    assert out == b"" and "absent.parquet" in json.loads(err.splitlines()[-1])["error"]["message"]
    out, err = pipe(headrace, "copy", parquet, "-", "--format", "ndjson", "--json", "--nonsense", code=2)
    assert out == b"" and "nonsense" in json.loads(err.splitlines()[-1])["error"]["message"]


@pytest.mark.parametrize("kind", ["arrows", "csv", "ndjson"])
def test_a_pipeline(headrace, run, parquet, scalars, table, tmp_path, kind):
    source = source_of(kind, parquet, scalars)
    data, _ = pipe(headrace, "copy", source, "-", "--format", kind)
    options = ["--schema", run("schema", source, "--json")[0]] if kind in TEXT else []
    pipe(headrace, "copy", "-", tmp_path / "x.parquet", "--from-format", kind, *options, data=data)
    assert plain(read_result(tmp_path / "x.parquet")).equals(plain(table.select(SCALARS) if kind == "csv" else table))
    out, _ = pipe(headrace, "copy", "-", "-", "--from-format", kind, "--format", kind, *options, data=data)
    assert ids_of(out, kind) == list(range(ROWS))


@pytest.mark.parametrize("kind", ["ndjson", "csv", "arrows"])
def test_a_closed_pipe_ends_the_copy_quietly(headrace, serve, table, kind):
    server = serve({TABLE: table.select(SCALARS)}, "--message-rows", "100")
    command = [headrace, "copy", f"bq:{TABLE}", "-", "--format", kind, "--bigquery-storage-endpoint", server.endpoint, "--max-rows-per-batch", "50",
               "--max-rows-per-second", "1000", "--quiet"]
    done = subprocess.run(["bash", "-c", '"$@" | head -c 1000 >/dev/null; echo ${PIPESTATUS[0]}', "bash", *map(str, command)], capture_output=True,
                          text=True, timeout=30, check=False)
    assert done.stdout == "1\n", "not all rows were written"
    assert done.stderr == ""
    done = subprocess.run(["bash", "-c", '"$@" | true; echo ${PIPESTATUS[0]}', "bash", *map(str, command[:-1])], capture_output=True, text=True, timeout=30,
                          check=False)
    assert done.stdout == "1\n" and "closed by its reader" in done.stderr


def test_a_full_standard_output_is_an_error(headrace, parquet):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([headrace, "copy", parquet, "-", "--format", "csv", "--selected-fields", "id"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=30, check=False)
    assert done.returncode == 1 and "No space left" in done.stderr


def test_a_signal_ends_the_wait_for_standard_input(headrace, tmp_path):
    process = subprocess.Popen([headrace, "copy", "-", f"{tmp_path}/out/", "--from-format", "ndjson", "--schema", '[{"name": "a", "type": "INT64"}]'],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        process.stdin.write('{"a": 1}\n')
        process.stdin.flush()
        # The row is taken and the pipe is empty: the program waits for more.
        wait_until(lambda: fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4) == b"\0" * 4, 20, "the row to be read")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 1
    finally:
        process.kill()
        process.communicate()
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_a_signal_ends_the_wait_for_whoever_reads_standard_output(headrace, tmp_path):
    big = write_parquet(make_table(20_000, seed=3), tmp_path / "big.parquet")
    process = subprocess.Popen([headrace, "copy", big, "-", "--format", "csv", "--selected-fields", "id,name"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: fcntl.ioctl(process.stdout, termios.FIONREAD, b"\0" * 4) != b"\0" * 4, 20, "the first bytes")
        time.sleep(0.5)
        assert process.poll() is None, "the pipe is full"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 1
    finally:
        process.kill()
        process.communicate()


def test_an_error_is_told_though_nobody_reads_standard_output(headrace, tmp_path):
    (tmp_path / "1.csv").write_text("n\n" + "123456789\n" * 1_000_000)
    (tmp_path / "2.csv").write_text("n\n" + "1\n" * 1_000 + "no number\n")
    process = subprocess.Popen([headrace, "copy", tmp_path / "?.csv", "-", "--format", "csv", "--readers", "1", "--schema", '[{"name": "n", "type": "INT64"}]'],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.wait(timeout=20) == 1
    finally:
        process.kill()
        _, err = process.communicate()
    assert "2.csv, line 1002" in err


# Sources of several files -----------------------------------------------------------------------------------------------------------------------

@pytest.fixture
def parts(table, tmp_path):
    """Three files of consecutive rows."""
    (tmp_path / "parts").mkdir()
    for number in range(3):
        write_parquet(table.slice(number * 500, 500), tmp_path / "parts" / f"{number}.parquet")
    return tmp_path / "parts"


@pytest.mark.parametrize("how", ["directory", "pattern", "list", "pattern elsewhere"])
def test_several_files_are_one_source(run, parts, table, tmp_path, monkeypatch, how):
    monkeypatch.chdir(parts)
    sources = {"directory": [f"{parts}/"], "pattern": [f"{parts}/?.parquet"], "list": ["0.parquet", "./1.parquet", parts / "2.parquet"],
               "pattern elsewhere": ["*.parquet"]}[how]
    out, _ = run("copy", *sources, tmp_path / "x.parquet", "--ordered", "--json")
    assert json.loads(out)["facts"]["input_files"] == "3"
    assert plain(read_result(tmp_path / "x.parquet")).equals(plain(table)), "with --ordered the rows come file after file"


def test_columns_are_chosen_in_any_case(run, parts, table, tmp_path):
    run("copy", f"{parts}/*", tmp_path / "x.csv", "--selected-fields", "NAME,id")
    with open(tmp_path / "x.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["name", "id"] and sorted(int(row[1]) for row in rows[1:]) == list(range(ROWS))


def test_small_splits_are_read_side_by_side(run, scalars, table, tmp_path):
    run("copy", scalars, tmp_path / "x.csv", "--ordered", "--selected-fields", GUESSED)
    plan = json.loads(run("plan", tmp_path / "x.csv", "--split-bytes", "20KB", "--json")[0])
    assert plan["splits"] > 5
    out, _ = run("copy", tmp_path / "x.csv", f"{tmp_path}/out/", "--split-bytes", "20KB", "--readers", 4, "--json")
    assert json.loads(out)["splits"] == plan["splits"]
    assert sorted(read_result(tmp_path / "out")["id"].to_pylist()) == list(range(ROWS))


def test_a_list_and_its_schema_survive_a_restart_elsewhere(run, parts, tmp_path, monkeypatch):
    monkeypatch.chdir(parts)
    (parts / "a.csv").write_text("1,x\n")
    (parts / "b.csv").write_text("2,y\n")
    (parts / "s.json").write_text('[{"name": "n", "type": "NUMERIC"}, {"name": "t", "type": "STRING"}]')
    run("copy", "a.csv", "b.csv", "out/", "--schema", "s.json", "--csv-header", "false", "--checkpoint", "job", "--fail-point", "finish.before", code=-9)
    (parts / "s.json").unlink()
    monkeypatch.chdir("/")
    run("resume", parts / "job")
    assert sorted(row["t"] for row in read_result(parts / "out").to_pylist()) == ["x", "y"]
    assert pa.types.is_decimal(read_result(parts / "out").schema.field("n").type)


# schema and plan --------------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", FORMATS)
def test_the_schema_of_every_format(run, parquet, scalars, tmp_path, kind):
    source = source_of(kind, parquet, scalars)
    wanted = json.loads(run("schema", source, "--json")[0])
    run("copy", source, f"{tmp_path}/out/", "--format", kind)
    assert json.loads(run("schema", f"{tmp_path}/out/", "--json")[0]) == wanted
    text = run("schema", f"{tmp_path}/out/")[0]
    assert "NUMERIC" in text and "TIMESTAMP" in text
    assert "decimal128(38, 9)" in run("schema", f"{tmp_path}/out/", "--arrow")[0]
    if kind not in TEXT:
        part = tmp_path / "out" / manifest(tmp_path / "out")["files"][0]["name"]
        assert json.loads(run("schema", part, "--json")[0]) == wanted


def test_the_schema_of_a_table_is_one_for_its_text(serve, run, table, tmp_path):
    """schema --json of a table is what the option schema takes (and bq load: tests/peers and the official client's SchemaField)."""
    from google.cloud import bigquery

    server = serve({TABLE: table})
    text = run("schema", f"bq:{TABLE}", "--json", "--bigquery-storage-endpoint", server.endpoint)[0]
    assert [bigquery.SchemaField.from_api_repr(field).name for field in json.loads(text)] == table.column_names
    (tmp_path / "s.json").write_text(text)
    run("copy", f"bq:{TABLE}", tmp_path / "x.ndjson", "--bigquery-storage-endpoint", server.endpoint)
    run("copy", tmp_path / "x.ndjson", tmp_path / "x.parquet", "--schema", tmp_path / "s.json")
    assert_same_rows(read_result(tmp_path / "x.parquet"), table)


def test_the_plan_of_files(run, parts, tmp_path):
    plan = json.loads(run("plan", f"{parts}/", f"{tmp_path}/out/", "--json")[0])
    assert plan["splits"] == 3 and plan["estimated_rows"] == ROWS and plan["estimated_bytes"] > 0
    assert plan["facts"]["input_files"] == "3" and "cost" not in plan and "streams" not in plan
    assert plan["lineage"]["sources"][0]["namespace"] == "file"
    out, _ = run("plan", f"{parts}/")
    assert "splits" in out and "TIMESTAMP" in out and "session" not in out and "billed" not in out
    assert not (tmp_path / "out").exists()


def test_files_with_other_columns_are_told_apart(run, parts, tmp_path):
    pq.write_table(pa.table({"id": [1]}), parts / "3.parquet")
    for verb in (["plan", f"{parts}/"], ["copy", f"{parts}/", tmp_path / "x.parquet"], ["schema", f"{parts}/"]):
        _, err = run(*verb, code=1)
        assert "3.parquet" in err and "0.parquet" in err and "Flag" in err
    assert not (tmp_path / "x.parquet").exists()


# Refusals ---------------------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments, code, says", [
    (["copy", "absent.csv", "out/"], 1, "absent.csv does not exist"),
    (["copy", "*.absent", "out/"], 1, "no file matches"),
    (["copy", "x.txt", "out/"], 2, "from_format"),
    (["copy", "x.csv", "out/", "--from-format", "word"], 2, "from_format is 'word'"),
    (["copy", "x.csv", "out/", "--format", "word"], 2, "format is 'word'"),
    (["copy", "x.csv", "out.parquet", "--format", "csv"], 2, "the name of out.parquet says parquet"),
    (["copy", "x.csv", "out.orc"], 2, ".orc"),
    (["copy", "-", "out/"], 2, "from_format"),
    (["copy", "-", "out/", "--from-format", "parquet"], 2, "standard input"),
    (["copy", "-", "out/", "--from-format", "csv"], 2, "schema"),
    (["copy", "-", "out/", "--from-format", "avro"], 2, "standard input"),
    (["copy", "-", "out/", "--from-format", "arrows", "--checkpoint", "job"], 2, "standard input cannot be read again"),
    (["copy", "x.csv", "-"], 2, "format"),
    (["copy", "x.csv", "-", "--format", "csv", "--checkpoint", "job"], 2, "directory"),
    (["copy", "x.csv", "-", "--format", "csv", "--overwrite"], 2, "overwrite"),
    (["copy", "x.csv", "bq:p.d.t"], 2, "only reads"),
    (["copy", "gs://b/x.csv", "out/"], 2, "Cloud Storage"),
    (["copy", "x.csv", "gs://b/o"], 2, "Cloud Storage"),
    (["copy", "p.d.t", "out/"], 2, "bq:p.d.t"),
    (["copy", "x.csv", "bq:p.d.t", "out/"], 2, "'bq:p.d.t' is one of 2 sources"),
    (["copy", "x.csv", "x.csv", "out/"], 1, "named twice"),
    (["copy", "x.csv", "out/", "--row-restriction", "a > 1"], 2, "applies to a BigQuery source"),
    (["copy", "x.csv", "out/", "--selected-fields", "nope"], 2, "nope"),
    (["copy", "x.csv", "out/", "--schema", "absent.json"], 2, "absent.json"),
    (["copy", "x.csv", "out/", "--schema", "[{}]"], 2, "schema"),
    (["copy", "x.csv", "out/", "--schema", '[{"name": "a", "type": "DATE"}, {"name": "b", "type": "STRING"}]'], 1, "'1'"),
    (["copy", "x.csv", "out/", "--csv-header", "false"], 2, "schema"),
    (["copy", "x.csv", "out/", "--parquet-compression", "snappy", "--format", "csv"], 2, "parquet_compression does nothing here"),
    (["copy", "x.csv", "out/", "--arrow-compression", "lz4"], 2, "arrow_compression does nothing here"),
    (["schema", "x.csv", "--strict", "--from-format", "parquet"], 2, "strict does nothing here"),
    (["plan", "x.csv.gz", "--split-bytes", "1MiB"], 2, "x.csv.gz is a compressed file, which is read as a whole"),
    (["plan", "x.csv", "--rounding", "half_even"], 2, "rounding does nothing here"),
    (["copy", "x.csv", "out/", "--checkpoint-interval", "5s"], 2, "--checkpoint-interval does nothing here"),
    (["copy", "x.csv", "out/", "--checkpoint", "job", "--restart-delay", "5s"], 2, "--restart-delay does nothing here"),
    (["copy", "x.csv", "out/", "--work-sharing", "true"], 2, "--work-sharing does nothing here"),
    (["copy", "bq:p.d.t", "out/", "--work-sharing", "true", "--ordered"], 2, "--work-sharing does nothing here"),
    (["plan", "x.csv", "--from-format", "avro"], 1, "x.csv"),
])
def test_refusals(run, tmp_path, arguments, code, says):
    (tmp_path / "x.csv").write_text("a,b\n1,x\n")
    (tmp_path / "x.txt").write_text("a,b\n1,x\n")
    with gzip.open(tmp_path / "x.csv.gz", "wt") as file:
        file.write("a,b\n1,x\n")
    started = time.monotonic()
    out, err = run(*arguments, code=code, cwd=tmp_path)
    assert time.monotonic() - started < 10, "the first error comes at once"
    assert out == "" and "headrace: " in err and says in err
    left = [name for name in os.listdir(tmp_path) if not name.startswith("x.")]
    assert left in ([], ["out"]) and not (left and os.listdir(tmp_path / "out")), "a refused copy leaves something behind"


def test_a_csv_of_arrays_is_refused_by_column(run, parquet, tmp_path):
    _, err = run("copy", parquet, tmp_path / "x.csv", code=2)
    assert "tags" in err and not (tmp_path / "x.csv").exists()


def test_a_bad_value_is_told_by_column_row_and_value(run, tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\nten\n")
    _, err = run("copy", tmp_path / "x.csv", f"{tmp_path}/out/", "--schema", '[{"name": "a", "type": "INTEGER"}]', code=1)
    assert "column a" in err and "ten" in err and "x.csv" in err
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_what_is_fixed_on_resume(run, parts, tmp_path):
    run("copy", f"{parts}/", f"{tmp_path}/out/", "--format", "avro", "--checkpoint", tmp_path / "job", "--fail-point", "finish.before", code=-9)
    for option in (["--format", "csv"], ["--from-format", "csv"], ["--schema", "[]"], ["--split-bytes", "1MiB"], ["--selected-fields", "id"]):
        _, err = run("resume", tmp_path / "job", *option, code=2)
        assert option[0] in err and "fixed when a job starts" in err
    run("resume", tmp_path / "job")
    assert manifest(tmp_path / "out")["format"] == "avro"
