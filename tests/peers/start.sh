#!/usr/bin/env bash
# tests/peers/start.sh NAME REST-PORT GRPC-PORT DIRECTORY    runs an installed peer in the foreground, on loopback, for at most an hour
# DIRECTORY is its own for the run. Its memory is limited.
set -euo pipefail
name=$1 rest=$2 grpc=$3 directory=$4
peer=$(cd "$(dirname "$0")/../../build/peers/$name" && pwd)
ulimit -v 12000000
case $name in
  bqemulator) HOME=$peer/home exec timeout 3600 "$peer/venv/bin/bqemulator" start --ephemeral --rest-port "$rest" --grpc-port "$grpc" --log-level warning ;;
  local_bigquery)
    HOME=$peer/home exec timeout 3600 "$peer/venv/bin/local-bigquery" serve --host 127.0.0.1 --port "$rest" --grpc-port "$grpc" --project test --dataset unused \
      --data-dir "$directory" ;;
  goccy) exec timeout 3600 "$peer/bigquery-emulator" --project test --host 127.0.0.1 --port "$rest" --grpc-port "$grpc" --log-level error ;;
  *) echo "tests/peers/start.sh: there is no peer '$name'" >&2; exit 2 ;;
esac
