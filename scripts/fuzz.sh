#!/usr/bin/env bash
# Runs one fuzz target of the preset `fuzz` for some seconds, from its seeds and what earlier runs found (build/fuzz/corpus/NAME).
# Usage: scripts/fuzz.sh fuzz_NAME SECONDS      An input that crashes it is left in build/fuzz/crashes; it belongs into fuzz/regressions/NAME.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?usage: scripts/fuzz.sh fuzz_NAME SECONDS}
seconds=${2:?usage: scripts/fuzz.sh fuzz_NAME SECONDS}
name=${target#fuzz_}
corpus=build/fuzz/corpus/$name
crashes=build/fuzz/crashes/$name
mkdir -p "$corpus" "$crashes"
export LSAN_OPTIONS=suppressions=$PWD/cmake/sanitizers/leak.supp:print_suppressions=0
HEADRACE_FUZZ_SEEDS=$corpus "build/fuzz/bin/$target"
log=build/fuzz/$target.log
regressions=fuzz/regressions/$name
[ -d "$regressions" ] || regressions=
# shellcheck disable=SC2086  # no directory, no argument
"build/fuzz/bin/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 -verbosity=0 \
  -artifact_prefix="$crashes/" "$corpus" $regressions >"$log" 2>&1 || { tail -n 60 "$log"; exit 1; }
grep '^stat::' "$log"
