"""What each value is, by definitions of its own: every BigQuery type with its extreme values, and every depth at which it can stand.

A value is held in a form that no library's calendar, time zone or decimal context can change:
    INT64 int; FLOAT64 float; BOOL bool; STRING, JSON, GEOGRAPHY str; BYTES bytes; NUMERIC, BIGNUMERIC Decimal;
    DATE days, TIME microseconds since midnight, DATETIME and TIMESTAMP microseconds since 1970, TIMESTAMP(12) picoseconds since 1970: int;
    INTERVAL (months, days, microseconds); RANGE (start, end) of its element's form, None where it is unbounded;
    ARRAY list; STRUCT dict. None is null.
"""

import base64
import dataclasses
import decimal
import math
import re

MICROS_PER_DAY = 86_400_000_000
EXACT = decimal.Context(prec=200)


def days(year, month, day):
    """Days since 1970-01-01 in the proleptic Gregorian calendar: whole years, then whole months, by counting."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    assert 1 <= month <= 12 and 1 <= day <= lengths[month - 1]

    def before(y):  # days from 0001-01-01 to y-01-01
        return 365 * (y - 1) + (y - 1) // 4 - (y - 1) // 100 + (y - 1) // 400

    return before(year) - before(1970) + sum(lengths[: month - 1]) + day - 1


def civil(day_number):
    """The inverse of days()."""
    year = 1970 + day_number // 366
    while days(year + 1, 1, 1) <= day_number:
        year += 1
    while days(year, 1, 1) > day_number:
        year -= 1
    month = max(m for m in range(1, 13) if days(year, m, 1) <= day_number)
    return year, month, day_number - days(year, month, 1) + 1


def micros(hour=0, minute=0, second=0, micro=0):
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micro


def moment(year, month, day, *clock):
    return days(year, month, day) * MICROS_PER_DAY + micros(*clock)


# Text forms, as docs/types.md gives them.
def date_text(value):
    return "%04d-%02d-%02d" % civil(value)


def time_text(value):
    seconds, micro = divmod(value, 1_000_000)
    text = "%02d:%02d:%02d" % (seconds // 3600, seconds // 60 % 60, seconds % 60)
    return text + (".%06d" % micro if micro else "")


def datetime_text(value):
    day, clock = divmod(value, MICROS_PER_DAY)
    return date_text(day) + "T" + time_text(clock)


def timestamp_text(value):
    return datetime_text(value) + "Z"


def picos_text(value):
    seconds, picos = divmod(value, 10**12)
    return "%s.%012dZ" % (datetime_text(seconds * 1_000_000), picos)


def decimal_text(value):
    """Plain decimal text without an exponent and without trailing zeros of the fraction."""
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    if exponent >= 0:
        text = str(unscaled * 10**exponent)
    else:
        whole, part = divmod(unscaled, 10**-exponent)
        fraction = str(part).rjust(-exponent, "0").rstrip("0")
        text = f"{whole}.{fraction}" if fraction else str(whole)
    return "-" + text if sign and unscaled else text


def interval_text(value):
    months, number_of_days, micro = value
    sign = "-" if months < 0 else ""
    clock_sign = "-" if micro < 0 else ""
    seconds, fraction = divmod(abs(micro), 1_000_000)
    text = f"{sign}{abs(months) // 12}-{abs(months) % 12} {number_of_days} {clock_sign}{seconds // 3600}:{seconds // 60 % 60}:{seconds % 60}"
    return text + (".%06d" % fraction if fraction else "")


# And back, for readers of text. Each takes the whole text or fails.
def parse_date(text):
    year, month, day = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text).groups()
    return days(int(year), int(month), int(day))


def parse_time(text):
    hour, minute, second, fraction = re.fullmatch(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?", text).groups()
    assert int(hour) < 24 and int(minute) < 60 and int(second) < 60
    return micros(int(hour), int(minute), int(second), int((fraction or "").ljust(6, "0")))


def parse_datetime(text):
    day, clock = re.fullmatch(r"([^T ]+)[T ](.*)", text).groups()
    return parse_date(day) * MICROS_PER_DAY + parse_time(clock)


def parse_timestamp(text):
    return parse_datetime(re.fullmatch(r"(.*?)(?:Z|\+00:00|\+00| UTC)", text).group(1))


def parse_picos(text):
    seconds, fraction = re.fullmatch(r"(.*)\.(\d{12})Z", text).groups()
    return parse_datetime(seconds) * 1_000_000 + int(fraction)


def parse_decimal(text):
    assert re.fullmatch(r"-?\d+(\.\d+)?", text), text
    return EXACT.create_decimal(text)


def parse_interval(text):
    pattern = r"(-?)(\d+)-(\d+) (-?\d+) (-?)(\d+):(\d+):(\d+)(?:\.(\d{1,6}))?"
    sign, years, months, number_of_days, clock_sign, hours, minutes, seconds, fraction = re.fullmatch(pattern, text).groups()
    micro = micros(int(hours), int(minutes), int(seconds), int((fraction or "").ljust(6, "0")))
    return ((-1 if sign else 1) * (int(years) * 12 + int(months)), int(number_of_days), (-1 if clock_sign else 1) * micro)


@dataclasses.dataclass(frozen=True)
class Kind:
    """One scalar type: its name as part of a column's name, BigQuery's name, its values and its text form (docs/types.md, CSV text)."""

    name: str
    type: str
    values: tuple
    text: object
    parse: object
    element: object = None  # of a RANGE

    def same(self, left, right):
        if isinstance(left, float) and isinstance(right, float):
            return (math.isnan(left) and math.isnan(right)) or (left == right and math.copysign(1, left) == math.copysign(1, right))
        return type(left) is type(right) and left == right


def _dec(*texts):
    return tuple(EXACT.create_decimal(text) for text in texts)


def _range_kind(element):
    low, middle, high = element.values[0], element.values[2], element.values[1]

    def text(value):
        return "[%s, %s)" % tuple("UNBOUNDED" if side is None else element.text(side) for side in value)

    def parse(written):
        sides = re.fullmatch(r"\[([^,]+), ([^,]+)\)", written).groups()
        return tuple(None if side == "UNBOUNDED" else element.parse(side) for side in sides)

    values = ((low, high), (low, middle), (None, high), (low, None), (None, None))
    return Kind("range_" + element.name, f"RANGE<{element.type}>", values, text, parse, element)


def _base64(value):
    return base64.b64encode(value).decode()


_MOMENTS = (moment(1, 1, 1), moment(9999, 12, 31, 23, 59, 59, 999_999), -1, 0, 1, moment(1, 1, 1, 0, 0, 0, 1), moment(1582, 10, 10, 12),
            moment(1900, 2, 28, 23, 59, 59, 999_999), moment(1969, 12, 31, 23, 59, 59), moment(2000, 2, 29, 4, 5, 6, 700_000),
            # Nights in which New York and Kathmandu moved their clocks: a local time that is passed on the way would be another one.
            moment(2024, 3, 10, 2, 30), moment(2024, 11, 3, 1, 30), moment(1985, 12, 31, 18, 35))
# 2^255 - 1 and -2^255 at scale 38: 39 integer digits, more than Arrow's declared 76.
_LARGEST = "578960446186580977117854925043439539266.34992332820282019728792003956564819967"
_SMALLEST = "-578960446186580977117854925043439539266.34992332820282019728792003956564819968"

INT64 = Kind("int64", "INT64", (-(2**63), 2**63 - 1, -1, 0, 1, 2**53 + 1, -(2**53) - 1), str, int)
FLOAT64 = Kind("float64", "FLOAT64", (-1.7976931348623157e308, 1.7976931348623157e308, 5e-324, -0.0, 0.0, 0.1, 1 / 3, 1e16, 123456789.0,
                                      math.nan, math.inf, -math.inf), repr, float)
BOOL = Kind("bool", "BOOL", (False, True), lambda value: "true" if value else "false", {"true": True, "false": False}.__getitem__)
STRING = Kind("string", "STRING", ("", "~" * 300, "a", "Ærø 日本 \U0001f300", "a,b;\"c\"'d'", "two\nlines\r\n\ttab", " spaces ", "null", "NULL", "\\N",
                                   "\\", "\x01\x7f", "0", "true", "\u2028", "\ufeffx"), str, str)
BYTES = Kind("bytes", "BYTES", (b"", bytes(range(256)), b"\0", b"\xff\xfe", b"text"), _base64, lambda text: base64.b64decode(text, validate=True))
NUMERIC = Kind("numeric", "NUMERIC", _dec("-99999999999999999999999999999.999999999", "99999999999999999999999999999.999999999", "0", "0.000000001",
                                          "-0.000000001", "2.3", "1", "-1.5", "100", "9007199254740993"), decimal_text, parse_decimal)
NUMERIC_10_2 = Kind("numeric_10_2", "NUMERIC(10, 2)", _dec("-99999999.99", "99999999.99", "0", "0.01", "1.5"), decimal_text, parse_decimal)
BIGNUMERIC = Kind("bignumeric", "BIGNUMERIC", _dec(_SMALLEST, _LARGEST, "0", "0." + "0" * 37 + "1", "-0." + "0" * 37 + "1", "2.3", "1" + "0" * 38,
                                                   "-99999999999999999999999999999.999999999"), decimal_text, parse_decimal)
BIGNUMERIC_40_20 = Kind("bignumeric_40_20", "BIGNUMERIC(40, 20)", _dec("-" + "9" * 20 + "." + "9" * 20, "9" * 20 + "." + "9" * 20, "0", "1.5"),
                        decimal_text, parse_decimal)
DATE = Kind("date", "DATE", (days(1, 1, 1), days(9999, 12, 31), -1, 0, days(1582, 10, 10), days(1900, 2, 28), days(2000, 2, 29)), date_text, parse_date)
TIME = Kind("time", "TIME", (0, MICROS_PER_DAY - 1, 1, micros(12), micros(1, 2, 3, 400_000)), time_text, parse_time)
DATETIME = Kind("datetime", "DATETIME", _MOMENTS, datetime_text, parse_datetime)
TIMESTAMP = Kind("timestamp", "TIMESTAMP", _MOMENTS, timestamp_text, parse_timestamp)
TIMESTAMP_PICOS = Kind("timestamp_picos", "TIMESTAMP(12)", (moment(1, 1, 1) * 10**6, moment(9999, 12, 31, 23, 59, 59) * 10**6 + 10**12 - 1, -1, 0, 1,
                                                            moment(2024, 1, 2, 3, 4, 5) * 10**6 + 123_456_789_012), picos_text, parse_picos)
GEOGRAPHY = Kind("geography", "GEOGRAPHY", ("POINT(1 2)", "LINESTRING(-180 -90, 180 90)", "GEOMETRYCOLLECTION EMPTY"), str, str)
JSON = Kind("json", "JSON", ("null", '{"a":[1,null,"x"],"b":{"c":1.5}}', "[]", "{}", '""', "true", "-1.5e300", '"\\"Ærø\\u0001"', "18446744073709551615"),
            str, str)
INTERVAL = Kind("interval", "INTERVAL", ((-120_000, -3_660_000, -316_224_000_000_000_000), (120_000, 3_660_000, 316_224_000_000_000_000), (0, 0, 0),
                                         (14, 3, micros(4, 5, 6, 789_000)), (-1, 1, -1), (0, 0, 1)), interval_text, parse_interval)
RANGES = tuple(_range_kind(element) for element in (DATE, DATETIME, TIMESTAMP))
SCALARS = (INT64, FLOAT64, BOOL, STRING, BYTES, NUMERIC, NUMERIC_10_2, BIGNUMERIC, BIGNUMERIC_40_20, DATE, TIME, DATETIME, TIMESTAMP, TIMESTAMP_PICOS,
           GEOGRAPHY, JSON, INTERVAL) + RANGES


@dataclasses.dataclass(frozen=True)
class Column:
    """A column: a scalar of `kind`, or a STRUCT of `fields`; `mode` is NULLABLE, REQUIRED or REPEATED."""

    name: str
    kind: Kind = None
    fields: tuple = ()
    mode: str = "NULLABLE"


# The depths at which a type can stand. Each answers the column and its value for the v-th of the kind's values, where null(n) is now and then None.
def _scalar(kind):
    return Column(kind.name, kind), lambda pick: pick(0)


def _required(kind):
    return Column(kind.name + "_required", kind, mode="REQUIRED"), lambda pick: pick(0, null=False)


def _repeated(kind):
    return Column(kind.name + "_repeated", kind, mode="REPEATED"), lambda pick: pick.list(lambda i: pick(i, null=False))


def _nested(kind):
    column = Column(kind.name + "_nested", fields=(Column("v", kind), Column("r", kind, mode="REPEATED")))
    return column, lambda pick: pick.maybe({"v": pick(1), "r": pick.list(lambda i: pick(i + 2, null=False))})


def _nested_in_repeated(kind):
    column = Column(kind.name + "_nested_in_repeated", fields=(Column("v", kind), Column("s", fields=(Column("w", kind, mode="REQUIRED"),))), mode="REPEATED")
    return column, lambda pick: pick.list(lambda i: {"v": pick(i), "s": pick.maybe({"w": pick(i + 1, null=False)}, i)})


def _repeated_in_nested(kind):
    rows = Column("rows", fields=(Column("id", INT64), Column("r", kind, mode="REPEATED")), mode="REPEATED")
    column = Column(kind.name + "_repeated_in_nested", fields=(Column("s", fields=(rows, Column("v", kind))),))
    return column, lambda pick: pick.maybe({"s": pick.maybe({"rows": pick.list(lambda i: {"id": i, "r": pick.list(lambda j: pick(i + j, null=False), i)}),
                                                            "v": pick(3)}, 1)}, 2)


DEPTHS = (_scalar, _required, _repeated, _nested, _nested_in_repeated, _repeated_in_nested)
FLAT = (_scalar, _required)


class _Pick:
    """The values of one row of one column: every value of the kind comes, then null; lists of 0 to 3 elements; structs that are null now and then."""

    def __init__(self, kind, row):
        self.kind, self.row = kind, row

    def __call__(self, shift, null=True):
        values = self.kind.values + ((None,) if null else ())
        return values[(self.row + shift) % len(values)]

    def list(self, make, shift=0):
        return [make(i) for i in range((self.row + shift) % 4)]

    def maybe(self, value, shift=0):
        return None if (self.row + shift) % 5 == 4 else value


ROWS = 2 * (max(len(kind.values) for kind in SCALARS) + 1)


def matrix(kinds=SCALARS, depths=DEPTHS, rows=ROWS):
    """The columns (with an `id` first) and the rows, each a dict."""
    made = [depth(kind) for kind in kinds for depth in depths]
    columns = [Column("id", INT64, mode="REQUIRED")] + [column for column, _ in made]
    kind_of = [kind for kind in kinds for _ in depths]
    content = [{"id": row, **{column.name: value(_Pick(kind, row)) for (column, value), kind in zip(made, kind_of)}} for row in range(rows)]
    return columns, content


def deepest(levels=15):
    """STRUCTs nested to BigQuery's limit, every second one REPEATED, with a value at the bottom."""
    column = Column("v", TIMESTAMP)
    for level in range(levels, 0, -1):
        column = Column(f"s{level}", fields=(column, Column("n", STRING)), mode="REPEATED" if level % 2 == 0 else "NULLABLE")

    def value(level, row):
        if level > levels:
            return TIMESTAMP.values[row % len(TIMESTAMP.values)]
        if level == 1 + row % (levels + 5):
            return [] if level % 2 == 0 else None
        name = "v" if level == levels else f"s{level + 1}"
        inner = {name: value(level + 1, row), "n": f"{level}.{row}"}
        return [inner, inner] if level % 2 == 0 and level < 5 else [inner] if level % 2 == 0 else inner

    return [Column("id", INT64, mode="REQUIRED"), column], [{"id": row, "s1": value(1, row)} for row in range(levels + 6)]


