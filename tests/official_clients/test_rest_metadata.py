"""Google's BigQuery client for Python makes, lists, describes, changes and deletes datasets and tables of `headrace serve`."""

import datetime
import json
import urllib.error
import urllib.request

import pytest
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

import harness

PROJECT = "test-project"
SECONDS = 20


@pytest.fixture(scope="module")
def server(headrace, tmp_path_factory):
    directory = tmp_path_factory.mktemp("rest")
    table = harness.write_parquet(harness.make_table(50), directory / "t.parquet")
    with harness.Server(headrace, directory, "--load", f"{harness.TABLE}={table}", "--view", f"{PROJECT}.data.v") as running:
        yield running


@pytest.fixture
def client(server):
    made = bigquery.Client(PROJECT, credentials=AnonymousCredentials(), client_options=ClientOptions(api_endpoint=f"http://{server.admin}"))
    yield made
    for dataset in made.list_datasets():
        if dataset.dataset_id != "data":
            made.delete_dataset(dataset.reference, delete_contents=True)
    made.close()


FIELDS = [
    bigquery.SchemaField("id", "INTEGER", mode="REQUIRED", description="the key"),
    bigquery.SchemaField("name", "STRING", max_length=40),
    bigquery.SchemaField("amount", "NUMERIC", precision=20, scale=4),
    bigquery.SchemaField("at", "TIMESTAMP"),
    bigquery.SchemaField("tags", "STRING", mode="REPEATED"),
    bigquery.SchemaField("place", "RECORD", fields=[bigquery.SchemaField("lat", "FLOAT"), bigquery.SchemaField("notes", "JSON", mode="REPEATED")]),
    bigquery.SchemaField("span", "RANGE", range_element_type="DATE"),
    bigquery.SchemaField("gap", "INTERVAL"),
]


