"""Headrace reads the tables of independent emulators of BigQuery: each type, null, repeated, nested. What an emulator does otherwise than BigQuery is
named here, one by one, and asserted: when it no longer does, the test fails and the entry goes.

The short run has bqemulator; `scripts/test.sh --all peers` has the others as well. HEADRACE_PEERS names those that are tested.
"""

import base64
import dataclasses
import json
import math
import os
import re
import struct

import grpc
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.cloud import bigquery_storage_v1
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

import arrow_form
import cases
import harness
from peer import DATASET, PROJECT, Peer

PEERS = os.environ.get("HEADRACE_PEERS", "bqemulator").split()
# Of INTERVAL only a value that every emulator takes: others overflow the nanoseconds in which they hold it, or are refused.
INTERVAL = dataclasses.replace(cases.INTERVAL, values=cases.INTERVAL.values[3:4])
KINDS = [kind for kind in cases.SCALARS if kind not in (cases.TIMESTAMP_PICOS, cases.NUMERIC_10_2, cases.BIGNUMERIC_40_20, cases.INTERVAL)] + [INTERVAL]


@pytest.fixture(scope="session", params=PEERS)
def peer(request, tmp_path_factory):
    with Peer(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


def columns_of(kind):
    inner = (cases.Column("v", kind), cases.Column("r", kind, mode="REPEATED"))
    return [cases.Column("id", cases.INT64, mode="REQUIRED"), cases.Column("v", kind), cases.Column("r", kind, mode="REPEATED"),
            cases.Column("s", fields=inner), cases.Column("n", fields=inner, mode="REPEATED")]


def rows_of(kind):
    values = kind.values + (None,)
    rows = []
    for i, value in enumerate(values):
        present = [v for v in (value, values[i - 1]) if v is not None]
        rows.append({"id": i, "v": value, "r": present, "s": {"v": value, "r": present}, "n": [{"v": v, "r": present[:i % 3]} for v in (value, values[0])]})
    return rows


# What an emulator refuses to hold, and its words.
REFUSED = {
    ("bqemulator", "bignumeric"): "500 to POST /datasets/peer/tables",
    ("local_bigquery", "bignumeric"): "Cannot convert value to bignumeric",  # 38 + 38 digits
    ("local_bigquery", "interval"): "Cannot convert value to interval",
}
# goccy v0.8.1 (facts/emulators-runs.md): no RANGE, one stream, no Avro of a null, no arrays in Arrow that are those of the table.
REFUSED |= {("goccy", name): "TYPE_UNKNOWN" for name in ("range_date", "range_datetime", "range_timestamp")}
# insertAll answers 500 to these, or stores something else: they are filled by SQL, the scalar and the repeated column only.
RANGES = ("range_date", "range_datetime", "range_timestamp")
BY_SQL = {("bqemulator", name) for name in ("geography", "interval", *RANGES)} | {("local_bigquery", name) for name in ("bytes", "geography", *RANGES)}
# insertAll stores the text as a JSON string at every other depth; INTERVAL literals are refused in an array.
SCALAR_ONLY = {("local_bigquery", "json"), ("bqemulator", "interval")} | {("goccy", kind.name) for kind in KINDS}  # its arrays in Arrow are other rows
ONE_STREAM = {"goccy": ["--max-stream-count", "1"]}  # more are refused


def well_known_binary(text):
    name, _, numbers = text.partition("(")
    points = [tuple(map(float, point.split())) for point in numbers.rstrip(")").split(",") if point]
    if name == "POINT":
        return struct.pack("<BIdd", 1, 1, *points[0])
    if name == "LINESTRING":
        return struct.pack("<BII", 1, 2, len(points)) + b"".join(struct.pack("<dd", *point) for point in points)
    assert text == "GEOMETRYCOLLECTION EMPTY"
    return struct.pack("<BII", 1, 7, 0)


def geography_as_wkb(columns, rows):
    columns = [columns[0], cases.Column("v", cases.BYTES), cases.Column("r", cases.BYTES, mode="REPEATED")]
    return columns, [{"id": row["id"], "v": row["v"] and well_known_binary(row["v"]), "r": [well_known_binary(v) for v in row["r"]]} for row in rows]


def range_as_struct(*names):
    """A RANGE comes as a struct without the mark that makes it one."""

    def otherwise(columns, rows):
        element = columns[1].kind.element
        sides = tuple(cases.Column(name, element) for name in names)
        columns = [columns[0], cases.Column("v", fields=sides), cases.Column("r", fields=sides, mode="REPEATED")]

        def of(value):
            return value and dict(zip(names, value))

        return columns, [{"id": row["id"], "v": of(row["v"]), "r": [of(v) for v in row["r"]]} for row in rows]

    return otherwise


def repeated_geography_as_json(columns, rows):
    """An element of a repeated GEOGRAPHY comes as a struct around JSON text; a scalar as it should."""
    columns = [columns[0], columns[1], cases.Column("r", fields=(cases.Column("v", cases.STRING),), mode="REPEATED")]
    return columns, [{**row, "r": [{"v": json.dumps(v)} for v in row["r"]]} for row in rows]


def datetime_as_timestamp(columns, rows):
    """Avro has timestamp-micros for DATETIME."""
    def other(column):
        return dataclasses.replace(column, kind=cases.TIMESTAMP if column.kind is cases.DATETIME else column.kind, fields=tuple(map(other, column.fields)))

    return list(map(other, columns)), rows


def base64_text(columns, rows):
    """And what insertAll is given it does not decode."""
    return columns, [{**row, "v": row["v"] and base64.b64encode(base64.b64encode(row["v"]))} for row in rows]


def as_sqlite_keeps_floats(columns, rows):
    """NaN is null and zero has no sign."""
    return columns, [{**row, "v": None if row["v"] is None or math.isnan(row["v"]) else row["v"] + 0.0} for row in rows]


def interval_as_text(columns, rows):
    return [columns[0], cases.Column("v", cases.STRING)], [{**row, "v": row["v"] and "1-2 3 4:5:6.789"} for row in rows]


# What an emulator sends otherwise than BigQuery does: (columns, rows) as they were stored -> as Headrace reads them.
OTHERWISE = {
    ("bqemulator", "geography", "avro"): geography_as_wkb,
    ("bqemulator", "datetime", "avro"): datetime_as_timestamp,
    ("local_bigquery", "geography", "arrow"): repeated_geography_as_json,
    ("goccy", "bytes", "arrow"): base64_text,
    ("goccy", "float64", "arrow"): as_sqlite_keeps_floats,  # its SQL says so as well: lost when the row was stored
    ("goccy", "interval", "arrow"): interval_as_text,
}
# What Headrace refuses to read, and in which words; those in quotes are the emulator's.
NOT_READ = {
    ("bqemulator", "geography", "arrow"): "column v: GEOGRAPHY in binary form (WKB) is not supported",
    ("bqemulator", "interval", "avro"): "too many values to unpack",
    ("local_bigquery", "datetime", "avro"): "must be string on field r",
    ("local_bigquery", "geography", "avro"): "must be string on field r",
}
# Deviations of the wire that are told nowhere else: the Arrow types of the columns v and r, as Google's own client finds them.
NOT_READ |= {("goccy", kind.name, "avro"): "failed to encode binary from go value" for kind in KINDS}
NOT_READ |= {
    ("goccy", "time", "arrow"): "unexpected builder type *array.Time64",
    ("goccy", "datetime", "arrow"): "invalid timestamp string",
    ("goccy", "bignumeric", "arrow"): "bitlen too large for decimal256",
}
SENT = {("local_bigquery", "geography"): ["string", "list<l: struct<v: string>>"], ("goccy", "interval"): ["string"]}
for _name, _type in {"range_date": "date32[day]", "range_datetime": "timestamp[us]", "range_timestamp": "timestamp[us, tz=UTC]"}.items():
    _struct = f"struct<start: {_type}, end: {_type}>"
    OTHERWISE["bqemulator", _name, "arrow"] = OTHERWISE["bqemulator", _name, "avro"] = range_as_struct("start", "end")
    SENT["bqemulator", _name] = [_struct, f"list<l: {_struct}>"]
    _struct = f"struct<__range_start: {_type}, __range_end: {_type}>"
    OTHERWISE["local_bigquery", _name, "arrow"] = range_as_struct("__range_start", "__range_end")
    NOT_READ["local_bigquery", _name, "avro"] = "KeyError('RANGE')"
    SENT["local_bigquery", _name] = [_struct, f"list<l: {_struct}>"]
OTHERWISE["bqemulator", "range_datetime", "avro"] = lambda *table: datetime_as_timestamp(*range_as_struct("start", "end")(*table))


def wire_types(peer, table):
    """The Arrow types that the emulator itself sends, through Google's client."""
    with grpc.insecure_channel(f"127.0.0.1:{peer.grpc}") as channel:
        client = bigquery_storage_v1.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
        wanted = types.ReadSession(table=f"projects/{PROJECT}/datasets/{DATASET}/tables/{table}", data_format=types.DataFormat.ARROW)
        session = client.create_read_session(parent=f"projects/{PROJECT}", read_session=wanted, max_stream_count=1, timeout=30)
    schema = pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema))
    assert schema.field("v").metadata is None or b"range" not in schema.field("v").metadata.get(b"ARROW:extension:name", b"")
    return [str(schema.field(name).type) for name in ("v", "r") if name in schema.names]


