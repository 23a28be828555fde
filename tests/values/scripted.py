"""A Storage Read service that sends what a test says, also what no service should: one table, one stream, given messages."""

import concurrent.futures

import grpc
import pyarrow as pa
from google.cloud.bigquery_storage_v1 import types

SERVICE = "google.cloud.bigquery.storage.v1.BigQueryRead"


class ScriptedRead:
    """Start it with `with`. `session` are fields of ReadSession (the schema), `messages` the ReadRowsResponses of its stream."""

    def __init__(self, session, messages):
        self.session, self.messages = session, messages

    def __enter__(self):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        handlers = {
            "CreateReadSession": grpc.unary_unary_rpc_method_handler(self._create, types.CreateReadSessionRequest.deserialize, types.ReadSession.serialize),
            "ReadRows": grpc.unary_stream_rpc_method_handler(self._read, types.ReadRowsRequest.deserialize, types.ReadRowsResponse.serialize),
        }
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.endpoint = f"http://127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait()

    def _create(self, request, _context):
        name = "projects/p/locations/us/sessions/s"
        return types.ReadSession(name=name, table=request.read_session.table, data_format=request.read_session.data_format,
                                 streams=[types.ReadStream(name=name + "/streams/0")], estimated_row_count=1,
                                 expire_time={"seconds": 4_000_000_000}, **self.session)

    def _read(self, request, _context):
        rows = 0
        for message in self.messages:
            if rows >= request.offset:
                yield message
            rows += message.row_count


def arrow_session(schema):
    return {"arrow_schema": types.ArrowSchema(serialized_schema=schema.serialize().to_pybytes())}


def arrow_message(batch, schema=None):
    """A response of these rows; with `schema` it brings one of its own, as the first of a stream may."""
    rows = types.ArrowRecordBatch(serialized_record_batch=batch.serialize().to_pybytes(), row_count=batch.num_rows)
    more = {} if schema is None else {"arrow_schema": types.ArrowSchema(serialized_schema=schema.serialize().to_pybytes())}
    return types.ReadRowsResponse(arrow_record_batch=rows, row_count=batch.num_rows, **more)


def avro_session(text):
    return {"avro_schema": types.AvroSchema(schema=text)}


def avro_message(content, rows, schema=None):
    more = {} if schema is None else {"avro_schema": types.AvroSchema(schema=schema)}
    return types.ReadRowsResponse(avro_rows=types.AvroRows(serialized_binary_rows=content, row_count=rows), row_count=rows, **more)


def unchecked(values, storage, kind):
    """An Arrow array of a type, made of values that the type may not have."""
    return pa.array(values, storage).view(kind) if not pa.types.is_string(kind) else pa.array(values, pa.binary()).view(kind)
