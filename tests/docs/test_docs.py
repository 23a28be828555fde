"""What the documentation shows is what the tree has: its commands and its C++ run and print what is shown, its links lead somewhere."""

import os
import pathlib
import re
import shutil
import subprocess
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pages
from harness import Server
from pages import of_language

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def marked(file, mark):
    return (HERE / file).read_text().split(f"// {mark}\n")[1].split(f"// {mark} ends\n")[0]


def test_the_examples_are_the_compiled_ones():
    assert of_language(ROOT / "README.md", "cpp") == [marked("readme_example.cc", "README.md")]
    assert of_language(ROOT / "docs" / "metrics.md", "cpp") == [marked("readme_example.cc", "docs/metrics.md")]
    assert of_language(ROOT / "docs" / "rows.md", "cpp") == [marked("rows_example.cc", f"docs/rows.md {number}") for number in (1, 2)]


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


# Commands that no test can run, and why. All else that a page shows is run.
NOT_RUN = {
    "scripts/setup.sh": "installs packages",
    "scripts/build.sh": "builds for minutes; without what it built this test would not run",
    "scripts/demo.sh": "builds, which would disturb the tests; scripts/test.sh runs it after them",
    "scripts/test.sh": "runs this test; tests/scripts has its arguments",
    "bench/run": "wants an idle machine for ten minutes; tests/bench runs it in small",
    "bench/compare": "builds another commit, and wants an idle machine",
}
# Blocks in other languages than these would not be run, nor compared.
LANGUAGES = {"sh", "zsh", "fish", "python", "text", "toml", "cpp", "json", ""}
FIRST_STEPS = ROOT / "docs" / "first-steps.md"
RUN_PAGES = [page for page in PAGES if any(language in pages.RUN for language, _ in pages.blocks(page.read_text()))]


@pytest.fixture(scope="module")
def local_bigquery(headrace, tmp_path_factory):
    """my-project.sales.orders, and the table that docs/first-steps.md makes."""
    directory = tmp_path_factory.mktemp("local-bigquery")
    subprocess.run(["bash", "-c", of_language(FIRST_STEPS, "sh")[0]], cwd=directory, timeout=20, check=True)
    rows = {"id": range(1000), "customer": ["Ada"] * 1000, "amount": [i / 4 for i in range(1000)]}
    pq.write_table(pa.table(rows), directory / "sales.parquet")
    shop = "my-project.shop.orders"
    arguments = ["--load", f"my-project.sales.orders={directory / 'sales.parquet'}", "--load", f"{shop}={directory / 'orders.csv'}", "--load-schema", f"{shop}={directory / 'orders.json'}"]
    with Server(headrace, directory, *arguments) as server:
        yield server


def inputs_of_files(directory):
    """Two months of orders, and their schema."""
    for month in ("01", "02"):
        (directory / f"2024-{month}.csv").write_text(f"id,placed\n1,2024-{month}-05\n")
    (directory / "orders.schema.json").write_text('[{"name": "id", "type": "INT64"}, {"name": "placed", "type": "DATE"}]')


def inputs_of_the_local_service(directory):
    pq.write_table(pa.table({"origin": ["EWR", "LGA"]}), directory / "flights.parquet")
    (directory / "small.csv").write_text("origin\nJFK\n")


# Files of the reader's own, where a page speaks of some that it does not show.
INPUTS = {"docs/files.md": inputs_of_files, "docs/local-service.md": inputs_of_the_local_service}


