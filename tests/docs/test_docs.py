"""What the documentation shows is what the tree has: its C++ runs, its options exist, its links lead somewhere."""

import os
import pathlib
import re
import shlex
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import Server

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def test_the_readme_example_is_the_compiled_one():
    (shown,) = blocks(ROOT / "README.md", "cpp")
    compiled = (HERE / "readme_example.cc").read_text().split("// README.md\n")[1].split("// README.md ends\n")[0]
    assert shown == compiled


def test_the_readme_example_runs(build_dir, headrace, tmp_path):
    orders = pa.table({"id": range(1000), "amount": [None if i % 7 == 0 else i / 2 for i in range(1000)], "note": ["x"] * 1000})
    pq.write_table(orders, tmp_path / "source.parquet")
    with Server(headrace, tmp_path, "--load", f"my-project.sales.orders={tmp_path / 'source.parquet'}") as server:
        environment = dict(os.environ, BIGQUERY_STORAGE_EMULATOR_HOST=server.grpc)
        done = subprocess.run([build_dir / "bin" / "docs_readme_example"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "1000\n"), done.stderr
    parts = [pq.read_table(path) for path in sorted((tmp_path / "orders").glob("*.parquet"))]
    assert pa.concat_tables(parts).sort_by("id").equals(orders.select(["id", "amount"]))


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
    elif words[0].startswith("scripts/"):
        assert os.access(ROOT / words[0], os.X_OK)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target


def test_the_readme_names_two_commands():
    assert [line.split()[0] for line in blocks(ROOT / "README.md", "sh")[0].splitlines()] == ["scripts/demo.sh", "scripts/test.sh"]
