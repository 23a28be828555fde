"""Every type at every depth with its extreme values: from BigQuery's Storage Read API, in both forms of its rows, into each format of files, read there
by independent readers."""

import pathlib

import pytest

import readers
from cases import assert_same
from tables import TABLES, without


def copied(run, server, name, path, *options):
    run("copy", f"bq:test-project.data.{name}", path, "--bigquery-storage-endpoint", server.endpoint, "--quiet", "--max-stream-count", 1, *options)
    return pathlib.Path(path)


def tables(*names):
    """The tables that a test has; the first one in every time zone."""
    def mark(test):
        test.tables = names
        return test

    return mark


@pytest.mark.parametrize("source_format", ["arrow", "avro"])
def test_parquet(server, run, name, tmp_path, source_format):
    columns, rows = TABLES[name]
    path = copied(run, server, name, tmp_path / "t.parquet", "--source-format", source_format)
    assert_same(readers.parquet(path, columns), rows, columns, "Arrow's reader")
    columns, rows = without(columns, rows, readers.NOT_IN_DUCKDB)
    assert_same(readers.parquet_by_duckdb(path, columns), rows, columns, "DuckDB")


@pytest.mark.parametrize("extension, read", [("arrow", readers.arrow_file), ("arrows", readers.arrow_stream)])
def test_arrow(server, run, name, tmp_path, extension, read):
    columns, rows = TABLES[name]
    assert_same(read(copied(run, server, name, tmp_path / f"t.{extension}"), columns), rows, columns)


@tables("matrix", "deepest", "flexible_names", "empty")
def test_avro(server, run, name, tmp_path):
    columns, rows = TABLES[name]
    codecs = ["none", "deflate", "snappy", "zstd"] if name == "deepest" else ["deflate"]
    for codec in codecs:
        path = copied(run, server, name, tmp_path / f"{codec}.avro", "--avro-compression", codec)
        assert_same(readers.avro(path, columns), rows, columns, codec)


@tables("matrix", "deepest", "flexible_names", "empty")
def test_ndjson(server, run, name, tmp_path):
    columns, rows = TABLES[name]
    assert_same(readers.ndjson(copied(run, server, name, tmp_path / "t.ndjson"), columns), rows, columns)


@tables("flat")
def test_csv(server, run, name, tmp_path):
    columns, rows = TABLES[name]
    path = copied(run, server, name, tmp_path / "t.csv")
    assert_same(readers.csv_by_duckdb(path, columns), rows, columns, "DuckDB")
    cells = readers.csv_text(path, columns)
    for column in columns:  # each text to the letter
        if column.kind.name != "float64":
            assert [row[column.name] for row in cells] == ["" if row[column.name] is None else column.kind.text(row[column.name]) for row in rows], column.name
