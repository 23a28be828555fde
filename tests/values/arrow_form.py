"""Tables of cases.py as Arrow, in the canonical types of docs/types.md, and back: both by the bits, never through Python's dates or decimals' contexts."""

import json

import pyarrow as pa

import cases

EXTENSION_NAME = b"ARROW:extension:name"
EXTENSION_METADATA = b"ARROW:extension:metadata"

_STORAGE = {
    "INT64": pa.int64(), "FLOAT64": pa.float64(), "BOOL": pa.bool_(), "STRING": pa.utf8(), "BYTES": pa.binary(), "NUMERIC": pa.decimal128(38, 9),
    "NUMERIC(10, 2)": pa.decimal128(10, 2), "BIGNUMERIC": pa.decimal256(76, 38), "BIGNUMERIC(40, 20)": pa.decimal256(40, 20), "DATE": pa.date32(),
    "TIME": pa.time64("us"), "DATETIME": pa.timestamp("us"), "TIMESTAMP": pa.timestamp("us", "UTC"), "TIMESTAMP(12)": pa.utf8(), "GEOGRAPHY": pa.utf8(),
    "JSON": pa.utf8(),
    "INTERVAL": pa.struct([pa.field("months", pa.int32(), False), pa.field("days", pa.int32(), False), pa.field("microseconds", pa.int64(), False)]),
}
_MARKS = {
    "TIMESTAMP(12)": {EXTENSION_NAME: b"google:sqlType:timestamp_picos"},
    "GEOGRAPHY": {EXTENSION_NAME: b"google:sqlType:geography", EXTENSION_METADATA: json.dumps({"encoding": "WKT"}).encode()},
    "JSON": {EXTENSION_NAME: b"arrow.json"},
    "INTERVAL": {EXTENSION_NAME: b"google:sqlType:interval"},
}


def _type(column):
    if column.fields:
        return pa.struct([field_of(field) for field in column.fields])
    if column.kind.element is not None:
        return pa.struct([pa.field(side, _STORAGE[column.kind.element.type]) for side in ("start", "end")])
    return _STORAGE[column.kind.type]


def _marks(column):
    if column.kind is None:
        return None
    return {EXTENSION_NAME: b"google:sqlType:range"} if column.kind.element is not None else _MARKS.get(column.kind.type)


def field_of(column):
    if column.mode == "REPEATED":
        return pa.field(column.name, pa.list_(pa.field("element", _type(column), False, _marks(column))), False)
    return pa.field(column.name, _type(column), column.mode != "REQUIRED", _marks(column))


