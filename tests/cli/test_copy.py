"""`headrace copy` against `headrace serve`: what lands in the files equals the source, and whatever is refused is refused early, by name and with its code."""

import fcntl
import json
import os
import signal
import subprocess
import time
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import (MANIFEST, TABLE, Server, assert_manifest_is_true, assert_order_within_streams, assert_same_rows, make_table, manifest, plain,
                     read_result, start_headrace, wait_until, write_parquet)

ROWS = 6_000
EMPTY = "test-project.data.empty"
VIEW = "test-project.data.view"


@pytest.fixture(scope="module")
def table():
    return make_table(ROWS, seed=3)


@pytest.fixture(scope="module")
def server(headrace, table, tmp_path_factory):
    directory = tmp_path_factory.mktemp("server")
    full = write_parquet(table, directory / "t.parquet")
    empty = write_parquet(table.slice(0, 0), directory / "empty.parquet")
    with Server(headrace, directory, "--load", f"{TABLE}={full}", "--load", f"{EMPTY}={empty}", "--view", VIEW, "--message-rows", "250") as running:
        yield running


@pytest.fixture
def copy(run, server, tmp_path):
    """copy(*options, to="out/", source=TABLE) -> (path of the result, stdout, stderr)"""

    def start(*options, to="out/", source=TABLE, **more):
        out, err = run("copy", f"bq:{source}", f"{tmp_path}/{to}", "--bigquery-storage-endpoint", server.endpoint, *options, **more)
        return tmp_path / to, out, err

    return start


def assert_full_schema(result, expected):
    assert plain(result.slice(0, 0)).schema == plain(expected.slice(0, 0)).schema


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("streams", [1, 2, 8])
def test_every_value_arrives(copy, table, streams, compression):
    path, out, _ = copy("--max-stream-count", streams, "--compression", compression, "--json")
    report = json.loads(out)
    assert report["outcome"] == "done"
    assert report["rows_read"] == report["records_in"] == report["rows_written"] == ROWS
    assert report["splits"] == streams
    result = read_result(path)
    assert_same_rows(result, table)
    assert_order_within_streams(result, table)
    assert_manifest_is_true(path)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "none"])
def test_the_codec_of_the_files(copy, table, codec):
    path, _, _ = copy("--parquet-compression", codec)
    names = [entry["name"] for entry in manifest(path)["files"]]
    used = {pq.ParquetFile(path / name).metadata.row_group(0).column(0).compression for name in names}
    assert used == {{"none": "UNCOMPRESSED"}.get(codec, codec.upper())} or (codec == "lz4" and used <= {"LZ4", "LZ4_RAW"})
    assert_same_rows(read_result(path), table)


@pytest.mark.parametrize("to", ["b\udcff\udcfe/", "\udcff.parquet", "new\nline/", "%s {} \x1b[31m/"])
def test_paths_are_bytes(copy, table, to):
    """A report is JSON whatever the path is."""
    path, out, _ = copy("--json", to=to)
    assert json.loads(out)["outcome"] == "done"
    plain_name = path.rename(path.with_name("result"))  # pyarrow takes names in UTF-8 only
    assert_same_rows(read_result(plain_name), table)


def test_report_and_manifest_say_when_the_rows_were_so(copy):
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    path, out, _ = copy("--json")
    moment = json.loads(out)["facts"]["snapshot_time"]
    assert moment.endswith("Z") and before < datetime.fromisoformat(moment.replace("Z", "+00:00")) <= datetime.now(timezone.utc)
    assert manifest(path)["facts"]["snapshot_time"] == moment
    path, _, _ = copy("--snapshot-time", moment.replace("Z", "+00:00"), to="again/")
    assert manifest(path)["facts"]["snapshot_time"] == moment, "the time that was given"


def test_a_single_file(copy, table):
    path, out, _ = copy("--max-stream-count", 4, to="one.parquet")
    assert "6,000 rows" in out
    assert_same_rows(read_result(path), table)
    assert sorted(os.listdir(path.parent)) == ["one.parquet"], "a temporary file is left"


def test_ordered_keeps_every_row_in_its_place(copy, table):
    path, _, _ = copy("--ordered", to="one.parquet")
    assert plain(read_result(path)).equals(plain(table))