def copy(run, peer, table, path, *options):
    run("copy", f"bq:{PROJECT}.{DATASET}.{table}", path, "--bigquery-storage-endpoint", f"http://127.0.0.1:{peer.grpc}", "--quiet", *ONE_STREAM.get(peer.name, []), *options)
    return pq.ParquetFile(path).read()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_value(peer, run, tmp_path, kind):
    table, columns, rows, case = kind.name, columns_of(kind), rows_of(kind), (peer.name, kind.name)
    if case in REFUSED:
        with pytest.raises(AssertionError, match=REFUSED[case]):
            peer.create(table, columns)
            peer.insert(table, columns, rows)
        return
    columns = columns[:2] if case in SCALAR_ONLY else columns[:3] if case in BY_SQL else columns
    if case in BY_SQL:
        peer.create_sql(table, columns)
        peer.insert_sql(table, columns, rows)
    else:
        peer.create(table, columns)
        peer.insert(table, columns, rows)
    if case in SENT:
        assert wire_types(peer, table) == SENT[case]
    for source_format in ("arrow", "avro"):
        out, options = tmp_path / f"{source_format}.parquet", ["--source-format", source_format]
        if (*case, source_format) in NOT_READ:
            with pytest.raises(AssertionError, match=re.escape(NOT_READ[*case, source_format])):
                copy(run, peer, table, out, *options)
            continue
        result = copy(run, peer, table, out, *options).sort_by("id")
        read, wanted = OTHERWISE.get((*case, source_format), lambda *same: same)(columns, rows)
        cases.assert_same(arrow_form.rows_of(result, read), wanted, read, f"{peer.name}, {source_format}")


