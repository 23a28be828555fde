"""What the documentation shows is what the tree has: its C++ runs, its options exist, its links lead somewhere."""

import contextlib
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import Server

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def marked(file, mark):
    return (HERE / file).read_text().split(f"// {mark}\n")[1].split(f"// {mark} ends\n")[0]


def test_the_examples_are_the_compiled_ones():
    assert blocks(ROOT / "README.md", "cpp") == [marked("readme_example.cc", "README.md")]
    assert blocks(ROOT / "docs" / "metrics.md", "cpp") == [marked("readme_example.cc", "docs/metrics.md")]
    assert blocks(ROOT / "docs" / "rows.md", "cpp") == [marked("rows_example.cc", f"docs/rows.md {number}") for number in (1, 2)]


def test_the_readme_example_runs(build_dir, headrace, tmp_path):
    orders = pa.table({"id": range(1000), "amount": [None if i % 7 == 0 else i / 2 for i in range(1000)], "note": ["x"] * 1000})
    pq.write_table(orders, tmp_path / "source.parquet")
    with Server(headrace, tmp_path, "--load", f"my-project.sales.orders={tmp_path / 'source.parquet'}") as server:
        environment = dict(os.environ, BIGQUERY_STORAGE_EMULATOR_HOST=server.grpc)
        done = subprocess.run([build_dir / "bin" / "docs_readme_example"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    rows, told = done.stdout.split("\n", 1)
    assert (done.returncode, rows) == (0, "1000"), done.stderr
    parts = [pq.read_table(path) for path in sorted((tmp_path / "orders").glob("*.parquet"))]
    assert pa.concat_tables(parts).sort_by("id").equals(orders.select(["id", "amount"]))
    assert "headrace_rows_read_total 1000\n" in told and told.startswith("# HELP headrace_")


def test_the_examples_of_rows_run_also_when_streams_break(build_dir, headrace, tmp_path):
    rows = 1000
    orders = pa.table({"id": range(rows), "amount": [None if i % 7 == 0 else i / 2 for i in range(rows)], "tags": [["a", None][: i % 2] for i in range(rows)]})
    pq.write_table(orders, tmp_path / "source.parquet")
    arguments = ["--load", f"my-project.sales.orders={tmp_path / 'source.parquet'}", "--message-rows", "100"]
    with Server(headrace, tmp_path, *arguments) as server:
        server.set_faults({"method": "ReadRows", "after_messages": 2, "times": 2, "action": {"status": {"code": "UNAVAILABLE"}}})
        environment = dict(os.environ, BIGQUERY_STORAGE_EMULATOR_HOST=server.grpc)
        done = subprocess.run([build_dir / "bin" / "docs_rows_example"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert server.faults_fired() == [2]
        counters = server.counters()
    lines = done.stdout.splitlines()
    assert float(lines[0].split()[1]) == sum(i / 2 for i in range(rows) if i % 7)
    assert lines[451] == "go on"

    def text(i):
        amount = "" if i % 7 == 0 else f"{i / 2}"
        return f"id={i} amount={amount} tags={['[]', '[' + chr(34) + 'a' + chr(34) + ']'][i % 2]}"

    assert lines[1:451] + lines[452:] == [text(i) for i in range(rows)]
    assert counters["sessions_created"] == 2, "what goes on from a state plans nothing"


def run_page(page, headrace, directory):
    """Runs the page's shell blocks one after the other in one bash, and answers what each printed on standard output."""
    mark = "-- a block ends --"
    script = "set -euo pipefail\n" + "".join(f"{block}\nprintf '%s\\n' '{mark}'\n" for block in blocks(page, "sh"))
    environment = {**os.environ, "PATH": f"{headrace.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(["bash", "-c", script], cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        printed, told = process.communicate(timeout=100)
    finally:
        # A page that fails half way leaves its server.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, printed + told
    return printed.split(mark + "\n")[:-1]


def test_the_first_steps_are_what_they_say(headrace, tmp_path):
    page = ROOT / "docs" / "first-steps.md"
    # The port is the reader's; here it is whichever is free.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    copy = tmp_path / "first-steps.md"
    assert page.read_text().count("9060") == 2
    copy.write_text(page.read_text().replace("9060", str(port)))
    printed = iter(run_page(copy, pathlib.Path(headrace), tmp_path))
    shown = 0
    for language, block in re.findall(r"^```(sh|text)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        if language == "sh":
            last = next(printed)
        else:
            assert last == block
            shown += 1
    assert shown == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first-steps.md", "orders.csv", "orders.json", "serve.log"]


def documented_commands():
    for page in PAGES:
        for block in blocks(page, "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    yield pytest.param(words, id=f"{page.name}: {' '.join(words)[:60]}")


@pytest.mark.parametrize("words", list(documented_commands()))
def test_a_documented_command_exists(headrace, words):
    if "headrace" in words[0] and not words[0].startswith("scripts/"):
        listed = subprocess.run([headrace, words[1], "--help-all"], capture_output=True, text=True, timeout=30, check=True).stdout
        for option in (word for word in words[2:] if word.startswith("--")):
            assert re.search(rf"(^|\s){re.escape(option)}(\s|$)", listed), f"headrace {words[1]} has no option {option}"
    elif words[0].startswith(("scripts/", "bench/")):
        assert os.access(ROOT / words[0], os.X_OK)


def test_a_documented_config_file_is_taken(headrace, tmp_path):
    (example,) = blocks(ROOT / "docs" / "command-line.md", "toml")
    (tmp_path / "nightly.toml").write_text(example)
    command = [headrace, "copy", "bq:my-project.sales.orders", "./orders/", "--config", "nightly.toml", "--print-config"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True).stdout
    assert tomllib.loads(printed) == tomllib.loads(example)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target


def test_every_reason_of_an_error_is_explained():
    """Both ways. The local service's own errors are the service's words, and reach a client as such."""
    used = set()
    for path in (ROOT / "src" / "headrace").rglob("*.cc"):
        if path.name.endswith(("_test.cc", "_testing.cc")) or "local" in path.parts:
            continue
        text = path.read_text()
        for place in re.findall(r"\breason = (.*)", text):
            used.update(re.findall(r'"([A-Z][A-Z_]+)"', place))
        # The helpers that take one.
        used.update(re.findall(r'(?:Code::k\w+|(?:Fail|WrongColumn)\(\s*\w+),\s*"([A-Z][A-Z_]+)"', text))
    explained = re.findall(r"^\| (`[^|]*`) \|", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    words = [word for cell in explained for word in re.findall(r"`([A-Z_]+)`", cell)]
    assert len(words) == len(set(words))
    assert set(words) == used


def test_the_readme_names_two_commands():
    assert [line.split()[0] for line in blocks(ROOT / "README.md", "sh")[0].splitlines()] == ["scripts/demo.sh", "scripts/test.sh"]
