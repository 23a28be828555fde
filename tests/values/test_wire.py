"""What `headrace serve` sends, in every form of the wire, read by Google's own clients for Python: Arrow and Avro rows, and REST."""

import contextlib
import json
import urllib.request

import fastavro
import grpc
import pyarrow as pa
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery, bigquery_storage_v1
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

import arrow_form
import cases
import readers
from tables import TABLES, holds

SECONDS = 30


@contextlib.contextmanager
def storage(server):
    with grpc.insecure_channel(server.grpc) as channel:
        yield bigquery_storage_v1.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))


def session_of(client, name, data_format):
    if data_format == "ARROW":
        serialization = {"arrow_serialization_options": types.ArrowSerializationOptions(picos_timestamp_precision=3)}
    else:
        serialization = {"avro_serialization_options": types.AvroSerializationOptions(enable_display_name_attribute=True, picos_timestamp_precision=3)}
    assert types.ArrowSerializationOptions.PicosTimestampPrecision(3).name == "TIMESTAMP_PRECISION_PICOS"
    options = types.ReadSession.TableReadOptions(**serialization)
    wanted = types.ReadSession(table=f"projects/test-project/datasets/data/tables/{name}", data_format=types.DataFormat[data_format], read_options=options)
    return client.create_read_session(parent="projects/billing", read_session=wanted, max_stream_count=1, timeout=SECONDS)


def test_arrow_rows_by_googles_client(server, name):
    columns, rows = TABLES[name]
    with storage(server) as client:
        session = session_of(client, name, "ARROW")
        if session.streams:
            table = client.read_rows(session.streams[0].name, timeout=SECONDS).rows(session).to_arrow()
        else:
            table = pa.Table.from_batches([], pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema)))
    cases.assert_same(arrow_form.rows_of(table, columns), rows, columns)


def test_avro_rows_by_fastavro(server, name):
    columns, rows = TABLES[name]
    with storage(server) as client:
        session = session_of(client, name, "AVRO")
        schema = json.loads(session.avro_schema.schema)
        messages = list(client.read_rows(session.streams[0].name, timeout=SECONDS)) if session.streams else []
    assert schema["name"] == "__root__"
    parsed = fastavro.parse_schema(schema)
    got = []
    for message in messages:
        with memoryview(message.avro_rows.serialized_binary_rows) as content:
            reader = _Bytes(bytes(content))
            while len(got) < len(rows) and reader.at < len(reader.content):
                got.append(fastavro.schemaless_reader(reader, parsed))
            assert reader.at == len(reader.content)
    got = [readers.from_avro(readers.by_display_name(row, schema), columns) for row in got]
    cases.assert_same(got, rows, columns)


class _Bytes:
    """A file of the bytes, whose place is known."""

    def __init__(self, content):
        self.content, self.at = content, 0

    def read(self, size):
        piece = self.content[self.at:self.at + size]
        self.at += len(piece)
        return piece


def test_rest_answers_as_json(server, name):
    columns, rows = TABLES[name]
    got, token = [], ""
    while token is not None:
        url = f"http://{server.admin}/bigquery/v2/projects/test-project/datasets/data/tables/{name}/data"
        with urllib.request.urlopen(f"{url}?maxResults=13&formatOptions.useInt64Timestamp=true&pageToken={token}", timeout=SECONDS) as answer:
            page = json.load(answer)
        assert int(page["totalRows"]) == len(rows)
        got += page.get("rows", [])
        token = page.get("pageToken")
    cases.assert_same(readers.rest(got, columns), rows, columns)


# What Google's client for REST has no exact value of: it takes picoseconds for microseconds, makes days of 24 hours, and has one None for JSON's null and
# for no value.
NOT_IN_REST_CLIENT = (cases.TIMESTAMP_PICOS, cases.INTERVAL, cases.JSON)


def test_rest_answers_by_googles_client(server, name):
    columns, rows = TABLES[name]
    options = ClientOptions(api_endpoint=f"http://{server.admin}")
    with contextlib.closing(bigquery.Client("test-project", credentials=AnonymousCredentials(), client_options=options)) as client:
        table = client.get_table(f"test-project.data.{name}")
        assert [field.name for field in table.schema] == [column.name for column in columns]
        chosen = [field for field, column in zip(table.schema, columns) if not holds(column, NOT_IN_REST_CLIENT)]
        columns = [column for column in columns if not holds(column, NOT_IN_REST_CLIENT)]
        got = [readers.from_client(row.values(), columns) for row in client.list_rows(table, selected_fields=chosen, page_size=11)]
    cases.assert_same(got, [{column.name: row[column.name] for column in columns} for row in rows], columns)