def test_many_rows_through_several_streams(peer, run, tmp_path):
    rows = 300_000
    if peer.name in ONE_STREAM:
        pytest.skip(f"{peer.name} has one stream only")
    peer.query(f"CREATE TABLE {DATASET}.many AS SELECT n AS id, CONCAT('row ', CAST(n AS STRING)) AS name FROM UNNEST(GENERATE_ARRAY(1, {rows})) AS n")
    where = ["--bigquery-storage-endpoint", f"http://127.0.0.1:{peer.grpc}", "--max-stream-count", 4]
    assert json.loads(run("plan", f"bq:{PROJECT}.{DATASET}.many", "--json", *where)[0])["streams"] > 1
    run("copy", f"bq:{PROJECT}.{DATASET}.many", tmp_path / "out", "--quiet", *where)
    result = harness.read_result(tmp_path / "out").sort_by("id")
    assert result["id"].to_pylist() == list(range(1, rows + 1))
    assert result["name"].to_pylist() == [f"row {n}" for n in range(1, rows + 1)]


@pytest.mark.parametrize("restriction, wanted", [("id < 3", [0, 1, 2]), ("v IS NULL", [13]), ("v = 'a' AND id > 0", [2])])
def test_restriction_and_selected_fields(peer, run, tmp_path, restriction, wanted):
    columns = [cases.Column("id", cases.INT64, mode="REQUIRED"), cases.Column("v", cases.STRING), cases.Column("w", cases.DATE)]
    rows = [{"id": i, "v": None if i == 13 else "x" if i != 2 else "a", "w": i} for i in range(20)]
    table = f"restricted_{wanted[0]}"
    peer.create(table, columns)
    peer.insert(table, columns, rows)
    result = copy(run, peer, table, tmp_path / "t.parquet", "--row-restriction", restriction, "--selected-fields", "id,w").sort_by("id")
    assert result.column_names == ["id", "w"]
    assert result["id"].to_pylist() == wanted
