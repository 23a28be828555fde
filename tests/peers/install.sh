#!/usr/bin/env bash
# tests/peers/install.sh NAME...    bqemulator, local_bigquery, goccy
# Installs independent emulators of BigQuery, at pinned versions with checksums, into build/peers. A second run takes a moment. Exit code 3: a tool
# that the emulator needs is missing on this machine (the text says which).
#   bqemulator      3 minutes, 0.7 GB; Python 3.11
#   local_bigquery  3 minutes, 0.9 GB; Python 3.13
#   goccy           10 to 30 minutes, 5 GB with the Go caches, 6.4 GB of memory while it builds; Go 1.26
set -euo pipefail
cd "$(dirname "$0")/../.."
here=tests/peers
say() { printf 'peers: %s\n' "$*"; }
missing() { say "$*"; exit 3; }

# The newest Python of that version that the machine has, on the path or where pyenv keeps its own.
find_python() {  # find_python 3.13
  local candidate
  for candidate in "/usr/bin/python$1" "$(command -v "python$1" || true)" "$HOME"/.pyenv/versions/"$1".*/bin/"python$1"; do
    if [ -x "$candidate" ] && "$candidate" -c 'import venv' 2>/dev/null; then echo "$candidate"; return; fi
  done
}
# DuckDB looks for its extensions below HOME and fetches none when they are there: they come as packages, and each peer has a HOME of its own.
place_extensions() {  # place_extensions VENV HOME EXTENSION...
  local python=$1/bin/python home=$2
  shift 2
  mkdir -p "$home"
  HOME=$PWD/$home "$python" -c 'import sys; from duckdb_extensions import extension_importer as e; [e.import_extension(x) for x in sys.argv[1:]]' "$@"
}
install_python_peer() {  # install_python_peer NAME PYTHON-VERSION EXTENSION...
  local name=$1 version=$2 python
  shift 2
  python=$(find_python "$version")
  [ -n "$python" ] || missing "$name needs Python $version with venv, which is not here"
  rm -rf "build/peers/$name" && mkdir -p "build/peers/$name"
  "$python" -m venv "build/peers/$name/venv"
  "build/peers/$name/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r "$here/$name.txt"
  place_extensions "build/peers/$name/venv" "build/peers/$name/home" "$@"
}
install_goccy() {
  command -v go >/dev/null || missing "goccy needs Go, which is not here"
  mkdir -p build/peers/goccy
  # Memory grows with each package compiled at once: one.
  (cd "$here/goccy" && GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS="-buildvcs=false -mod=readonly" \
    nice go build -p 1 -o ../../../build/peers/goccy/bigquery-emulator github.com/goccy/bigquery-emulator/cmd/bigquery-emulator)
}

[ $# -gt 0 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
for name in "$@"; do
  case $name in
    bqemulator | local_bigquery) pins=$here/$name.txt ;;
    goccy) pins=$here/goccy/go.sum ;;
    *) echo "tests/peers/install.sh: there is no peer '$name'" >&2; exit 2 ;;
  esac
  key=$(cat "$0" "$pins" | sha256sum | cut -c1-64)
  [ "$(cat "build/peers/$name/.installed" 2>/dev/null)" = "$key" ] && continue
  say "installing $name"
  case $name in
    bqemulator) install_python_peer bqemulator 3.11 spatial avro ;;
    local_bigquery) install_python_peer local_bigquery 3.13 icu spatial ducklake httpfs avro json parquet ;;
    goccy) install_goccy ;;
  esac
  echo "$key" >"build/peers/$name/.installed"
done
