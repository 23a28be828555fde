"""Google's own client for Python reads the tables of `headrace serve`: a scenario of the local service counts only when it passes here."""

import contextlib
import datetime
import json
import os
import pathlib
import signal
import time
import urllib.error

import grpc
import pyarrow as pa
import pytest
from google.api_core import exceptions
from google.cloud import bigquery_storage_v1
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

import harness

PROJECT, DATASET, NAME = harness.TABLE.split(".")
PATH = f"projects/{PROJECT}/datasets/{DATASET}/tables/{NAME}"
ROWS = 5000
CALL_SECONDS = 30


@pytest.fixture(scope="module")
def rows():
    return harness.make_table(ROWS)


@pytest.fixture(scope="module")
def server(headrace, rows, tmp_path_factory):
    directory = tmp_path_factory.mktemp("official")
    table = harness.write_parquet(rows, directory / "t.parquet")
    empty = harness.write_parquet(rows.slice(0, 0), directory / "empty.parquet")
    arguments = ["--load", f"{harness.TABLE}={table}", "--load", f"{PROJECT}.{DATASET}.empty={empty}", "--view", f"{PROJECT}.{DATASET}.v",
                 "--message-rows", "300"]
    with harness.Server(headrace, directory, *arguments) as running:
        yield running


@pytest.fixture
def client(server):
    server.set_faults()
    with grpc.insecure_channel(server.grpc, options=[("grpc.max_receive_message_length", -1)]) as channel:
        yield bigquery_storage_v1.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))


def create(client, streams=1, table=PATH, preferred=0, parent="projects/billing", data_format=types.DataFormat.ARROW, modifiers=None, **options):
    session = types.ReadSession(table=table, data_format=data_format, read_options=types.ReadSession.TableReadOptions(**options), table_modifiers=modifiers)
    request = types.CreateReadSessionRequest(parent=parent, read_session=session, max_stream_count=streams, preferred_min_stream_count=preferred)
    return client.create_read_session(request=request, timeout=CALL_SECONDS)


def read(client, session, stream=0, offset=0):
    return client.read_rows(session.streams[stream].name, offset=offset, timeout=CALL_SECONDS).rows(session).to_arrow()


def same(result, expected):
    assert harness.plain(result).equals(harness.plain(expected))


@pytest.mark.parametrize("streams", [1, 2, 8])
def test_every_value_through_any_number_of_streams(client, rows, streams):
    session = create(client, streams)
    assert len(session.streams) == streams
    same(pa.concat_tables([read(client, session, i) for i in range(streams)]), rows)


@pytest.mark.parametrize("offset", [0, 1, 299, 300, 301, 1234, ROWS - 1])
def test_a_read_starts_at_any_row(client, rows, offset):
    same(read(client, create(client), offset=offset), rows.slice(offset))


def test_the_end_is_a_clean_end_and_beyond_is_an_error(client):
    session = create(client, 2)
    length = read(client, session).num_rows
    assert list(client.read_rows(session.streams[0].name, offset=length, timeout=CALL_SECONDS)) == []  # fact R1
    with pytest.raises(exceptions.FailedPrecondition, match="has not been allocated yet"):  # fact R2
        list(client.read_rows(session.streams[0].name, offset=length + 1, timeout=CALL_SECONDS))


def test_selected_fields_in_any_order_and_case(client, rows):
    session = create(client, selected_fields=["PLACE", "id", "flag"])
    result = read(client, session)
    assert result.schema.names == ["id", "Flag", "place"]
    same(result, rows.select(["id", "Flag", "place"]))


@pytest.mark.parametrize("codec", ["COMPRESSION_UNSPECIFIED", "LZ4_FRAME", "ZSTD"])
def test_buffer_compressions(client, rows, codec):
    options = types.ArrowSerializationOptions(buffer_compression=types.ArrowSerializationOptions.CompressionCodec[codec])
    same(read(client, create(client, arrow_serialization_options=options)), rows)


