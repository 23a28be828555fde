"""Every BigQuery type, at the top, repeated and nested, through Google's clients: Arrow, Avro and REST give the same values."""

import datetime
import decimal
import json
import urllib.request

import grpc
import pyarrow as pa
import pytest
from google.cloud import bigquery_storage_v1
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

import harness

PROJECT = "test-project"
PATH = f"projects/{PROJECT}/datasets/data/tables/every"
UTC = datetime.timezone.utc
PICOS = types.ArrowSerializationOptions.PicosTimestampPrecision


def marked(name, kind, mark):
    return pa.field(name, kind, metadata={"ARROW:extension:name": mark})


INTERVAL = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())])
DATES = pa.struct([("start", pa.date32()), ("end", pa.date32())])
COLUMNS = [
    # field, values, REST text of each
    (pa.field("i", pa.int64()), [-(2**63), 2**63 - 1, None], [str(-(2**63)), str(2**63 - 1), None]),
    (pa.field("b", pa.bool_()), [True, False, None], ["true", "false", None]),
    (pa.field("s", pa.string()), ["", "Ærø\n\"", None], ["", "Ærø\n\"", None]),
    (pa.field("y", pa.binary()), [b"", b"\xff\x00", None], ["", "/wA=", None]),
    (pa.field("n", pa.decimal128(38, 9)), [decimal.Decimal("-1.500000000"), decimal.Decimal("99999999999999999999999999999.999999999"), None],
     ["-1.5", "99999999999999999999999999999.999999999", None]),
    (pa.field("big", pa.decimal256(76, 38)), [decimal.Decimal("1e-38"), decimal.Decimal("1.5"), None],
     ["0." + "0" * 37 + "1", "1.5", None]),
    (pa.field("d", pa.date32()), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None], ["0001-01-01", "9999-12-31", None]),
    (pa.field("t", pa.time64("us")), [datetime.time(0), datetime.time(23, 59, 59, 999999), None], ["00:00:00", "23:59:59.999999", None]),
    (pa.field("ts", pa.timestamp("us", "UTC")), [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), None],
     ["-1", "253402300799999999", None]),
    (marked("geo", pa.string(), "google:sqlType:geography"), ["POINT(1 2)", "POINT(3 4)", None], ["POINT(1 2)", "POINT(3 4)", None]),
    (marked("j", pa.string(), "google:sqlType:json"), ['{"k":[1,null]}', "null", None], ['{"k":[1,null]}', "null", None]),
    (marked("gap", INTERVAL, "google:sqlType:interval"),
     [{"months": 14, "days": 3, "microseconds": 14706789999}, {"months": -1, "days": 0, "microseconds": -1}, None], ["1-2 3 4:5:6.789999", "-0-1 0 -0:0:0.000001", None]),
    (marked("span", DATES, "google:sqlType:range"), [{"start": datetime.date(2020, 1, 1), "end": None}, {"start": None, "end": None}, None],
     ["[2020-01-01, UNBOUNDED)", "[UNBOUNDED, UNBOUNDED)", None]),
]
PICO = (marked("pico", pa.string(), "google:sqlType:timestamp_picos"), ["1969-12-31T23:59:59.999999999999Z", "2020-01-02T03:04:05.000000000001Z", None])


@pytest.fixture(scope="module")
def table():
    fields, columns = [], []
    for field, values, _ in [*COLUMNS, (*PICO, None)]:
        fields.append(field)
        columns.append(pa.array(values, field.type))
    for field, values, _ in COLUMNS:
        inside = pa.field("r_" + field.name, pa.struct([field.with_name("v")]))
        fields.append(inside)
        columns.append(pa.array([{"v": value} for value in values[:2]] + [None], inside.type))
        many = pa.field("l_" + field.name, pa.list_(field.with_name("element")))
        fields.append(many)
        columns.append(pa.array([values[:2], [], values[1:2]], many.type))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


@pytest.fixture(scope="module")
def server(headrace, table, tmp_path_factory):
    directory = tmp_path_factory.mktemp("every")
    with harness.Server(headrace, directory, "--load", f"{PROJECT}.data.every={harness.write_parquet(table, directory / 'every.parquet')}") as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with grpc.insecure_channel(server.grpc) as channel:
        yield bigquery_storage_v1.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))


def session(client, data_format, **options):
    wanted = types.ReadSession(table=PATH, data_format=data_format, read_options=types.ReadSession.TableReadOptions(**options))
    return client.create_read_session(request=types.CreateReadSessionRequest(parent="projects/p", read_session=wanted, max_stream_count=1), timeout=30)


