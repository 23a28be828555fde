"""Every verb's --help fits a screen, and the example that it shows is run as it stands, against the local service."""

import os
import re
import socket
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import MANIFEST, write_parquet

VERBS = ["copy", "resume", "plan", "schema", "bench", "serve", "completion", "man", "version"]
NAMES = "bigquery-public-data.usa_names.usa_1910_current"


@pytest.fixture(scope="module")
def names():
    rows = 500
    return pa.table({"state": ["TX"] * rows, "gender": ["F"] * rows, "year": list(range(1910, 1910 + rows // 5)) * 5, "name": ["Ada"] * rows,
                     "number": list(range(rows))})


def example_of(screen):
    """The indented lines between the explanation and the options."""
    lines = screen.split("\n\n  headrace", 1)[1].split("\n\n", 1)[0]
    return ("  headrace" + lines).replace("\\\n", " ")


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_a_screen_and_shows_one_example(run, verb):
    screen = run(verb, "--help")[0]
    assert screen.startswith(f"usage: headrace {verb}")
    assert len(screen.splitlines()) <= 40 and max(map(len, screen.splitlines())) <= 100
    assert screen.count("\n  headrace ") >= 1


@pytest.fixture
def shell(headrace, serve, names, tmp_path):
    """shell(text) runs it in an empty directory, with the program on the path and BigQuery at a local service."""
    server = serve({NAMES: names})
    (tmp_path / "here").mkdir()
    environment = dict(os.environ, BIGQUERY_STORAGE_EMULATOR_HOST=server.grpc, PATH=f"{headrace.parent}:{os.environ['PATH']}")

    def start(text, **more):
        done = subprocess.run(["bash", "-c", text], cwd=tmp_path / "here", env={**environment, **more}, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    start.here = tmp_path / "here"
    return start


def test_the_example_of_copy(run, shell, names):
    code, out, err = shell(example_of(run("copy", "--help")[0]))
    assert code == 0, err
    assert (shell.here / "names" / MANIFEST).exists() and (shell.here / "names.job").is_dir()
    assert f"{sum(year > 1990 for year in names['year'].to_pylist())} rows" in out


def test_the_example_of_resume(run, shell):
    copy = example_of(run("copy", "--help")[0]).rstrip() + " --fail-point commit.before"
    assert shell(copy)[0] in (-9, 137)
    code, _, err = shell(example_of(run("resume", "--help")[0]))
    assert code == 0, err
    assert (shell.here / "names" / MANIFEST).exists()


def test_the_help_of_every_verb_is_looked_at(run):
    listed = re.search(r"^usage: headrace VERB ...\n(.*?)\n\n", run("--help")[0], re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r"^  (\w+)", listed[1], re.MULTILINE)) == sorted(VERBS)


@pytest.mark.parametrize("verb", ["plan", "schema", "bench", "completion", "version"])
def test_the_example_of(run, shell, verb):
    code, out, err = shell(example_of(run(verb, "--help")[0]))
    assert code == 0, err
    assert {"plan": "estimated rows", "schema": '"state"', "bench": "500 rows", "completion": "complete -F", "version": "Arrow"}[verb] in out


def test_the_example_of_man(run, shell):
    code, _, err = shell(example_of(run("man", "--help")[0]))
    assert code == 0, err
    assert (shell.here / "headrace.1").read_text().startswith(".TH HEADRACE 1")


def test_the_example_of_serve(run, shell, names):
    write_parquet(names, shell.here / "flights.parquet")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    example = re.sub("9060", port, example_of(run("serve", "--help")[0]))
    served, copied = example.split("&\n")
    # The service needs a moment before the copy; a reader of the example has that by typing.
    script = f"{served} --ready-file ready & pid=$!\nfor i in $(seq 200); do [ -e ready ] && break; sleep 0.05; done\n{copied}\ncode=$?; kill $pid; exit $code"
    code, _, err = shell(script, BIGQUERY_STORAGE_EMULATOR_HOST="")
    assert code == 0, err
    assert pq.read_table(shell.here / "flights").num_rows == len(names)