@pytest.mark.parametrize("streams", [1, 3])
def test_avro_gives_the_same_values(client, rows, streams):
    session = create(client, streams, data_format=types.DataFormat.AVRO)
    assert json.loads(session.avro_schema.schema)["name"] == "__root__"  # fact R9
    got = [row for i in range(streams) for row in client.read_rows(session.streams[i].name, timeout=CALL_SECONDS).rows(session)]
    wanted = [dict(row, civil=None if row["civil"] is None else row["civil"].isoformat()) for row in rows.to_pylist()]
    for row, right in zip(got, wanted):
        if row["civil"] is not None:
            assert row["civil"].replace(" ", "T").rstrip("0").rstrip(".") == right["civil"].rstrip("0").rstrip("."), row["id"]
        assert {**row, "civil": None} == {**right, "civil": None}, row["id"]
    assert len(got) == ROWS


@pytest.mark.parametrize("data_format", [types.DataFormat.ARROW, types.DataFormat.AVRO])
@pytest.mark.parametrize("offset", [0, 777])
def test_whole_responses_in_lz4(client, data_format, offset):
    session = create(client, data_format=data_format, selected_fields=["id", "name"],
                     response_compression_codec=types.ReadSession.TableReadOptions.ResponseCompressionCodec.RESPONSE_COMPRESSION_CODEC_LZ4)
    plain_session = create(client, data_format=data_format, selected_fields=["id", "name"])
    packed = list(client.read_rows(session.streams[0].name, offset=offset, timeout=CALL_SECONDS))
    plain = list(client.read_rows(plain_session.streams[0].name, offset=offset, timeout=CALL_SECONDS))
    assert [message.row_count for message in packed] == [message.row_count for message in plain]

    def content(message):
        return message.avro_rows.serialized_binary_rows if data_format == types.DataFormat.AVRO else message.arrow_record_batch.serialized_record_batch

    for one, other in zip(packed, plain):
        assert "uncompressed_byte_size" not in other
        if one.uncompressed_byte_size == -1:
            assert content(one) == content(other)
        else:
            assert one.uncompressed_byte_size == len(content(other)) > len(content(one))
            assert pa.Codec("lz4_raw").decompress(content(one), one.uncompressed_byte_size).to_pybytes() == content(other)
    assert any(message.uncompressed_byte_size > 0 for message in packed)


@pytest.mark.parametrize("selected, wanted", [
    (["place.LABEL", "id"], ["id", "place.label"]),
    (["place.label", "place.lat"], ["place.lat", "place.label"]),
    (["place.label", "place"], ["place.lat", "place.label"]),
])
@pytest.mark.parametrize("data_format", [types.DataFormat.ARROW, types.DataFormat.AVRO])
def test_single_fields_of_a_struct(client, rows, data_format, selected, wanted):
    session = create(client, selected_fields=selected, data_format=data_format)
    if data_format == types.DataFormat.ARROW:
        got = read(client, session).to_pylist()
    else:
        got = list(client.read_rows(session.streams[0].name, timeout=CALL_SECONDS).rows(session))
    inner = [name.split(".")[1] for name in wanted if "." in name]
    for row, right in zip(got, rows.to_pylist(), strict=True):
        expected = {name: right[name] for name in wanted if "." not in name}
        expected["place"] = None if right["place"] is None else {name: right["place"][name] for name in inner}
        assert row == expected
        assert list(row) == [name for name in right if name in row]


@pytest.mark.parametrize("data_format", [types.DataFormat.ARROW, types.DataFormat.AVRO])
def test_unknown_fields_of_a_struct(client, data_format):
    with pytest.raises(exceptions.InvalidArgument, match="do not exist in the table schema: id.x, place.nope"):
        create(client, selected_fields=["place.nope", "id.x", "id"], data_format=data_format)


