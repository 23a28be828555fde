"""Published Avro files, written by Java, Go, C and Python: Apache Avro's weather files and those that fastavro keeps with its tests."""

import fastavro
import pytest

from avro_files import Converter, compare, expected, read_arrow
from golden_avro import REFUSED


@pytest.fixture(scope="module")
def convert(build_dir):
    with Converter(build_dir) as converter:
        yield converter


@pytest.fixture(scope="module")
def files(source_dir):
    found = sorted((source_dir / "build" / "deps" / "avro-files").glob("*.avro"))
    if not found:
        pytest.fail("build/deps/avro-files is missing: run scripts/setup.sh")
    return found


def test_golden_files_equal_fastavros_reading_or_are_refused_for_a_reason(files, convert, tmp_path):
    assert {"weather.avro", "weather-snappy.avro", "test-deflate-9.avro"} <= {path.name for path in files}
    compared = 0
    for path in files:
        arrow = tmp_path / "rows.arrow"
        answer = convert("decode", path, arrow)
        if path.name in REFUSED:
            assert REFUSED[path.name] in answer, path.name
            continue
        assert answer == "ok", path.name
        with open(path, "rb") as file:
            got = read_arrow(arrow)
            try:
                reader = fastavro.reader(file)
                want = [expected(reader.writer_schema, row) for row in reader]
            except ValueError as error:  # snappy needs a package of its own there
                assert "snappy" in str(error), path.name
                continue
        compare(got, want, path.name)
        compared += 1
    assert compared >= 18


def test_the_weather_is_that_of_the_specification(files, convert, tmp_path):
    want = [{"station": "011990-99999", "time": -619524000000, "temp": 0}, {"station": "011990-99999", "time": -619506000000, "temp": 22},
            {"station": "011990-99999", "time": -619484400000, "temp": -11}, {"station": "012650-99999", "time": -655531200000, "temp": 111},
            {"station": "012650-99999", "time": -655509600000, "temp": 78}]
    for path in files:
        if path.name in ("weather.avro", "weather-snappy.avro"):
            assert convert("decode", path, tmp_path / "rows.arrow") == "ok"
            assert read_arrow(tmp_path / "rows.arrow").to_pylist() == want
