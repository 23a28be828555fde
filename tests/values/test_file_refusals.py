"""What has no exact value in a file is an error that names column, row and value, never another value: in every format that is read."""

import io
import json
import re

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refusals import ARROW_CASES, AVRO_CASES, GOOD_ROWS, arrow_case_file, assert_names, avro_rows, refused, with_bad


# Text: BigQuery's type, a value that it has, one that it has not.
TEXT_CASES = [
    ("INT64", "1", "9223372036854775808"),
    ("INT64", "-1", "-9223372036854775809"),
    ("INT64", "1", "1.5"),
    ("INT64", "1", "0x10"),
    ("NUMERIC", "2.3", "100000000000000000000000000000"),
    ("NUMERIC", "2.3", "0.0000000001"),
    ("BIGNUMERIC", "2.3", "578960446186580977117854925043439539266.34992332820282019728792003956564819968"),
    ("BIGNUMERIC", "2.3", "0." + "0" * 38 + "1"),
    ("BOOL", "true", "yes"),
    ("DATE", "2024-02-29", "2023-02-29"),
    ("DATE", "2024-02-29", "0000-12-31"),
    ("DATE", "2024-02-29", "10000-01-01"),
    ("DATE", "2024-02-29", "2024-13-01"),
    ("TIME", "23:59:59.999999", "24:00:00"),
    ("TIME", "23:59:59", "23:59:60"),
    ("TIME", "23:59:59", "12:00:00.1234567"),
    ("DATETIME", "1969-12-31T23:59:59", "1969-12-31T24:00:00"),
    ("DATETIME", "1969-12-31 23:59:59", "1900-02-29 00:00:00"),
    ("TIMESTAMP", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01"),
    ("TIMESTAMP", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-00:01"),
    ("BYTES", "AA==", "A==="),
    ("JSON", '{"a":1}', '{"a":'),
    ("INTERVAL", "1-2 3 4:5:6", "1-2 3"),
    ("FLOAT64", "1e3", "1e3x"),
]


@pytest.mark.parametrize("kind, good, bad", TEXT_CASES)
@pytest.mark.parametrize("extension", ["csv", "ndjson"])
def test_text_that_is_no_value(run, tmp_path, extension, kind, good, bad):
    rows = [good] * GOOD_ROWS + [bad, good]
    source = tmp_path / f"t.{extension}"
    if extension == "csv":
        quoted = ['"' + text.replace('"', '""') + '"' for text in rows]
        source.write_text("n,Column\n" + "".join(f"1,{text}\n" for text in quoted), encoding="utf-8")
    else:
        source.write_text("".join(json.dumps({"n": "1", "Column": text}) + "\n" for text in rows), encoding="utf-8")
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps([{"name": "n", "type": "INT64"}, {"name": "Column", "type": kind}]))
    assert_names(refused(run, tmp_path, source, "--schema", schema), "Column", GOOD_ROWS, bad)


@pytest.mark.parametrize("line, column, value", [
    ('{"a": "1", "A": "2"}', "a", ""),  # the same column twice
    ('{"a": {"b": 1}}', "a", ""),
    ('{"a": [1]}', "a", ""),
    ('{"a": 1, "zz": 2}', "zz", ""),
    ('{"r": [1, null]}', "r", "null"),
    ('{"s": {"q": null}}', "s.q", ""),
    ('{"s": {"q": "x"}}', "s.q", "x"),
    ('{"a": 1', "", ""),
    ('{"a": "\\ud800"}', "", ""),
])
def test_ndjson_rows_that_are_none(run, tmp_path, line, column, value):
    fields = [{"name": "a", "type": "INT64"}, {"name": "r", "type": "INT64", "mode": "REPEATED"},
              {"name": "s", "type": "RECORD", "fields": [{"name": "q", "type": "INT64", "mode": "REQUIRED"}]}]
    (tmp_path / "schema.json").write_text(json.dumps(fields))
    (tmp_path / "t.ndjson").write_text('{"a": 1}\n' * GOOD_ROWS + line + "\n")
    assert_names(refused(run, tmp_path, tmp_path / "t.ndjson", "--schema", tmp_path / "schema.json"), column, GOOD_ROWS, value)


@pytest.mark.parametrize("extension, content", [
    ("csv", b"n,Column\n" + b"1,good\n" * GOOD_ROWS + b"1,\xc3(\n"),
    ("csv", b"n,Column\n" + b"1,good\n" * GOOD_ROWS + b"1,\xed\xa0\x80\n"),
    ("ndjson", b'{"n":"1","Column":"good"}\n' * GOOD_ROWS + b'{"n":"1","Column":"\xc3("}\n'),
])
def test_text_that_is_not_utf8(run, tmp_path, extension, content):
    (tmp_path / f"t.{extension}").write_bytes(content)
    (tmp_path / "schema.json").write_text('[{"name": "n", "type": "INT64"}, {"name": "Column", "type": "STRING"}]')
    text = refused(run, tmp_path, tmp_path / f"t.{extension}", "--schema", tmp_path / "schema.json")
    assert f"row {GOOD_ROWS}" in text and "UTF-8" in text


@pytest.mark.parametrize("header", ["a,b,A", "a,a"])
def test_columns_of_csv_with_one_name(run, tmp_path, header):
    (tmp_path / "t.csv").write_text(f"{header}\n" + ",".join("1" for _ in header.split(",")) + "\n")
    assert re.search(r"\b[aA]\b", refused(run, tmp_path, tmp_path / "t.csv"))


@pytest.mark.parametrize("case", ARROW_CASES)
@pytest.mark.parametrize("extension", ["parquet", "arrow", "arrows"])
def test_arrow_values_that_are_none(run, tmp_path, extension, case):
    array, value = ARROW_CASES[case]
    source = arrow_case_file(tmp_path, extension, array)
    assert_names(refused(run, tmp_path, source), "Column", GOOD_ROWS, value)


# What only files have, which are made by others than BigQuery.
@pytest.mark.parametrize("array, value", [
    (with_bad(0, 1, pa.int64(), pa.timestamp("ns")), "1"),
    (pa.array([1] * GOOD_ROWS + [2**63, 1], pa.uint64()), "9223372036854775808"),
])
def test_parquet_values_that_do_not_fit(run, tmp_path, array, value):
    pq.write_table(pa.table({"Column": array}), tmp_path / "t.parquet")
    assert_names(refused(run, tmp_path, tmp_path / "t.parquet"), "Column", GOOD_ROWS, value)


@pytest.mark.parametrize("extension", ["parquet", "arrow"])
def test_columns_of_arrow_files_with_one_name(run, tmp_path, extension):
    table = pa.table([pa.array([1]), pa.array([2])], names=["Name", "name"])
    if extension == "parquet":
        pq.write_table(table, tmp_path / "t.parquet")
    else:
        with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as file:
            file.write_table(table)
    assert re.search(r"\b[nN]ame\b", refused(run, tmp_path, tmp_path / f"t.{extension}"))


@pytest.mark.parametrize("case", AVRO_CASES)
def test_avro_values_that_are_none(run, tmp_path, case):
    kind, good, bad, value = AVRO_CASES[case]
    schema, rows = avro_rows(kind, [good] * GOOD_ROWS + [bad, good])
    with open(tmp_path / "t.avro", "wb") as file:
        fastavro.writer(file, schema, rows)
    assert_names(refused(run, tmp_path, tmp_path / "t.avro"), "Column", GOOD_ROWS, value)


def test_avro_text_that_is_not_utf8(run, tmp_path):
    # Both types have the same bytes: the file is written as bytes and says string.
    schema, rows = avro_rows("bytes", [b"x"] * GOOD_ROWS + [b"\xc3("])
    content = io.BytesIO()
    fastavro.writer(content, schema, rows)
    (tmp_path / "t.avro").write_bytes(_as_string(content.getvalue()))
    assert_names(refused(run, tmp_path, tmp_path / "t.avro"), "Column", GOOD_ROWS, "UTF-8")


def _as_string(content):
    """ "bytes " and "string" are of one length, which the header states."""
    assert content.count(b'"bytes"') == 1
    return content.replace(b'"type": "bytes"', b'"type":"string"')
