"""Headrace reads the tables of independent emulators of BigQuery: each type, null, repeated, nested. What an emulator does otherwise than BigQuery is
named here, one by one, and asserted: when it no longer does, the test fails and the entry goes.

The short run has bqemulator; `scripts/test.sh --all peers` has the others as well. HEADRACE_PEERS names those that are tested.
"""

import json
import os
import struct

import pyarrow.parquet as pq
import pytest

import arrow_form
import cases
import harness
from peer import DATASET, PROJECT, Peer

PEERS = os.environ.get("HEADRACE_PEERS", "bqemulator").split()
KINDS = [kind for kind in cases.SCALARS if kind not in (cases.TIMESTAMP_PICOS, cases.NUMERIC_10_2, cases.BIGNUMERIC_40_20, cases.INTERVAL)]


@pytest.fixture(scope="session", params=PEERS)
def peer(request, tmp_path_factory):
    with Peer(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


def columns_of(kind):
    inner = (cases.Column("v", kind), cases.Column("r", kind, mode="REPEATED"))
    return [cases.Column("id", cases.INT64, mode="REQUIRED"), cases.Column("v", kind), cases.Column("r", kind, mode="REPEATED"),
            cases.Column("s", fields=inner), cases.Column("n", fields=inner, mode="REPEATED")]


def rows_of(kind):
    values = kind.values + (None,)
    rows = []
    for i, value in enumerate(values):
        present = [v for v in (value, values[i - 1]) if v is not None]
        rows.append({"id": i, "v": value, "r": present, "s": {"v": value, "r": present}, "n": [{"v": v, "r": present[:i % 3]} for v in (value, values[0])]})
    return rows


# Tables that the emulator refuses to have, and its words.
REFUSED = {
    ("bqemulator", "bignumeric"): "500 to POST /datasets/peer/tables",
}
# insertAll answers 500 to these: they are filled by SQL, the scalar and the repeated column only.
BY_SQL = {("bqemulator", name) for name in ("geography", "range_date", "range_datetime", "range_timestamp")}


def well_known_binary(text):
    name, _, numbers = text.partition("(")
    points = [tuple(map(float, point.split())) for point in numbers.rstrip(")").split(",") if point]
    if name == "POINT":
        return struct.pack("<BIdd", 1, 1, *points[0])
    if name == "LINESTRING":
        return struct.pack("<BII", 1, 2, len(points)) + b"".join(struct.pack("<dd", *point) for point in points)
    assert text == "GEOMETRYCOLLECTION EMPTY"
    return struct.pack("<BII", 1, 7, 0)


def geography_as_wkb(columns, rows):
    columns = [columns[0], cases.Column("v", cases.BYTES), cases.Column("r", cases.BYTES, mode="REPEATED")]
    return columns, [{"id": row["id"], "v": row["v"] and well_known_binary(row["v"]), "r": [well_known_binary(v) for v in row["r"]]} for row in rows]


def range_as_struct(columns, rows):
    """The Arrow field is struct<start, end> without the mark that makes it a RANGE."""
    element = columns[1].kind.element
    sides = (cases.Column("start", element), cases.Column("end", element))
    columns = [columns[0], cases.Column("v", fields=sides), cases.Column("r", fields=sides, mode="REPEATED")]

    def of(value):
        return value and dict(zip(("start", "end"), value))

    return columns, [{"id": row["id"], "v": of(row["v"]), "r": [of(v) for v in row["r"]]} for row in rows]


# What the emulator sends otherwise than BigQuery does: (columns, rows) as they were stored -> as Headrace reads them.
OTHERWISE = {("bqemulator", "geography"): geography_as_wkb}
OTHERWISE |= {("bqemulator", f"range_{element}"): range_as_struct for element in ("date", "datetime", "timestamp")}


def copy(run, peer, table, path, *options):
    run("copy", f"bq:{PROJECT}.{DATASET}.{table}", path, "--bigquery-storage-endpoint", f"http://127.0.0.1:{peer.grpc}", "--quiet", *options)
    return pq.ParquetFile(path).read()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_value(peer, run, tmp_path, kind):
    table, columns, rows, case = kind.name, columns_of(kind), rows_of(kind), (peer.name, kind.name)
    if case in REFUSED:
        with pytest.raises(AssertionError, match=REFUSED[case]):
            peer.create(table, columns)
        return
    if case in BY_SQL:
        columns = columns[:3]
        peer.create_sql(table, columns)
        peer.insert_sql(table, columns, rows)
    else:
        peer.create(table, columns)
        peer.insert(table, columns, rows)
    columns, rows = OTHERWISE.get(case, lambda *same: same)(columns, rows)
    result = copy(run, peer, table, tmp_path / "t.parquet").sort_by("id")
    cases.assert_same(arrow_form.rows_of(result, columns), rows, columns, peer.name)


def test_many_rows_through_several_streams(peer, run, tmp_path):
    rows = 300_000
    peer.query(f"CREATE TABLE {DATASET}.many AS SELECT n AS id, CONCAT('row ', CAST(n AS STRING)) AS name FROM UNNEST(GENERATE_ARRAY(1, {rows})) AS n")
    where = ["--bigquery-storage-endpoint", f"http://127.0.0.1:{peer.grpc}", "--max-stream-count", 4]
    assert json.loads(run("plan", f"bq:{PROJECT}.{DATASET}.many", "--json", *where)[0])["streams"] > 1
    run("copy", f"bq:{PROJECT}.{DATASET}.many", tmp_path / "out", "--quiet", *where)
    result = harness.read_result(tmp_path / "out").sort_by("id")
    assert result["id"].to_pylist() == list(range(1, rows + 1))
    assert result["name"].to_pylist() == [f"row {n}" for n in range(1, rows + 1)]


@pytest.mark.parametrize("restriction, wanted", [("id < 3", [0, 1, 2]), ("v IS NULL", [13]), ("v = 'a' AND id > 0", [2])])
def test_restriction_and_selected_fields(peer, run, tmp_path, restriction, wanted):
    columns = [cases.Column("id", cases.INT64, mode="REQUIRED"), cases.Column("v", cases.STRING), cases.Column("w", cases.DATE)]
    rows = [{"id": i, "v": None if i == 13 else "x" if i != 2 else "a", "w": i} for i in range(20)]
    table = f"restricted_{wanted[0]}"
    peer.create(table, columns)
    peer.insert(table, columns, rows)
    result = copy(run, peer, table, tmp_path / "t.parquet", "--row-restriction", restriction, "--selected-fields", "id,w").sort_by("id")
    assert result.column_names == ["id", "w"]
    assert result["id"].to_pylist() == wanted
