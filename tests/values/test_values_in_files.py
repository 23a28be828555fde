"""Every type at every depth with its extreme values: from files that independent writers have made, through `headrace copy`, and from each format of
ours back again."""

import json

import pytest

import readers
import writers
from cases import assert_same
from tables import TABLES, schema_json, without

TEXT = ("csv", "ndjson")
WRITERS = {
    "parquet": (writers.parquet, "parquet", ()),
    "parquet by DuckDB": (writers.parquet_by_duckdb, "parquet", readers.NOT_IN_DUCKDB),
    "arrow": (writers.arrow_file, "arrow", ()),
    "arrow lz4": (lambda *table: writers.arrow_file(*table, codec="lz4"), "arrow", ()),
    "arrows": (writers.arrow_stream, "arrows", ()),
    "arrows zstd": (lambda *table: writers.arrow_stream(*table, codec="zstd"), "arrows", ()),
    "avro": (writers.avro, "avro", writers.NOT_IN_AVRO_LOAD_FILES),
    "avro deflate": (lambda *table: writers.avro(*table, codec="deflate"), "avro", writers.NOT_IN_AVRO_LOAD_FILES),
    "avro snappy": (lambda *table: writers.avro(*table, codec="snappy"), "avro", writers.NOT_IN_AVRO_LOAD_FILES),
    "avro zstd": (lambda *table: writers.avro(*table, codec="zstandard"), "avro", writers.NOT_IN_AVRO_LOAD_FILES),
    "ndjson": (writers.ndjson, "ndjson", ()),
    "csv": (writers.csv, "csv", ()),
}


def names_for(extension):
    """CSV has no nested columns."""
    return ["flat"] if extension == "csv" else ["matrix", "deepest", "flexible_names"]


def schema_options(extension, columns, directory):
    if extension not in TEXT:
        return []
    (directory / "schema.json").write_text(json.dumps(schema_json(columns)))
    return ["--schema", directory / "schema.json"]


@pytest.mark.parametrize("writer, name", [(writer, name) for writer in WRITERS for name in names_for(WRITERS[writer][1])])
def test_files_of_others(run, tmp_path, monkeypatch, writer, name):
    monkeypatch.setenv("TZ", "America/New_York")
    write, extension, not_in_it = WRITERS[writer]
    columns, rows = without(*TABLES[name], not_in_it)
    source = tmp_path / f"t.{extension}"
    write(source, columns, rows)
    run("copy", source, tmp_path / "out.parquet", "--quiet", *schema_options(extension, columns, tmp_path))
    assert_same(readers.parquet(tmp_path / "out.parquet", columns), rows, columns, writer)


@pytest.mark.parametrize("extension, name", [(extension, name) for extension in ("parquet", "arrow", "arrows", "avro", "ndjson", "csv") for name in names_for(extension)])
def test_there_and_back(run, seeds, tmp_path, monkeypatch, extension, name):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    columns, rows = TABLES[name]
    run("copy", seeds / f"{name}.parquet", tmp_path / f"t.{extension}", "--quiet")
    run("copy", tmp_path / f"t.{extension}", tmp_path / "out.parquet", "--quiet", *schema_options(extension, columns, tmp_path))
    assert_same(readers.parquet(tmp_path / "out.parquet", columns), rows, columns)


@pytest.mark.parametrize("extension", ["parquet", "avro", "ndjson"])
def test_schema_of_a_file(run, seeds, tmp_path, extension):
    columns, _ = without(*TABLES["matrix"], ())
    source = seeds / "matrix.parquet"
    if extension != "parquet":
        run("copy", source, tmp_path / "t/", "--format", extension, "--quiet")  # the manifest has the schema
        source = tmp_path / "t/"
    fields = json.loads(run("schema", source, "--json")[0])
    assert [field["name"] for field in fields] == [column.name for column in columns]
