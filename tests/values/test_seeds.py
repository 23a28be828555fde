"""Files that independent writers have made, of every format that says its types, become tables of `headrace serve` with the same values."""

import pytest

import arrow_form
import harness
import readers
import writers
from cases import assert_same
from refusals import ARROW_CASES, GOOD_ROWS, arrow_case_file, assert_names
from tables import TABLES, without
from test_wire import SECONDS, session_of, storage

WRITERS = {
    "parquet": (writers.parquet, "parquet", ()),
    "parquet_by_duckdb": (writers.parquet_by_duckdb, "parquet", readers.NOT_IN_DUCKDB),
    "arrow": (writers.arrow_file, "arrow", ()),
    "arrow_lz4": (lambda *table: writers.arrow_file(*table, codec="lz4"), "feather", ()),
    "arrows": (writers.arrow_stream, "arrows", ()),
    "arrows_zstd": (lambda *table: writers.arrow_stream(*table, codec="zstd"), "arrows", ()),
    "avro": (writers.avro, "avro", writers.NOT_IN_AVRO_LOAD_FILES),
    "avro_deflate": (lambda *table: writers.avro(*table, codec="deflate"), "avro", writers.NOT_IN_AVRO_LOAD_FILES),
    "avro_snappy": (lambda *table: writers.avro(*table, codec="snappy"), "avro", writers.NOT_IN_AVRO_LOAD_FILES),
    "avro_zstd": (lambda *table: writers.avro(*table, codec="zstandard"), "avro", writers.NOT_IN_AVRO_LOAD_FILES),
}
# Avro has no names of its own for columns like these.
CASES = [(writer, name) for writer in WRITERS for name in ("matrix", "deepest", "flexible_names") if not (name == "flexible_names" and "avro" in writer)]


def table_of(writer, name):
    return without(*TABLES[name], WRITERS[writer][2])


@pytest.fixture(scope="module")
def service(headrace, tmp_path_factory):
    directory, arguments = tmp_path_factory.mktemp("files"), []
    for writer, name in CASES:
        write, extension, _ = WRITERS[writer]
        path = directory / f"{writer}_{name}.{extension}"
        write(path, *table_of(writer, name))
        arguments += ["--load", f"test-project.data.{writer}_{name}={path}"]
    running = harness.Server(headrace, directory, *arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        running.start()
    yield running
    running.stop()


@pytest.mark.parametrize("writer, name", CASES)
def test_files_of_others_are_tables(service, writer, name):
    columns, rows = table_of(writer, name)
    with storage(service) as client:
        session = session_of(client, f"{writer}_{name}", "ARROW")
        table = client.read_rows(session.streams[0].name, timeout=SECONDS).rows(session).to_arrow()
    assert_same(arrow_form.rows_of(table, columns), rows, columns, writer)


@pytest.mark.parametrize("case", ARROW_CASES)
@pytest.mark.parametrize("extension", ["parquet", "arrow", "arrows"])
def test_values_that_are_none_are_no_table(run, tmp_path, extension, case):
    array, value = ARROW_CASES[case]
    path = arrow_case_file(tmp_path, extension, array)
    assert_names(run("serve", "--load", f"test-project.data.t={path}", code=1, seconds=30)[1], "Column", GOOD_ROWS, value)
