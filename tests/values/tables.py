"""The tables that the suites have, and the time zones under which they are moved."""

import cases

ZONES = ("UTC", "America/New_York", "Asia/Kathmandu")
TABLES = {
    "matrix": cases.matrix(),
    "flat": cases.matrix(depths=cases.FLAT),
    "deepest": cases.deepest(),
    "flexible_names": cases.flexible_names(),
    "empty": (cases.matrix()[0], []),
}


def schema_json(columns):
    """The schema as BigQuery's JSON, what `bq show --schema` prints and --schema takes."""
    return [_field(column) for column in columns]


def _field(column):
    field = {"name": column.name, "mode": column.mode}
    if column.fields:
        return {**field, "type": "RECORD", "fields": schema_json(column.fields)}
    name, _, parameters = column.kind.type.rstrip(")").partition("(")
    if column.kind.element is not None:
        return {**field, "type": "RANGE", "rangeElementType": {"type": column.kind.element.type}}
    if name == "TIMESTAMP" and parameters:
        return {**field, "type": name, "timestampPrecision": parameters}
    if parameters:
        precision, scale = parameters.split(", ")
        field = {**field, "precision": precision, "scale": scale}
    return {**field, "type": name}


def without(columns, rows, kinds):
    """The table without the columns that hold one of the kinds."""
    columns = [column for column in columns if not holds(column, kinds)]
    return columns, [{column.name: row[column.name] for column in columns} for row in rows]


def holds(column, kinds):
    return column.kind in kinds or any(holds(field, kinds) for field in column.fields)
