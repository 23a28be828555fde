"""--config and --print-config with the real program: a copy by a file, the command line over it, resume, and what goes wrong."""

import json
import os
import tomllib

import pytest

import canary
from harness import TABLE, make_table, plain, read_result, write_parquet


@pytest.fixture
def table():
    return make_table(2_000, seed=9)


def test_a_copy_by_a_file_with_the_command_line_over_it(serve, run, table, tmp_path):
    server = serve({TABLE: table})
    (tmp_path / "copy.toml").write_text(f"""
        # what is read
        selected-fields = ["id", "name"]
        row_restriction = "id >= 1000"
        bigquery-storage-endpoint = "{server.endpoint}"
        max-stream-count = 2
        parquet-compression = "none"
        json = true
    """)
    report = json.loads(run("copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--config", tmp_path / "copy.toml", "--row-restriction", "id < 10")[0])
    assert report["rows_written"] == 10
    assert plain(read_result(tmp_path / "out")).sort_by("id").equals(plain(table.select(["id", "name"]).slice(0, 10)))
    # A flag of the file is turned off, and JSON says the same as TOML.
    (tmp_path / "copy.json").write_text(json.dumps(tomllib.loads((tmp_path / "copy.toml").read_text())))
    out, _ = run("copy", f"bq:{TABLE}", f"{tmp_path}/other/", "--config", tmp_path / "copy.json", "--json=false")
    assert "1,000 rows" in out
    assert len(read_result(tmp_path / "other")) == 1000


def test_relative_paths_start_from_the_working_directory(run, tmp_path):
    for place in ("here", "conf"):
        (tmp_path / place).mkdir()
    (tmp_path / "here" / "x.csv").write_text("1,x\n")
    (tmp_path / "here" / "s.json").write_text('[{"name": "a", "type": "INTEGER"}, {"name": "b", "type": "STRING"}]')
    (tmp_path / "conf" / "c.toml").write_text('schema = "s.json"\ncsv-header = false\njson = true\n')
    fields = json.loads(run("schema", "x.csv", "--config", "../conf/c.toml", cwd=tmp_path / "here")[0])
    assert [field["name"] for field in fields] == ["a", "b"]
    error = json.loads(run("schema", "../here/x.csv", "--config", "c.toml", cwd=tmp_path / "conf", code=2)[0])["error"]
    assert "schema names the file 's.json', which does not exist" in error["message"]


def test_resume_takes_from_a_file_what_it_takes_on_its_command_line(serve, run, table, tmp_path):
    server = serve({TABLE: table})
    (tmp_path / "copy.toml").write_text(f'bigquery-storage-endpoint = "{server.endpoint}"\nreaders = 1\nwriters = 1\ncheckpoint = "{tmp_path}/c.job"\n')
    run("copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--config", tmp_path / "copy.toml", "--fail-point", "commit.before", code=-9)
    # What is fixed when a job starts is refused as on the command line, also as a flag that is off.
    for name, content, key in [("format.toml", 'format = "csv"', "--format"), ("overwrite.json", '{"overwrite": false}', "--overwrite"),
                               ("copy.toml", None, "--checkpoint")]:
        if content:
            (tmp_path / name).write_text(content)
        _, err = run("resume", tmp_path / "c.job", "--config", tmp_path / name, code=2)
        assert f"{name}:" in err and f"{key} is fixed when a job starts" in err
    (tmp_path / "resume.toml").write_text("readers = 3\nwriters = 2\njson = true\n")
    printed = tomllib.loads(run("resume", tmp_path / "c.job", "--config", tmp_path / "resume.toml", "--writers", 4, "--print-config")[0])
    assert printed == {"bigquery-storage-endpoint": server.endpoint, "readers": 3, "writers": 4, "json": True}
    assert not (tmp_path / "out" / "_headrace_manifest.json").exists()
    report = json.loads(run("resume", tmp_path / "c.job", "--config", tmp_path / "resume.toml")[0])
    assert report["rows_written"] == len(table)
    assert plain(read_result(tmp_path / "out")).sort_by("id").equals(plain(table))


def test_a_job_that_started_by_a_file_goes_on_without_it(serve, run, table, tmp_path):
    server = serve({TABLE: table})
    (tmp_path / "copy.json").write_text(json.dumps({"bigquery-storage-endpoint": server.endpoint, "selected-fields": ["id"], "checkpoint": f"{tmp_path}/c.job"}))
    run("copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--config", tmp_path / "copy.json", "--fail-point", "commit.before", code=-9)
    (tmp_path / "copy.json").unlink()
    run("resume", tmp_path / "c.job")
    assert read_result(tmp_path / "out").column_names == ["id"]


