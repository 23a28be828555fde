"""An emulator as a process of its own: started by start.sh on free ports of loopback, spoken to over REST, stopped by its id."""

import base64
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import cases
import harness
from writers import json_value

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT, DATASET = "test", "peer"


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Peer:
    def __init__(self, name, directory):
        self.name = name
        self.directory = pathlib.Path(directory)
        self.rest, self.grpc = _free_port(), _free_port()

    def __enter__(self):
        assert (ROOT / "build/peers" / self.name / ".installed").exists(), f"{self.name} is not installed: run tests/peers/install.sh {self.name}"
        self.log = open(self.directory / f"{self.name}.log", "wb")
        command = [ROOT / "tests/peers/start.sh", self.name, str(self.rest), str(self.grpc), str(self.directory)]
        # bqemulator moves DATETIME in Avro by the zone of its process.
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=os.environ | {"TZ": "UTC"})
        try:
            harness.wait_until(self._answers, 120, f"{self.name}, see {self.directory}")
            self.call("POST", "/datasets", {"datasetReference": {"projectId": PROJECT, "datasetId": DATASET}})
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def _answers(self):
        assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}: {(self.directory / f'{self.name}.log').read_text()[-3000:]}"
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", self.grpc), 1), urllib.request.urlopen(f"{self.url}/datasets", timeout=10) as answer:
                return answer.status == 200
        return False

    def stop(self):
        # KILL to the emulator itself, whose parent is `timeout`: one of them does not end on TERM.
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        with contextlib.suppress(OSError):
            for pid in children.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.log.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.rest}/bigquery/v2/projects/{PROJECT}"

    def call(self, method, path, body=None):
        """The answer's JSON; AssertionError with the peer's text when it refuses."""
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=content, method=method, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                result = json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{self.name}: {error.code} to {method} {path}: {error.read().decode()[:500]}") from None
        refused = result.get("insertErrors") or result.get("errors")  # bqemulator answers a query that failed with 200 (facts: bad SQL)
        assert not refused, f"{self.name}: {method} {path}: {str(refused)[:500]}"
        return result

    def query(self, text):
        return self.call("POST", "/queries", {"query": text, "useLegacySql": False})

    def create(self, table, columns):
        reference = {"projectId": PROJECT, "datasetId": DATASET, "tableId": table}
        # goccy's reads know only the names of legacy SQL.
        names = LEGACY_NAMES if self.name == "goccy" else {}
        self.call("POST", f"/datasets/{DATASET}/tables", {"tableReference": reference, "schema": {"fields": [_schema(column, names) for column in columns]}})

    def create_sql(self, table, columns):
        self.query(f"CREATE TABLE {DATASET}.{table} ({', '.join(f'{column.name} {_sql_type(column)}' for column in columns)})")

    def insert(self, table, columns, rows):
        """insertAll: each row as JSON."""
        content = [{"json": {column.name: json_value(row[column.name], column) for column in columns}} for row in rows]
        self.call("POST", f"/datasets/{DATASET}/tables/{table}/insertAll", {"rows": content})

    def insert_sql(self, table, columns, rows):
        for row in rows:
            names = ", ".join(column.name for column in columns)
            self.query(f"INSERT INTO {DATASET}.{table} ({names}) VALUES ({', '.join(literal(row[column.name], column) for column in columns)})")


LEGACY_NAMES = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "BOOL": "BOOLEAN"}


def _schema(column, names):
    name = "RECORD" if column.fields else column.kind.type.split("(")[0].split("<")[0]
    field = {"name": column.name, "mode": column.mode, "type": names.get(name, name)}
    if column.fields:
        field["fields"] = [_schema(inner, names) for inner in column.fields]
    elif column.kind.element is not None:
        field["rangeElementType"] = {"type": column.kind.element.type}
    return field


def _sql_type(column):
    inner = f"STRUCT<{', '.join(f'{field.name} {_sql_type(field)}' for field in column.fields)}>" if column.fields else column.kind.type
    return {"REPEATED": f"ARRAY<{inner}>", "REQUIRED": f"{inner} NOT NULL", "NULLABLE": inner}[column.mode]


def literal(value, column):
    """A value as GoogleSQL."""
    if column.mode == "REPEATED":
        return "[" + ", ".join(literal(element, cases.Column("", column.kind, column.fields)) for element in value) + "]"
    if value is None:
        return "NULL"
    if column.fields:
        return "STRUCT(" + ", ".join(f"{literal(value[field.name], field)} AS {field.name}" for field in column.fields) + ")"
    kind = column.kind
    if kind.element is not None:
        sides = (f"CAST(NULL AS {kind.element.type})" if side is None else literal(side, cases.Column("", kind.element)) for side in value)
        return f"RANGE({', '.join(sides)})"
    text = kind.text(value)
    if kind in (cases.INT64, cases.BOOL):
        return text
    if kind is cases.FLOAT64:
        return f"CAST('{text}' AS FLOAT64)"
    if kind is cases.BYTES:
        return f"FROM_BASE64('{base64.b64encode(value).decode()}')"
    if kind is cases.GEOGRAPHY:
        return f"ST_GEOGFROMTEXT('{text}')"
    if kind.type == "INTERVAL":
        text = text.rstrip("0") if "." in text else text  # six digits of a fraction are more than one of the emulators parses
        return f"INTERVAL '{text}' YEAR TO SECOND"
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if kind is cases.STRING else f"{kind.type.split('(')[0]} {quoted}"
