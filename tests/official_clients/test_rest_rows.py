"""Google's BigQuery client for Python pages through the rows of `headrace serve`, over REST and over the Storage Read API."""

import json
import urllib.error
import urllib.request

import grpc
import pyarrow as pa
import pytest
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery, bigquery_storage_v1
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

import harness

PROJECT = "test-project"
ROWS = 2000
PATH = f"/bigquery/v2/projects/{PROJECT}/datasets/data/tables"


@pytest.fixture(scope="module")
def rows():
    return harness.make_table(ROWS)


@pytest.fixture(scope="module")
def server(headrace, rows, tmp_path_factory):
    directory = tmp_path_factory.mktemp("rows")
    table = harness.write_parquet(rows, directory / "t.parquet")
    few = harness.write_parquet(rows.slice(0, 10), directory / "few.parquet")
    with harness.Server(headrace, directory, "--load", f"{harness.TABLE}={table}", "--load", f"{PROJECT}.data.few={few}", "--view", f"{PROJECT}.data.v") as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    made = bigquery.Client(PROJECT, credentials=AnonymousCredentials(), client_options=ClientOptions(api_endpoint=f"http://{server.admin}"))
    yield made
    made.close()


def ask(server, path):
    try:
        with urllib.request.urlopen(f"http://{server.admin}{path}", timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def test_every_row_over_rest_has_every_value(client, rows):
    got = [dict(row) for row in client.list_rows(harness.TABLE)]
    assert got == rows.to_pylist()


@pytest.mark.parametrize("start, most, page", [(0, None, 7), (1990, None, 3), (5, 12, 5), (1999, 5, None), (2000, None, None), (5000, None, None)])
def test_pages(client, rows, start, most, page):
    listed = client.list_rows(client.get_table(harness.TABLE), start_index=start, max_results=most, page_size=page)
    got = [row["id"] for row in listed]
    assert got == rows["id"].to_pylist()[start:][:most]
    assert listed.total_rows == ROWS


def test_selected_fields(client, rows):
    fields = [field for field in client.get_table(harness.TABLE).schema if field.name in ("id", "tags")]
    assert [dict(row) for row in client.list_rows(harness.TABLE, selected_fields=fields, max_results=50)] == rows.select(["id", "tags"]).slice(0, 50).to_pylist()


def test_single_fields_of_a_struct(server, rows):
    answer = ask(server, f"{PATH}/few/data?selectedFields=place.label,id")
    for row, right in zip(answer["rows"], rows.to_pylist()):
        place = None if right["place"] is None else {"f": [{"v": right["place"]["label"]}]}
        assert row == {"f": [{"v": str(right["id"])}, {"v": place}]}
    assert "do not exist in the table schema: nope" in ask(server, f"{PATH}/few/data?selectedFields=nope")["error"]["message"]


def test_the_forms_of_a_timestamp(server, rows):
    epoch = rows["moment"].cast("int64").to_pylist()[:10]
    answer = ask(server, f"{PATH}/few/data?selectedFields=moment&formatOptions.useInt64Timestamp=true")
    assert [row["f"][0]["v"] for row in answer["rows"]] == [None if value is None else str(value) for value in epoch]
    answer = ask(server, f"{PATH}/few/data?selectedFields=moment")
    assert [None if row["f"][0]["v"] is None else round(float(row["f"][0]["v"])) for row in answer["rows"]] == [None if value is None else round(value / 1e6) for value in epoch]


def test_the_answer_has_its_shape(server):
    answer = ask(server, f"{PATH}/few/data?maxResults=3")
    assert (answer["kind"], answer["totalRows"], len(answer["rows"])) == ("bigquery#tableDataList", "10", 3)
    rest = ask(server, f"{PATH}/few/data?pageToken={answer['pageToken']}")
    assert len(rest["rows"]) == 7 and "pageToken" not in rest
    for token in ("x", "1", "1-a-0-0", answer["pageToken"] + "0"):
        assert "Invalid page token" in ask(server, f"{PATH}/few/data?pageToken={token}")["error"]["message"]
    assert "maxResults" in ask(server, f"{PATH}/few/data?maxResults=-1")["error"]["message"]


def test_pages_of_a_table_that_changes_are_those_of_its_beginning(client, server):
    first = ask(server, f"{PATH}/few/data?maxResults=4")
    table = client.get_table(f"{PROJECT}.data.few")
    columns = len(table.schema)
    table.schema = [*table.schema, bigquery.SchemaField("added", "STRING", mode="REPEATED"), bigquery.SchemaField("more", "INTEGER")]
    client.update_table(table, ["schema"])
    rest = ask(server, f"{PATH}/few/data?pageToken={first['pageToken']}")
    assert len(rest["rows"]) == 6 and all(len(row["f"]) == columns for row in rest["rows"])
    new = ask(server, f"{PATH}/few/data")
    assert all(row["f"][columns:] == [{"v": []}, {"v": None}] for row in new["rows"])
    assert [dict(row)["added"] for row in client.list_rows(f"{PROJECT}.data.few")] == [[]] * 10


def test_a_view_has_no_rows_to_list(client):
    with pytest.raises(exceptions.BadRequest, match="Cannot list a table of type VIEW"):
        list(client.list_rows(f"{PROJECT}.data.v", selected_fields=[bigquery.SchemaField("x", "STRING")]))


def test_the_storage_api_gives_the_same_rows(client, server, rows):
    with grpc.insecure_channel(server.grpc, options=[("grpc.max_receive_message_length", -1)]) as channel:
        storage = bigquery_storage_v1.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
        got = client.list_rows(harness.TABLE).to_arrow(bqstorage_client=storage)
    assert server.counters()["sessions_by_table"][harness.TABLE] == 1
    assert got.sort_by("id").to_pylist() == rows.to_pylist()


def test_a_long_table_comes_in_several_answers(headrace, tmp_path):
    wide = pa.table({"id": pa.array(range(3000), pa.int64()), "text": pa.array(["x" * 10_000] * 3000)})
    table = harness.write_parquet(wide, tmp_path / "wide.parquet")
    with harness.Server(headrace, tmp_path, "--load", f"{harness.TABLE}={table}") as server:
        with urllib.request.urlopen(f"http://{server.admin}{PATH}/t/data", timeout=60) as answer:
            text = answer.read()
        assert len(text) < 12 << 20
        client = bigquery.Client(PROJECT, credentials=AnonymousCredentials(), client_options=ClientOptions(api_endpoint=f"http://{server.admin}"))
        assert [row["id"] for row in client.list_rows(harness.TABLE)] == list(range(3000))
        client.close()