@pytest.mark.parametrize("page", RUN_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_runs_and_prints_what_it_shows(headrace, local_bigquery, tmp_path, page):
    directory = tmp_path / "reader"
    directory.mkdir()
    if make := INPUTS.get(str(page.relative_to(ROOT))):
        make(directory)
    endpoint = None if page == FIRST_STEPS else local_bigquery.grpc
    pages.run(page, directory, pages.environment(headrace, tmp_path / "home", endpoint), excused=NOT_RUN)
    if page == FIRST_STEPS:
        assert sorted(path.name for path in directory.iterdir()) == ["orders.csv", "orders.json", "serve.log"], "the page cleans up"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_a_command_is_marked_as_one(page):
    """What is in no `sh` block is not run."""
    for language, content in pages.blocks(page.read_text()):
        assert language in LANGUAGES, f"a block of {language!r}: is it run, or compared?"
        assert language != "" or not re.search(r"^(\$ |headrace |scripts/|bench/)", content, re.MULTILINE), f"commands in a block without a language:\n{content}"
        if file := pages.FILE.match(content):
            assert page.read_text().count(file[1]) > 1, f"{file[1]} is used nowhere"
    assert page in RUN_PAGES or not of_language(page, "text"), "a text is what a block before it printed"
    assert not re.search(r"^( +```| *~~~)", page.read_text(), re.MULTILINE), "blocks within lists are not found by the tests"


def test_nothing_is_excused_in_vain():
    first_words = {line.split()[0] for page in PAGES for block in of_language(page, "sh") for line in block.splitlines() if line.split()}
    for command in NOT_RUN:
        assert command in first_words, f"no page has {command} any more"
        assert os.access(ROOT / command, os.X_OK)


@pytest.mark.parametrize("shell, prepared", [("zsh", "autoload -Uz compinit; compinit -u; "), ("fish", "")])
def test_the_completions_of_a_page_are_taken(headrace, tmp_path, shell, prepared):
    (block,) = of_language(ROOT / "docs" / "command-line.md", shell)
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    environment = pages.environment(headrace, tmp_path / "home", None)
    known = {"zsh": "print ${_comps[headrace]}", "fish": "complete -c headrace | head -n 1"}[shell]
    done = subprocess.run([shell, "-c", f"{prepared}\n{block}\n{known}"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "headrace" in done.stdout


@pytest.mark.parametrize("shown, printed, same", [
    ("a\n", "a\n", True), ("a\n", "a\nb\n", False), ("a ... c\n", "a b c\n", True), ("a ... c\n", "a b\n c\n", False),
    ("a\n...\n", "a\nb\nc\n", True), ("a\n...\n", "b\n", False), ("...\nc\n", "a\nb\nc\n", True), ("...\nc\n", "c\n", True), ("a.c\n", "abc\n", False),
])
def test_dots_stand_for_what_is_left_out(shown, printed, same):
    assert pages.is_printed(shown, printed) == same


def broken(page, directory, environment, old, new):
    """What is said of the page when `old` is `new` in it; '' when it passes."""
    text = page.read_text()
    assert old in text
    copy = directory.with_suffix(".md")
    copy.write_text(text.replace(old, new, 1))
    directory.mkdir()
    try:
        pages.run(copy, directory, environment, excused=NOT_RUN)
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("old, new, says", [
    ("--quiet | grep 12.1", "--quiet --no-such-option | grep 12.1", "there is no option --no-such-option"),
    ("FLOAT64  nullable", "FLOAT32  nullable", "shows"),
    ("exit code 1", "exit code 2", "shows"),
    ("headrace copy orders.csv orders.parquet", "scripts/not_excused.sh\nheadrace copy orders.csv orders.parquet", "scripts/not_excused.sh"),
])
def test_a_page_that_is_wrong_fails(headrace, tmp_path, old, new, says):
    environment = pages.environment(headrace, tmp_path / "home", None)
    assert says in broken(ROOT / "docs" / "guides" / "files-to-files.md", tmp_path / "reader", environment, old, new)


def test_a_documented_config_file_is_taken(headrace, tmp_path):
    (example,) = of_language(ROOT / "docs" / "command-line.md", "toml")
    (tmp_path / "nightly.toml").write_text(example)
    command = [headrace, "copy", "bq:my-project.sales.orders", "./orders/", "--config", "nightly.toml", "--print-config"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True).stdout
    assert tomllib.loads(printed) == tomllib.loads(example)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, heading in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", without_blocks(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not heading or heading in headings(path), f"{target} has no heading #{heading}"


@pytest.mark.parametrize("page", [page for page in PAGES if "decisions" not in page.parts], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_header_that_a_program_is_told_of_is_installed(page):
    folders = re.search(r"HEADRACE_PUBLIC_FOLDERS ([^)]*)\)", (ROOT / "cmake" / "HeadraceInstall.cmake").read_text())[1].split()
    for header in re.findall(r"\bheadrace/[\w/]+\.h\b", page.read_text()):
        assert (ROOT / "src" / header).exists() and header.split("/")[1] in folders and "internal" not in header, header


def without_blocks(page):
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def headings(page):
    """As links name them."""
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)", without_blocks(page), re.MULTILINE)]


def test_every_guide_is_listed():
    guides = sorted(f"guides/{path.name}" for path in (ROOT / "docs" / "guides").iterdir())
    assert sorted(re.findall(r"\((guides/[^)]*)\)", (ROOT / "docs" / "index.md").read_text())) == guides
    assert sorted(re.findall(r": (guides/.*)", (ROOT / "mkdocs.yml").read_text())) == guides
    assert sorted(re.findall(r"\(docs/(guides/[^)]*)\)", (ROOT / "README.md").read_text())) == guides


@pytest.mark.parametrize("link, says", [(None, ""), ("no-such-page.md", "no-such-page.md"), ("types.md#no-such-heading", "no-such-heading"), ("/types.md", "/types.md")])
def test_the_site_has_no_link_that_leads_nowhere(tmp_path, link, says):
    """scripts/docs.sh on a copy of the tree, with the environment that scripts/test.sh has had it make."""
    environment = ROOT / "build" / "docs-venv"
    if not environment.exists():
        pytest.skip("scripts/docs.sh has not been run here")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "scripts").mkdir()
    for file in ("mkdocs.yml", "scripts/docs.sh", "scripts/requirements-docs.txt"):
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "docs-venv").symlink_to(environment)
    if link:
        with open(tmp_path / "docs" / "index.md", "a") as page:
            page.write(f"\n[nowhere]({link})\n")
    done = subprocess.run([tmp_path / "scripts" / "docs.sh"], capture_output=True, text=True, timeout=60)
    assert done.returncode == (1 if link else 0), done.stderr
    assert says in done.stderr and (link is not None or (tmp_path / "build" / "site" / "index.html").exists())


TABLES = re.compile(r"\b(usa_names|narrow8|wide)\b")


def missed_goals(text):
    """(goal, table) of docs/performance.md's table of goals; a table of '' when the goal names none."""
    found = set()
    for label, seen, verdicts in re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \| ((?:met|missed)(?:, (?:met|missed))*) \|$", text, re.MULTILINE):
        tables = TABLES.findall(label) or TABLES.findall(seen) or [""]
        verdicts = verdicts.split(", ")
        verdicts = verdicts * len(tables) if len(verdicts) == 1 else verdicts
        assert len(verdicts) == len(tables), label
        found |= {(label, table) for table, verdict in zip(tables, verdicts) if verdict == "missed"}
    return found


def explained_goals(text):
    """(goals, tables) of the entries of the section about missed goals that are of goals."""
    return [(goals, TABLES.findall(tables)) for goals, tables in re.findall(r"^\* \*\*([^*]*): ([^*:]*)\.\*\*", text.split("\n## Why goals are missed\n")[1], re.MULTILINE)]


def test_every_missed_goal_is_explained():
    text = (ROOT / "docs" / "performance.md").read_text()
    missed = missed_goals(text)
    assert len(missed) > 3

    def explains(goals, tables, label, table):
        phrase, _, of = label.partition(": ")
        return re.search(rf"\b{re.escape(phrase)}\b", goals) is not None and table in (tables or [""]) and (TABLES.search(of) is not None or of in goals)

    entries = explained_goals(text)
    assert [goal for goal in missed if not any(explains(*entry, *goal) for entry in entries)] == []
    for goals, tables in entries:
        for table in tables:
            assert any(explains(goals, [table], *goal) for goal in missed), f"{goals}: {table} is not missed"


def test_missed_goals_are_read_from_the_table():
    table = "| CPU beside a: usa_names, wide | 1 | 2, 3 | met, missed |\n| to a file | 1 | usa_names 2, wide 3 | missed |\n| ns a byte | 1 | 2 | missed |\n| x: wide | 1 | 1 | met |\n"
    assert missed_goals(table) == {("CPU beside a: usa_names, wide", "wide"), ("to a file", "usa_names"), ("to a file", "wide"), ("ns a byte", "")}


def headless_rows(text):
    """Lines that look like a row of a table and are in none, as (number, line): a blank line before a row ends its table."""
    lines = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL).splitlines()
    return [(number + 1, line) for number, line in enumerate(lines)
            if line.startswith("|") and (number == 0 or not lines[number - 1].startswith("|")) and not re.fullmatch(r"\|[ :|-]+\|", "".join(lines[number + 1:number + 2]))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_row_of_a_table_is_in_it(page):
    assert headless_rows(page.read_text()) == []


def test_a_row_that_a_blank_line_parts_from_its_table_is_found():
    assert headless_rows("| a | b |\n|---|---|\n| 1 | 2 |\n") == []
    assert headless_rows("| a | b |\n|---|---|\n| 1 | 2 |\n\n| 3 | 4 |\n| 5 | 6 |\n") == [(5, "| 3 | 4 |")]
    assert headless_rows("```\n| 1 |\n```\n") == []


def test_every_page_is_in_the_site_s_navigation():
    """A page that is left out is no error to MkDocs. Single formats and decisions are linked from their overviews."""
    docs = ROOT / "docs"
    single = {path for folder in ("formats", "decisions") for path in (docs / folder).glob("*.md") if path.name != "README.md"}
    named = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(path.relative_to(docs).as_posix() for path in set(docs.rglob("*.md")) - single)
    for path in single:
        assert f"({path.name})" in (path.parent / "README.md").read_text(), path


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
    assert [line.split()[0] for line in of_language(ROOT / "README.md", "sh")[0].splitlines()] == ["scripts/demo.sh", "scripts/test.sh"]
