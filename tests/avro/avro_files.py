"""What the suites of Avro files share: the program that converts them, and comparisons of what it reads with what fastavro reads."""

import subprocess
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.ipc
import pytest

UTC = timezone.utc


class Converter:
    """The program avro_convert, one job after the other."""

    def __init__(self, build_dir):
        program = build_dir / "bin" / "avro_convert"
        if not program.exists():
            pytest.fail(f"{program} is missing: run scripts/build.sh")
        self.process = subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        self.process.stdin.write("\t".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


def expected(schema, value):
    """What a value read by fastavro is in Arrow's columns, as pyarrow gives it to Python."""
    if isinstance(schema, list):
        other = next(branch for branch in schema if branch != "null")
        if value is not None:
            return expected(other, value)
        return [] if isinstance(other, dict) and other["type"] in ("array", "map") else None
    kind = schema if isinstance(schema, str) else schema["type"]
    logical = None if isinstance(schema, str) else schema.get("logicalType")
    if kind == "array":
        return [expected(schema["items"], item) for item in value]
    if kind == "map":
        return [{"key": key, "value": expected(schema["values"], item)} for key, item in value.items()]
    if kind == "record":
        return {field["name"]: expected(field["type"], value[field["name"]]) for field in schema["fields"]}
    if logical == "datetime":
        return datetime.fromisoformat(value)
    if logical == "uuid":
        return str(value)
    return value


def plain(value):
    """Instants by their offset, whatever Python calls the zone."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def compare(got, want, what):
    """All rows as Arrow compares them; some by their texts, which tell -0.0 from 0.0 as well."""
    assert got.num_rows == len(want), what
    if got.num_columns == 0:
        return
    for row, (left, right) in enumerate(zip(got.slice(0, 100).to_pylist(), want)):
        assert repr(plain(left)) == repr(plain(right)), f"{what}, row {row}:\n{left}\n{right}"
    wanted = pa.Table.from_pylist(want, schema=got.schema)
    if not got.equals(wanted):
        for row, (left, right) in enumerate(zip(got.to_pylist(), wanted.to_pylist())):
            assert repr(left) == repr(right), f"{what}, row {row}:\n{left}\n{right}"
        raise AssertionError(what)


def read_arrow(path):
    """The columns as a program sees them that knows nothing of extension types."""
    with pa.ipc.open_file(path) as reader:
        table = reader.read_all()
    return pa.table({name: storage(column) for name, column in zip(table.column_names, table.columns)}) if table.num_columns else table


def storage(column):
    return column.cast(without_extensions(column.type))


def without_extensions(kind):
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_list(kind):
        return pa.list_(pa.field("item", without_extensions(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, without_extensions(field.type)) for field in kind])
    return kind