@pytest.mark.parametrize("restriction, wanted", [
    ("id < 10", lambda row: row["id"] < 10),
    ("flag AND NOT id > 1000", lambda row: row["Flag"] and row["id"] <= 1000),
    ("name IS NULL OR name IN ('', 'a')", lambda row: row["name"] in (None, "", "a")),
    ("day >= DATE '5000-01-01'", lambda row: row["day"] is not None and row["day"] >= datetime.date(5000, 1, 1)),
    ("moment < TIMESTAMP '1970-01-01 00:00:00+00:00'",
     lambda row: row["moment"] is not None and row["moment"] < datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)),
    ("amount BETWEEN -1000000000 AND 1000000000.5", lambda row: row["amount"] is not None and -1000000000 <= row["amount"] <= 1000000000.5),
    ("score = NULL", lambda row: False),
    ("name LIKE '%r_' OR STARTS_WITH(name, 'xx')", lambda row: row["name"] is not None and (row["name"][-2:-1] == "r" or row["name"].startswith("xx"))),
    ("id + 1 = 5 OR LENGTH(name) > 30", lambda row: row["id"] == 4 or (row["name"] is not None and len(row["name"]) > 30)),
    ("day = CAST('2014-9-27' AS DATE) OR place.label = 'h'", lambda row: row["day"] == datetime.date(2014, 9, 27) or (row["place"] is not None and row["place"]["label"] == "h")),
    ("IFNULL(flag, FALSE) IS DISTINCT FROM flag", lambda row: row["Flag"] is None),
])
def test_row_restriction(client, rows, restriction, wanted):
    session = create(client, 3, row_restriction=restriction, selected_fields=["id"])
    ids = [i for stream in range(3) for i in read(client, session, stream)["id"].to_pylist()]
    assert ids == [row["id"] for row in rows.to_pylist() if wanted(row)]


def test_offsets_count_rows_after_the_restriction(client):
    session = create(client, row_restriction="id >= 100 AND flag", selected_fields=["id"])
    everything = read(client, session)["id"].to_pylist()
    for offset in (1, 500, len(everything)):
        assert [i for message in client.read_rows(session.streams[0].name, offset=offset, timeout=CALL_SECONDS).rows(session)
                for i in [message["id"].as_py()]] == everything[offset:]


def test_empty_table_has_a_schema_and_no_stream(client, rows):
    session = create(client, 4, table=PATH[: -len(NAME)] + "empty")
    assert list(session.streams) == []
    assert pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema)).names == rows.schema.names


def test_session_tells_expiry_and_estimates(client):
    before = datetime.datetime.now(datetime.timezone.utc)
    session = create(client)
    life = session.expire_time - before
    assert datetime.timedelta(hours=5, minutes=59) < life < datetime.timedelta(hours=6, minutes=1)  # fact R7
    assert session.estimated_row_count == ROWS
    assert session.estimated_total_bytes_scanned > ROWS * 50


def test_sampling(client):
    ids = [read(client, create(client, sample_percentage=30.0, selected_fields=["id"]))["id"].to_pylist() for _ in range(2)]
    assert ids[0] == ids[1]
    assert 0 < len(ids[0]) < ROWS


def test_progress_rises_to_one(client):
    session = create(client)
    at = 0.0
    messages = list(client.read_rows(session.streams[0].name, timeout=CALL_SECONDS))
    for message in messages:
        assert message.stats.progress.at_response_start == pytest.approx(at)
        at = message.stats.progress.at_response_end
    assert at == pytest.approx(1.0)
    assert sum(message.row_count for message in messages) == ROWS


