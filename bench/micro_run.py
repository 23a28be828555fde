"""The micro benchmarks (bench/micro): decoding, codecs and filters, each beside a peer over the same bytes. bench/run runs them, bench/run --micro them alone.

A round is one process, in which the clients of a case come one after the other, in every second round the other way round. What counts is the CPU time per row;
medians, and from the least to the most. A process prepares its own bytes, so that no round depends on where in memory those of another lay."""

import json
import statistics
import subprocess
import sys

TABLES = ("usa_names", "narrow8", "wide")

# As run.py has them: (case, client, other, measure, at most).
GOALS = [(f"{table}, Avro", "headrace", "copy", "cpu_ns_per_row", 4) for table in TABLES]

SECONDS = 0.2  # of a client in a round, at least
SMOKE_SECONDS = 0.001


def one_round(program, number, smoke, cases):
    command = [program, "--benchmark_format=json", f"--benchmark_min_time={SMOKE_SECONDS if smoke else SECONDS}"]
    command += ["--smoke"] * smoke + ["--turned"] * (number % 2)
    for case in cases or []:
        command += ["--case", case]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode == 2:  # there is no such case, and it said which there are
        sys.stderr.write(done.stderr)
        sys.exit(2)
    if done.returncode != 0:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr.strip()}")
    taken = {}
    for run in json.loads(done.stdout)["benchmarks"]:
        if run.get("error_occurred"):
            raise RuntimeError(f"{run['name']} failed: {run['error_message']}")
        case, client = run["name"].rsplit("/", 1)
        taken.setdefault(case, {})[client] = {"cpu_ns_per_row": 1e9 / run["items_per_second"], "mb_per_second": run["bytes_per_second"] / 1e6}
    return taken


def measure(program, rounds, smoke=False, cases=None):
    """{case: {client: [a round's figures, ...]}}, Headrace first in each case."""
    results = {}
    for number in range(rounds):
        for case, clients in one_round(program, number, smoke, cases).items():
            for client, figures in clients.items():
                results.setdefault(case, {}).setdefault(client, []).append(figures)
    return results


def markdown(results):
    lines = ["", "### Without a connection", "", "| case | client | CPU ns/row | (least to most) | MB/s of the columns | headrace beside it (least to most) |",
             "|---|---|---|---|---|---|"]
    for case, clients in results.items():
        for client, runs in clients.items():
            cpu = [run["cpu_ns_per_row"] for run in runs]
            ratios = [ours["cpu_ns_per_row"] / theirs for ours, theirs in zip(clients["headrace"], cpu)]
            beside = "" if client == "headrace" else f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            rate = statistics.median(run["mb_per_second"] for run in runs)
            lines.append(f"| {case} | {client} | {statistics.median(cpu):.3g} | {min(cpu):.3g} to {max(cpu):.3g} | {rate:.0f} | {beside} |")
    return "\n".join(lines)
