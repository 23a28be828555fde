"""Both wire formats, with and without compression: the same values, and fields of STRUCTs read alone."""

import json

import pyarrow as pa
import pytest

from harness import TABLE, Server, assert_order_within_streams, assert_same_rows, make_table, read_result, write_parquet

ROWS = 3_000
NESTED = "test-project.data.nested"
FORMATS = [("arrow", "none"), ("arrow", "lz4"), ("avro", "none"), ("avro", "lz4")]


@pytest.fixture(scope="module")
def table():
    return make_table(ROWS, seed=7)


@pytest.fixture(scope="module")
def nested():
    rows = [{"id": i, "place": {"city": f"c{i}", "at": {"x": i, "y": -i}} if i % 5 else None, "visits": [{"by": f"v{j}", "n": j} for j in range(i % 3)]}
            for i in range(200)]
    point = pa.struct([("x", pa.int64()), ("y", pa.int64())])
    visits = pa.list_(pa.struct([("by", pa.string()), ("n", pa.int64())]))
    return pa.Table.from_pylist(rows, schema=pa.schema([("id", pa.int64()), ("place", pa.struct([("city", pa.string()), ("at", point)])), ("visits", visits)]))


@pytest.fixture(scope="module")
def server(headrace, table, nested, tmp_path_factory):
    directory = tmp_path_factory.mktemp("server")
    loads = {TABLE: table, NESTED: nested}
    items = [item for name, rows in loads.items() for item in ("--load", f"{name}={write_parquet(rows, directory / f'{name}.parquet')}")]
    with Server(headrace, directory, *items, "--message-rows", "250") as running:
        yield running


@pytest.fixture
def copy(run, server, tmp_path):
    def start(*options, source=TABLE):
        out, _ = run("copy", f"bq:{source}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--json", *options)
        return tmp_path / "out", json.loads(out)

    return start


@pytest.mark.parametrize("form,compression", FORMATS)
@pytest.mark.parametrize("streams", [1, 4])
def test_every_value_arrives_in_each_format(copy, table, form, compression, streams):
    path, report = copy("--source-format", form, "--response-compression", compression, "--max-stream-count", streams)
    assert report["rows_written"] == ROWS and report["splits"] == streams
    result = read_result(path)
    assert_same_rows(result, table)
    assert_order_within_streams(result, table)


def test_the_formats_give_the_same_schema(run, server):
    schemas = [run("schema", f"bq:{TABLE}", "--arrow", "--bigquery-storage-endpoint", server.endpoint, "--source-format", form)[0] for form in ("arrow", "avro")]
    assert schemas[0] == schemas[1] and "int64" in schemas[0]


@pytest.mark.parametrize("form", ["arrow", "avro"])
def test_fields_of_structs_alone(copy, nested, form):
    path, _ = copy("--source-format", form, "--selected-fields", "visits.n,PLACE.at.y,id", source=NESTED)
    result = read_result(path)
    assert result.schema.names == ["visits", "place", "id"]
    expected = [{"visits": [{"n": visit["n"]} for visit in row["visits"]], "place": row["place"] and {"at": row["place"]["at"] and {"y": row["place"]["at"]["y"]}},
                 "id": row["id"]} for row in nested.to_pylist()]
    assert sorted(result.to_pylist(), key=lambda row: row["id"]) == expected


@pytest.mark.parametrize("path,says", [("nothere", "it has id, place, visits"), ("place.nothere", "it has city, at"), ("id.x", "no STRUCT")])
def test_a_name_that_does_not_exist_is_answered_with_those_that_do(run, server, tmp_path, path, says):
    _, err = run("copy", f"bq:{NESTED}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--selected-fields", path, code=2)
    assert path.split(".")[0] in err and says in err


def test_compression_of_buffers_is_of_arrow_alone(run, server, tmp_path):
    for options in (["--source-format", "avro"], ["--response-compression", "lz4"]):
        _, err = run("copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--compression", "zstd", *options, code=2)
        assert "compression" in err and not (tmp_path / "out").exists()
