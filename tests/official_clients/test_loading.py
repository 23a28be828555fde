"""`headrace serve --load` takes every file format; Google's client reads what was in the file."""

import csv
import json
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.feather
import pytest
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

import harness

ROWS = [{"id": i, "name": None if i % 5 == 0 else f"n{i}", "score": i / 2 + 0.25} for i in range(100)]


def write_csv(path):
    with open(path, "w", newline="") as out:
        writer = csv.DictWriter(out, ["id", "name", "score"])
        writer.writeheader()
        writer.writerows(ROWS)


def write_ndjson(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def write_avro(path):
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}, {"name": "score", "type": "double"}]}
    with open(path, "wb") as out:
        fastavro.writer(out, schema, ROWS, codec="deflate")


WRITERS = {
    "parquet": lambda path: harness.write_parquet(pa.Table.from_pylist(ROWS), path),
    "arrow": lambda path: pyarrow.feather.write_feather(pa.Table.from_pylist(ROWS), path, compression="uncompressed"),
    "avro": write_avro,
    "csv": write_csv,
    "ndjson": write_ndjson,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_table_from_each_format(headrace, tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    WRITERS[suffix](path)
    with harness.Server(headrace, tmp_path, "--load", f"{harness.TABLE}={path}") as server:
        client = bigquery.Client("p", credentials=AnonymousCredentials(), client_options=ClientOptions(api_endpoint=f"http://{server.admin}"))
        assert [dict(row) for row in client.list_rows(harness.TABLE)] == ROWS
        assert [field.field_type for field in client.get_table(harness.TABLE).schema] == ["INTEGER", "STRING", "FLOAT"]
        client.close()


@pytest.mark.parametrize("suffix", ["csv", "ndjson"])
def test_a_schema_for_text(headrace, tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_text("code,amount\n007,1.10\n,2\n" if suffix == "csv" else '{"code": "007", "amount": "1.10"}\n{"code": null, "amount": 2}\n')
    schema = tmp_path / "schema.json"
    fields = [{"name": "code", "type": "STRING", "description": "digits"}, {"name": "amount", "type": "NUMERIC", "mode": "REQUIRED"}]
    schema.write_text(json.dumps(fields))
    with harness.Server(headrace, tmp_path, "--load", f"{harness.TABLE}={path}", "--load-schema", f"{harness.TABLE}={schema}") as server:
        client = bigquery.Client("p", credentials=AnonymousCredentials(), client_options=ClientOptions(api_endpoint=f"http://{server.admin}"))
        assert [dict(row) for row in client.list_rows(harness.TABLE)] == [{"code": "007", "amount": Decimal("1.1")}, {"code": None, "amount": Decimal(2)}]
        assert [(f.name, f.field_type, f.mode, f.description) for f in client.get_table(harness.TABLE).schema] == [
            ("code", "STRING", "NULLABLE", "digits"), ("amount", "NUMERIC", "REQUIRED", None)]
        client.close()
