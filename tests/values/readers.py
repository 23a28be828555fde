"""Independent readers of the formats that Headrace writes. Each answers rows in the form of cases.py; none uses Headrace's own code."""

import base64
import csv
import datetime
import json
import re

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import arrow_form
import cases


def parquet(path, columns):
    """Arrow's reader."""
    return arrow_form.rows_of(pq.ParquetFile(path).read(), columns)


def arrow_file(path, columns):
    with pa.OSFile(str(path)) as file:
        return arrow_form.rows_of(pa.ipc.open_file(file).read_all(), columns)


def arrow_stream(path, columns):
    with pa.OSFile(str(path)) as file:
        return arrow_form.rows_of(pa.ipc.open_stream(file).read_all(), columns)


# DuckDB has no 256-bit decimals: it reads them as DOUBLE, which the tests do not take for values.
NOT_IN_DUCKDB = (cases.BIGNUMERIC, cases.BIGNUMERIC_40_20)


def parquet_by_duckdb(path, columns):
    """DuckDB's reader of Parquet. Its times are taken as integers, in SQL, before any client has converted them."""
    connection = duckdb.connect()
    chosen = ", ".join(f"{_duckdb_plain(_quoted(column.name), column)} AS {_quoted(column.name)}" for column in columns)
    rows = connection.execute(f"SELECT {chosen} FROM read_parquet(?) ORDER BY id", [str(path)]).fetchall()
    return [{column.name: _from_duckdb(value, column) for column, value in zip(columns, row)} for row in rows]


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


def _duckdb_plain(expression, column):
    if column.mode == "REPEATED":
        element = cases.Column(column.name, column.kind, column.fields)
        inner = _duckdb_plain("x", element)
        return expression if inner == "x" else f"list_transform({expression}, x -> {inner})".replace("x ->", "lambda x:")
    if column.fields:
        inner = ", ".join(f"{_quoted(field.name)} := {_duckdb_plain(f'{expression}.{_quoted(field.name)}', field)}" for field in column.fields)
        return f"CASE WHEN {expression} IS NULL THEN NULL ELSE struct_pack({inner}) END"
    if column.kind.element is not None:
        inner = ", ".join(f"{_quoted(side)} := {_duckdb_plain(f'{expression}.{_quoted(side)}', cases.Column(side, column.kind.element))}" for side in ("start", "end"))
        return f"CASE WHEN {expression} IS NULL THEN NULL ELSE struct_pack({inner}) END"
    if column.kind is cases.DATE:
        return f"({expression} - DATE '1970-01-01')"
    if column.kind in (cases.TIME, cases.DATETIME, cases.TIMESTAMP):
        return f"epoch_us({expression})"
    return expression


def _from_duckdb(value, column):
    if column.mode == "REPEATED":
        return [_from_duckdb(element, cases.Column(column.name, column.kind, column.fields)) for element in value]
    if value is None:
        return None
    if column.fields:
        return {field.name: _from_duckdb(value[field.name], field) for field in column.fields}
    if column.kind.element is not None:
        return tuple(_from_duckdb(value[side], cases.Column(side, column.kind.element)) for side in ("start", "end"))
    if column.kind is cases.INTERVAL:
        return tuple(value[name] for name in ("months", "days", "microseconds"))
    return column.kind.parse(value) if column.kind in arrow_form.PARSED_FROM_TEXT else value


_EPOCH = datetime.datetime(1970, 1, 1)


def avro(path, columns):
    """fastavro, which makes dates, times and decimals of the logical types."""
    with open(path, "rb") as file:
        reader = fastavro.reader(file)
        return [from_avro(by_display_name(row, reader.writer_schema), columns) for row in reader]


def by_display_name(value, schema):
    """The value with the columns' own names, which stand in an attribute where Avro cannot have them as names."""
    if value is None:
        return None
    if isinstance(schema, list):
        return by_display_name(value, next(kind for kind in schema if kind != "null"))
    if not isinstance(schema, dict):
        return value
    if schema["type"] == "array":
        return [by_display_name(element, schema["items"]) for element in value]
    if schema["type"] == "record":
        return {field.get("displayName", field["name"]): by_display_name(value[field["name"]], field["type"]) for field in schema["fields"]}
    return value


def from_avro(row, columns):
    assert list(row) == [column.name for column in columns]
    return {column.name: _from_avro(row[column.name], column) for column in columns}


