#!/usr/bin/env bash
# The tests.
#   scripts/test.sh                    the short run, what CI runs: build, format, unit tests, the site of the documentation, tests across
#                                      folders, the demo, 20 s of each fuzz target, clang-tidy on changed files
#   scripts/test.sh --all [PART...]    the long parts: sanitize, tidy, long, fuzz, peers, bench; without PART the short run and then all of them
#   scripts/test.sh -- NAME...         only these: a folder of src/headrace (its unit tests), or a path under tests/ (pytest)
# Exit code 0 only when everything that ran passed. What is skipped is printed with its reason. Logs: build/PRESET/*.log
set -euo pipefail
cd "$(dirname "$0")/.."

# clang-tidy on changed files starts no file after this many seconds; `--all tidy` checks every file.
tidy_seconds=300
# Each fuzz target's run: in the short run, and with `--all fuzz`.
fuzz_seconds_short=20
fuzz_seconds=120
# The demo on a tree that is built (12 to 17 s on two cores), and the site with its packages (16 s): many times what they take.
demo_seconds=180
site_seconds=300

failed=()
skipped=()
say() { printf '\n== %s\n' "$*"; }
skip() { skipped+=("$*"); printf '\nskipped: %s\n' "$*"; }
finish() {
  say "summary, $SECONDS s"
  [ ${#skipped[@]} = 0 ] || printf 'skipped: %s\n' "${skipped[@]}"
  if [ ${#failed[@]} = 0 ]; then echo "everything that ran passed"; exit 0; fi
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
}
# step NAME COMMAND...: runs it, remembers a failure, goes on.
step() {
  local name=$1 start=$SECONDS result=ok
  shift
  say "$name"
  "$@" || { failed+=("$name"); result=FAILED; }
  printf -- '-- %s: %s, %d s\n' "$name" "$result" $((SECONDS - start))
}
# must NAME COMMAND...: the same, but the run ends when it fails.
must() { local before=${#failed[@]}; step "$@"; [ ${#failed[@]} = "$before" ] || finish; }

# Files of the tree and new ones, also before they are committed.
tree_files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ ! -e "$f" ] || echo "$f"; done; }

check_format() { tree_files 'src/*.h' 'src/*.cc' 'tests/*.cc' 'fuzz/*.cc' 'fuzz/*.h' 'bench/*.cc' 'bench/*.h' | xargs clang-format-19 --dry-run --Werror; }

# Sources that changed since origin's main branch, or in the last commit when that is the same; a changed header stands for the source of its name.
changed_sources() {
  local base
  base=$(git merge-base origin/main HEAD 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=$(git rev-parse --verify --quiet HEAD~1 || git hash-object -t tree /dev/null); fi
  { git diff --name-only "$base" -- src; git ls-files --others --exclude-standard -- src; } | sed -n 's/\.h$/.cc/; /\.cc$/p' | sort -u |
    while read -r f; do [ ! -e "$f" ] || echo "$f"; done
}
check_tidy() {  # check_tidy SECONDS, files on standard input
  local files
  mapfile -t files
  if [ ${#files[@]} = 0 ]; then echo "no file to check"; return; fi
  build/venv/bin/python scripts/tidy.py build/release "$1" "${files[@]}"
}

# The sanitizers' settings for programs that pytest starts; ctest has its own from CMake (cmake/HeadraceBuild.cmake).
sanitizer_settings() {
  case $1 in
    asan) echo "HEADRACE_TEST_BUILD=SANITIZED LSAN_OPTIONS=suppressions=$PWD/cmake/sanitizers/leak.supp:print_suppressions=0" ;;
    # Arrow's own allocator gives one thread's memory to the next without a lock that the sanitizer could see: false reports. It sees malloc's.
    tsan) echo "HEADRACE_TEST_BUILD=SANITIZED TSAN_OPTIONS=ignore_noninstrumented_modules=1 ARROW_DEFAULT_MEMORY_POOL=system" ;;
    *) echo "HEADRACE_TEST_BUILD=plain" ;;
  esac
}
unit_tests() {  # unit_tests PRESET [CTEST-ARGUMENTS...]: prints ctest's closing lines, all of its output when a test failed
  local preset=$1 log=build/$1/ctest.log
  shift
  if ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$(nproc)" "$@" >"$log" 2>&1; then
    sed -n '/tests passed/,$p' "$log"
  else
    grep -vE '^ *[0-9]+/[0-9]+ Test .* Passed|^ +Start +[0-9]+:' "$log"
    return 1
  fi
}
crossing_tests() {  # crossing_tests PRESET PYTEST-ARGUMENTS...
  local preset=$1
  shift
  # shellcheck disable=SC2046  # one word a setting
  env $(sanitizer_settings "$preset") HEADRACE_BUILD_DIR="build/$preset" build/venv/bin/python -m pytest -p no:cacheprovider --durations=5 "$@"
}

# Not within pytest: the demo builds, which would disturb tests that use the same build.
check_demo() { timeout "$demo_seconds" scripts/demo.sh >build/demo-test.log 2>&1 && tail -n 4 build/demo-test.log || { tail -n 40 build/demo-test.log; return 1; }; }

short_run() {
  must "set-up" scripts/setup.sh
  if command -v clang-format-19 >/dev/null; then step "format" check_format; else skip "format: there is no clang-format-19"; fi
  must "build release" scripts/build.sh release
  step "unit tests" unit_tests release
  step "site of the documentation" timeout "$site_seconds" scripts/docs.sh
  step "tests across folders" crossing_tests release -m "not long" tests
  step "demo" check_demo
  skip "tables of the emulators local_bigquery and goccy: they take long to install; scripts/test.sh --all peers has them"
  if command -v clang++-19 >/dev/null; then fuzz "$fuzz_seconds_short"; else skip "fuzz targets: there is no clang++-19"; fi
  if command -v clang-tidy-19 >/dev/null; then
    step "clang-tidy on changed files" check_tidy "$tidy_seconds" < <(changed_sources)
  else
    skip "clang-tidy: there is no clang-tidy-19"
  fi
}

part_sanitize() {
  local preset
  for preset in asan tsan; do
    step "build $preset" scripts/build.sh "$preset"
    [[ " ${failed[*]-} " != *"build $preset"* ]] || continue
    step "unit tests, $preset" unit_tests "$preset"
    step "tests across folders, $preset" crossing_tests "$preset" -m "not long" tests
  done
}
part_tidy() {
  must "build release" scripts/build.sh release
  step "clang-tidy on every file" check_tidy 1000000 < <(tree_files 'src/*.cc' 'tests/*.cc' 'fuzz/*.cc' 'bench/*.cc')
}
part_long() {
  must "build release" scripts/build.sh release
  step "long tests" crossing_tests release -m long tests
}
# fuzz SECONDS: every target, two side by side; a target's output comes when it ends.
fuzz() {
  local target name
  must "build fuzz" scripts/build.sh fuzz fuzz_targets
  say "fuzz targets, $1 s each: $(basename -a build/fuzz/bin/fuzz_* | sed 's/^fuzz_//' | tr '\n' ' ')"
  local start=$SECONDS
  basename -a build/fuzz/bin/fuzz_* | xargs -P 2 -I{} sh -c 'scripts/fuzz.sh "$1" "$2" >build/fuzz/"$1".out 2>&1 || touch build/fuzz/"$1".failed' sh {} "$1"
  for target in build/fuzz/bin/fuzz_*; do
    name=$(basename "$target")
    if [ -e "build/fuzz/$name.failed" ]; then
      rm "build/fuzz/$name.failed"
      failed+=("$name")
      cat "build/fuzz/$name.out"
    else
      printf '%s: clean, %s inputs\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.out")"
    fi
  done
  printf -- '-- fuzz targets: %d s\n' $((SECONDS - start))
}
part_fuzz() { fuzz "$fuzz_seconds"; }
# Tables of every emulator that tests/peers knows; one that cannot be installed here is an error.
part_peers() {
  must "build release" scripts/build.sh release
  local name
  for name in bqemulator local_bigquery goccy; do
    step "install $name" tests/peers/install.sh "$name"
    [[ " ${failed[*]-} " != *"install $name"* ]] || continue
    step "tables of $name" env HEADRACE_PEERS="$name" HEADRACE_TEST_BUILD=plain HEADRACE_BUILD_DIR=build/release \
      build/venv/bin/python -m pytest -p no:cacheprovider --durations=5 tests/peers
  done
}

# The goals of bench/run, beside every peer: one that cannot be built here is an error. Measured only on an idle machine, else they would prove nothing.
part_bench() {
  must "build release" scripts/build.sh release
  step "build the peers of the benchmarks" bench/peers/build.sh --all
  [[ " ${failed[*]-} " != *"build the peers of the benchmarks"* ]] || return 0
  local result=0
  say "benchmarks"
  build/venv/bin/python bench/run.py || result=$?
  case $result in
    0) echo "-- benchmarks: every goal is met" ;;
    3) skip "benchmarks: the machine is not idle" ;;
    4) failed+=("benchmarks: goals were not judged") ;;
    *) failed+=("benchmarks") ;;
  esac
}

