"""plan, schema, serve, version and help."""

import json
import os
import signal
import subprocess

import pytest

from harness import TABLE, make_table, start_headrace, wait_until, write_parquet


@pytest.fixture
def table():
    return make_table(3_000, seed=5)


def test_plan_shows_what_would_run_and_reads_nothing(serve, run, table, tmp_path):
    server = serve({TABLE: table})
    arguments = ["plan", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 3, "--selected-fields",
                 "NAME,id", "--row-restriction", "id > 5"]
    plan = json.loads(run(*arguments, "--json")[0])
    assert plan["streams"] == 3
    assert plan["options"]["row_restriction"] == "id > 5" and plan["options"]["selected_fields"] == "NAME,id"
    assert [field["name"] for field in plan["schema"]] == ["name", "id"]
    assert plan["destination"] == f"{tmp_path}/out/"
    assert plan["lineage"]["sources"][0]["name"] == TABLE and plan["lineage"]["destinations"][0]["namespace"] == "file"
    assert plan["lineage"]["boundedness"] == "bounded"
    assert "billed" in plan["cost"]
    out, _ = run(*arguments)
    for text in ("id > 5", "name", "INT64", "no row was read", f"{tmp_path}/out/"):
        assert text in out
    assert server.counters()["read_rows_calls"] == 0
    assert not (tmp_path / "out").exists()


def test_plan_shows_the_price_of_the_estimated_bytes(serve, run, table, tmp_path):
    server = serve({TABLE: table})
    arguments = ["plan", f"bq:{TABLE}", "--bigquery-storage-endpoint", server.endpoint]
    plan = json.loads(run(*arguments, "--json", "--price-per-tib", 2.5)[0])
    assert plan["estimated_bytes"] > 0 and plan["estimated_price"] == pytest.approx(plan["estimated_bytes"] / 2**40 * 2.5)
    assert "less than 0.01 at 2.5 per TiB" in run(*arguments, "--price-per-tib", 2.5)[0]
    assert f" {plan['estimated_bytes'] / 2**40 * 1e8:.2f} at " in run(*arguments, "--price-per-tib", "1e8")[0]
    assert json.loads(run(*arguments, "--json")[0])["estimated_price"] is None
    assert "give your price of a TiB read, --price-per-tib N" in run(*arguments)[0]
    assert "price_per_tib is -1" in run(*arguments, "--price-per-tib", -1, code=2)[1]
    (tmp_path / "x.csv").write_text("a\n1\n")
    assert "--price-per-tib does nothing here" in run("plan", tmp_path / "x.csv", "--price-per-tib", 1, code=2)[1]
    assert "estimated price" not in run("plan", tmp_path / "x.csv")[0]


def test_plan_fails_where_copy_would(serve, run, table, tmp_path):
    server = serve({TABLE: table})
    (tmp_path / "one.parquet").touch()
    run("plan", f"bq:{TABLE}", f"{tmp_path}/one.parquet", "--bigquery-storage-endpoint", server.endpoint, code=1)
    assert server.counters()["sessions_created"] == 0
    run("plan", f"bq:{TABLE}", "--format", "parquet", "--bigquery-storage-endpoint", server.endpoint, code=2)
    run("plan", "bq:test-project.data.nothing", "--bigquery-storage-endpoint", server.endpoint, code=1)


def test_schema_of_a_table_and_of_files(serve, run, table, tmp_path):
    server = serve({TABLE: table})
    where = ["--bigquery-storage-endpoint", server.endpoint]
    fields = json.loads(run("schema", f"bq:{TABLE}", "--json", *where)[0])
    assert [field["name"] for field in fields] == table.column_names
    by_name = {field["name"]: field for field in fields}
    assert by_name["amount"]["type"] == "NUMERIC" and by_name["tags"]["mode"] == "REPEATED"
    assert [field["name"] for field in by_name["place"]["fields"]] == ["lat", "label"]
    text = run("schema", f"bq:{TABLE}", *where)[0]
    assert "column" in text and "NUMERIC" in text and "  label" in text
    assert "decimal128(38, 9)" in run("schema", f"bq:{TABLE}", "--arrow", *where)[0]
    path = write_parquet(table, tmp_path / "t.parquet")
    assert json.loads(run("schema", path, "--json")[0]) == fields
    (tmp_path / "x.csv").write_text("a,b\n1,x\n2,y\n")
    assert [(f["name"], f["type"]) for f in json.loads(run("schema", tmp_path / "x.csv", "--json")[0])] == [("a", "INTEGER"), ("b", "STRING")]
    run("schema", path, "--row-restriction", "x", code=2)
    run("schema", path, "--arrow", "--json", code=2)
    run("schema", tmp_path / "nothing.parquet", code=1)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_serve_prints_its_addresses_and_ends_cleanly(headrace, table, tmp_path, how):
    path = write_parquet(table, tmp_path / "t.parquet")
    ready = tmp_path / "ready.json"
    process = start_headrace("timeout", "60", headrace, "serve", "--load", f"{TABLE}={path}", "--ready-file", ready)
    try:
        wait_until(lambda: ready.exists() or process.poll() is not None, 30, "the ready file")
        addresses = json.loads(ready.read_text())
        child = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True).stdout
        os.kill(int(child), how)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert addresses["grpc"] in out and addresses["admin"] in out and TABLE in out
    assert err == ""
    assert not [name for name in os.listdir(tmp_path) if "ready" in name], "it is gone with the service"


def test_serve_reads_csv_with_its_own_nulls(serve, run, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,x\nNA,NA\n")
    server = serve({TABLE: tmp_path / "x.csv"}, "--csv-null-values", "NA")
    fields = json.loads(run("schema", f"bq:{TABLE}", "--json", "--bigquery-storage-endpoint", server.endpoint)[0])
    assert [field["type"] for field in fields] == ["INTEGER", "STRING"]


@pytest.mark.parametrize("arguments, code, says", [
    (["--load", "nothing"], 2, "project.dataset.table=FILE"),
    (["--load", "p.d.t=absent.parquet"], 1, "absent.parquet"),
    (["--port", "70000"], 2, "port"),
    (["--faults", "absent.json"], 1, "absent.json"),
    (["--csv-null-values", "NA"], 2, "--csv-null-values does nothing here"),
    (["--csv-null-values", "NA", "--load", "p.d.t=x.parquet"], 2, "--csv-null-values does nothing here"),
    (["--csv-null-values", "NA", "--load", "p.d.t=x.parquet", "--load", "p.d.u=absent.csv"], 1, "absent.csv"),
    (["--bind-address", "nowhere"], None, "nowhere"),
    (["extra"], 2, "extra"),
])
def test_serve_refuses(run, tmp_path, arguments, code, says):
    write_parquet(make_table(10), tmp_path / "x.parquet")
    _, err = run("serve", *arguments, code=code, seconds=20, cwd=tmp_path)
    assert says in err


def test_version_and_the_overview(run):
    out, err = run("--version")
    assert run("version")[0] == out and err == ""
    for text in ("headrace", "Arrow", "gRPC", "fail points"):
        assert text in out
    assert "usage: headrace VERB" in run("--help")[0]