# BigQuery's flexible names: of any script, with spaces and signs, and names that are special elsewhere.
NAMES = ("1st", "two words", "größe", "名前", "a-b", "a+b", "a%b", "a&b", "a=b", "a:b", "a|b", "a'b", "a<b>", "#c", "_", "select", "group", "A" * 300, "Ünï", "list",
         "element", "item", "key_value", "NULL", "true")


def flexible_names():
    columns = [Column("id", INT64, mode="REQUIRED")]
    for i, name in enumerate(NAMES):
        columns.append(Column(name, STRING if i % 2 else DATE) if i % 3 else Column(name, fields=(Column(name, STRING), Column("x y", INT64))))

    def value(column, row):
        if column.fields:
            return None if row == 2 else {column.name: column.name, "x y": row}
        return None if row == 3 else f"{column.name} {row}" if column.kind is STRING else row

    return columns, [{"id": row, **{c.name: value(c, row) for c in columns[1:]}} for row in range(5)]


def assert_same(got, wanted, columns, where=""):
    """The rows are the same, by value and by kind; the error names the first columns that are not, with row and both values."""
    assert len(got) == len(wanted), f"{where}: {len(got)} rows, not {len(wanted)}"
    wrong = []
    for column in columns:
        for row, (left, right) in enumerate(zip(got, wanted)):
            path = _difference(left.get(column.name, "missing"), right[column.name], column)
            if path is not None:
                wrong.append(f"{where}: column {column.name}, row {row}{path}")
                break
    assert not wrong, f"{len(wrong)} columns differ\n" + "\n".join(wrong[:20])


def _difference(got, wanted, column):
    if column.mode == "REPEATED":
        if not isinstance(got, list) or len(got) != len(wanted):
            return f": {got!r}, not {wanted!r}"
        element = dataclasses.replace(column, mode="NULLABLE")
        found = (_difference(left, right, element) for left, right in zip(got, wanted))
        return next((difference for difference in found if difference is not None), None)
    if got is None or wanted is None:
        return None if got is wanted else f": {got!r}, not {wanted!r}"
    if column.fields:
        if not isinstance(got, dict) or list(got) != [field.name for field in column.fields]:
            return f": {got!r}, not {wanted!r}"
        found = ((field.name, _difference(got[field.name], wanted[field.name], field)) for field in column.fields)
        return next((f".{name}{difference}" for name, difference in found if difference is not None), None)
    return None if column.kind.same(got, wanted) else f": {got!r}, not {wanted!r}"
