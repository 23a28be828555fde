"""scripts/test.sh never passes silently: a part that does not exist, or a name that is nothing, is an error that names it."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments):
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("arguments, named", [
    (["--all", "everything"], "there is no part 'everything'"),
    (["--all", "sanitize", "nonsense"], "there is no part 'nonsense'"),
    (["--", "nowhere"], "'nowhere' is neither"),
    (["--"], "scripts/test.sh -- NAME"),
    (["--fast"], "scripts/test.sh --all"),
])
def test_what_does_not_exist_is_refused(arguments, named):
    done = run("scripts/test.sh", *arguments)
    assert done.returncode == 2
    assert named in done.stderr


def test_a_failed_step_fails_the_run(tmp_path):
    """The functions of test.sh, with steps of our own."""
    text = (ROOT / "scripts/test.sh").read_text()
    functions = text[text.index("failed=()"):text.index("# Files of the tree")]
    script = tmp_path / "steps.sh"
    script.write_text(f"set -euo pipefail\n{functions}\nstep first false\nstep second true\nskip 'third: no tool'\nfinish\n")
    done = run("bash", str(script))
    assert done.returncode == 1
    assert "failed: first" in done.stdout and "skipped: third: no tool" in done.stdout and "second: ok" in done.stdout
    script.write_text(f"set -euo pipefail\n{functions}\nstep only true\nfinish\n")
    assert run("bash", str(script)).returncode == 0


@pytest.mark.parametrize("peers, benchmarks, code, says", [
    (0, 0, 0, "every goal is met"), (0, 1, 1, "failed: benchmarks\n"), (0, 3, 0, "skipped: benchmarks: the machine is not idle"),
    (0, 4, 1, "failed: benchmarks: goals were not judged"), (1, 0, 1, "failed: build the peers of the benchmarks"),
])
def test_goals_are_met_only_when_all_were_judged(tmp_path, peers, benchmarks, code, says):
    """part_bench of test.sh, with programs of our own."""
    text = (ROOT / "scripts/test.sh").read_text()
    functions = text[text.index("failed=()"):text.index("# Files of the tree")]
    part = text[text.index("part_bench() {"):text.index("all_parts=(")]
    for program, ends_with in (("scripts/build.sh", 0), ("bench/peers/build.sh", f'"$([ "$1" = --all ] && echo {peers})"'), ("build/venv/bin/python", benchmarks)):
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / program).write_text(f"#!/bin/sh\nexit {ends_with}\n")
        (tmp_path / program).chmod(0o755)
    done = subprocess.run(["bash", "-c", f"set -euo pipefail\n{functions}\n{part}\npart_bench\nfinish"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout and ("every goal is met" in done.stdout) == (says == "every goal is met")


@pytest.mark.parametrize("script", sorted([*(ROOT / "scripts").glob("*.sh"), ROOT / ".ci" / "run"]), ids=lambda path: path.name)
def test_scripts_parse(script):
    assert run("bash", "-n", str(script)).returncode == 0
