#!/usr/bin/env bash
# Builds the peers that are no part of the C++ build, into build/bench/peers, where their tools are: Go's client needs Go 1.26, Java's a JDK 17 and Maven
# (apt: openjdk-17-jdk-headless, maven). What cannot be built here is said, and bench/run leaves it out.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
mkdir -p "$root/build/bench/peers"
version=$(command -v go >/dev/null && GOTOOLCHAIN=local go env GOVERSION || true)
if [[ "$version" =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 26 ]; then
  (cd go && GOFLAGS=-mod=readonly go build -o "$root/build/bench/peers/read_go" .)
else
  echo "skipped: the Go client needs Go 1.26 or later, and there is ${version:-no Go}"
fi
if command -v mvn >/dev/null && command -v javac >/dev/null; then
  [ -e "$root/build/bench/peers/java/read-java-1.jar" ] && [ -z "$(find java -newer "$root/build/bench/peers/java/read-java-1.jar" -type f)" ] || (cd java && mvn -q -B package)
else
  echo "skipped: the Java client needs a JDK 17 and Maven"
fi
