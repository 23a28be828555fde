"""What scripts/demo.sh asks of Python: comparing a result with the original, and reading the local service's counters.

    demo_data.py compare FLIGHTS.CSV RESULT_DIR     every value of every row, in any order
    demo_data.py wait ADMIN_ADDRESS ROWS PID        until the service has sent so many rows; fails when process PID ends before
    demo_data.py served ADMIN_ADDRESS ROWS          sessions, streams, rows so far, and how many beyond the table's ROWS, in one line
    demo_data.py address READY_FILE grpc|admin
"""

import json
import os
import pathlib
import sys
import time
import urllib.request

TEXT = ["carrier", "tailnum", "origin", "dest"]
INTEGERS = ["year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay", "flight", "air_time",
            "distance", "hour", "minute"]


def compare(original_path, result_directory):
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    types = {name: pa.string() for name in TEXT} | {name: pa.int64() for name in INTEGERS} | {"time_hour": pa.timestamp("us", "UTC")}
    original = pyarrow.csv.read_csv(original_path, convert_options=pyarrow.csv.ConvertOptions(
        column_types=types, null_values=["NA"], strings_can_be_null=True))
    files = sorted(pathlib.Path(result_directory).glob("*.parquet"))
    result = pa.concat_tables(pyarrow.parquet.read_table(file) for file in files)
    if result.schema.names != original.schema.names or result.schema.types != original.schema.types:
        sys.exit(f"the schema differs:\n{result.schema}\n{original.schema}")
    if result.num_rows != original.num_rows:
        sys.exit(f"{result.num_rows} rows were copied, the original has {original.num_rows}")
    # Streams are read side by side, so the order between them is free: both sides are sorted by all columns.
    order = [(name, "ascending") for name in original.schema.names]
    result, original = result.sort_by(order).combine_chunks(), original.sort_by(order).combine_chunks()
    for name in original.schema.names:
        if not result[name].equals(original[name]):
            sys.exit(f"column {name} differs")
    nulls = sum(original[name].null_count for name in original.schema.names)
    print(f"equal: {original.num_rows:,} rows x {original.num_columns} columns, {nulls:,} nulls among them, in {len(files)} files")


def counters(address):
    with urllib.request.urlopen(f"http://{address}/headrace/counters", timeout=10) as answer:
        return json.load(answer)


def rows_sent(address):
    return sum(stream["rows_sent"] for stream in counters(address)["streams"])


def wait(address, rows, pid):
    deadline = time.monotonic() + 60
    while rows_sent(address) < rows:
        if time.monotonic() > deadline:
            sys.exit(f"the service has not sent {rows} rows within a minute")
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            sys.exit("the copy ended before it was half way")
        time.sleep(0.02)


def served(address, rows):
    found, sent = counters(address), rows_sent(address)
    print(f"{found['sessions_created']} session, {len(found['streams'])} streams, {sent:,} rows sent" +
          (f", {sent - rows:,} of them a second time" if sent > rows else ""))


def main():
    what, *arguments = sys.argv[1:]
    if what == "compare":
        compare(*arguments)
    elif what == "wait":
        wait(arguments[0], int(arguments[1]), int(arguments[2]))
    elif what == "served":
        served(arguments[0], int(arguments[1]))
    elif what == "address":
        print(json.loads(pathlib.Path(arguments[0]).read_text())[arguments[1]])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