all_parts=(sanitize tidy long fuzz peers bench)
case ${1:-} in
  "") short_run ;;
  --all)
    shift
    for part in "$@"; do
      [[ " ${all_parts[*]} " == *" $part "* ]] || { echo "scripts/test.sh: there is no part '$part'; the parts are: ${all_parts[*]}" >&2; exit 2; }
    done
    if [ $# = 0 ]; then
      short_run
      set -- "${all_parts[@]}"
    else
      must "set-up" scripts/setup.sh
    fi
    for part in "$@"; do "part_$part"; done
    ;;
  --)
    shift
    [ $# -gt 0 ] || { echo "scripts/test.sh -- NAME...: a folder of src/headrace or a path under tests/" >&2; exit 2; }
    for name in "$@"; do
      if [ -d "src/headrace/$name" ]; then
        must "build $name" scripts/build.sh release "headrace_${name}_test"
        step "unit tests of $name" "build/release/bin/headrace_${name}_test" --gtest_brief=1
      elif [ -e "${name%%::*}" ]; then
        must "build release" scripts/build.sh release
        step "$name" crossing_tests release "$name"
      else
        echo "scripts/test.sh: '$name' is neither a folder of src/headrace nor a path under tests/" >&2
        exit 2
      fi
    done
    ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
finish