def test_ordered_files_are_in_the_order_of_the_rows(copy, table):
    """By the manifest and by name: readers of other makes know no manifest."""
    path, _, _ = copy("--ordered", "--max-file-bytes", "100KB")
    names = [entry["name"] for entry in manifest(path)["files"]]
    assert len(names) > 2 and names == sorted(names)
    assert plain(read_result(path)).equals(plain(table))


@pytest.mark.parametrize("fields", ["id,name", "name,id", "NAME,Id,FLAG", "place,id", "moment,civil,day,at_time,id"])
def test_projection_in_any_order_and_case(copy, table, fields):
    path, _, _ = copy("--selected-fields", fields, "--max-stream-count", 2)
    result = read_result(path)
    spelling = {name.lower(): name for name in table.column_names}
    wanted = [spelling[name.lower()] for name in fields.split(",")]
    assert result.column_names == wanted, "the order asked for, the table's spelling"
    assert_same_rows(result, table.select(wanted))


def test_a_restriction(copy, table):
    path, _, _ = copy("--row-restriction", "id >= 1000 AND id < 2000 AND Flag IS NOT NULL")
    keep = [1000 <= i < 2000 and flag is not None for i, flag in zip(table["id"].to_pylist(), table["Flag"].to_pylist())]
    assert_same_rows(read_result(path), table.filter(pa.array(keep)))


@pytest.mark.parametrize("arguments", [dict(source=EMPTY), dict(restriction="id < 0")], ids=["empty table", "no match"])
@pytest.mark.parametrize("to", ["out/", "one.parquet"])
def test_no_rows_still_give_every_column(copy, table, arguments, to):
    options = ["--row-restriction", arguments["restriction"]] if "restriction" in arguments else []
    path, out, _ = copy("--json", *options, to=to, source=arguments.get("source", TABLE))
    assert json.loads(out)["rows_written"] == 0
    if to.endswith("/"):
        assert manifest(path)["total_rows"] == 0
        names = [entry["name"] for entry in manifest(path)["files"]]
        result = pa.concat_tables([pq.ParquetFile(path / name).read() for name in names]) if names else None
        assert {field["name"] for field in manifest(path)["schema"]} == set(table.column_names)
    else:
        result = read_result(path)
    if result is not None:
        assert result.num_rows == 0
        assert_full_schema(result, table)


def test_zero_streams_and_one_empty_stream(serve, run, table, tmp_path):
    for streams in (0, 1):
        server = serve({TABLE: table.slice(0, 0)}, "--empty-table-streams", streams)
        out, _ = run("copy", f"bq:{TABLE}", f"{tmp_path}/{streams}.parquet", "--bigquery-storage-endpoint", server.endpoint, "--json")
        assert json.loads(out)["splits"] == streams
        result = read_result(tmp_path / f"{streams}.parquet")
        assert result.num_rows == 0
        assert_full_schema(result, table)


def test_the_endpoint_may_come_from_the_environment(run, server, table, tmp_path):
    environment = {**os.environ, "BIGQUERY_STORAGE_EMULATOR_HOST": server.grpc}
    _, err = run("copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--checkpoint", tmp_path / "job", env=environment)
    assert server.grpc in err and "BIGQUERY_STORAGE_EMULATOR_HOST" in err, "the endpoint in use is printed"
    assert_same_rows(read_result(tmp_path / "out"), table)


def test_standard_output_has_the_report_only(copy):
    _, out, err = copy("--quiet")
    assert out == "" and err == ""
    _, out, err = copy("--json", to="other/")
    report = json.loads(out)
    assert len(out.splitlines()) == 1
    assert report["lineage"]["sources"][0]["name"] == TABLE and report["lineage"]["sources"][0]["namespace"] == "bigquery"
    assert report["lineage"]["boundedness"] == "bounded"
    assert report["job_name"].startswith("headrace-copy-")
    lines = [json.loads(line) for line in err.splitlines()]
    assert lines[-1]["progress"]["rows"] == ROWS
    shares = [line["progress"]["fraction"] for line in lines if "progress" in line]
    assert shares == sorted(shares)


def test_job_names_are_stable(copy):
    names = [json.loads(copy("--json", "--overwrite")[1])["job_name"] for _ in range(2)]
    assert names[0] == names[1]
    assert json.loads(copy("--json", "--overwrite", "--job-name", "mine")[1])["job_name"] == "mine"


def test_the_checkpoint_holds_no_secret_and_only_names(copy, tmp_path):
    copy("--checkpoint", tmp_path / "job")
    content = b"".join(path.read_bytes() for path in (tmp_path / "job").iterdir() if path.is_file())
    assert TABLE.encode() in content and b"PRIVATE" not in content


