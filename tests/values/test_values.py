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


@pytest.mark.parametrize("source_format", ["arrow", "avro"])
def test_parquet(server, run, name, tmp_path, source_format):
    columns, rows = TABLES[name]
    path = copied(run, server, name, tmp_path / "t.parquet", "--source-format", source_format)
    assert_same(readers.parquet(path, columns), rows, columns, "Arrow's reader")
    columns, rows = without(columns, rows, readers.NOT_IN_DUCKDB)
    assert_same(readers.parquet_by_duckdb(path, columns), rows, columns, "DuckDB")