def test_datasets_are_made_listed_changed_and_deleted(client):
    wanted = bigquery.Dataset(f"{PROJECT}.sales")
    wanted.description = "orders"
    wanted.friendly_name = "Sales"
    wanted.labels = {"team": "a", "tier": "gold"}
    wanted.location = "EU"
    wanted.default_table_expiration_ms = 3_600_000
    made = client.create_dataset(wanted)
    assert (made.full_dataset_id, made.location, made.description, made.labels) == (f"{PROJECT}:sales", "EU", "orders", {"team": "a", "tier": "gold"})
    assert abs(made.created - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(seconds=60)
    assert [entry.entity_type for entry in made.access_entries] == ["specialGroup"] * 3
    assert client.get_dataset("sales").etag == made.etag
    assert {dataset.dataset_id for dataset in client.list_datasets()} == {"data", "sales"}
    assert [dataset.dataset_id for dataset in client.list_datasets(filter="labels.team:a labels.tier")] == ["sales"]
    assert list(client.list_datasets(filter="labels.team:b")) == []

    made.description = None
    made.labels["tier"] = None
    made.labels["more"] = "yes"
    changed = client.update_dataset(made, ["description", "labels"])
    assert (changed.description, changed.labels, changed.friendly_name) == (None, {"team": "a", "more": "yes"}, "Sales")
    assert changed.etag != made.etag
    with pytest.raises(exceptions.PreconditionFailed):  # `made` has the etag of before
        client.update_dataset(made, ["labels"])

    table = client.create_table(bigquery.Table(f"{PROJECT}.sales.t", FIELDS))
    assert datetime.timedelta(minutes=59) < table.expires - datetime.datetime.now(datetime.timezone.utc) <= datetime.timedelta(hours=1)
    with pytest.raises(exceptions.BadRequest, match="Dataset test-project:sales is still in use"):
        client.delete_dataset("sales")
    client.delete_dataset("sales", delete_contents=True)
    with pytest.raises(exceptions.NotFound, match="Not found: Dataset test-project:sales"):
        client.get_dataset("sales")
    client.delete_dataset("sales", not_found_ok=True)


def test_a_table_is_described_as_it_was_made(client):
    client.create_dataset("made")
    wanted = bigquery.Table(f"{PROJECT}.made.t", FIELDS)
    wanted.description = "all of it"
    wanted.friendly_name = "T"
    wanted.labels = {"a": "b"}
    wanted.expires = datetime.datetime(2100, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    wanted.time_partitioning = bigquery.TimePartitioning(type_="DAY", field="at", expiration_ms=86_400_000)
    wanted.require_partition_filter = True
    wanted.clustering_fields = ["id", "name"]
    wanted.table_constraints = bigquery.table.TableConstraints(bigquery.table.PrimaryKey(["id"]), None)
    client.create_table(wanted)
    made = client.get_table(wanted.reference)
    assert made.schema == FIELDS
    for name in ("description", "friendly_name", "labels", "expires", "time_partitioning", "require_partition_filter", "clustering_fields"):
        assert getattr(made, name) == getattr(wanted, name), name
    assert made.table_constraints.primary_key.columns == ["id"]
    assert (made.table_type, made.num_rows, made.full_table_id) == ("TABLE", 0, f"{PROJECT}:made.t")
    listed = {table.table_id: table for table in client.list_tables("made")}
    assert listed["t"].time_partitioning.field == "at" and listed["t"].labels == {"a": "b"}
    with pytest.raises(exceptions.Conflict, match="Already Exists: Table test-project:made.t"):
        client.create_table(wanted)
    assert client.create_table(wanted, exists_ok=True).schema == FIELDS

    ranged = bigquery.Table(f"{PROJECT}.made.r", FIELDS)
    ranged.range_partitioning = bigquery.RangePartitioning(range_=bigquery.PartitionRange(0, 100, 10), field="id")
    assert client.create_table(ranged).range_partitioning == ranged.range_partitioning
    client.delete_table(wanted)
    with pytest.raises(exceptions.NotFound, match="Not found: Table test-project:made.t"):
        client.get_table(wanted.reference)


def test_a_loaded_table_has_its_schema_and_counts(client):
    table = client.get_table(harness.TABLE)
    assert table.num_rows == 50 and table.num_bytes > 50 * 50
    assert {field.name: (field.field_type, field.mode) for field in table.schema}["tags"] == ("STRING", "REPEATED")
    assert [field.name for field in table.schema if field.field_type == "RECORD"] == ["place"]


def test_views_are_stored(client):
    client.create_dataset("views")
    view = bigquery.Table(f"{PROJECT}.views.v")
    view.view_query = "SELECT 1 AS x"
    made = client.create_table(view)
    assert (made.table_type, made.view_query, made.view_use_legacy_sql) == ("VIEW", "SELECT 1 AS x", False)
    made.view_query = "SELECT 2 AS x"
    assert client.update_table(made, ["view_query"]).view_query == "SELECT 2 AS x"
    assert client.get_table(f"{PROJECT}.data.v").table_type == "VIEW"
    assert [table.table_type for table in client.list_tables("views")] == ["VIEW"]


def test_pages_of_lists(client):
    client.create_dataset("paged")
    for i in range(7):
        client.create_table(bigquery.Table(f"{PROJECT}.paged.t{i}", FIELDS[:1]))
    pages = [[table.table_id for table in page] for page in client.list_tables("paged", page_size=3).pages]
    assert pages == [["t0", "t1", "t2"], ["t3", "t4", "t5"], ["t6"]]
    assert len(list(client.list_tables("paged", max_results=5))) == 5
    assert [[d.dataset_id for d in page] for page in client.list_datasets(page_size=1).pages] == [["data"], ["paged"]]


def test_a_schema_changes_as_the_service_allows(client):
    client.create_dataset("changed")
    table = client.create_table(bigquery.Table(f"{PROJECT}.changed.t", FIELDS))
    relaxed = bigquery.SchemaField("id", "INTEGER", description="no longer required")
    place = bigquery.SchemaField("place", "RECORD", fields=[*FIELDS[5].fields, bigquery.SchemaField("lon", "FLOAT")])
    table.schema = [relaxed, *FIELDS[1:5], place, *FIELDS[6:], bigquery.SchemaField("extra", "DATE"), bigquery.SchemaField("list", "DATE", mode="REPEATED")]
    assert client.update_table(table, ["schema"]).schema == table.schema
    assert client.get_table(table).schema == table.schema

    def refused(text, schema):
        broken = client.get_table(table)
        broken.schema = schema
        with pytest.raises(exceptions.BadRequest, match="Provided Schema does not match Table test-project:changed.t. " + text):
            client.update_table(broken, ["schema"])

    good = table.schema
    refused("Field name is missing in new schema", [good[0], *good[2:]])
    refused("Field name has changed type from STRING to BYTES", [good[0], bigquery.SchemaField("name", "BYTES"), *good[2:]])
    refused("Field id has changed mode from NULLABLE to REQUIRED", [FIELDS[0], *good[1:]])
    refused(r"Cannot add required fields to an existing schema. \(field: new\)", [*good, bigquery.SchemaField("new", "DATE", mode="REQUIRED")])
    refused("Field place.lat is missing in new schema", [*good[:5], bigquery.SchemaField("place", "RECORD", fields=[place.fields[2]]), *good[6:]])
    assert client.get_table(table).schema == good


def test_only_the_given_properties_change(client):
    client.create_dataset("patched")
    table = bigquery.Table(f"{PROJECT}.patched.t", FIELDS)
    table.description = "first"
    table.labels = {"keep": "1"}
    table = client.create_table(table)
    table.description = "second"
    table.labels = {"not": "sent"}
    changed = client.update_table(table, ["description"])
    assert (changed.description, changed.labels, changed.schema) == ("second", {"keep": "1"}, FIELDS)
    table.description = "third"
    with pytest.raises(exceptions.PreconditionFailed):
        client.update_table(table, ["description"])
    changed.time_partitioning = bigquery.TimePartitioning(field="at")
    with pytest.raises(exceptions.BadRequest, match="Cannot convert non partitioned/clustered table"):
        client.update_table(changed, ["time_partitioning"])
    changed.description = None
    assert client.update_table(changed, ["description"]).description is None


@pytest.mark.parametrize("text, change", [
    ("cannot be found in the schema", lambda table: setattr(table, "clustering_fields", ["nope"])),
    ("cannot be found in the schema", lambda table: setattr(table, "time_partitioning", bigquery.TimePartitioning(field="nope"))),
    ("can only be of type TIMESTAMP, DATE or DATETIME", lambda table: setattr(table, "time_partitioning", bigquery.TimePartitioning(field="id"))),
    ("Invalid table ID", lambda table: table._properties["tableReference"].update(tableId="a.b")),
    ("Unknown name \"nonsense\"", lambda table: table._properties.update(nonsense=1)),
    ("Invalid value at 'table.labels.x'", lambda table: table._properties.update(labels={"x": 1})),
    ("schema, field id: unknown type 'NOPE'", lambda table: table._properties.update(schema={"fields": [{"name": "id", "type": "NOPE"}]})),
])
def test_wrong_tables_are_refused(client, text, change):
    table = bigquery.Table(f"{PROJECT}.data.wrong", FIELDS)
    change(table)
    with pytest.raises(exceptions.BadRequest, match=text):
        client.create_table(table)


@pytest.mark.parametrize("what, call", [
    ("jobs", lambda client: client.query("SELECT 1", retry=None, job_retry=None).result(timeout=SECONDS)),
    ("tabledata.insertAll", lambda client: client.insert_rows_json(harness.TABLE, [{"id": 1}], retry=None)),
    ("routines", lambda client: list(client.list_routines("data", retry=None))),
    ("models", lambda client: list(client.list_models("data", retry=None))),
    ("the list of projects", lambda client: list(client.list_projects(retry=None))),
    ("uploads", lambda client: client.load_table_from_json([{"id": 1}], harness.TABLE).result(timeout=SECONDS)),
])
def test_what_is_not_served_says_so(client, what, call):
    with pytest.raises(exceptions.MethodNotImplemented, match=f"does not serve .*{what}"):
        call(client)


def ask(server, method, path, body=None, **headers):
    request = urllib.request.Request(f"http://{server.admin}{path}", data=body, method=method, headers={"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def test_service_account(client):
    assert client.get_service_account_email().endswith("gserviceaccount.com")


def test_the_shape_of_answers(server):
    for prefix in ("/bigquery/v2", ""):
        status, answer = ask(server, "GET", f"{prefix}/projects/{PROJECT}/datasets/none?prettyPrint=false&alt=json&fields=id")
        assert status == 404
        message = f"Not found: Dataset {PROJECT}:none"
        assert answer == {"error": {"code": 404, "message": message, "status": "NOT_FOUND",
                                    "errors": [{"message": message, "domain": "global", "reason": "notFound"}]}}
    status, table = ask(server, "GET", f"/bigquery/v2/projects/{PROJECT}/datasets/data/tables/t")
    assert (status, table["kind"], table["numRows"]) == (200, "bigquery#table", "50")
    assert table["selfLink"] == f"http://{server.admin}/bigquery/v2/projects/{PROJECT}/datasets/data/tables/t"
    assert ask(server, "GET", f"/bigquery/v2/projects/{PROJECT}/datasets/data/tables/t", **{"If-None-Match": table["etag"]})[0] == 304
    path = f"/bigquery/v2/projects/{PROJECT}/datasets/data"
    assert ask(server, "POST", path, b'{"description": "x"}', **{"X-HTTP-Method-Override": "PATCH"})[1]["description"] == "x"
    assert ask(server, "PATCH", path, b"{nonsense")[1]["error"]["errors"][0]["reason"] == "parseError"
    assert ask(server, "PATCH", path, b"[" * 100_000)[0] == 400
    assert ask(server, "GET", "/nothing/here")[0] == 404
    assert ask(server, "PATCH", path, b'{"description": null}')[0] == 200
