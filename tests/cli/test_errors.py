"""What goes wrong before there are rows, and what is said of it: servers that are not there, options that planning finds wrong, damaged and missing files."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import MANIFEST, TABLE, assert_same_rows, make_table, read_result, start_headrace, wait_until, write_parquet

SRC = f"bq:{TABLE}"


@pytest.fixture(scope="module")
def table():
    return make_table(1_000, seed=13)


@pytest.fixture
def closed_port():
    """A port of this machine at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def error_of(run, *arguments, code=1, **options):
    return json.loads(run(*arguments, "--json", code=code, **options)[0])["error"]


# A service that is not there ---------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("what", ["refused", "no such name", "no TLS there", "no gRPC there"])
def test_a_service_that_never_answers_is_given_up_soon(serve, run, closed_port, table, tmp_path, what):
    server = serve({TABLE: table}) if what.startswith("no ") and "there" in what else None
    endpoint = {"refused": f"http://127.0.0.1:{closed_port}", "no such name": "http://nothing.invalid:9060"}.get(what)
    if endpoint is None:
        endpoint = f"https://{server.grpc}" if what == "no TLS there" else f"http://{server.admin}"
    options = ["--bigquery-storage-endpoint", endpoint, "--connect-limit", "2s"]
    if what == "no TLS there":
        options += ["--credentials", "none"]
    start = time.monotonic()
    error = error_of(run, "copy", SRC, f"{tmp_path}/out/", "--checkpoint", tmp_path / "job", *options)
    assert time.monotonic() - start < 20
    assert error["code"] == "UNAVAILABLE" and error["reason"] == "UNREACHABLE" and error["retryable"]
    for text in (endpoint.split("//")[1], "bigquery_storage_endpoint", "has not answered one of", "connect_limit", "Check host and port"):
        assert text in error["message"]
    assert not (tmp_path / "out").exists()
    # Nothing is kept, so the corrected command may use the same directory, and nobody is sent to resume.
    _, err = run("copy", SRC, f"{tmp_path}/out/", "--checkpoint", tmp_path / "job", *options, code=1)
    assert "headrace resume" not in err and "UNREACHABLE" in err


@pytest.mark.parametrize("verb", ["plan", "schema", "bench"])
def test_the_other_verbs_give_up_as_soon(run, closed_port, verb):
    options = ["--bigquery-storage-endpoint", f"http://127.0.0.1:{closed_port}", "--connect-limit", "500ms"]
    assert error_of(run, verb, SRC, *options, seconds=20)["reason"] == "UNREACHABLE"


def test_a_token_server_that_never_answers_is_given_up_as_soon(run, closed_port, tmp_path):
    user = {"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c", "token_uri": f"http://127.0.0.1:{closed_port}/token"}
    (tmp_path / "user.json").write_text(json.dumps(user))
    options = ["--credentials", tmp_path / "user.json", "--bigquery-storage-endpoint", f"https://127.0.0.1:{closed_port}", "--connect-limit", "1s"]
    error = error_of(run, "schema", SRC, *options, seconds=20)
    assert error["reason"] == "UNREACHABLE" and "token server" in error["message"] and "network" in error["message"]