# Refusals ---------------------------------------------------------------------------------------------------------------------------------------

SRC = f"bq:{TABLE}"


@pytest.mark.parametrize("arguments, code, says", [
    ([], 2, "a verb is missing"),
    (["move"], 2, "'move' is no verb"),
    (["copy"], 2, "needs SRC and DST"),
    (["copy", SRC, "out/", "--row-restrictions", "x"], 2, "did you mean --row-restriction?"),
    (["copy", SRC, "out/", "--load", "x"], 2, "only to: serve"),
    (["copy", SRC, "out/", "--readers", "many"], 2, "readers is 'many'"),
    (["copy", SRC, "out/", "--readers", "-1"], 2, "readers"),
    (["copy", SRC, "out/", "--max-rows-per-batch", "0"], 2, "max_rows_per_batch"),
    (["copy", SRC, "out/", "--max-stream-count", "1", "--preferred-min-stream-count", "2"], 2, "preferred_min_stream_count"),
    (["copy", SRC, "out/", "--credentials", "adc"], 2, "credentials"),
    (["copy", SRC, "out/", "--format", "orc"], 2, "orc"),
    (["copy", SRC, "out.orc"], 2, "orc"),
    (["copy", SRC, "out/", "--from-format", "csv"], 2, "applies to a file source"),
    (["copy", SRC, "out.parquet", "--checkpoint", "job"], 2, "directory"),
    (["copy", SRC, "gs://bucket/x"], 2, "Cloud Storage"),
    (["copy", "bt:p/i/t", "out/"], 2, "Bigtable"),
    (["copy", "bq:a.b.c d/e", "out/"], 2, "table"),
    (["copy", f"{SRC}$20240101", "out/"], 2, "$"),
    (["copy", SRC, "out/", "--query", "SELECT 1"], 2, "query"),
    (["copy", SRC, "out/", "--restart-attempts", "1"], 2, "checkpoint"),
    (["copy", f"bq:{VIEW}", "out/"], 1, "view"),
    (["copy", "bq:test-project.data.nothing", "out/"], 1, "nothing"),
    (["copy", SRC, "out/", "--selected-fields", "id,nope"], 2, "nope"),
    (["copy", SRC, "out/", "--row-restriction", "id >"], 1, ""),
    (["resume", "nowhere"], 1, "nowhere"),
])
def test_refusals(run, server, tmp_path, arguments, code, says):
    if arguments[:1] == ["copy"] and len(arguments) > 1:
        arguments = [*arguments, "--bigquery-storage-endpoint", server.endpoint]
    started = time.monotonic()
    out, err = run(*arguments, code=code, cwd=tmp_path)
    assert time.monotonic() - started < 10, "the first error comes within seconds"
    assert out == ""
    assert "headrace: " in err and says in err
    assert sorted(name for name in os.listdir(tmp_path) if name.startswith("out")) == [], "a refused copy leaves something behind"
    if not arguments or arguments == ["move"]:
        return
    out, err = run(*arguments, "--json", code=code, cwd=tmp_path)
    error = json.loads(out)["error"]
    assert error["code"] and error["message"] and says in error["message"]


def test_an_existing_target(copy, table, tmp_path):
    path, _, _ = copy("--row-restriction", "id < 10")
    before = sorted(os.listdir(path))
    _, out, err = copy(code=1)
    assert "overwrite" in err and sorted(os.listdir(path)) == before
    copy("--overwrite")
    assert_same_rows(read_result(path), table)
    assert_manifest_is_true(path)
    (tmp_path / "one.parquet").write_bytes(b"mine")
    copy(to="one.parquet", code=1)
    assert (tmp_path / "one.parquet").read_bytes() == b"mine"
    copy("--overwrite", to="one.parquet")
    assert_same_rows(read_result(tmp_path / "one.parquet"), table)


def test_a_server_that_is_not_there_is_said_at_once_and_a_signal_ends_the_wait(headrace, tmp_path):
    """A first answer is waited for as long as connect_limit says; the user learns why at once."""
    errors = tmp_path / "err"
    with open(errors, "w", encoding="utf-8") as err:
        process = start_headrace(headrace, "copy", SRC, f"{tmp_path}/out/", "--bigquery-storage-endpoint", "http://127.0.0.1:9", stderr=err)
        wait_until(lambda: "127.0.0.1:9 failed" in errors.read_text(), 10, "the first warning")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    assert process.returncode == 1
    assert "CANCELLED" in errors.read_text()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("checkpoint", ["out", "out/job", "./out/../out/job"])
