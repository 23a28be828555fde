#!/usr/bin/env bash
# Usage: bench/peers/build.sh [--all]
# Builds the peers that are no part of the C++ build, into build/bench/peers, where their tools are: Go's client needs Go 1.26, Java's a JDK 17 and Maven
# (apt: openjdk-17-jdk-headless, maven). What cannot be built here is said, and bench/run leaves it out;
# with --all it is an error.
set -euo pipefail
case ${1:-} in "" | --all) all=${1:-} ;; *) echo "usage: bench/peers/build.sh [--all]" >&2; exit 2 ;; esac
missing=0
lacking() {
  if [ -z "$all" ]; then echo "skipped: $*"; else echo "bench/peers/build.sh: $*" >&2; missing=1; fi
}
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
mkdir -p "$root/build/bench/peers"
version=$(command -v go >/dev/null && GOTOOLCHAIN=local go env GOVERSION || true)
if [[ "$version" =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 26 ]; then
  (cd go && GOFLAGS=-mod=readonly go build -o "$root/build/bench/peers/read_go" .)
else
  lacking "the Go client needs Go 1.26 or later (Go's own archive; Debian 12's package golang is older), and there is ${version:-no Go}"
fi
if command -v mvn >/dev/null && command -v javac >/dev/null; then
  [ -e "$root/build/bench/peers/java/read-java-1.jar" ] && [ -z "$(find java -newer "$root/build/bench/peers/java/read-java-1.jar" -type f)" ] || (cd java && mvn -q -B package)
else
  lacking "the Java client needs a JDK 17 and Maven (packages openjdk-17-jdk-headless and maven)"
fi
exit $missing