def test_attempts_are_counted_while_planning_too(serve, run, table, tmp_path):
    server = serve({TABLE: table})
    server.set_faults({"method": "CreateReadSession", "action": {"status": {"code": "UNAVAILABLE", "message": "later"}}})
    error = error_of(run, "copy", SRC, f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--retry-max-attempts", 3, seconds=20)
    assert server.faults_fired() == [3]
    assert error["code"] == "UNAVAILABLE" and "3 attempts (retry_max_attempts)" in error["message"]


def test_a_service_that_answered_is_tried_for_longer(serve, run, table, tmp_path):
    server = serve({TABLE: table})
    server.set_faults({"method": "CreateReadSession", "times": 13, "action": {"status": {"code": "UNAVAILABLE", "message": "later"}}})
    run("copy", SRC, f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--connect-limit", "300ms")
    assert_same_rows(read_result(tmp_path / "out"), table)


def test_a_service_that_starts_a_little_later_is_waited_for(serve, headrace, table, tmp_path):
    server = serve({TABLE: table})
    server.stop()
    process = start_headrace(headrace, "copy", SRC, f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint)
    time.sleep(2)
    server.start()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert_same_rows(read_result(tmp_path / "out"), table)


def test_standard_error_is_ours_alone(headrace, closed_port, tmp_path):
    """gRPC has lines of its own where it finds no credentials; who wants them says so."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GOOGLE_", "GRPC_"))}
    environment |= {"HOME": str(tmp_path), "CLOUDSDK_CONFIG": str(tmp_path)}
    arguments = ["timeout", "60", headrace, "schema", SRC, "--bigquery-storage-endpoint", f"https://127.0.0.1:{closed_port}", "--connect-limit", "300ms"]

    def foreign_lines(**more):
        ended = subprocess.run([str(argument) for argument in arguments], env=environment | more, capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        return [line for line in ended.stderr.splitlines() if not line.startswith("headrace: ")]

    assert foreign_lines() == []
    assert foreign_lines(GRPC_VERBOSITY="DEBUG") != []


# Usage, whenever it is found ---------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("verb", ["copy", "plan", "schema", "bench"])
@pytest.mark.parametrize("name, content, says", [
    ("empty.ndjson", "", "give schema"),
    ("x.txt", "a,b\n1,2\n", "from_format"),
    ("x.zip", "PK", "unzip"),
])
def test_what_planning_finds_wrong_with_options_is_a_matter_of_usage(run, tmp_path, verb, name, content, says):
    (tmp_path / name).write_text(content)
    target = [f"{tmp_path}/out/"] if verb == "copy" else []
    assert says in error_of(run, verb, tmp_path / name, *target, code=2)["message"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments, says", [
    (["copy", SRC, "out/", "--max-stream-count", "-1"], "max_stream_count"),
    (["copy", SRC, "out/", "--max-stream-count", "1", "--preferred-min-stream-count", "2"], "preferred_min_stream_count"),
    (["copy", SRC, "out/", "--retry-max-attempts", "0"], "retry_max_attempts"),
    (["copy", SRC, "out/", "--bigquery-storage-endpoint", "http://nowhere"], "bigquery_storage_endpoint"),
    (["copy", SRC, "out/", "--bigquery-storage-endpoint", "http://h:1", "--credentials", "adc"], "credentials"),
    (["copy", SRC, "out/", "--readers", "-1"], "readers"),
    (["copy", SRC, "out/", "--memory-limit", "1"], "memory_limit"),
    (["copy", SRC, "out/", "--restart-attempts", "1"], "checkpoint"),
    (["copy", SRC, "out/", "--metrics-port", "70000"], "metrics-port"),
    (["copy", SRC, "out/", "--csv-null-value", "x"], "csv_null_value"),
    (["copy", SRC, "out.csv", "--max-file-bytes", "1MiB"], "max_file_bytes"),
    (["copy", SRC, "out.parquet", "--checkpoint", "job"], "checkpoint"),
    (["copy", "x.csv", "out/", "--max-rows-per-batch", "0"], "max_rows_per_batch"),
    (["copy", "x.csv", "out/", "--schema", "[{}]"], "schema"),
    (["copy", "x.csv", "out/", "--schema", "absent.json"], "absent.json"),
    (["plan", "x.csv", "--csv-header", "false"], "schema"),
    (["schema", "x.csv", "--arrow", "--json"], "--arrow or --json"),
    (["bench", "x.csv", "--readers", "100000"], "readers"),
    (["serve", "--load", "nothing"], "project.dataset.table=FILE"),
])
def test_print_config_checks_what_a_run_would(run, tmp_path, arguments, says):
    assert says in "".join(run(*arguments, "--print-config", code=2, cwd=tmp_path))
    assert os.listdir(tmp_path) == []


def test_print_config_of_a_resume_checks_what_it_would(run, table, tmp_path):
    path = write_parquet(table, tmp_path / "t.parquet")
    run("copy", path, f"{tmp_path}/out/", "--checkpoint", tmp_path / "job", "--fail-point", "finish.before", code=-9)
    assert "readers" in run("resume", tmp_path / "job", "--readers", "-3", "--print-config", code=2)[1]
    assert "metrics-port" in run("resume", tmp_path / "job", "--metrics-port", "70000", "--print-config", code=2)[1]
    assert "readers = 3" in run("resume", tmp_path / "job", "--readers", "3", "--print-config")[0]


def test_options_with_one_dash_are_shown_as_they_were_given(run, tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    for given, says in [("-f", "there is no option -f: options begin with two dashes"), ("-format", "did you mean --format?")]:
        _, err = run("copy", tmp_path / "x.csv", f"{tmp_path}/out/", given, "csv", code=2)
        assert says in err and "--f;" not in err


# Files of a result that are gone ------------------------------------------------------------------------------------------------------------------

def test_a_finished_job_whose_result_is_gone_says_so(run, table, tmp_path):
    path = write_parquet(table, tmp_path / "t.parquet")
    out, job = tmp_path / "out", tmp_path / "job"
    run("copy", path, f"{out}/", "--checkpoint", job)
    assert "is finished" in run("resume", job)[1]
    part = next(out.glob("part-*"))
    kept = part.read_bytes()
    part.write_bytes(kept[:-1])
    error = error_of(run, "resume", job)
    assert error["reason"] == "FILE_LOST" and part.name in error["message"] and "bytes long" in error["message"]
    part.unlink()
    error = error_of(run, "resume", job)
    assert error["reason"] == "FILE_LOST" and "gone" in error["message"]
    part.write_bytes(kept)
    assert json.loads(run("resume", job, "--json")[0])["outcome"] == "already_finished"
    (out / MANIFEST).unlink()
    assert MANIFEST in error_of(run, "resume", job)["message"]
    shutil.rmtree(out)
    error = error_of(run, "resume", job)
    assert error["reason"] == "FILE_LOST" and "start the copy anew" in error["message"]
    # Somebody else's result in its place is not this job's.
    run("copy", path, f"{out}/")
    assert "another job" in error_of(run, "resume", job)["message"]


def stopped_copy(serve, headrace, table, tmp_path, *options):
    """A copy of `table` that was stopped at a checkpoint -> (server, report of the stop)"""
    server = serve({TABLE: table}, "--message-rows", "50")
    process = start_headrace(headrace, "copy", SRC, f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--max-rows-per-batch", 50,
                             "--max-rows-per-second", 100, "--checkpoint", tmp_path / "job", *options)
    wait_until(lambda: any(stream["rows_sent"] for stream in server.counters()["streams"]), 30, "rows on their way")
    wait_until(lambda: list((tmp_path / "out").glob(".*part*")), 30, "rows in a part")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 4, err
    return server, out


def test_a_lost_file_is_told_before_anything_is_read(serve, headrace, run, table, tmp_path):
    server, _ = stopped_copy(serve, headrace, table, tmp_path)
    part = next((tmp_path / "out").glob("part-*"))
    kept = part.read_bytes()
    part.unlink()
    before = server.counters()["read_rows_calls"]
    error = error_of(run, "resume", tmp_path / "job", "--max-rows-per-second", 0)
    assert error["reason"] == "FILE_LOST" and part.name in error["message"] and "Put it back" in error["message"]
    assert server.counters()["read_rows_calls"] == before
    part.write_bytes(kept)
    run("resume", tmp_path / "job", "--max-rows-per-second", 0)
    assert_same_rows(read_result(tmp_path / "out"), table)


@pytest.mark.parametrize("how", [[], ["--json"]], ids=["text", "json"])
def test_the_report_of_a_stopped_copy_names_no_manifest(serve, headrace, run, table, tmp_path, how):
    _, out = stopped_copy(serve, headrace, table, tmp_path, *how)
    assert f"{tmp_path}/out/" in out and MANIFEST not in out
    assert not (tmp_path / "out" / MANIFEST).exists()
    assert MANIFEST in run("resume", tmp_path / "job", *how, "--max-rows-per-second", 0)[0]


def test_a_job_that_kept_nothing_sends_nobody_to_resume(run, tmp_path):
    _, err = run("copy", tmp_path / "absent.csv", f"{tmp_path}/out/", "--checkpoint", tmp_path / "job", code=1)
    assert "absent.csv does not exist" in err and "resume" not in err


# Files that cannot be read ------------------------------------------------------------------------------------------------------------------------

FORMATS = ["parquet", "arrow", "arrows", "avro", "csv", "ndjson"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("writer", [True, False], ids=["written", "silent"])
def test_a_pipe_in_place_of_a_file(run, tmp_path, kind, writer):
    pipe = tmp_path / f"p.{kind}"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK) if writer else None
    try:
        if writer:
            os.write(descriptor, b"a,b\n1,2\n")
        error = error_of(run, "schema", pipe, seconds=20)
    finally:
        if writer:
            os.close(descriptor)
    assert error["reason"] == "NOT_SEEKABLE" and "is a pipe" in error["message"] and "standard input (-)" in error["message"]
    assert "lseek" not in error["message"]


def flipped(content, begin, end):
    return content[:begin] + bytes(byte ^ 0xFF for byte in content[begin:end]) + content[end:]


DAMAGE = {
    "nothing in it": lambda content: b"",
    "half of it": lambda content: content[:len(content) // 2],
    "another format": lambda content: b"no such format at all\n",
    "its head": lambda content: flipped(content, 8, 40),
    "its end": lambda content: flipped(content, len(content) - 60, len(content) - 12),
}


@pytest.mark.parametrize("kind, damage", [(kind, damage) for kind in FORMATS[:4] for damage in DAMAGE if (kind, damage) != ("arrow", "its head")])
def test_damaged_files_say_what_to_do(run, tmp_path, kind, damage):
    """(An Arrow file's head says nothing that its end does not say again.)"""
    write_parquet(pa.table({"id": range(5_000), "name": [f"name {i}" for i in range(5_000)]}), tmp_path / "t.parquet")
    if kind != "parquet":
        run("copy", tmp_path / "t.parquet", tmp_path / f"t.{kind}")
    path = tmp_path / f"bad.{kind}"
    path.write_bytes(DAMAGE[damage]((tmp_path / f"t.{kind}").read_bytes()))
    error = error_of(run, "copy", path, tmp_path / "x.ndjson")
    assert str(path) in error["message"] and "\n" not in error["message"]
    if error["reason"] in ("UNREADABLE_FILE", "BAD_AVRO_DATA"):
        assert "damaged or cut short" in error["message"] and "from_format" in error["message"]
    else:  # bytes that make rows all the same
        assert error["reason"] in ("VALUE_DOES_NOT_FIT", "INVALID_AVRO_SCHEMA"), error


def test_directories_and_files_in_each_others_place(run, tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    (tmp_path / "d").mkdir()
    for arguments, says, reason in [
        (["copy", "x.csv", "o.csv", "--schema", "d"], "d: it is a directory, and a file is wanted", "INVALID_OPTION"),
        (["copy", "bq:p.d.t", "o.csv", "--ca-bundle", "d"], "ca_bundle", "IS_DIRECTORY"),
        (["resume", "x.csv"], "a directory is wanted", "NOT_A_DIRECTORY"),
        (["copy", "x.csv", "o/", "--checkpoint", "x.csv"], "a directory is wanted", "NOT_A_DIRECTORY"),
        (["copy", "x.csv", "o/", "--checkpoint", "x.csv/job"], "a directory is wanted", "NOT_A_DIRECTORY"),
        (["copy", "x.csv", "absent/o.csv"], "make that directory first", "NO_DIRECTORY"),
        (["copy", "x.csv", "x.csv/o.csv"], "is a file", "NO_DIRECTORY"),
        (["copy", "x.csv", "/dev/null"], "- for standard output", "NOT_A_DIRECTORY"),
    ]:
        error = error_of(run, *arguments, code=2 if reason == "INVALID_OPTION" else 1, cwd=tmp_path)
        assert error["reason"] == reason and says in error["message"], error
        assert error["code"] != "UNKNOWN"


def test_a_directory_as_standard_input(headrace, tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        ended = subprocess.run(["timeout", "30", str(headrace), "copy", "-", str(tmp_path / "x.csv"), "--from-format", "arrows", "--json"], stdin=descriptor,
                               capture_output=True, text=True, check=False)
    finally:
        os.close(descriptor)
    error = json.loads(ended.stdout)["error"]
    assert ended.returncode == 1 and "standard input" in error["message"] and error["reason"] == "IS_DIRECTORY"


def test_a_standard_input_that_is_closed(headrace, tmp_path):
    command = ["bash", "-c", '"$@" <&-', "bash", "timeout", "30", str(headrace), "copy", "-", str(tmp_path / "x.csv"), "--from-format", "arrows", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "standard input: it is closed" in json.loads(ended.stdout)["error"]["message"]


def test_a_table_that_cannot_be_loaded_is_named(run, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    (tmp_path / "bad.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-3])
    _, err = run("serve", "--load", f"a.b.c={tmp_path}/bad.parquet", code=1, seconds=20)
    assert "loading the table a.b.c" in err and "damaged" in err