def rows(client, opened):
    return client.read_rows(opened.streams[0].name, timeout=30).rows(opened)


def test_arrow(client, table):
    opened = session(client, types.DataFormat.ARROW)
    got = rows(client, opened).to_arrow()
    assert got.drop_columns(["pico"]).to_pylist() == table.drop_columns(["pico"]).to_pylist()
    # arrow.proto: microseconds unless more is asked for.
    assert got["pico"].type == pa.timestamp("us", "UTC")
    assert got["pico"].cast(pa.int64()).to_pylist() == [-1, 1577934245000000, None]


def test_avro(client, table):
    opened = session(client, types.DataFormat.AVRO, selected_fields=[name for name in table.column_names if name != "pico"])
    wanted = table.drop_columns(["pico"]).to_pylist()
    for row, right in zip(rows(client, opened), wanted, strict=True):
        for name, value in row.items():
            assert value == right[name], name


@pytest.mark.parametrize("data_format", [types.DataFormat.ARROW, types.DataFormat.AVRO])
@pytest.mark.parametrize("precision, wanted", [
    ("TIMESTAMP_PRECISION_MICROS", [-1, 1577934245000000, None]),
    ("TIMESTAMP_PRECISION_NANOS", [-1, 1577934245000000000, None]),
    ("TIMESTAMP_PRECISION_PICOS", PICO[1]),
])
def test_picoseconds(client, data_format, precision, wanted):
    if data_format == types.DataFormat.ARROW:
        options = {"arrow_serialization_options": types.ArrowSerializationOptions(picos_timestamp_precision=PICOS[precision])}
        column = rows(client, session(client, data_format, selected_fields=["pico"], **options)).to_arrow()["pico"]
        assert (column if pa.types.is_string(column.type) else column.cast(pa.int64())).to_pylist() == wanted
        return
    avro = types.AvroSerializationOptions
    options = {"avro_serialization_options": avro(picos_timestamp_precision=avro.PicosTimestampPrecision[precision])}
    opened = session(client, data_format, selected_fields=["pico"], **options)
    logical = json.dumps(json.loads(opened.avro_schema.schema)["fields"][0]["type"])
    assert ("timestamp-micros" in logical, "timestamp-nanos" in logical) == (precision.endswith("MICROS"), precision.endswith("NANOS"))
    message = next(iter(client.read_rows(opened.streams[0].name, timeout=30)))
    assert message.row_count == 3
    if precision.endswith("PICOS"):
        assert [row["pico"] for row in rows(client, opened)] == wanted


def test_rest(server):
    with urllib.request.urlopen(f"http://{server.admin}/bigquery/v2/{PATH}/data?formatOptions.useInt64Timestamp=true", timeout=20) as answer:
        got = json.load(answer)["rows"]
    with urllib.request.urlopen(f"http://{server.admin}/bigquery/v2/{PATH}", timeout=20) as answer:
        names = [field["name"] for field in json.load(answer)["schema"]["fields"]]
    for number, row in enumerate(got):
        cells = dict(zip(names, (cell["v"] for cell in row["f"]), strict=True))
        for field, _, texts in COLUMNS:
            assert cells[field.name] == texts[number], field.name
            assert cells["r_" + field.name] == (None if number == 2 else {"f": [{"v": texts[number]}]}), field.name
            many = [texts[:2], [], texts[1:2]][number]
            assert cells["l_" + field.name] == [{"v": text} for text in many], field.name


def test_the_schema_over_rest(server):
    with urllib.request.urlopen(f"http://{server.admin}/bigquery/v2/{PATH}", timeout=20) as answer:
        kinds = {field["name"]: field for field in json.load(answer)["schema"]["fields"]}
    assert {name: kinds[name]["type"] for name in ("i", "b", "big", "ts", "geo", "j", "gap", "span", "pico")} == {
        "i": "INTEGER", "b": "BOOLEAN", "big": "BIGNUMERIC", "ts": "TIMESTAMP", "geo": "GEOGRAPHY", "j": "JSON", "gap": "INTERVAL", "span": "RANGE", "pico": "TIMESTAMP"}
    assert kinds["span"]["rangeElementType"] == {"type": "DATE"} and kinds["pico"]["timestampPrecision"] == "12"
    assert kinds["l_gap"]["mode"] == "REPEATED" and kinds["r_span"]["fields"][0]["type"] == "RANGE"