def test_serve_by_a_file(serve, run, table, tmp_path):
    write_parquet(table, tmp_path / "t.parquet")
    (tmp_path / "serve.toml").write_text(f'load = ["{TABLE}={tmp_path}/t.parquet", "{TABLE}2={tmp_path}/t.parquet"]\nmessage-rows = 100\n')
    server = serve({}, "--config", tmp_path / "serve.toml")
    for name in (TABLE, f"{TABLE}2"):
        assert "amount" in run("schema", f"bq:{name}", "--bigquery-storage-endpoint", server.endpoint)[0]


def test_print_config_reads_back_to_the_same_and_does_nothing_else(run, table, tmp_path):
    write_parquet(table, tmp_path / "t.parquet")
    arguments = ["copy", tmp_path / "t.parquet", f"{tmp_path}/out/", "--selected-fields", "id,name", "--overwrite", "--memory-limit", "1.5GiB", "--readers", 2,
                 "--csv-null-value", 'a #b\\', "--format", "csv", "--checkpoint", "c.job"]
    first, err = run(*arguments, "--print-config", cwd=tmp_path)
    assert err == ""
    assert tomllib.loads(first) == {"selected-fields": ["id", "name"], "overwrite": True, "memory-limit": "1.5GiB", "readers": 2, "csv-null-value": 'a #b\\',
                                    "format": "csv", "checkpoint": "c.job"}
    assert "\n# threads that write, each its own file (default: 0 (automatic))\n# writers = " in first
    (tmp_path / "first.toml").write_text(first)
    assert run("copy", "--config", tmp_path / "first.toml", "--print-config")[0] == first
    assert sorted(os.listdir(tmp_path)) == ["first.toml", "t.parquet"]
    # Also where standard output would hold data, and before the JSON of a report.
    assert tomllib.loads(run("copy", tmp_path / "t.parquet", "-", "--format", "csv", "--json", "--print-config")[0]) == {"format": "csv", "json": True}
    # With addresses the options are checked against them.
    run("copy", tmp_path / "t.parquet", f"{tmp_path}/out/", "--row-restriction", "x", "--print-config", code=2)
    assert tomllib.loads(run("copy", "--row-restriction", "x", "--print-config")[0]) == {"row-restriction": "x"}
    for verb in ("plan", "schema", "serve", "resume"):
        assert tomllib.loads(run(verb, "--print-config")[0]) == {}


def test_print_config_prints_no_secret(run, tmp_path):
    for value in (canary.TOKEN, json.dumps(canary.service_account())):
        for more in ([], [f"bq:{TABLE}", f"{tmp_path}/out/"]):
            _, err = run("copy", *more, "--credentials", value, "--print-config", code=2)
            assert "credentials holds a key or token itself" in err
    assert tomllib.loads(run("copy", "--credentials", f"token:{canary.TOKEN_VARIABLE}", "--print-config")[0]) == {"credentials": f"token:{canary.TOKEN_VARIABLE}"}


@pytest.mark.parametrize("name, content, says", [
    ("c.toml", b"readers = 1\nreadres = 2\n", 'c.toml:2: key "readres": there is no option --readres, did you mean --readers?'),
    ("c.toml", b"readers = 1\nreaders = 2\n", "line 2"),
    ("c.json", b'{"readers": 1,\n "readers": 2}', 'c.json:2: key "readers": it is given already in line 1'),
    ("c.toml", b"max-stream-count = 1\nmax_stream_count = 1\n", 'c.toml:2: key "max_stream_count": it is given already in line 1'),
    ("c.toml", b'readers = "four"\n', 'c.toml:1: key "readers": the value is a string: give a whole number'),
    ("c.toml", b"port = 1\n", "--port does not apply to copy, only to: serve"),
    ("c.toml", b"# caf\xe9\n", "line 1: it is not UTF-8"),
    ("c.toml", b"#" * (1 << 20) + b"#", "larger than 1 MiB"),
    ("c.yaml", b"readers: 1\n", "ends in .toml or .json"),
    ("c.toml", None, "c.toml"),
])
def test_what_is_wrong_with_a_file_is_a_matter_of_usage(run, tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    out, err = run("copy", "in.csv", "out/", "--config", name, cwd=tmp_path, code=2)
    assert out == "" and name in err and says in err
    report = json.loads(run("copy", "in.csv", "out/", "--config", name, "--json", cwd=tmp_path, code=2)[0])
    assert report["error"]["code"] in ("INVALID_ARGUMENT", "UNIMPLEMENTED") and name in report["error"]["message"]
    assert os.listdir(tmp_path) == ([name] if content is not None else [])
