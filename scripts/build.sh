#!/usr/bin/env bash
# Configures and builds one CMake preset into build/PRESET.
# Usage: scripts/build.sh [PRESET [TARGET...]]      PRESET: release (the default), debug, asan, tsan, fuzz
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
log=build/$preset/configure.log
mkdir -p "build/$preset"
# Two builds in one directory write each other's precompiled headers, and the compiler dies of it: the second waits.
exec 9>"build/$preset/.build-lock"
flock -n 9 || { echo "another build of $preset is running; waiting for it"; flock -w 3600 9; }
# Ninja configures again by itself when a CMake file changes.
if [ ! -e "build/$preset/build.ninja" ]; then
  cmake --preset "$preset" >"$log" 2>&1 || { tail -n 30 "$log" >&2; exit 1; }
fi
exec cmake --build "build/$preset" --parallel "${HEADRACE_BUILD_JOBS:-$(nproc)}" ${1:+--target "$@"}