def test_checkpoints_in_the_target_are_refused_and_nothing_is_left(run, server, table, tmp_path, monkeypatch, checkpoint, exists):
    monkeypatch.chdir(tmp_path)
    if exists:
        os.mkdir("out")
    options = ["--bigquery-storage-endpoint", server.endpoint]
    out, _ = run("copy", SRC, "out/", "--checkpoint", checkpoint, "--json", *options, code=2)
    assert json.loads(out)["error"]["resource"] == "checkpoint"
    assert os.listdir() == (["out"] if exists else []) and not (exists and os.listdir("out"))
    run("copy", SRC, "out/", "--checkpoint", "out.job", *options)
    assert_same_rows(read_result(tmp_path / "out"), table)


def test_a_refused_target_leaves_no_checkpoint_directory(run, server, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("mine")
    run("copy", SRC, f"{tmp_path}/out/", "--checkpoint", tmp_path / "a" / "b", "--bigquery-storage-endpoint", server.endpoint, code=1)
    assert os.listdir(tmp_path) == ["out"]


def test_a_resume_goes_on_in_the_same_directory_behind_a_link(run, server, table, tmp_path, monkeypatch):
    """link/.. is not where the link lies, and a resume may start elsewhere."""
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/deep")
    monkeypatch.chdir(tmp_path)
    run("copy", SRC, "link/../out/", "--checkpoint", "job", "--fail-point", "finish.before", "--bigquery-storage-endpoint", server.endpoint, code=-9)
    monkeypatch.chdir("/")
    run("resume", tmp_path / "job")
    assert_same_rows(read_result(tmp_path / "real" / "out"), table)
    assert not (tmp_path / "out").exists()


# Stopping ---------------------------------------------------------------------------------------------------------------------------------------

def slow_copy(headrace, server, tmp_path, *more):
    """A copy that would take about a minute, once rows are on their way."""
    process = start_headrace(headrace, "copy", SRC, f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--max-stream-count", 4,
                             "--max-rows-per-batch", "50", "--max-rows-per-second", "100", "--json", *more)
    wait_until(lambda: any(stream["rows_sent"] for stream in server.counters()["streams"]), 30, "rows on their way")
    return process


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_stops_at_a_checkpoint_and_resume_completes(headrace, serve, run, table, tmp_path, how):
    server = serve({TABLE: table}, "--message-rows", "250")
    job = tmp_path / "my job"
    process = slow_copy(headrace, server, tmp_path, "--checkpoint", job)
    wait_until(lambda: list((tmp_path / "out").glob(".*part*")), 30, "rows in a part")
    process.send_signal(how)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 4, err
    report = json.loads(out)
    assert report["outcome"] == "stopped" and 0 < report["rows_written"] < ROWS
    assert report["resume_command"] == f"headrace resume '{job}'"
    out, _ = run("resume", job, "--json", "--readers", "2", "--writers", "3", "--max-rows-per-second", "0")
    resumed = json.loads(out)
    assert resumed["outcome"] == "done" and resumed["resumed"] and resumed["rows_written"] == ROWS
    assert_same_rows(read_result(tmp_path / "out"), table)
    assert_manifest_is_true(tmp_path / "out")
    assert server.counters()["sessions_created"] == 1

    _, err = run("resume", job)
    assert "is finished" in err
    assert json.loads(run("resume", job, "--json")[0])["outcome"] == "already_finished"


@pytest.mark.parametrize("gap", [0.02, 0.1])
def test_two_signals_of_one_wish_are_a_stop_at_a_checkpoint(headrace, serve, table, tmp_path, gap):
    """Also when the second one comes after the job has stopped and before the program has ended."""
    server = serve({TABLE: table}, "--message-rows", "250")
    process = slow_copy(headrace, server, tmp_path, "--checkpoint", tmp_path / "job")
    process.send_signal(signal.SIGINT)
    time.sleep(gap)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 4, err
    assert json.loads(out)["outcome"] == "stopped"


def test_a_signal_without_checkpoint_leaves_nothing(headrace, serve, table, tmp_path):
    server = serve({TABLE: table}, "--message-rows", "250")
    process = slow_copy(headrace, server, tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1, err
    assert json.loads(out)["error"]["code"] == "CANCELLED"
    assert not (tmp_path / "out").exists() or os.listdir(tmp_path / "out") == []


def test_a_second_signal_stops_at_once_and_resume_still_completes(headrace, serve, run, table, tmp_path):
    server = serve({TABLE: table}, "--message-rows", "250")
    process = slow_copy(headrace, server, tmp_path, "--checkpoint", tmp_path / "job", "--checkpoint-interval", "200ms")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)  # closer together they count as one
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode in (1, 4)  # 4 when the checkpoint was quicker than the second signal
    run("resume", tmp_path / "job", "--max-rows-per-second", "0")
    assert_same_rows(read_result(tmp_path / "out"), table)


def test_signals_count_though_nobody_reads_standard_error(headrace, serve, run, table, tmp_path):
    server = serve({TABLE: table}, "--message-rows", "250")
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen([headrace, "copy", SRC, f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--max-rows-per-batch", "50",
                                "--max-rows-per-second", "100", "--checkpoint", tmp_path / "job", "--checkpoint-interval", "200ms"],
                               stdout=subprocess.DEVNULL, stderr=writing)
    try:
        wait_until(lambda: any(stream["rows_sent"] for stream in server.counters()["streams"]), 30, "rows on their way")
        full = os.open(f"/proc/self/fd/{writing}", os.O_WRONLY | os.O_NONBLOCK)  # an opening of its own: only we do not wait
        with pytest.raises(BlockingIOError):
            while True:
                os.write(full, b".")
        for _ in range(10):
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)  # closer together they count as one
        assert process.wait(timeout=10) in (1, 4)
        os.close(full)
    finally:
        process.kill()
        process.wait()
        os.close(reading)
        os.close(writing)
    run("resume", tmp_path / "job", "--max-rows-per-second", "0")
    assert_same_rows(read_result(tmp_path / "out"), table)


