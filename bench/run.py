"""The benchmarks: Headrace beside other clients, over one prepared set of responses of the local service on this machine. bench/run starts it.

Each case is read once by every client before anything counts: then the service has its answers encoded (--response-cache). A process reads the table
several times, so that its start counts little. The clients take turns, round after round, so that whatever else the machine does meets all of them. What counts is the CPU time per row, of the client's process; medians, and from the
least to the most. A goal is a ratio to another client of the same run. Exit code: 0 every goal of the cases that ran is met, 1 one is missed, 3 the machine was not idle,
4 no goal is missed, but some could not be judged."""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import micro_run

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = ROOT / os.environ.get("HEADRACE_BUILD_DIR", "build/release") / "bin"
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
PEERS = ROOT / "build" / "bench" / "peers"  # what bench/peers/build.sh makes where the tools are
GO = PEERS / "read_go"
JAVA = PEERS / "java" / "read-java-1.jar"

ROWS = {"usa_names": 6_000_000, "narrow8": 4_000_000, "wide": 400_000}
SMOKE_ROWS = {"usa_names": 60_000, "narrow8": 40_000, "wide": 4_000}
# How often a process reads the table. The start of Python and Java, and one read of Java's, are outside of what they measure, and they are slow.
TIMES = {"python": 2, "java": 4, "copies": 1, "others": 8}
SMOKE_TIMES = {"others": 1}
SMALL = 1_024  # rows of a small response; the service has been seen to send both
CLIENTS = ["bytes", "stub", "stub-defaults", "headrace", "go", "java", "python"]
SOME_CLIENTS = ["bytes", "stub", "headrace", "go", "python"]
# Clients that write Parquet: the client, and where to. Headrace's directory has a file for each of its writers.
COPIES = {"stub-file": ("stub", "copy.parquet"), "python-file": ("python", "copy.parquet"), "headrace-file": ("headrace", "copy.parquet"),
          "headrace-directory": ("headrace", "copy/")}


class Link(typing.NamedTuple):
    megabytes_per_second: float
    delay_ms: float  # each way


class Case(typing.NamedTuple):
    name: str
    table: str
    clients: list[str]
    message_rows: int | None = None  # None: responses of about 1 MiB
    form: str = "arrow"
    compression: str = "none"
    streams: int = 1
    link: Link | None = None  # between client and service, see link.py


CASES = [
    *(Case(f"{table}, 1 MiB responses", table, ["tcp", *CLIENTS]) for table in ROWS),
    Case("narrow8, 1,024-row responses", "narrow8", CLIENTS, message_rows=SMALL),
    Case("narrow8, LZ4", "narrow8", SOME_CLIENTS, compression="lz4"),
    Case("narrow8, ZSTD", "narrow8", SOME_CLIENTS, compression="zstd"),
    Case("narrow8, 2 streams", "narrow8", SOME_CLIENTS, streams=2),
    Case("narrow8, 4 streams", "narrow8", SOME_CLIENTS, streams=4),
    Case("narrow8, 8 streams", "narrow8", ["bytes", "stub", "headrace"], streams=8),
    *(Case(f"{table}, Avro", table, ["bytes", "headrace", "java"], form="avro") for table in ROWS),
    *(Case(f"{table}, to Parquet", table, list(COPIES)) for table in ROWS),
    Case("narrow8, 1 Gbit/s and 20 ms each way", "narrow8", ["bytes", "stub", "stub-defaults", "headrace", "python"], link=Link(125, 20)),
]

# (case, client, other, measure, at most): the measure of the client, divided by that of the other, which is another client of the same case, a pair of case
# and client, or None: then the measure itself counts.
GOALS = [
    *((f"{table}, 1 MiB responses", "headrace", "stub", "cpu_ns_per_row", 1.05) for table in ROWS),
    *((f"{table}, 1 MiB responses", "headrace", "python", "cpu_ns_per_row", 1 / 5) for table in ROWS),
    *((f"{table}, 1 MiB responses", "headrace", "go", "cpu_ns_per_row", 1 / 5) for table in ROWS),
    *((f"{table}, 1 MiB responses", "headrace", "java", "cpu_ns_per_row", 1 / 8) for table in ROWS),
    *((f"{table}, Avro", "headrace", "java", "cpu_ns_per_row", 1 / 7) for table in ROWS),
    ("narrow8, LZ4", "headrace", "python", "wall_ns_per_row", 1 / 2.5),
    ("narrow8, ZSTD", "headrace", "python", "wall_ns_per_row", 1 / 1.9),
    # 80 % of the rate of the better channel setting, which for small responses is gRPC's own.
    ("narrow8, 1,024-row responses", "headrace", "stub-defaults", "wall_ns_per_row", 1 / 0.8),
    *((f"narrow8, {streams} streams", "headrace", ("narrow8, 1 MiB responses", "headrace"), "cpu_ns_per_row", 1.15) for streams in (2, 4, 8)),
    *((f"{table}, 1 MiB responses", "headrace", None, "faults_per_gb", 1000) for table in ROWS),
    *((f"{table}, to Parquet", client, "stub-file", name, most) for table in ROWS for client in ("headrace-file", "headrace-directory")
      for name, most in (("cpu_ns_per_row", 1.05), ("wall_ns_per_row", 1 / 1.7))),
    # 90 % of the link.
    ("narrow8, 1 Gbit/s and 20 ms each way", "headrace", None, "wall_ns_per_byte", 8 / 0.9),
]


