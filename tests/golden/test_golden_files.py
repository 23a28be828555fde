"""Published files through the program: Avro's (weather and those that fastavro keeps with its tests, made by Java, Go, C and Python; scripts/setup.sh
fetches them) and Arrow's (those in the pyarrow wheel: Parquet of 2017, Arrow IPC with LZ4). `headrace copy` and `headrace schema` read them as an
independent reader does, or refuse them for a stated reason; tests/avro has the same files without the program."""

import json
import pathlib
import uuid

import fastavro
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from golden_avro import REFUSED


@pytest.fixture(scope="module")
def avro_files(source_dir):
    found = sorted((source_dir / "build" / "deps" / "avro-files").glob("*.avro"))
    if not found:
        pytest.fail("build/deps/avro-files is missing: run scripts/setup.sh")
    return found


def test_avro_files(run, avro_files, tmp_path):
    compared = 0
    for path in avro_files:
        out = tmp_path / f"{compared}.parquet"
        if path.name in REFUSED:
            for arguments in (["copy", path, out], ["schema", path]):
                refused = run(*arguments, code=2)[1]
                assert REFUSED[path.name] in refused and str(path) in refused, path.name
            continue
        with open(path, "rb") as file:
            reader = fastavro.reader(file)
            rows = [{name: str(value) if isinstance(value, uuid.UUID) else value for name, value in row.items()} for row in reader]
            fields = reader.writer_schema["fields"]
        if not fields:
            assert "column" in run("copy", path, out, code=2)[1], "a table has a column"
            continue
        assert [field["name"] for field in json.loads(run("schema", path, "--json")[0])] == [field["name"] for field in fields]
        run("copy", path, out, "--quiet")
        assert pq.read_table(out).to_pylist() == rows, path.name
        compared += 1
    assert compared >= 18


def test_arrow_files(run, tmp_path):
    data = pathlib.Path(pa.__file__).parent / "tests" / "data"
    files = [*sorted((data / "parquet").glob("*.parquet")), *sorted((data / "feather").glob("*.feather"))]
    assert len(files) >= 5
    for number, path in enumerate(files):
        wanted = pq.ParquetFile(path).read() if path.suffix == ".parquet" else pa.feather.read_table(path)
        run("copy", path, tmp_path / f"{number}.arrow", "--quiet")
        with pa.OSFile(str(tmp_path / f"{number}.arrow")) as file:
            got = pa.ipc.open_file(file).read_all()
        assert got.to_pylist() == wanted.to_pylist(), path.name
