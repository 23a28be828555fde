"""read_python.py ENDPOINT TABLE FORMAT COMPRESSION STREAMS TIMES [FILE]: reads a table TIMES times with the official Python client, as its documentation
shows it, and prints what it cost, as JSON. Arrow messages become record batches, Avro messages dicts. With FILE, the whole table goes into it, as Parquet with ZSTD."""

import json
import resource
import sys
import threading
import time

import grpc
import pyarrow as pa
import pyarrow.parquet as pq
from google.cloud.bigquery_storage_v1 import BigQueryReadClient, types
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport


def read_table(client, table, form, compression, streams, file):
    wanted = types.ReadSession(table=table, data_format=types.DataFormat[form.upper()])
    if compression != "none":
        codec = {"lz4": "LZ4_FRAME", "zstd": "ZSTD"}[compression]
        wanted.read_options.arrow_serialization_options.buffer_compression = types.ArrowSerializationOptions.CompressionCodec[codec]
    session = client.create_read_session(parent="projects/bench", read_session=wanted, max_stream_count=streams)
    if file is not None:
        whole = pa.concat_tables(client.read_rows(stream.name).to_arrow(session) for stream in session.streams)
        pq.write_table(whole, file, compression="zstd")
        return [(whole.num_rows, whole.nbytes)]
    costs = []

    def read(name):
        rows = size = 0
        for page in client.read_rows(name).rows(session).pages:
            if form == "arrow":
                batch = page.to_arrow()
                rows += batch.num_rows
                size += batch.nbytes
            else:
                rows += sum(1 for _ in page)
        costs.append((rows, size))

    threads = [threading.Thread(target=read, args=(stream.name,)) for stream in session.streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return costs


def main(endpoint, table, form, compression, streams, times, file=None):
    channel = grpc.insecure_channel(endpoint, options=[("grpc.max_receive_message_length", -1)])
    client = BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    costs = [cost for _ in range(int(times)) for cost in read_table(client, table, form, compression, int(streams), file)]
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"rows": sum(rows for rows, _ in costs), "bytes": sum(size for _, size in costs), "wall": wall,
                      "user": after.ru_utime - before.ru_utime, "system": after.ru_stime - before.ru_stime,
                      "minor_faults": after.ru_minflt - before.ru_minflt, "peak_kib": after.ru_maxrss}))


if __name__ == "__main__":
    main(*sys.argv[1:])
