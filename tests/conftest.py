"""What all suites share: where the build is, and the programs as fixtures (harness.py has what they are made of).

scripts/test.sh says in HEADRACE_BUILD_DIR where the build is; the default is the release preset's. HEADRACE_BIN names another program.
"""

import os
import pathlib

import pytest

import canary
import harness

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def source_dir():
    return ROOT


@pytest.fixture(scope="session")
def build_dir():
    path = pathlib.Path(os.environ.get("HEADRACE_BUILD_DIR", ROOT / "build" / "release")).resolve()
    if not (path / "CMakeCache.txt").exists():
        pytest.fail(f"{path} is not a build directory: run scripts/build.sh, or set HEADRACE_BUILD_DIR")
    return path


@pytest.fixture(scope="session")
def headrace(build_dir):
    """The path of the program `headrace`."""
    path = pathlib.Path(os.environ.get("HEADRACE_BIN", build_dir / "bin" / "headrace"))
    if not path.exists():
        pytest.fail(f"{path} is missing: run scripts/build.sh")
    return path


@pytest.fixture(autouse=True, scope="session")
def no_endpoint_from_outside():
    """No test talks to a server that the caller's environment names."""
    os.environ.pop("BIGQUERY_STORAGE_EMULATOR_HOST", None)


@pytest.fixture(autouse=True, scope="session")
def secrets_at_hand(tmp_path_factory):
    """Every program of the run has secrets that it could tell; at the end no small file below pytest's directory may hold one. (canary.py)"""
    directory = tmp_path_factory.mktemp("secrets")
    os.environ[canary.TOKEN_VARIABLE] = canary.TOKEN
    os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(canary.write_own(directory, "key.json", canary.service_account()))
    yield
    found = canary.found_below(tmp_path_factory.getbasetemp())
    assert not found, f"secrets in files: {found[:20]}"


@pytest.fixture
def serve(headrace, tmp_path):
    """serve({table name: pyarrow table or path}, *options) starts a harness.Server; all are stopped, by their own ids, after the test."""
    running = []

    def start(tables, *options):
        directory = tmp_path / f"server-{len(running)}"
        directory.mkdir()
        arguments = list(options)
        for number, (name, rows) in enumerate(tables.items()):
            path = rows if isinstance(rows, (str, pathlib.Path)) else harness.write_parquet(rows, directory / f"{number}.parquet")
            arguments += ["--load", f"{name}={path}"]
        running.append(harness.Server(headrace, directory, *arguments))
        running[-1].start()
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def run(headrace):
    """run(*arguments, code=0) runs the program to its end, checks the exit code and answers (stdout, stderr)."""

    def to_the_end(*arguments, **options):
        return harness.run_headrace(headrace, *arguments, **options)

    return to_the_end
