"""Independent writers of the formats that Headrace reads: tables of cases.py as files, by none of Headrace's own code."""

import json

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import arrow_form
import cases


def parquet(path, columns, rows):
    pq.write_table(arrow_form.table_of(columns, rows), path)


def arrow_file(path, columns, rows, codec=None):
    table = arrow_form.table_of(columns, rows)
    with pa.ipc.new_file(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as file:
        file.write_table(table, max_chunksize=5)


def arrow_stream(path, columns, rows, codec=None):
    table = arrow_form.table_of(columns, rows)
    with pa.ipc.new_stream(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as file:
        file.write_table(table, max_chunksize=5)


def parquet_by_duckdb(path, columns, rows):
    """DuckDB's own writer: everything nullable, no Arrow schema in the file, lists of its own making."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # Without marks: DuckDB takes the storage of extension types alone.
    bare = pa.Table.from_arrays([_bare(arrow_form.array_of(column, [row[column.name] for row in rows])) for column in columns],
                                names=[column.name for column in columns])
    connection.register("given", bare)
    connection.execute(f"COPY (SELECT * FROM given ORDER BY id) TO '{path}' (FORMAT parquet)")


def _bare(array):
    def plain(kind):
        if pa.types.is_list(kind):
            return pa.list_(plain(kind.value_type))
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(kind.field(i).name, plain(kind.field(i).type)) for i in range(kind.num_fields)])
        return kind

    return array.cast(plain(array.type))


# Avro as load files have it (docs/types.md).
_AVRO = {
    "INT64": "long", "FLOAT64": "double", "BOOL": "boolean", "STRING": "string", "BYTES": "bytes",
    "NUMERIC": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9},
    "NUMERIC(10, 2)": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "BIGNUMERIC": {"type": "bytes", "logicalType": "decimal", "precision": 77, "scale": 38},
    "BIGNUMERIC(40, 20)": {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 20},
    "DATE": {"type": "int", "logicalType": "date"}, "TIME": {"type": "long", "logicalType": "time-micros"},
    "DATETIME": {"type": "long", "logicalType": "local-timestamp-micros"}, "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"},
    "GEOGRAPHY": {"type": "string", "sqlType": "GEOGRAPHY"}, "JSON": {"type": "string", "sqlType": "JSON"},
}
NOT_IN_AVRO_LOAD_FILES = (cases.TIMESTAMP_PICOS, cases.INTERVAL) + cases.RANGES


def avro(path, columns, rows, codec="null"):
    """fastavro. Dates, times and datetimes are given as the integers that they are; decimals as the bytes."""
    counter = iter(range(10**6))
    schema = {"type": "record", "name": "Root", "fields": [_avro_field(column, counter) for column in columns]}
    content = [{column.name: _avro_value(row[column.name], column) for column in columns} for row in rows]
    with open(path, "wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), content, codec=codec, sync_interval=700)


def _avro_field(column, counter):
    if column.fields:
        kind = {"type": "record", "name": f"R{next(counter)}", "fields": [_avro_field(field, counter) for field in column.fields]}
    else:
        kind = _AVRO[column.kind.type]
    if column.mode == "REPEATED":
        kind = {"type": "array", "items": kind}
    return {"name": column.name, "type": ["null", kind] if column.mode == "NULLABLE" else kind}


def _avro_value(value, column):
    if column.mode == "REPEATED":
        return [_avro_value(element, cases.Column(column.name, column.kind, column.fields)) for element in value]
    if value is None:
        return None
    if column.fields:
        return {field.name: _avro_value(value[field.name], field) for field in column.fields}
    kind = _AVRO[column.kind.type]
    if isinstance(kind, dict) and kind.get("logicalType") == "decimal":
        unscaled = int(cases.EXACT.scaleb(value, kind["scale"]))
        length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        return unscaled.to_bytes(length, "big", signed=True)
    return value


def csv(path, columns, rows):
    """RFC 4180 by hand: text is quoted, null is an empty field without quotes."""
    def cell(value, column):
        if value is None:
            return ""
        text = column.kind.text(value)
        return '"' + text.replace('"', '""') + '"' if isinstance(value, str) or not text or "," in text else text

    with open(path, "w", newline="", encoding="utf-8") as file:
        for row in [[cell(column.name, cases.Column("", cases.STRING)) for column in columns]] + [[cell(row[c.name], c) for c in columns] for row in rows]:
            file.write(",".join(row) + "\r\n")


def ndjson(path, columns, rows):
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({column.name: json_value(row[column.name], column) for column in columns}, ensure_ascii=row["id"] % 2 == 0) + "\n")


def json_value(value, column):
    """A value as JSON rows hold it."""
    if column.mode == "REPEATED":
        return [json_value(element, cases.Column("", column.kind, column.fields)) for element in value]
    if value is None:
        return None
    if column.fields:
        return {field.name: json_value(value[field.name], field) for field in column.fields}
    kind = column.kind
    if kind is cases.FLOAT64:
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), value)
    return value if kind is cases.BOOL else kind.text(value)
