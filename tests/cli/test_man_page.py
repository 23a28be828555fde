"""The manual page: man and groff find nothing to warn of, and it has what the program reads."""

import os
import re
import shutil
import subprocess

import pytest


@pytest.fixture(scope="module")
def page(headrace, tmp_path_factory):
    path = tmp_path_factory.mktemp("man") / "headrace.1"
    path.write_text(subprocess.run([headrace, "man"], capture_output=True, text=True, timeout=60, check=True).stdout)
    return path


def rendered(page):
    environment = dict(os.environ, MANWIDTH="100", LC_ALL="C.UTF-8", MAN_KEEP_FORMATTING="")
    done = subprocess.run(["man", "--warnings=all,mac", "-l", page], capture_output=True, text=True, timeout=60, env=environment, check=True)
    return done.stdout, done.stderr


def test_man_shows_it_without_a_warning(page, run):
    if shutil.which("man") is None:
        pytest.skip("there is no man here")
    text, warnings = rendered(page)
    assert warnings == ""
    for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "VERBS", "OPTIONS", "CONFIG FILES", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"):
        assert f"\n{title}\n" in text
    # The examples stand there as they are typed, backslashes and quotes included.
    assert "--row-restriction 'year > 1990' --billing-project my-project --checkpoint ./names.job" in text
    assert "./names/ \\\n" in text


def test_groff_takes_it(page):
    if shutil.which("groff") is None:
        pytest.skip("there is no groff here")
    done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", page], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_has_every_environment_variable_that_is_read(page, source_dir):
    sources = {path: path.read_text() for path in (source_dir / "src").rglob("*.cc") if not path.name.endswith("_test.cc")}
    text = page.read_text()
    named = set()
    for path, content in sources.items():
        for argument in re.findall(r"getenv\(([^)]*)\)", content):
            if constant := re.fullmatch(r"k\w+", argument):
                argument = re.search(rf'{constant.group()} = ("[A-Z_]+")', content).group(1)
            if literal := re.fullmatch(r'"([A-Z_]+)"', argument):
                named.add(literal.group(1))
            else:
                assert argument == "credentials.source.c_str(", f"{path} reads an environment variable that this test does not know: {argument}"
    assert {"BIGQUERY_STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS"} <= named
    assert [name for name in named if f"\\fB{name}\\fR" not in text] == []