@pytest.mark.parametrize("kind, text, arguments", [
    (exceptions.NotFound, "Not found: Table test-project:data.nope", {"table": PATH[: -len(NAME)] + "nope"}),
    (exceptions.InvalidArgument, "non-table entities cannot be read with the storage API", {"table": PATH[: -len(NAME)] + "v"}),  # fact R14
    (exceptions.InvalidArgument, "preferred_min_stream_count", {"streams": 3, "preferred": 5}),  # fact R6
    (exceptions.InvalidArgument, "do not exist in the table schema: nope", {"selected_fields": ["nope"]}),
    (exceptions.InvalidArgument, r"at \[1:6\]", {"row_restriction": "id = "}),
    (exceptions.MethodNotImplemented, "the function ST_GEOGFROMTEXT", {"row_restriction": "st_equals(name, st_geogfromtext('POINT(2 2)'))"}),
    (exceptions.InvalidArgument, "ARROW data format", {"data_format": types.DataFormat.AVRO, "arrow_serialization_options": types.ArrowSerializationOptions()}),
    (exceptions.InvalidArgument, "exceeds the maximum time travel duration of 168h",  # fact R8
     {"modifiers": types.ReadSession.TableModifiers(snapshot_time=datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc))}),
    (exceptions.InvalidArgument, "projects/PROJECT", {"parent": "billing"}),
])
def test_errors(client, kind, text, arguments):
    with pytest.raises(kind, match=text):
        create(client, **arguments)


def test_the_client_goes_on_after_unavailable_at_the_row_it_has(client, server, rows):
    server.set_faults({"method": "ReadRows", "call": 1, "after_messages": 2, "action": {"status": {"code": "UNAVAILABLE"}}},
                      {"method": "ReadRows", "call": 2, "after_messages": 1, "action": {"drop": True}})
    session = create(client)
    same(read(client, session), rows)
    assert server.faults_fired() == [1, 1]
    opens = next(stream["opens"] for stream in server.counters()["streams"] if stream["name"] == session.streams[0].name)
    offsets = [call["offset"] for call in opens]
    assert offsets[:2] == [0, 600] and offsets[2] in (600, 900) and len(offsets) == 3
    assert opens[0]["status"] == "UNAVAILABLE"


def test_a_session_survives_a_restart_of_the_server(headrace, rows, tmp_path):
    table = harness.write_parquet(rows, tmp_path / "t.parquet")
    with harness.Server(headrace, tmp_path, "--load", f"{harness.TABLE}={table}") as server:
        channel = grpc.insecure_channel(server.grpc)
        session = create(bigquery_storage_v1.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel)), 2)
        channel.close()
        server.restart()
        with grpc.insecure_channel(server.grpc) as channel:
            client = bigquery_storage_v1.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
            same(pa.concat_tables([read(client, session, i) for i in range(2)]), rows)
        assert server.counters()["sessions_created"] == 0


def test_unknown_fault_keys_are_refused(server):
    with pytest.raises(urllib.error.HTTPError) as refused:
        server.set_faults({"method": "ReadRows", "action": {"drop": True}, "boom": 1})
    assert refused.value.code == 400
    assert "unknown key" in refused.value.read().decode()


def test_a_service_that_is_told_to_stop_stops_soon_though_readers_do_not_read_on(headrace, tmp_path):
    # More rows than a client takes that does not read on: the server has bytes left to send when it stops.
    many = pa.table({"id": pa.array(range(1_000_000), pa.int64()), "text": pa.array(["x" * 100] * 1_000_000)})
    table = harness.write_parquet(many, tmp_path / "many.parquet")
    for round_number in range(4):
        server = harness.Server(headrace, tmp_path, "--load", f"{harness.TABLE}={table}")
        with server, contextlib.ExitStack() as channels:
            calls = []
            for i in range(9):
                if i % 3 == 0:
                    channel = channels.enter_context(grpc.insecure_channel(server.grpc, options=[("grpc.max_receive_message_length", -1), ("i", i)]))
                    client = bigquery_storage_v1.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
                    session = create(client, streams=9)
                transport = client.transport.read_rows
                calls.append(transport(types.ReadRowsRequest(read_stream=session.streams[i].name), timeout=CALL_SECONDS))
            if round_number % 2:
                for call in calls:
                    next(call)
            # Not server.stop(): it forks, which a gRPC client with calls in progress does not always survive.
            children = pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
            began = time.monotonic()
            os.kill(int(children[0]), signal.SIGTERM)
            server.process.wait(20)
            assert time.monotonic() - began < 10
