"""Google's own client for Python splits the streams of `headrace serve` and reads both parts."""

import grpc
import pyarrow as pa
import pytest
from google.api_core import exceptions
from google.cloud import bigquery_storage_v1
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

import harness

PROJECT, DATASET, NAME = harness.TABLE.split(".")
ROWS = 4000
CALL_SECONDS = 30


@pytest.fixture(scope="module")
def rows():
    return harness.make_table(ROWS)


@pytest.fixture(scope="module")
def table_file(rows, tmp_path_factory):
    return harness.write_parquet(rows, tmp_path_factory.mktemp("split") / "t.parquet")


@pytest.fixture
def server(headrace, table_file, tmp_path, request):
    with harness.Server(headrace, tmp_path, "--load", f"{harness.TABLE}={table_file}", "--message-rows", "300", *getattr(request, "param", [])) as running:
        yield running


def connect(server):
    channel = grpc.insecure_channel(server.grpc, options=[("grpc.max_receive_message_length", -1)])
    return channel, bigquery_storage_v1.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))


@pytest.fixture
def client(server):
    channel, client = connect(server)
    with channel:
        yield client


def create(client, data_format=types.DataFormat.ARROW, streams=1, **options):
    session = types.ReadSession(table=f"projects/{PROJECT}/datasets/{DATASET}/tables/{NAME}", data_format=data_format,
                                read_options=types.ReadSession.TableReadOptions(**options))
    return client.create_read_session(request=types.CreateReadSessionRequest(parent="projects/billing", read_session=session, max_stream_count=streams),
                                      timeout=CALL_SECONDS)


def split(client, name, fraction):
    answer = client.split_read_stream(types.SplitReadStreamRequest(name=name, fraction=fraction), timeout=CALL_SECONDS)
    return answer.primary_stream.name, answer.remainder_stream.name


def ids(client, session, name, offset=0):
    """The ids of a stream in either format, in order."""
    if session.data_format == types.DataFormat.AVRO:
        return [row["id"] for row in client.read_rows(name, offset=offset, timeout=CALL_SECONDS).rows(session)]
    return client.read_rows(name, offset=offset, timeout=CALL_SECONDS).rows(session).to_arrow()["id"].to_pylist()


@pytest.mark.parametrize("data_format", [types.DataFormat.ARROW, types.DataFormat.AVRO])
@pytest.mark.parametrize("fraction, cut", [(0.5, 2000), (0, 2000), (0.1, 400), (0.999, 3996)])
def test_both_parts_are_the_whole(client, data_format, fraction, cut):
    session = create(client, data_format)
    original = session.streams[0].name
    primary, remainder = split(client, original, fraction)
    assert ids(client, session, primary) == list(range(cut))
    assert ids(client, session, remainder) == list(range(cut, ROWS))
    assert ids(client, session, primary, cut - 7) == list(range(cut - 7, cut))
    assert ids(client, session, original, 17) == list(range(17, ROWS))


def test_every_value_through_parts_of_parts(client, rows):
    session = create(client, streams=2)
    leaves = []
    for stream in session.streams:
        primary, remainder = split(client, stream.name, 0.3)
        leaves += [primary, *split(client, remainder, 0.6)]
    tables = [client.read_rows(name, timeout=CALL_SECONDS).rows(session).to_arrow() for name in leaves]
    assert harness.plain(pa.concat_tables(tables)).equals(harness.plain(rows))


def test_a_reader_that_is_in_the_middle_goes_on_in_the_primary(client):
    """What Beam and Headrace do: the offset of the original is that of the primary."""
    session = create(client, row_restriction="id >= 1000")
    original = session.streams[0].name
    messages = iter(client.read_rows(original, timeout=CALL_SECONDS))
    first = [next(messages), next(messages)]
    taken = sum(message.row_count for message in first)
    progress = first[-1].stats.progress.at_response_end
    assert progress == pytest.approx((1000 + taken) / ROWS)  # of the rows in storage, as the fraction is
    primary, remainder = split(client, original, progress + (1 - progress) / 2)
    near, far = ids(client, session, primary, taken), ids(client, session, remainder)
    assert near + far == list(range(1000 + taken, ROWS))
    assert abs(len(near) - len(far)) <= 1


@pytest.mark.parametrize("fraction", [1.0, -0.5, float("nan")])
def test_a_fraction_that_is_none(client, fraction):
    with pytest.raises(exceptions.InvalidArgument, match="fraction"):
        split(client, create(client).streams[0].name, fraction)


def test_what_cannot_be_split_answers_without_names(client):
    session = create(client)
    one = split(client, session.streams[0].name, 1.5 / ROWS)[0]
    assert ids(client, session, one) == [0]
    assert split(client, one, 0.5) == ("", "")
    assert split(client, session.streams[0].name, 0.5 / ROWS) == ("", "")


def test_unknown_names(client):
    session = create(client)
    primary = split(client, session.streams[0].name, 0.5)[0]
    for name in [primary + "x", primary.replace("primary", "remainder"), primary.replace("0-2000", "0-2001")]:
        with pytest.raises(exceptions.NotFound):
            split(client, name, 0.5)
        with pytest.raises(exceptions.NotFound):
            list(client.read_rows(name, timeout=CALL_SECONDS))


def test_parts_survive_a_restart_and_are_counted(server):
    channel, client = connect(server)
    with channel:
        session = create(client)
        primary, remainder = split(client, session.streams[0].name, 0.25)
    counters = server.counters()
    assert (counters["split_calls"], counters["splits_accepted"]) == (1, 1)
    assert counters["streams"][0]["splits"] == [{"fraction": 0.25, "accepted": True, "status": "OK"}]
    server.restart()
    channel, client = connect(server)
    with channel:
        assert ids(client, session, primary) == list(range(1000))
        left, right = split(client, remainder, 0.5)
        assert ids(client, session, left) + ids(client, session, right) == list(range(1000, ROWS))


@pytest.mark.parametrize("server, originals, children", [
    (["--ignore-offsets", "none"], False, False),
    (["--ignore-offsets", "children"], False, True),
    (["--ignore-offsets", "all"], True, True),
], indirect=["server"])
def test_a_server_that_ignores_offsets(client, originals, children):
    session = create(client)
    primary, _ = split(client, session.streams[0].name, 0.5)
    assert ids(client, session, session.streams[0].name, 100)[0] == (0 if originals else 100)
    assert ids(client, session, primary, 100)[0] == (0 if children else 100)
