"""The proxy itself: it changes nothing unless told, cuts where it is told, and ends."""

import threading
import time

import grpc
import pytest
from google.cloud.bigquery_storage_v1 import types

import harness
import wire_frames as h2
from wire_copy import PER_MESSAGE, ROWS, SLOW
from wire_faults import Fault, Mangle, Reset, Stall
from wire_proxy import WireProxy

pytestmark = pytest.mark.timeout(60 * SLOW)
SERVICE = "/google.cloud.bigquery.storage.v1.BigQueryRead/"


class Client:
    """Another gRPC client than ours."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
        self.create = self.channel.unary_unary(SERVICE + "CreateReadSession", types.CreateReadSessionRequest.serialize, types.ReadSession.deserialize)
        self.read = self.channel.unary_stream(SERVICE + "ReadRows", types.ReadRowsRequest.serialize, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def stream(self, padding=""):
        table = "projects/{}/datasets/{}/tables/{}".format(*harness.TABLE.split("."))
        session = self.create(types.CreateReadSessionRequest(parent="projects/test-project", max_stream_count=1,
                                                             read_session={"table": table, "data_format": "ARROW"}), timeout=20,
                              metadata=[("x-padding", padding)] if padding else None)
        return session.streams[0].name


def test_it_changes_nothing(wire):
    """The same bytes with and without it, in fragments, and with a header whose length takes several bytes."""
    with Client(wire.server.grpc) as straight, Client(wire.proxy.endpoint.removeprefix("http://")) as through:
        stream = straight.stream()
        expected = list(straight.read(types.ReadRowsRequest(read_stream=stream), timeout=20))
        assert through.stream(padding="p" * 7000).rsplit("/", 2)[1] == "streams"
        for fragment in (0, 1000):
            wire.proxy.fragment = fragment
            assert list(through.read(types.ReadRowsRequest(read_stream=stream), timeout=20)) == expected
    calls = wire.proxy.counters()["calls"]["ReadRows"]
    assert [(call["messages"], call["bytes"], call["offset"], call["ended"]) for call in calls] == [
        (len(expected), sum(len(message) + 5 for message in expected), 0, "status 0")] * 2


@pytest.mark.parametrize("offset", [0, 1, PER_MESSAGE, ROWS, 2**40])
def test_it_knows_each_calls_offset(wire, offset):
    with Client(wire.proxy.endpoint.removeprefix("http://")) as client:
        name = client.stream()
        try:
            list(client.read(types.ReadRowsRequest(read_stream=name, offset=offset), timeout=20))
        except grpc.RpcError:
            assert offset > ROWS
    (call,) = wire.proxy.counters()["calls"]["ReadRows"]
    assert (call["offset"], call["stream"], call["index"]) == (offset, name, 0)


@pytest.mark.parametrize("place,messages,into", [({"messages": 0}, 0, 0), ({"messages": 0, "bytes": 1}, 0, 1), ({"messages": 2}, 2, 0), ({"messages": 2, "bytes": 5}, 2, 5),
                                                 ({"messages": 1, "bytes": 777}, 1, 777)])
def test_it_cuts_at_the_byte(wire, place, messages, into):
    wire.proxy.set_faults(Fault(Reset(h2.INTERNAL_ERROR), **place))
    with Client(wire.proxy.endpoint.removeprefix("http://")) as client:
        name = client.stream()
        with pytest.raises(grpc.RpcError) as error:
            list(client.read(types.ReadRowsRequest(read_stream=name), timeout=20))
    assert "RST_STREAM with error code 2" in error.value.details()
    (fault,) = wire.proxy.counters()["faults"]
    assert fault["fired"] == 1 and (fault["at"][0]["messages"], fault["at"][0]["into_message"]) == (messages, into)


def test_mangling_whole_messages(small_messages):
    """Dropped, doubled and swapped as told, in the eyes of another client."""
    with Client(small_messages.proxy.endpoint.removeprefix("http://")) as client:
        name = client.stream()
        request = types.ReadRowsRequest(read_stream=name)
        whole = list(client.read(request, timeout=20))
        for how, expected in [("drop", whole[:3] + whole[4:]), ("duplicate", whole[:4] + whole[3:]), ("swap", whole[:3] + [whole[4], whole[3]] + whole[5:])]:
            small_messages.proxy.set_faults(Fault(Mangle(how), messages=3))
            assert list(client.read(request, timeout=20)) == expected
            assert small_messages.proxy.fired() == [1]


def test_it_ends_with_calls_in_flight(wire_server):
    before = threading.active_count()
    with WireProxy(wire_server.grpc) as proxy:
        proxy.set_faults(Fault(Stall(), messages=1))
        client = Client(proxy.endpoint.removeprefix("http://"))
        call = client.read(types.ReadRowsRequest(read_stream=client.stream()), timeout=30)
        next(call)
        harness.wait_until(lambda: proxy.fired() == [1], 10, "the stall")
        started = time.monotonic()
    assert time.monotonic() - started < 10
    call.cancel()
    client.channel.close()
    assert threading.active_count() <= before + 4  # gRPC's own
