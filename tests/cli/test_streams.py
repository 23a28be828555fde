"""What the program does when nobody reads what it says: a copy goes on, a report that is lost is a failure, and no file gets the messages."""

import os
import subprocess

import pyarrow.parquet as pq
import pytest

from harness import TABLE, assert_manifest_is_true, assert_same_rows, make_table, read_result

ROWS = 2_000


@pytest.fixture(scope="module")
def table():
    return make_table(ROWS, seed=8)


@pytest.fixture
def copy(headrace, serve, table, tmp_path):
    """copy(redirections, *options) runs a copy under a shell with them -> (exit code, path of the result, standard output)"""
    server = serve({TABLE: table}, "--message-rows", "250")

    def start(redirections, *options):
        # Slow enough for a line of progress each second with --json.
        arguments = ["timeout", "60", headrace, "copy", f"bq:{TABLE}", f"{tmp_path}/out/", "--bigquery-storage-endpoint", server.endpoint, "--checkpoint",
                     f"{tmp_path}/job", "--checkpoint-interval", "200ms", "--max-rows-per-batch", "100", "--max-rows-per-second", "1500", *options]
        # 3 is a pipe whose reader is gone.
        ended = subprocess.run(["bash", "-c", f'exec 3> >(true); wait $!; "$@" {redirections} 3>&-; exit ${{PIPESTATUS[0]}}', "bash", *map(str, arguments)], capture_output=True, text=True,
                               check=False)
        return ended.returncode, tmp_path / "out", ended.stdout

    return start


def assert_complete(path, table):
    assert_manifest_is_true(path)
    assert_same_rows(read_result(path), table)


@pytest.mark.parametrize("redirections", ["2>&-", "2>/dev/full", "2>&3", "0<&- 2>&-"], ids=["closed", "full", "reader gone", "input too"])
def test_messages_that_nobody_gets_do_not_end_a_copy(copy, table, redirections):
    code, path, out = copy(redirections, "--json")
    assert code == 0
    assert '"outcome":"done"' in out
    assert_complete(path, table)


@pytest.mark.parametrize("redirections", ["1>&-", ">/dev/full", "0<&- 1>&- 2>&-", ">&3"], ids=["closed", "full", "all closed", "reader gone"])
def test_a_report_that_nobody_gets_is_a_failure_of_a_complete_copy(copy, table, redirections):
    code, path, _ = copy(redirections, "--json")
    assert code == 1
    assert_complete(path, table)


def test_no_file_gets_the_messages_of_closed_streams(copy, table, tmp_path):
    copy("0<&- 1>&- 2>&-", "--json")
    for name in os.listdir(tmp_path / "job"):
        assert b'{"' not in (tmp_path / "job" / name).read_bytes(), name
    for name in os.listdir(tmp_path / "out"):
        if name.endswith(".parquet"):
            pq.ParquetFile(tmp_path / "out" / name).read()
