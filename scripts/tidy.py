#!/usr/bin/env python3
"""clang-tidy over files, a few at a time, none started after a time limit.

Usage: tidy.py BUILD_DIR SECONDS FILE...     exit code 1 when there are findings
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time


def main():
    build_dir, limit, files = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    commands = json.loads((pathlib.Path(build_dir) / "compile_commands.json").read_text())
    compiled = {os.path.realpath(os.path.join(entry["directory"], entry["file"])) for entry in commands}
    start = time.monotonic()

    def check(file):
        if os.path.realpath(file) not in compiled:
            return file, "nothing compiles it"
        if time.monotonic() - start > limit:
            return file, "no time left"
        # The precompiled headers are the other compiler's.
        done = subprocess.run(["clang-tidy-19", "--quiet", "--extra-arg=-Wno-ignored-gch", "-p", build_dir, file], capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout + done.stderr, flush=True)
        return file, "clean" if done.returncode == 0 else "findings"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, files))
    for file, result in results:
        if result not in ("clean", "findings"):
            print(f"not checked: {file}: {result}")
    clean = sum(result == "clean" for _, result in results)
    findings = sum(result == "findings" for _, result in results)
    print(f"clang-tidy: {clean} files clean, {findings} with findings, {len(results) - clean - findings} not checked")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