def _from_avro(value, column):
    if column.mode == "REPEATED":
        return [_from_avro(element, cases.Column(column.name, column.kind, column.fields)) for element in value]
    if value is None:
        return None
    if column.fields:
        return {field.name: _from_avro(value[field.name], field) for field in column.fields}
    kind = column.kind
    if kind.element is not None and isinstance(value, dict):
        return tuple(_from_avro(value[side], cases.Column(side, kind.element)) for side in ("start", "end"))
    if kind is cases.INTERVAL and isinstance(value, dict):
        return tuple(value[name] for name in ("months", "days", "microseconds"))
    if isinstance(value, datetime.datetime):
        assert (value.tzinfo is not None) == (kind is cases.TIMESTAMP), f"{column.name}: {value!r}"
        return (value.replace(tzinfo=None) - _EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return value.toordinal() - datetime.date(1970, 1, 1).toordinal()
    if isinstance(value, datetime.time):
        return cases.micros(value.hour, value.minute, value.second, value.microsecond)
    if isinstance(value, str) and kind not in (cases.STRING, cases.JSON, cases.GEOGRAPHY):
        return kind.parse(value)
    return value


def csv_text(path, columns):
    """Python's csv module: the cells as text, and each text is exactly what docs/types.md says. It cannot tell null from empty: DuckDB can."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        assert next(reader) == [column.name for column in columns]
        return [dict(zip((column.name for column in columns), row)) for row in reader]


def csv_by_duckdb(path, columns):
    """DuckDB's reader: every cell as text, null where the cell is empty and not quoted."""
    options = "header = true, all_varchar = true, allow_quoted_nulls = false, auto_detect = false, delim = ',', quote = '\"', escape = '\"', strict_mode = true"
    names = ", ".join(f"{_literal(column.name)}: 'VARCHAR'" for column in columns)
    rows = duckdb.connect().execute(f"SELECT * FROM read_csv(?, {options}, columns = {{{names}}})", [str(path)]).fetchall()
    return [{column.name: None if cell is None else column.kind.parse(cell) for column, cell in zip(columns, row)} for row in rows]


def _literal(text):
    return "'" + text.replace("'", "''") + "'"


def ndjson(path, columns):
    """Python's json module."""
    with open(path, encoding="utf-8", newline="\n") as file:
        return [from_json(json.loads(line), columns) for line in file]


def from_json(row, columns):
    assert list(row) == [column.name for column in columns]
    return {column.name: _from_json(row[column.name], column) for column in columns}


def _from_json(value, column):
    if column.mode == "REPEATED":
        return [_from_json(element, cases.Column(column.name, column.kind, column.fields)) for element in value]
    if value is None:
        return None
    if column.fields:
        return from_json(value, column.fields)
    kind = column.kind
    if kind is cases.BOOL:
        return value
    if kind is cases.FLOAT64 and not isinstance(value, str):
        return float(value)
    assert isinstance(value, str), f"{column.name}: {value!r}"
    if kind is cases.FLOAT64:
        return {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}[value]
    return kind.parse(value)


def rest(rows, columns):
    """The rows of tabledata.list as JSON: {"f": [{"v": ...}]}, every scalar as text; TIMESTAMP as microseconds, as formatOptions.useInt64Timestamp asks."""
    return [_from_cells(row, columns) for row in rows]


def _from_cells(row, columns):
    assert list(row) == ["f"] and len(row["f"]) == len(columns), row
    return {column.name: _from_cell(cell["v"], column) for column, cell in zip(columns, row["f"])}


def _from_cell(value, column):
    if column.mode == "REPEATED":
        return [_from_cell(element["v"], cases.Column(column.name, column.kind, column.fields)) for element in value]
    if value is None:
        return None
    if column.fields:
        return _from_cells(value, column.fields)
    assert isinstance(value, str), f"{column.name}: {value!r}"
    if column.kind is cases.TIMESTAMP:
        return int(value)
    if column.kind.element is cases.TIMESTAMP:
        return tuple(None if side == "UNBOUNDED" else int(side) for side in re.fullmatch(r"\[([^,]+), ([^,]+)\)", value).groups())
    if column.kind is cases.FLOAT64 and value in ("NaN", "Infinity", "-Infinity"):
        return float(value.replace("Infinity", "inf").replace("NaN", "nan"))
    if column.kind is cases.BYTES:
        return base64.b64decode(value, validate=True)
    return column.kind.parse(value)




def from_client(values, columns):
    """A row of Google's client for REST, which makes Python's own dates, times and decimals."""
    return {column.name: _from_client(value, column) for value, column in zip(values, columns)}


def _from_client(value, column):
    if column.mode == "REPEATED":
        return [_from_client(element, cases.Column(column.name, column.kind, column.fields)) for element in value]
    if value is None:
        return None
    if column.fields:
        return {field.name: _from_client(value[field.name], field) for field in column.fields}
    if column.kind.element is not None:
        return tuple(_from_client(value[side], cases.Column(side, column.kind.element)) for side in ("start", "end"))
    return _from_avro(value, column)
