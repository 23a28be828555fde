"""Two builds of the library beside each other, over one prepared set of responses of the local service on this machine. bench/compare starts it.

Each case is read in turns by the build of another commit and by this tree's, the first of each round being once the one and once the other. What counts is the
CPU time per row: the ratio of the two in each round, and the median of these. Exit code: 0 nothing is slower, 1 a case is, 3 the machine was not idle."""

import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run as bench

# A change that costs 10 % is to be seen, and what two runs of the same program differ by is not.
MOST = 1.06
# The cases, and which client of them is this tree's.
NAMES = {**{f"{table}, {what}": client for what, client in (("1 MiB responses", "headrace"), ("Avro", "headrace"), ("to Parquet", "headrace-file")) for table in bench.ROWS},
         "narrow8, 1,024-row responses": "headrace", "narrow8, LZ4": "headrace", "narrow8, 4 streams": "headrace"}


def ratios(case, endpoint, rows, work, rounds, base, ours, times):
    client = NAMES[case.name]
    # The first read has the answers encoded.
    for program in (ours, base):
        bench.measure(client, endpoint, case, rows, work, program=program)
    seen = []
    for number in range(rounds):
        costs = {}
        for program in (base, ours) if number % 2 == 0 else (ours, base):
            costs[program] = bench.measure(client, endpoint, case, rows, work, bench.times_of(case, client, times), program=program)["cpu_ns_per_row"]
        seen.append((costs[base], costs[ours]))
    return seen


def judge(results, most):
    """The table, and the names of the cases that are slower than `most` times the other commit."""
    lines, slower = ["| case | before, CPU ns/row | now | ratio (least to most) | |", "|---|---|---|---|---|"], []
    for name, seen in results.items():
        each = [ours / base for base, ours in seen]
        middle = statistics.median(each)
        if middle > most:
            slower.append(name)
        lines.append(f"| {name} | {statistics.median(base for base, _ in seen):.1f} | {statistics.median(ours for _, ours in seen):.1f} "
                     f"| {middle:.3f} ({min(each):.3f} to {max(each):.3f}) | {'SLOWER' if middle > most else 'not slower'} |")
    return "\n".join(lines), slower


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=pathlib.Path, help="headrace_bench_read of the other commit")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--case", action="append", help="only cases whose name has this in it; may be given again")
    parser.add_argument("--most", type=float, default=MOST, help="slower is what takes more than so many times the CPU time")
    parser.add_argument("--smoke", action="store_true", help="small tables: that everything works")
    parser.add_argument("--anyway", action="store_true", help="also when the machine is not idle")
    parser.add_argument("--work", type=pathlib.Path, default=bench.ROOT / "build" / "bench", help="where tables and logs go")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if not options.smoke and not options.anyway and (idle := bench.idle_share()) < 0.9:
        print(f"skipped: the machine is not idle ({idle:.0%} of its CPU time is free), so nothing would be proven; --anyway measures all the same")
        return 3
    wanted = [case for case in bench.CASES if case.name in NAMES and (not options.case or any(part in case.name for part in options.case))]
    if not wanted:
        parser.error(f"no case matches; there are: {'; '.join(NAMES)}")
    rows, times = (bench.SMOKE_ROWS, bench.SMOKE_TIMES) if options.smoke else (bench.ROWS, bench.TIMES)
    results = {}
    for message_rows in dict.fromkeys(case.message_rows for case in wanted):
        cases = [case for case in wanted if case.message_rows == message_rows]
        with bench.service(options.work, sorted({case.table for case in cases}), rows, message_rows) as endpoint:
            for case in cases:
                print(f"-- {case.name}", file=sys.stderr, flush=True)
                results[case.name] = ratios(case, endpoint, rows, options.work, options.rounds, options.base, bench.BIN / "headrace_bench_read", times)
    text, slower = judge(results, options.most)
    print(text)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
