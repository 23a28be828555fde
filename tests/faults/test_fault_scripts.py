"""The fault scripts of `headrace serve`: what docs/local-service.md promises of them, and copies through faults drawn by a seed."""

import json
import pathlib
import re
import urllib.error

import pytest

from harness import TABLE, Server, assert_same_rows, make_table, read_result, run_headrace, write_parquet

ROWS = 6_000
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/local-service.md"
# What a copy mends by itself.
MENDED = [{"status": {"code": "UNAVAILABLE"}}, {"status": {"code": "RESOURCE_EXHAUSTED", "retry_delay_ms": 1}}, {"drop": True}, {"delay_ms": 2}, {"duplicate": True}, {"skip": True}]


@pytest.fixture(scope="module")
def table():
    return make_table(ROWS, seed=5)


@pytest.fixture(scope="module")
def table_file(table, tmp_path_factory):
    return write_parquet(table, tmp_path_factory.mktemp("table") / "t.parquet")


@pytest.fixture
def server(headrace, table_file, tmp_path):
    with Server(headrace, tmp_path, "--load", f"{TABLE}={table_file}", "--message-rows", 50) as running:
        yield running


def refusal(server, *rules):
    with pytest.raises(urllib.error.HTTPError) as refused:
        server.set_faults(*rules)
    assert refused.value.code == 400
    return refused.value.read().decode()


def documented(heading):
    """The names in the first column of the table with this heading."""
    table = re.search(rf"^\| {heading} \| \|\n\|---\|---\|\n((?:\|.*\n)+)", DOCUMENT.read_text(), re.M).group(1)
    return [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_the_document_names_every_key_and_action(server):
    text = refusal(server, {"method": "ReadRows", "action": {}})
    assert re.search(r"exactly one of ([\w, ]+)\.", text).group(1).split(", ") == documented("Action")
    text = refusal(server, {"method": "ReadRows", "boom": 1})
    assert re.search(r"Known keys: ([\w, ]+)\.", text).group(1).split(", ") == sorted(documented("Key"))


def test_the_documents_scripts_are_taken(server):
    scripts = re.findall(r"^```json\n(\{\"(?:rules|method)\".*?)```", DOCUMENT.read_text(), re.M | re.S)
    assert len(scripts) == 2
    for script in map(json.loads, scripts):
        server.set_faults(*script.get("rules", [script]))


@pytest.mark.parametrize("source_format", ["arrow", "avro"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_copy_through_faults_by_seed(headrace, server, table, tmp_path, source_format, seed):
    server.set_faults({"method": "ReadRows", "every_rows": 250, "seed": seed, "actions": MENDED})
    run_headrace(headrace, "copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 2, "--source-format", source_format)
    assert_same_rows(read_result(tmp_path / "out"), table)
    counted = server.counters()["faults"][0]
    assert 10 <= counted["fired"] <= ROWS // 250 and sum(counted["by_action"]) == counted["fired"]
    assert server.counters()["read_rows_calls"] > 2 and server.counters()["sessions_created"] == 1


def copy(headrace, server, target, source_format, **how):
    return run_headrace(headrace, "copy", f"bq:{TABLE}", f"{target}/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 1, "--source-format", source_format,
                        "--json", **how)


@pytest.mark.parametrize("source_format", ["arrow", "avro"])
@pytest.mark.parametrize("action", ["skip", "duplicate"])
def test_a_message_that_is_lost_or_doubled_is_noticed(headrace, server, table, tmp_path, source_format, action):
    server.set_faults({"method": "ReadRows", "call": 1, "after_messages": 3, "action": {action: True}})
    copy(headrace, server, tmp_path / "out", source_format)
    assert_same_rows(read_result(tmp_path / "out"), table)
    assert server.faults_fired() == [1]
    assert server.opens() == {0: [0, 150 if action == "skip" else 200]}


@pytest.mark.parametrize("source_format,action", [
    (source_format, action) for source_format in ["arrow", "avro"]
    for action in [{"truncate_bytes": 9}, {"truncate_bytes": 10**9}, {"corrupt": {"bytes": 200}}, {"row_count_off_by": 1}, {"row_count_off_by": -1}]])
def test_a_message_that_is_not_what_it_says_is_an_error(headrace, server, tmp_path, source_format, action):
    server.set_faults({"method": "ReadRows", "call": 1, "after_messages": 3, "action": action})
    out, _ = copy(headrace, server, tmp_path / "out", source_format, code=1, seconds=20)
    assert server.faults_fired() == [1]
    message = json.loads(out)["error"]["message"]
    assert "/streams/0" in message and "150" in message, message


NO_MESSAGE = {"row_count_off_by": -1000}  # a count below zero: the bytes are no response of the service


@pytest.mark.parametrize("source_format", ["arrow", "avro"])
def test_what_is_no_message_at_all_is_asked_for_again(headrace, server, table, tmp_path, source_format):
    """Broken on the way, it comes whole the next time."""
    server.set_faults({"method": "ReadRows", "call": 1, "after_messages": 3, "action": NO_MESSAGE}, {"method": "ReadRows", "call": 2, "action": NO_MESSAGE})
    copy(headrace, server, tmp_path / "out", source_format)
    assert_same_rows(read_result(tmp_path / "out"), table)
    assert server.faults_fired() == [1, 1] and server.opens() == {0: [0, 150, 150]}


@pytest.mark.parametrize("source_format", ["arrow", "avro"])
def test_what_is_no_message_three_times_is_an_error(headrace, server, tmp_path, source_format):
    server.set_faults({"method": "ReadRows", "call": 1, "after_messages": 3, "action": NO_MESSAGE}, {"method": "ReadRows", "call": 2, "action": NO_MESSAGE},
                      {"method": "ReadRows", "call": 3, "action": NO_MESSAGE})
    out, _ = copy(headrace, server, tmp_path / "out", source_format, code=1, seconds=20)
    error = json.loads(out)["error"]
    assert server.faults_fired() == [1, 1, 1] and error["reason"] == "CORRUPT_RESPONSE"
    assert "/streams/0" in error["message"] and "150" in error["message"]


@pytest.mark.parametrize("source_format", ["arrow", "avro"])
def test_a_session_that_expires(headrace, server, tmp_path, source_format):
    server.set_faults({"method": "ReadRows", "call": 1, "after_messages": 3, "action": {"expire_session": True}})
    out, _ = copy(headrace, server, tmp_path / "out", source_format, code=1, seconds=20)
    error = json.loads(out)["error"]
    assert error["code"] == "FAILED_PRECONDITION" and "session expired" in error["message"] and "/streams/0" in error["message"] and "150" in error["message"]
    assert server.faults_fired() == [1] and server.opens() == {0: [0]}