def test_resume_refuses_what_is_fixed_and_what_is_held(headrace, serve, run, table, tmp_path):
    server = serve({TABLE: table}, "--message-rows", "250")
    job = tmp_path / "job"
    process = slow_copy(headrace, server, tmp_path, "--checkpoint", job)
    out, _ = run("resume", job, "--json", code=1, seconds=20)
    assert json.loads(out)["error"]["reason"] == "LOCKED"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 4
    for option in (["--row-restriction", "id > 5"], ["--overwrite"], ["--job-name", "x"], ["--checkpoint", "x"], ["--compression", "lz4"]):
        _, err = run("resume", job, *option, code=2)
        assert option[0] in err and "fixed when a job starts" in err
    _, err = run("copy", SRC, f"{tmp_path}/other/", "--bigquery-storage-endpoint", server.endpoint, "--checkpoint", job, code=1)
    assert "esume" in err, "a new job in a used checkpoint directory"
    newest = max((path for path in job.iterdir() if path.is_file() and path.stat().st_size > 100), key=lambda path: path.stat().st_mtime_ns)
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    out, _ = run("resume", job, "--json", code=1)
    assert json.loads(out)["error"]["code"] == "DATA_LOSS"


def test_resume_from_another_directory_and_endpoint(headrace, serve, run, table, tmp_path):
    server = serve({TABLE: table}, "--message-rows", "250")
    (tmp_path / "here").mkdir()
    process = start_headrace(headrace, "copy", SRC, "out/", "--bigquery-storage-endpoint", server.endpoint, "--max-rows-per-second", "100",
                             "--max-rows-per-batch", "50", "--checkpoint", "job", "--quiet", cwd=tmp_path / "here")
    wait_until(lambda: any(stream["rows_sent"] for stream in server.counters()["streams"]), 30, "rows on their way")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 4 and "headrace resume job" in err
    other = serve({TABLE: tmp_path / "server-0" / "0.parquet"}, "--message-rows", "250")
    run("resume", tmp_path / "here" / "job", "--bigquery-storage-endpoint", other.endpoint, "--max-rows-per-second", "0", cwd="/")
    assert_same_rows(read_result(tmp_path / "here" / "out"), table)


def test_output_that_cannot_be_written_is_a_failure(run, server, tmp_path):
    with open("/dev/full", "w", encoding="ascii") as full:
        run("copy", SRC, f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, stdout=full, code=1)
    assert (tmp_path / "out" / MANIFEST).exists(), "only the report is lost"
