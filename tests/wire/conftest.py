"""A service that works, and a proxy before it that does not."""

import pytest

import harness
from wire_copy import PER_MESSAGE, ROWS, Wire
from wire_proxy import WireProxy


@pytest.fixture(scope="module")
def wire_table():
    return harness.make_table(ROWS, seed=11)


@pytest.fixture(scope="module")
def wire_server(headrace, wire_table, tmp_path_factory):
    directory = tmp_path_factory.mktemp("wire")
    path = harness.write_parquet(wire_table, directory / "t.parquet")
    with harness.Server(headrace, directory, "--load", f"{harness.TABLE}={path}", "--message-rows", PER_MESSAGE) as server:
        yield server


@pytest.fixture
def wire(headrace, wire_table, wire_server, tmp_path):
    with WireProxy(wire_server.grpc) as proxy:
        yield Wire(headrace, wire_table, wire_server, proxy, tmp_path)


@pytest.fixture(scope="module")
def small_messages_server(headrace, wire_table, tmp_path_factory):
    """The same table in messages of about 4 KiB: many fit into one window."""
    directory = tmp_path_factory.mktemp("small")
    path = harness.write_parquet(wire_table, directory / "t.parquet")
    with harness.Server(headrace, directory, "--load", f"{harness.TABLE}={path}", "--message-rows", 20) as server:
        yield server


@pytest.fixture
def small_messages(headrace, wire_table, small_messages_server, tmp_path):
    with WireProxy(small_messages_server.grpc) as proxy:
        wire = Wire(headrace, wire_table, small_messages_server, proxy, tmp_path)
        wire.per_message = 20
        yield wire