def _bitmap(values):
    bits = bytearray((len(values) + 7) // 8)
    for i, value in enumerate(values):
        if value is not None:
            bits[i // 8] |= 1 << i % 8
    return pa.py_buffer(bytes(bits))


def _decimals(values, kind):
    width, scale = (16 if pa.types.is_decimal128(kind) else 32), kind.scale
    unscaled = [int(cases.EXACT.scaleb(value, scale)) if value is not None else 0 for value in values]
    content = b"".join(number.to_bytes(width, "little", signed=True) for number in unscaled)
    return pa.Array.from_buffers(kind, len(values), [_bitmap(values), pa.py_buffer(content)])


def _struct(kind, children, values):
    return pa.Array.from_buffers(kind, len(values), [_bitmap(values)], children=children)


def _array(column, values):
    """Values of the column without its REPEATED mode."""
    kind = _type(column)
    if column.fields:
        inner = [array_of(field, [_under(value, field.name, field) for value in values]) for field in column.fields]
        return _struct(kind, inner, values)
    if column.kind.type == "INTERVAL":
        parts = [[value[i] if value else 0 for value in values] for i in range(3)]
        return _struct(kind, [pa.array(part, kind.field(i).type) for i, part in enumerate(parts)], values)
    if column.kind.element is not None:
        element = cases.Column("v", column.kind.element)
        return _struct(kind, [_array(element, [value[i] if value else None for value in values]) for i in range(2)], values)
    if pa.types.is_decimal(kind):
        return _decimals(values, kind)
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int64()).view(kind)
    if column.kind is cases.TIMESTAMP_PICOS:
        values = [value if value is None else cases.picos_text(value) for value in values]
    return pa.array(values, kind)


def _under(value, name, field):
    """A field's value; below a null STRUCT something that the field may be."""
    if value is not None:
        return value[name]
    if field.mode == "REPEATED":
        return []
    return field.kind.values[0] if field.mode == "REQUIRED" and field.kind else {} if field.mode == "REQUIRED" else None


def array_of(column, values):
    if column.mode != "REPEATED":
        return _array(column, values)
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    elements = _array(column, [element for value in values for element in value])
    buffer = pa.array(offsets, pa.int32()).buffers()[1]
    return pa.Array.from_buffers(field_of(column).type, len(values), [None, buffer], children=[elements])


def table_of(columns, rows):
    schema = pa.schema([field_of(column) for column in columns])
    return pa.Table.from_arrays([array_of(column, [row[column.name] for row in rows]) for column in columns], schema=schema)


def rows_of(table, columns):
    """The rows of an Arrow table in the form of cases.py, by what its types say."""
    assert table.column_names == [column.name for column in columns], table.column_names
    batches = table.combine_chunks().to_batches()
    result = []
    for batch in batches:
        values = {column.name: values_of(batch.column(i), column) for i, column in enumerate(columns)}
        result += [{name: content[row] for name, content in values.items()} for row in range(batch.num_rows)]
    return result


def values_of(array, column):
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if column.mode == "REPEATED":
        inner = cases.Column(column.name, column.kind, column.fields)
        assert array.null_count == 0, "a null array"
        elements, offsets = values_of(array.values, inner), array.offsets.to_pylist()
        return [elements[start:end] for start, end in zip(offsets, offsets[1:])]
    valid = array.is_valid().to_pylist()
    if column.fields:
        inner = {field.name: values_of(array.field(i), field) for i, field in enumerate(column.fields)}
        assert [array.type.field(i).name for i in range(array.type.num_fields)] == list(inner)
        return [{name: inner[name][i] for name in inner} if ok else None for i, ok in enumerate(valid)]
    return [value if ok else None for value, ok in zip(_scalars(array, column.kind), valid)]


def _scalars(array, kind):
    stored = array.type
    if kind.type == "INTERVAL" and pa.types.is_struct(stored):
        return list(zip(*(array.field(name).to_pylist() for name in ("months", "days", "microseconds"))))
    if kind.element is not None and pa.types.is_struct(stored):
        return list(zip(*(values_of(array.field(side), cases.Column(side, kind.element)) for side in ("start", "end"))))
    if pa.types.is_decimal(stored):
        width, data = stored.bit_width // 8, array.buffers()[1].to_pybytes()
        numbers = [int.from_bytes(data[(array.offset + i) * width:(array.offset + i + 1) * width], "little", signed=True) for i in range(len(array))]
        return [cases.EXACT.scaleb(cases.EXACT.create_decimal(number), -stored.scale) for number in numbers]
    if pa.types.is_date32(stored):
        assert kind is cases.DATE, stored
        return array.view(pa.int32()).to_pylist()
    if pa.types.is_temporal(stored):
        wanted = {cases.TIME: pa.time64("us"), cases.DATETIME: pa.timestamp("us"), cases.TIMESTAMP: pa.timestamp("us", "UTC")}[kind]
        assert stored == wanted, f"{stored}, not {wanted}"
        return array.view(pa.int64()).to_pylist()
    values = array.to_pylist()
    if pa.types.is_string(stored) and kind in PARSED_FROM_TEXT:
        return [kind.parse(value) if value else None for value in values]  # text below a null STRUCT is empty
    return values


PARSED_FROM_TEXT = (cases.TIMESTAMP_PICOS, cases.INTERVAL) + cases.RANGES
