"""The benchmarks work: every client reads every row of a small table, and what the goals say follows from the measurements. No figure is judged here."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_run", ROOT / "bench" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif("SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", ""), reason="times of a sanitized build mean nothing, so it has no benchmarks")
@pytest.mark.parametrize("case", ["narrow8, 1,024-row responses", "usa_names, Avro", "narrow8, ZSTD", "narrow8, 4 streams"])
def test_a_smoke_run(build_dir, tmp_path, case):
    environment = dict(os.environ, HEADRACE_BUILD_DIR=str(build_dir))
    done = subprocess.run([sys.executable, ROOT / "bench" / "run.py", "--smoke", "--case", case, "--work", tmp_path], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    assert list(results) == [case]
    for client, runs in results[case].items():
        assert len(runs) == 1 and runs[0]["cpu_ns_per_row"] > 0 and runs[0]["rows_per_second"] > 0
        assert f"| {client} |" in done.stdout


def runs(*cpu):
    return [{"cpu_ns_per_row": value, "wall_ns_per_row": value} for value in cpu]


def test_a_goal_is_judged_round_by_round(bench):
    case, client, other, _, most = bench.GOALS[0]
    # A machine that was twice as slow in one round: the ratios are the same.
    text, missed = bench.check_goals({case: {client: runs(10, 20, 10), other: runs(10, 20, 10), "python": runs(1000, 1000, 1000)}})
    assert missed == 0 and "1.000 (1.000 to 1.000)" in text and "MISSED" not in text
    slow = (most + 0.05) * 10
    text, missed = bench.check_goals({case: {client: runs(slow, slow, 10), other: runs(10, 10, 10), "python": runs(1000, 1000, 1000)}})
    assert missed == 1 and "MISSED" in text


def test_every_goal_is_of_a_case_and_its_clients(bench):
    clients = {case[0]: case[-1] for case in bench.CASES}
    assert len(clients) == len(bench.CASES)
    for case, client, other, _, _ in bench.GOALS:
        assert client in clients[case] and other in clients[case]


def test_a_case_that_does_not_exist_is_refused(bench, build_dir, tmp_path):
    done = subprocess.run([sys.executable, ROOT / "bench" / "run.py", "--smoke", "--case", "nothing", "--work", tmp_path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "narrow8, ZSTD" in done.stderr