def table_file(work, table, rows):
    path = work / f"{table}-{rows}.arrow"
    if not path.exists():
        partial = path.with_suffix(".partial")
        subprocess.run([BIN / "headrace_bench_table", table, str(rows), partial], check=True)
        partial.rename(path)
    return path


@contextlib.contextmanager
def service(work, tables, rows, message_rows):
    ready = work / f"ready-{os.getpid()}.json"
    ready.unlink(missing_ok=True)
    options = ["--message-rows", str(message_rows)] if message_rows else []
    command = [BIN / "headrace", "serve", "--streams-as-asked", "--response-cache", "4GiB", "--ready-file", ready, *options]
    for table in tables:
        command += ["--load", f"bench.data.{table}={table_file(work, table, rows[table])}"]
    with open(work / "serve.log", "a") as log:
        process = subprocess.Popen(["timeout", "3600", *command], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the local service did not start: see {work / 'serve.log'}")
            time.sleep(0.02)
        yield json.loads(ready.read_text())["grpc"]
    finally:
        process.terminate()
        process.wait(timeout=30)
        ready.unlink(missing_ok=True)


@contextlib.contextmanager
def linked(endpoint, link):
    """The address of the endpoint at the other end of the link."""
    if link is None:
        yield endpoint
        return
    command = [sys.executable, ROOT / "bench" / "link.py", endpoint, str(link.megabytes_per_second), str(link.delay_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(timeout=30)


def times_of(case, client, times):
    if case.link is not None:
        return 1  # takes seconds
    return times.get("copies" if client in COPIES else client, times["others"])


def missing_peers():
    return [client for client, made in (("go", GO), ("java", JAVA)) if not made.exists()]


def measure(client, endpoint, case, rows, work, times=1, program=None):
    client, target = COPIES.get(client, (client, None))
    peers = {"python": [PYTHON, ROOT / "bench" / "peers" / "read_python.py"], "go": [GO],
             # Arrow's own memory, as its documentation asks for.
             "java": ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", f"{JAVA}:{JAVA.parent}/dependency/*", "ReadJava"]}
    program = peers.get(client) or [program or BIN / "headrace_bench_read", client]
    words = [endpoint, f"projects/bench/datasets/data/tables/{case.table}", case.form, case.compression, str(case.streams), str(times)]
    if target is not None:
        words.append(f"{work}/{target}")
    done = subprocess.run([*program, *words], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{client} failed at {case.name}: {done.stderr.strip()}")
    cost = json.loads(done.stdout)
    if cost["rows"] != rows[case.table] * times:
        raise RuntimeError(f"{client} read {cost['rows']} rows of {rows[case.table] * times} at {case.name}")
    return {"cpu_ns_per_row": (cost["user"] + cost["system"]) / cost["rows"] * 1e9, "wall_ns_per_row": cost["wall"] / cost["rows"] * 1e9,
            "wall_ns_per_byte": cost["wall"] / max(cost["bytes"], 1) * 1e9,
            "rows_per_second": cost["rows"] / cost["wall"], "mb_per_second": cost["bytes"] / 1e6 / cost["wall"],
            "faults_per_gb": cost["minor_faults"] / max(cost["bytes"], 1) * 1e9, "peak_mib": cost["peak_kib"] / 1024}


def run_case(case, endpoint, rows, work, rounds, times):
    clients = [client for client in case.clients if client not in missing_peers()]
    for client in clients:
        measure(client, endpoint, case, rows, work)  # the first read has the answers encoded
    taken = {client: [] for client in clients}
    for number in range(rounds):
        # Each round begins with another client, so that none is always behind the same one.
        for client in clients[number % len(clients):] + clients[:number % len(clients)]:
            taken[client].append(measure(client, endpoint, case, rows, work, times_of(case, client, times)))
    return taken


def summary(runs, name):
    values = sorted(run[name] for run in runs)
    return statistics.median(values), values[0], values[-1]


def markdown(results):
    lines = []
    for name, taken in results.items():
        lines += ["", f"### {name}", "", "| client | CPU ns/row | (least to most) | M rows/s | MB/s | page faults per GB | peak MiB |", "|---|---|---|---|---|---|---|"]
        for client, runs in taken.items():
            cpu, least, most = summary(runs, "cpu_ns_per_row")
            rate = summary(runs, "rows_per_second")[0]
            megabytes = summary(runs, "mb_per_second")[0]
            lines.append(f"| {client} | {cpu:.1f} | {least:.1f} to {most:.1f} | {rate / 1e6:.2f} | {megabytes:.0f} | {summary(runs, 'faults_per_gb')[0]:.0f} "
                         f"| {summary(runs, 'peak_mib')[0]:.0f} |")
    return "\n".join(lines)


def check_goals(results, goals=None):
    lines, missed = ["", "| goal | at most | seen (least to most) | |", "|---|---|---|---|"], 0
    for case, client, other, name, most in GOALS if goals is None else goals:
        of = (case, other) if isinstance(other, str) else other
        if case not in results or (of is not None and of[1] not in results.get(of[0], {})):
            continue
        ours = [run[name] for run in results[case][client]]
        # Within a case round by round: both met the same machine.
        seen = ours if of is None else [one / run[name] for one, run in zip(ours, results[of[0]][of[1]])]
        middle = statistics.median(seen)
        missed += middle > most
        beside = "" if of is None else f" / {of[1]}" + (f" at {of[0]}" if of[0] != case else "")
        lines.append(f"| {case}: {client}{beside}, {name} | {most:.3g} | {middle:.3g} ({min(seen):.3g} to {max(seen):.3g}) | {'met' if middle <= most else 'MISSED'} |")
    return "\n".join(lines), missed


def not_judged(results, goals=None):
    """The goals of the cases that ran whose other client, or other case, did not."""
    lines = []
    for case, _, other, name, _ in GOALS if goals is None else goals:
        of = (case, other) if isinstance(other, str) else other
        if case in results and of is not None and of[1] not in results.get(of[0], {}):
            lines.append(f"not judged: {case}, {name}: there is no {of[1]}" + (f" at {of[0]}" if of[0] != case else ""))
    return lines


def verdict(missed, unjudged):
    """What the goals of a run come to: a line, and the exit code."""
    if missed:
        return f"goals: {missed} missed" + (f", {unjudged} not judged" if unjudged else ""), 1
    return ("every goal of these cases is met", 0) if unjudged == 0 else (f"goals: none missed, {unjudged} not judged", 4)


def run_micro(options):
    """Runs and prints the micro benchmarks; how many of their goals were missed."""
    results = micro_run.measure(BIN / "headrace_bench_micro", 1 if options.smoke else options.rounds, options.smoke, options.case)
    (options.work / "micro.json").write_text(json.dumps({"results": results}, indent=1) + "\n")
    print(micro_run.markdown(results))
    if options.smoke:
        return 0
    text, missed = check_goals(results, micro_run.GOALS)
    print(text)
    return missed


def end(options, missed, unjudged):
    if options.smoke:
        return 0
    text, code = verdict(missed, unjudged)
    print(f"\n{text}")
    return code


def idle_share(seconds=2.0):
    """What of the machine's CPU time nobody took, over a while."""
    def times():
        numbers = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
        return numbers[3] + numbers[4], sum(numbers[:8])

    idle, everything = times()
    time.sleep(seconds)
    later_idle, later = times()
    return (later_idle - idle) / max(later - everything, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", action="append", help="only cases whose name has this in it; may be given again")
    parser.add_argument("--micro", action="store_true", help="the micro benchmarks alone (micro_run.py), and --case is of them; a run of all cases has them at its end")
    parser.add_argument("--smoke", action="store_true", help="small tables, one round, no goals: that everything works")
    parser.add_argument("--anyway", action="store_true", help="also when the machine is not idle")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "bench", help="where tables, logs and results.json go")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if not options.smoke and not options.anyway and (idle := idle_share()) < 0.9:
        print(f"skipped: the machine is not idle ({idle:.0%} of its CPU time is free), so nothing would be proven; --anyway measures all the same")
        return 3
    if options.micro:
        return end(options, run_micro(options), 0)
    rows = SMOKE_ROWS if options.smoke else ROWS
    wanted = [case for case in CASES if not options.case or any(part in case.name for part in options.case)]
    if not wanted:
        parser.error(f"no case matches; there are: {'; '.join(case.name for case in CASES)}")
    results = {}
    rounds, times = (1, SMOKE_TIMES) if options.smoke else (options.rounds, TIMES)
    for message_rows in dict.fromkeys(case.message_rows for case in wanted):
        cases = [case for case in wanted if case.message_rows == message_rows]
        with service(options.work, sorted({case.table for case in cases}), rows, message_rows) as endpoint:
            for case in cases:
                print(f"-- {case.name}", file=sys.stderr, flush=True)
                with linked(endpoint, case.link) as address:
                    results[case.name] = run_case(case, address, rows, options.work, rounds, times)
    (options.work / "results.json").write_text(json.dumps({"rows": rows, "results": results}, indent=1) + "\n")
    print(markdown(results))
    for client in missing_peers():
        print(f"\nNot measured: {client} (bench/peers/build.sh says why)")
    missed, unjudged = 0, []
    if not options.smoke:
        text, missed = check_goals(results)
        unjudged = not_judged(results)
        print("\n".join([text, "", *unjudged]))
    if not options.case:
        missed += run_micro(options)
    return end(options, missed, len(unjudged))


if __name__ == "__main__":
    sys.exit(main())
