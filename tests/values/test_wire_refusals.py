"""What has no exact value on the wire is an error that names column, row and value, never another value; so are schemas that drift and names that collide."""

import io
import json
import re

import fastavro
import pyarrow as pa
import pytest

from refusals import ARROW_CASES, AVRO_CASES, GOOD_ROWS, assert_names, avro_rows, refused
from scripted import ScriptedRead, arrow_message, arrow_session, avro_message, avro_session


def refused_on_the_wire(run, tmp_path, session, messages, *options):
    with ScriptedRead(session, messages) as service:
        return refused(run, tmp_path, "bq:p.d.t", "--bigquery-storage-endpoint", service.endpoint, *options)


@pytest.mark.parametrize("case", ARROW_CASES)
def test_arrow_rows_on_the_wire(run, tmp_path, case):
    array, value = ARROW_CASES[case]
    batch = pa.record_batch({"n": pa.array([1] * len(array)), "Column": array})
    # The row counts from the stream's first, also over messages.
    text = refused_on_the_wire(run, tmp_path, arrow_session(batch.schema), [arrow_message(batch.slice(0, 2)), arrow_message(batch.slice(2))])
    assert_names(text, "Column", GOOD_ROWS, value)


@pytest.mark.parametrize("case", [case for case in AVRO_CASES if "millis" not in case])
def test_avro_rows_on_the_wire(run, tmp_path, case):
    kind, good, bad, value = AVRO_CASES[case]
    schema, rows = avro_rows(kind, [good] * GOOD_ROWS + [bad, good])
    parsed = fastavro.parse_schema(schema)

    def encoded(part):
        out = io.BytesIO()
        for row in part:
            fastavro.schemaless_writer(out, parsed, row)
        return avro_message(out.getvalue(), len(part))

    text = refused_on_the_wire(run, tmp_path, avro_session(json.dumps(schema)), [encoded(rows[:2]), encoded(rows[2:])], "--source-format", "avro")
    assert_names(text, "Column", GOOD_ROWS, value)


A = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string())])
DRIFTS = {
    "another type": (pa.schema([pa.field("a", pa.float64()), pa.field("b", pa.string())]), "a"),
    "a column less": (pa.schema([pa.field("a", pa.int64())]), "b"),
    "a column more": (pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string()), pa.field("c", pa.string())]), "c"),
    "another name": (pa.schema([pa.field("a", pa.int64()), pa.field("x", pa.string())]), "x"),
    "another order": (pa.schema([pa.field("b", pa.string()), pa.field("a", pa.int64())]), "a"),
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_a_message_whose_schema_is_not_the_sessions(run, tmp_path, drift):
    schema, column = DRIFTS[drift]
    good = pa.record_batch([pa.array([1]), pa.array(["x"])], schema=A)
    bad = pa.record_batch([pa.array(["y"] if field.type == pa.string() else [2], field.type) for field in schema], schema=schema)
    text = refused_on_the_wire(run, tmp_path, arrow_session(A), [arrow_message(good, A), arrow_message(bad, schema)])
    assert re.search(rf"\b{column}\b", text) and "schema" in text


@pytest.mark.parametrize("names", [("Name", "name"), ("x", "x")])
def test_a_session_with_colliding_names(run, tmp_path, names):
    schema = pa.schema([pa.field(name, pa.int64()) for name in names])
    assert names[1] in refused_on_the_wire(run, tmp_path, arrow_session(schema), [])
    fields = ", ".join(f'{{"name": "{name}", "type": "long"}}' for name in names)
    text = f'{{"type": "record", "name": "__root__", "fields": [{fields}]}}'
    assert names[1] in refused_on_the_wire(run, tmp_path, avro_session(text), [], "--source-format", "avro")


def test_a_null_in_a_required_column(run, tmp_path):
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("Column", pa.int64(), False)])
    batch = pa.record_batch([pa.array([1] * 5), pa.array([1, 1, 1, None, 1])], schema=schema)
    assert_names(refused_on_the_wire(run, tmp_path, arrow_session(schema), [arrow_message(batch)]), "Column", 3, "null")


def test_bytes_that_are_cut_off(run, tmp_path):
    schema, rows = avro_rows("string", ["x"] * 5)
    out = io.BytesIO()
    for row in rows:
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    message = avro_message(out.getvalue()[:-1], 5)
    text = refused_on_the_wire(run, tmp_path, avro_session(json.dumps(schema)), [message], "--source-format", "avro")
    assert_names(text, "Column", 4, "")
