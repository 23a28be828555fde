"""Our Avro against fastavro's: random nested schemas and rows, written by one and read by the other. The seed is printed; HEADRACE_SEED sets it."""

import json
import os
import random
import string
from datetime import date, datetime, time, timedelta, timezone
from decimal import Context, Decimal

import fastavro
import pyarrow as pa
import pyarrow.ipc
import pytest

from avro_files import Converter, compare, expected, read_arrow

ROWS = 100_000
ROWS_OF_A_SCHEMA = 2_000
UTC = timezone.utc
EPOCH = datetime(1970, 1, 1)
MIN_MICROS = (datetime(1, 1, 1) - EPOCH) // timedelta(microseconds=1)
MAX_MICROS = (datetime(9999, 12, 31, 23, 59, 59, 999999) - EPOCH) // timedelta(microseconds=1)
DIGITS = Context(prec=100)


@pytest.fixture(scope="module")
def seed():
    value = int(os.environ.get("HEADRACE_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"HEADRACE_SEED={value}")
    return value


@pytest.fixture(scope="module")
def convert(build_dir):
    with Converter(build_dir) as converter:
        yield converter


class Schemas:
    """Random schemas of rows that a table can hold, and random values for them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0
        self.null_elements = False

    def name(self):
        self.names += 1
        return f"{self.random.choice(string.ascii_letters + '_')}{self.names}"

    def record(self, depth=0):
        count = self.random.randint(1, 8 if depth == 0 else 4)
        return {"type": "record", "name": self.name(), "fields": [{"name": self.name(), "type": self.column(depth)} for _ in range(count)]}

    def column(self, depth):
        kind = self.random.random()
        if kind < 0.15:
            array = {"type": "array", "items": self.optional(self.value(depth), 0.6 if self.null_elements else 0)}
            return self.optional(array, 0.2)
        if kind < 0.22:
            return {"type": "map", "values": self.column(depth + 1) if depth < 3 else self.optional(self.scalar())}
        return self.optional(self.value(depth))

    def optional(self, schema, chance=0.6):
        if self.random.random() > chance:
            return schema
        return ["null", schema] if self.random.random() < 0.8 else [schema, "null"]

    def value(self, depth):
        if depth < 4 and self.random.random() < 0.2:
            return self.record(depth + 1)
        return self.scalar()

    def decimal(self, base):
        scale = self.random.choice([0, 2, 9, 20, 38])
        precision = scale + self.random.randint(1 if scale == 0 else 0, 38) or 1
        schema = {"logicalType": "decimal", "precision": precision, "scale": scale, **base}
        return schema

    def scalar(self):
        choices = [
            "boolean", "int", "long", "float", "double", "bytes", "string",
            {"type": "int", "logicalType": "date"}, {"type": "int", "logicalType": "time-millis"}, {"type": "long", "logicalType": "time-micros"},
            {"type": "long", "logicalType": "timestamp-millis"}, {"type": "long", "logicalType": "timestamp-micros"},
            {"type": "long", "logicalType": "local-timestamp-millis"}, {"type": "long", "logicalType": "local-timestamp-micros"},
            {"type": "string", "logicalType": "datetime"}, {"type": "string", "sqlType": "JSON"}, {"type": "string", "sqlType": "GEOGRAPHY"},
            {"type": "enum", "name": self.name(), "symbols": ["A", "long_symbol_of_an_enum_that_is_long", "b_1"]},
            {"type": "fixed", "name": self.name(), "size": self.random.choice([0, 1, 7, 40])},
            self.decimal({"type": "bytes"}), self.decimal({"type": "bytes"}),
            self.decimal({"type": "fixed", "name": self.name(), "size": 32}),
        ]
        return self.random.choice(choices)

    def micros(self):
        return self.random.choice([MIN_MICROS, MAX_MICROS, -1, 0, self.random.randint(MIN_MICROS, MAX_MICROS)])

    def text(self):
        length = self.random.choice([0, 1, 3, 15, 16, 17, 60])
        return "".join(self.random.choice("abcxyz 09éß漢😀\0") for _ in range(length))

    def sample(self, schema):
        """A value of `schema`, as fastavro takes it."""
        pick = self.random
        if isinstance(schema, list):
            other = next(branch for branch in schema if branch != "null")
            return None if pick.random() < 0.3 else self.sample(other)
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = None if isinstance(schema, str) else schema.get("logicalType")
        if logical == "decimal":
            limit = 10 ** schema["precision"] - 1
            if kind == "fixed":
                limit = min(limit, 2 ** 255 - 1)
            limit = min(limit, 2 ** 255 - 1)
            unscaled = pick.choice([0, limit, -limit, pick.randint(-limit, limit), pick.randint(-200, 200) % (limit + 1)])
            return Decimal(unscaled).scaleb(-schema["scale"], DIGITS)
        if logical == "date":
            return date.fromordinal(pick.choice([1, date.max.toordinal(), pick.randint(1, date.max.toordinal())]))
        if logical == "time-millis":
            return (EPOCH + timedelta(milliseconds=pick.randrange(86_400_000))).time()
        if logical == "time-micros":
            return (EPOCH + timedelta(microseconds=pick.choice([0, 86_399_999_999, pick.randrange(86_400_000_000)]))).time()
        if logical and logical.endswith("timestamp-millis") or logical and logical.endswith("timestamp-micros"):
            value = EPOCH + timedelta(microseconds=self.micros())
            if logical.endswith("millis"):
                value = value.replace(microsecond=value.microsecond // 1000 * 1000)
            return value if logical.startswith("local") else value.replace(tzinfo=UTC)
        if logical == "datetime":
            return (EPOCH + timedelta(microseconds=self.micros())).isoformat(pick.choice("T "))
        if kind == "boolean":
            return pick.random() < 0.5
        if kind == "int":
            return pick.choice([-2 ** 31, 2 ** 31 - 1, 0, 63, 64, -64, -65, pick.randint(-2 ** 31, 2 ** 31 - 1)])
        if kind == "long":
            return pick.choice([-2 ** 63, 2 ** 63 - 1, 0, 2 ** 31, pick.randint(-2 ** 63, 2 ** 63 - 1), pick.randint(-300, 300)])
        if kind in ("float", "double"):
            return pick.choice([0.0, -0.0, 0.5, -2.0 ** -20, float("inf"), 1.0 if kind == "float" else 0.1, 3.0e38 if kind == "double" else 2.0 ** 100])
        if kind == "bytes":
            return pick.randbytes(pick.choice([0, 1, 16, 17, 100]))
        if kind == "string":
            return self.text()
        if kind == "enum":
            return pick.choice(schema["symbols"])
        if kind == "fixed":
            return pick.randbytes(schema["size"])
        if kind == "array":
            return [self.sample(schema["items"]) for _ in range(pick.choice([0, 0, 1, 2, 5]))]
        if kind == "map":
            return {self.text(): self.sample(schema["values"]) for _ in range(pick.choice([0, 1, 3]))}
        return {field["name"]: self.sample(field["type"]) for field in schema["fields"]}


def again(schema, value):
    """The same of a value that we decoded and wrote again, in the schema that we chose, as fastavro reads it: maps are arrays of records then,
    and a DATETIME is text."""
    if isinstance(schema, list):
        other = next(branch for branch in schema if branch != "null")
        return None if value is None else again(other, value)
    kind = schema if isinstance(schema, str) else schema["type"]
    logical = None if isinstance(schema, str) else schema.get("logicalType")
    if kind == "array":
        return [again(schema["items"], item) for item in value]
    if kind == "record":
        return {field["name"]: again(field["type"], value[field["name"]]) for field in schema["fields"]}
    if logical == "datetime":
        return datetime.fromisoformat(value)
    return value


def read_avro(path, reader_schema=None):
    with open(path, "rb") as file:
        reader = fastavro.reader(file, reader_schema)
        return list(reader), reader.writer_schema


def test_random_rows_of_random_schemas_equal_fastavros_both_ways(tmp_path, convert, seed):
    schemas = Schemas(seed)
    codecs = ["null", "deflate", "snappy", "zstandard"]
    for case in range(ROWS // ROWS_OF_A_SCHEMA):
        # BigQuery's arrays hold no null: such rows are read, and not written again.
        schemas.null_elements = case % 5 == 0
        schema = schemas.record()
        rows = [schemas.sample(schema) for _ in range(ROWS_OF_A_SCHEMA)]
        theirs, arrow, ours = tmp_path / "theirs.avro", tmp_path / "rows.arrow", tmp_path / "ours.avro"
        codec = codecs[case % 4]
        with open(theirs, "wb") as file:
            fastavro.writer(file, schema, rows, codec=codec if codec in ("null", "deflate") else "null", sync_interval=schemas.random.choice([100, 16_000]))
        what = f"HEADRACE_SEED={seed}, case {case}: {json.dumps(schema)}"
        assert convert("decode", theirs, arrow) == "ok", what
        read, _ = read_avro(theirs)
        want = [expected(schema, row) for row in read]
        got = read_arrow(arrow)
        compare(got, want, what)
        if schemas.null_elements:
            continue
        assert convert("encode", arrow, ours, codec, ["read", "export"][case // 4 % 2]) == "ok", what
        if codec in ("null", "deflate"):
            back, our_schema = read_avro(ours)
            compare(got, [again(our_schema, row) for row in back], what)
        assert convert("decode", ours, arrow) == "ok", what
        assert read_arrow(arrow).equals(got), what


def test_projection_equals_fastavros_resolution(tmp_path, convert, seed):
    """Columns that no table can hold are skipped: unions of several types, records that contain themselves, arrays of arrays."""
    schemas = Schemas(seed + 1)
    for case in range(25):
        schema = schemas.record()
        node = schemas.name()
        unreadable = [
            (["null", "long", "string", {"type": "map", "values": "bytes"}], lambda: schemas.random.choice([None, 5, "x", {"k": b"v"}])),
            ({"type": "array", "items": {"type": "array", "items": "string"}}, lambda: [["a", schemas.text()], []]),
            ({"type": "record", "name": node, "fields": [{"name": "v", "type": "long"}, {"name": "next", "type": ["null", node]}]},
             lambda: {"v": 1, "next": {"v": -2 ** 40, "next": None}}),
        ]
        samples = {}
        for other, sample in unreadable:
            name = schemas.name()
            samples[name] = sample
            schema["fields"].insert(schemas.random.randint(0, len(schema["fields"])), {"name": name, "type": other})
        readable = [field for field in schema["fields"] if field["name"] not in samples]
        wanted = {**schema, "fields": schemas.random.sample(readable, schemas.random.randint(0, len(readable)))}
        rows = [{field["name"]: samples[field["name"]]() if field["name"] in samples else schemas.sample(field["type"]) for field in schema["fields"]}
                for _ in range(200)]
        theirs, arrow, reader = tmp_path / "theirs.avro", tmp_path / "rows.arrow", tmp_path / "reader.json"
        with open(theirs, "wb") as file:
            fastavro.writer(file, schema, rows)
        reader.write_text(json.dumps(wanted))
        what = f"HEADRACE_SEED={seed}, case {case}: {json.dumps(schema)}"
        assert convert("decode", theirs, arrow, reader) == "ok", what
        got = read_arrow(arrow)
        compare(got, [expected(wanted, row) for row in read_avro(theirs, wanted)[0]], what)


def test_load_files_are_what_load_jobs_take(tmp_path, convert):
    arrow, avro = tmp_path / "rows.arrow", tmp_path / "ours.avro"
    table = pa.table({"dt": pa.array([datetime(1969, 12, 31, 23, 59, 59, 999999), None], pa.timestamp("us")),
                      "n": pa.array([Decimal("99.9"), Decimal("-12.8")], pa.decimal128(3, 1)), "l": pa.array([[1], []], pa.list_(pa.int64()))})
    with pa.ipc.new_file(arrow, table.schema) as writer:
        writer.write_table(table)
    assert convert("encode", arrow, avro, "deflate", "load") == "ok"
    rows, schema = read_avro(avro)
    assert schema["fields"][0]["type"] == ["null", {"type": "long", "logicalType": "local-timestamp-micros"}]
    assert rows == table.to_pylist()
