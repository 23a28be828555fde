"""The benchmarks work: every client reads every row of a small table, and what the goals say follows from the measurements. No figure is judged here."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location("bench_" + name, ROOT / "bench" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bench():
    return load("run")


@pytest.fixture(scope="module")
def micro(bench):
    return bench.micro_run


@pytest.fixture(scope="module")
def compare():
    return load("compare")


@pytest.mark.skipif("SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", ""), reason="times of a sanitized build mean nothing, so it has no benchmarks")
@pytest.mark.parametrize("case", ["usa_names, 1 MiB responses", "narrow8, 1,024-row responses", "usa_names, Avro", "narrow8, ZSTD", "narrow8, 4 streams", "wide, to Parquet", "narrow8, 1 Gbit/s and 20 ms each way"])
def test_a_smoke_run(bench, build_dir, tmp_path, case):
    environment = dict(os.environ, HEADRACE_BUILD_DIR=str(build_dir))
    done = subprocess.run([sys.executable, ROOT / "bench" / "run.py", "--smoke", "--case", case, "--work", tmp_path], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    assert list(results) == [case]
    (clients,) = (of.clients for of in bench.CASES if of.name == case)
    assert set(results[case]) == set(clients) - set(bench.missing_peers())
    for client, runs in results[case].items():
        assert len(runs) == 1 and runs[0]["cpu_ns_per_row"] > 0 and runs[0]["rows_per_second"] > 0
        assert f"| {client} |" in done.stdout


def runs(*cpu):
    return [{"cpu_ns_per_row": value, "wall_ns_per_row": value} for value in cpu]


def only(bench, monkeypatch, *goals):
    monkeypatch.setattr(bench, "GOALS", list(goals))


def test_a_goal_is_judged_round_by_round(bench, monkeypatch):
    only(bench, monkeypatch, ("a", "headrace", "stub", "cpu_ns_per_row", 1.05))
    # A machine that was twice as slow in one round: the ratios are the same.
    text, missed = bench.check_goals({"a": {"headrace": runs(10, 20, 10), "stub": runs(10, 20, 10)}})
    assert missed == 0 and "| 1 (1 to 1) | met" in text
    text, missed = bench.check_goals({"a": {"headrace": runs(11, 22, 10), "stub": runs(10, 20, 10)}})
    assert missed == 1 and "| 1.1 (1 to 1.1) | MISSED" in text


def test_a_goal_beside_another_case_and_one_of_its_own(bench, monkeypatch):
    only(bench, monkeypatch, ("b", "headrace", ("a", "headrace"), "cpu_ns_per_row", 1.15), ("a", "headrace", None, "cpu_ns_per_row", 12))
    results = {"a": {"headrace": runs(10, 10, 14)}, "b": {"headrace": runs(12, 12, 12)}}
    text, missed = bench.check_goals(results)
    assert missed == 1 and "| b: headrace / headrace at a, cpu_ns_per_row | 1.15 | 1.2 (0.857 to 1.2) | MISSED |" in text
    assert "| a: headrace, cpu_ns_per_row | 12 | 10 (10 to 14) | met |" in text
    # Of cases that were not measured nothing is said.
    assert bench.check_goals({"b": results["b"]}) == bench.check_goals({})


def test_a_goal_that_was_not_judged_is_never_met(bench, monkeypatch):
    only(bench, monkeypatch, ("a", "headrace", "java", "cpu_ns_per_row", 1), ("b", "headrace", ("a", "headrace"), "cpu_ns_per_row", 9), ("a", "headrace", None, "cpu_ns_per_row", 99))
    whole = {"a": {"headrace": runs(1), "java": runs(2)}, "b": {"headrace": runs(1)}}
    assert bench.not_judged(whole) == []
    assert bench.not_judged({"a": {"headrace": runs(1)}}) == ["not judged: a, cpu_ns_per_row: there is no java"]
    assert bench.not_judged({"b": whole["b"]}) == ["not judged: b, cpu_ns_per_row: there is no headrace at a"]
    assert bench.not_judged({}) == []
    assert bench.verdict(0, 0) == ("every goal of these cases is met", 0)
    assert bench.verdict(0, 1) == ("goals: none missed, 1 not judged", 4)
    assert bench.verdict(2, 1) == ("goals: 2 missed, 1 not judged", 1)


@pytest.mark.skipif("SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", ""), reason="times of a sanitized build mean nothing, so it has no benchmarks")
@pytest.mark.parametrize("most,code,says", [(1e9, 4, "goals: none missed, 1 not judged"), (1e-9, 1, "goals: 1 missed, 1 not judged")])
def test_a_run_without_a_peer_says_so(bench, build_dir, tmp_path, monkeypatch, capsys, most, code, says):
    monkeypatch.setattr(bench, "BIN", build_dir / "bin")
    monkeypatch.setattr(bench, "JAVA", tmp_path / "no.jar")
    case = "usa_names, Avro"
    only(bench, monkeypatch, (case, "headrace", "java", "cpu_ns_per_row", 1), (case, "headrace", "bytes", "cpu_ns_per_row", most))
    monkeypatch.setattr(bench, "ROWS", bench.SMOKE_ROWS)
    monkeypatch.setattr(bench, "TIMES", bench.SMOKE_TIMES)
    monkeypatch.setattr(sys, "argv", ["run.py", "--anyway", "--rounds", "1", "--case", case, "--work", str(tmp_path)])
    assert bench.main() == code
    out = capsys.readouterr().out
    assert f"not judged: {case}, cpu_ns_per_row: there is no java" in out and out.endswith(f"{says}\n") and "every goal" not in out


def with_tools(directory, *names):
    """An environment whose path has these programs alone."""
    directory.mkdir()
    for name in names:
        (directory / name).symlink_to(shutil.which(name))
    return {"PATH": str(directory)}


@pytest.mark.parametrize("arguments, code", [([], 0), (["--all"], 1)])
def test_a_toolchain_that_is_missing_is_named(tmp_path, arguments, code):
    environment = with_tools(tmp_path / "bin", "bash", "dirname", "mkdir")
    done = subprocess.run([ROOT / "bench" / "peers" / "build.sh", *arguments], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    said = done.stderr if code else done.stdout
    assert "Go 1.26" in said and "openjdk-17-jdk-headless and maven" in said and ("skipped" in said) == (code == 0)


def test_every_goal_is_of_a_case_and_its_clients(bench):
    clients = {case.name: case.clients for case in bench.CASES}
    assert len(clients) == len(bench.CASES)
    for case, client, other, _, _ in bench.GOALS:
        assert client in clients[case]
        if other is not None:
            other_case, other_client = other if isinstance(other, tuple) else (case, other)
            assert other_client in clients[other_case]


def test_a_case_that_does_not_exist_is_refused(bench, build_dir, tmp_path):
    done = subprocess.run([sys.executable, ROOT / "bench" / "run.py", "--smoke", "--case", "nothing", "--work", tmp_path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "narrow8, ZSTD" in done.stderr


@pytest.mark.skipif("SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", ""), reason="times of a sanitized build mean nothing, so it has no benchmarks")
def test_a_smoke_run_of_the_micro_benchmarks(micro, build_dir, tmp_path):
    environment = dict(os.environ, HEADRACE_BUILD_DIR=str(build_dir))
    done = subprocess.run([sys.executable, ROOT / "bench" / "run.py", "--micro", "--smoke", "--work", tmp_path], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "micro.json").read_text())["results"]
    packings = {"Avro": ["copy"], "Arrow": ["arrow", "copy"], "Arrow, LZ4 buffers": ["arrow", "codec"], "Arrow, ZSTD buffers": ["arrow", "codec"], "Arrow, one LZ4 block": ["codec"]}
    for table in micro.TABLES:
        for packing, peers in packings.items():
            assert list(results.pop(f"{table}, {packing}")) == ["headrace", *peers]
    assert len(results) >= 9 and all(list(clients) == ["headrace", "arrow"] for clients in results.values())  # the row restrictions
    for case, clients in json.loads((tmp_path / "micro.json").read_text())["results"].items():
        for client, runs in clients.items():
            assert len(runs) == 1 and runs[0]["cpu_ns_per_row"] > 0 and runs[0]["mb_per_second"] > 0
            assert f"| {case} | {client} |" in done.stdout
    assert "goal" not in done.stdout


@pytest.mark.skipif("SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", ""), reason="times of a sanitized build mean nothing, so it has no benchmarks")
@pytest.mark.parametrize("most,code", [(1e9, 0), (1e-9, 1)])
def test_a_missed_goal_of_the_micro_benchmarks_fails_the_run(bench, micro, build_dir, tmp_path, monkeypatch, capsys, most, code):
    monkeypatch.setattr(bench, "BIN", build_dir / "bin")
    monkeypatch.setattr(micro, "GOALS", [("narrow8, Avro", "headrace", "copy", "cpu_ns_per_row", most)])
    monkeypatch.setattr(micro, "SECONDS", 0.001)
    monkeypatch.setattr(sys, "argv", ["run.py", "--micro", "--anyway", "--rounds", "2", "--case", "narrow8, Avro", "--work", str(tmp_path)])
    assert bench.main() == code
    assert ("MISSED" if code else "met") in capsys.readouterr().out
    # The second round takes the clients the other way round; the order in the results is one.
    results = json.loads((tmp_path / "micro.json").read_text())["results"]
    assert [(client, len(runs)) for client, runs in results["narrow8, Avro"].items()] == [("headrace", 2), ("copy", 2)]


def test_the_goals_of_the_micro_benchmarks_are_of_the_specification(micro):
    assert micro.GOALS == [(f"{table}, Avro", "headrace", "copy", "cpu_ns_per_row", 4) for table in ("usa_names", "narrow8", "wide")]


@pytest.mark.skipif("SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", ""), reason="times of a sanitized build mean nothing, so it has no benchmarks")
def test_a_micro_benchmark_that_does_not_exist_is_refused(build_dir, tmp_path):
    environment = dict(os.environ, HEADRACE_BUILD_DIR=str(build_dir))
    done = subprocess.run([sys.executable, ROOT / "bench" / "run.py", "--micro", "--smoke", "--case", "nothing", "--work", tmp_path], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "usa_names, Avro" in done.stderr


def test_what_costs_a_tenth_more_is_seen(compare):
    # One round in three met a busy machine: both were slow.
    noise = [(10.0, 10.2), (20.0, 19.5), (10.1, 10.0)]
    text, slower = compare.judge({"same": noise, "slower": [(base, ours * 1.1) for base, ours in noise]}, compare.MOST)
    assert slower == ["slower"] and "| same | 10.1 | 10.2 | 0.990 (0.975 to 1.020) | not slower |" in text and text.count("SLOWER") == 1


def test_every_case_that_is_compared_exists(compare, bench):
    clients = {case.name: case.clients for case in bench.CASES}
    assert all(client in clients[name] for name, client in compare.NAMES.items())
    assert set(compare.NAMES) <= {case.name for case in bench.CASES}


@pytest.mark.skipif("SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", ""), reason="times of a sanitized build mean nothing, so it has no benchmarks")
@pytest.mark.parametrize("most,code", [("1000", 0), ("0.001", 1)])
def test_a_build_is_compared_with_itself(build_dir, tmp_path, most, code):
    environment = dict(os.environ, HEADRACE_BUILD_DIR=str(build_dir))
    done = subprocess.run([sys.executable, ROOT / "bench" / "compare.py", build_dir / "bin" / "headrace_bench_read", "--smoke", "--case", "narrow8, LZ4", "--rounds", "2", "--most", most,
                           "--work", tmp_path], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == code, done.stderr
    assert "| narrow8, LZ4 |" in done.stdout and ("SLOWER" in done.stdout) == (code == 1)


def test_a_commit_that_does_not_exist_is_refused():
    done = subprocess.run([ROOT / "bench" / "compare", "no-such-commit"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "no-such-commit" in done.stderr
