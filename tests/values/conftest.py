"""The tables of cases.py as seeds of one `headrace serve` for each time zone."""

import pyarrow.parquet as pq
import pytest

import arrow_form
import harness
from tables import TABLES, ZONES


def pytest_generate_tests(metafunc):
    """A test that takes `zone` and `name` has the matrix in every zone, and the other tables, which show no more of zones, in one."""
    if {"zone", "name"} <= set(metafunc.fixturenames):
        names = getattr(metafunc.function, "tables", tuple(TABLES))
        pairs = [(zone, name) for zone in ZONES for name in names if zone == "UTC" or name == names[0]]
        metafunc.parametrize("zone, name", pairs, indirect=["zone"], scope="session")


@pytest.fixture(scope="session")
def seeds(tmp_path_factory):
    """The tables as Parquet files, by Arrow's own writer."""
    directory = tmp_path_factory.mktemp("seeds")
    for name, (columns, rows) in TABLES.items():
        pq.write_table(arrow_form.table_of(columns, rows), directory / f"{name}.parquet")
    return directory


@pytest.fixture(scope="session")
def zone(request):
    """The time zone of every process that the test starts."""
    return getattr(request, "param", "UTC")


@pytest.fixture(autouse=True)
def in_zone(request, monkeypatch):
    if "zone" in request.fixturenames:
        monkeypatch.setenv("TZ", request.getfixturevalue("zone"))


@pytest.fixture(scope="session")
def server(headrace, seeds, zone, tmp_path_factory):
    arguments = [argument for name in TABLES for argument in ("--load", f"test-project.data.{name}={seeds / name}.parquet")]
    running = harness.Server(headrace, tmp_path_factory.mktemp("server"), *arguments, "--message-rows", "7")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        running.start()
    yield running
    running.stop()
