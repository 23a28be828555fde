"""Values that BigQuery's types have not, and what their errors must name."""

import re

import pyarrow as pa
import pyarrow.parquet as pq

from scripted import unchecked

GOOD_ROWS = 3  # before the bad one


def refused(run, tmp_path, *arguments):
    """The error's text; nothing was written."""
    _, err = run("copy", *arguments, tmp_path / "out.parquet", "--quiet", code=1, seconds=30)
    assert not (tmp_path / "out.parquet").exists()
    return err


def assert_names(text, column, row, value):
    assert re.search(rf"\b{re.escape(column)}\b", text), f"no column {column}: {text}"
    message = re.search(r"at offset (\d+): ", text)  # a row of a stream is told from the message's first one on
    row -= int(message.group(1)) if message else 0
    assert re.search(rf"\brow {row}\b", text), f"no row {row}: {text}"
    assert value[:40] in text, f"no value {value}: {text}"


def arrow_case_file(directory, extension, array):
    """A Parquet, Arrow or Arrow stream file whose column "Column" is the array."""
    table = pa.table({"n": pa.array([1] * len(array)), "Column": array})
    path = directory / f"t.{extension}"
    if extension == "parquet":
        pq.write_table(table, path)
    else:
        with (pa.ipc.new_file if extension == "arrow" else pa.ipc.new_stream)(str(path), table.schema) as file:
            file.write_table(table)
    return path


def with_bad(good, bad, storage, kind):
    return unchecked([good] * GOOD_ROWS + [bad, good], storage, kind)


# Arrow: a type, an array whose row GOOD_ROWS holds what BigQuery's type has not, and how the error may show the value.
ARROW_CASES = {
    "date too late": (with_bad(0, 2932897, pa.int32(), pa.date32()), "10000-01-01"),
    "date too early": (with_bad(0, -719163, pa.int32(), pa.date32()), "0000-12-31"),
    "datetime too late": (with_bad(0, 253402300800000000, pa.int64(), pa.timestamp("us")), "10000-01-01"),
    "timestamp too early": (with_bad(0, -62135596800000001, pa.int64(), pa.timestamp("us", "UTC")), "0000-12-31"),
    "time of a day later": (with_bad(0, 86_400_000_000, pa.int64(), pa.time64("us")), "86400000000"),
    "negative time": (with_bad(0, -1, pa.int64(), pa.time64("us")), "-1"),
    "not UTF-8": (with_bad(b"x", b"\xc3(", pa.binary(), pa.string()), "UTF-8"),
}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}
# Avro: a type, a value of it and one that BigQuery's type has not, and how the error may show it.
AVRO_CASES = {
    "date too late": ({"type": "int", "logicalType": "date"}, 0, 2932897, "2932897"),
    "timestamp too late": ({"type": "long", "logicalType": "timestamp-micros"}, 0, 253402300800000000, "253402300800000000"),
    "datetime too early": ({"type": "long", "logicalType": "local-timestamp-micros"}, 0, -62135596800000001, "-62135596800000001"),
    "time of a day later": ({"type": "long", "logicalType": "time-micros"}, 0, 86_400_000_000, "86400000000"),
    "timestamp-millis too late": ({"type": "long", "logicalType": "timestamp-millis"}, 0, 253402300800000, "253402300800000"),
    "decimal of 39 digits": (DECIMAL, b"\1", (10**38).to_bytes(17, "big"), ""),
}


def avro_rows(kind, values):
    schema = {"type": "record", "name": "__root__", "fields": [{"name": "n", "type": "long"}, {"name": "Column", "type": kind}]}
    return schema, [{"n": 1, "Column": value} for value in values]
