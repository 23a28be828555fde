#include "headrace/local/restriction.h"

#include <arrow/array/builder_binary.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::local {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<arrow::RecordBatch> Rows() {
  auto micros = arrow::TimeUnit::MICRO;
  auto text = [](const std::string& type) { return arrow::key_value_metadata({"ARROW:extension:name"}, {type}); };
  auto schema = arrow::schema({
      arrow::field("i", arrow::int64()),
      arrow::field("f", arrow::float64()),
      arrow::field("b", arrow::boolean()),
      arrow::field("s", arrow::utf8()),
      arrow::field("n", arrow::decimal128(38, 9)),
      arrow::field("p", arrow::decimal128(10, 2)),
      arrow::field("big", arrow::decimal256(76, 38)),
      arrow::field("d", arrow::date32()),
      arrow::field("t", arrow::time64(micros)),
      arrow::field("dt", arrow::timestamp(micros)),
      arrow::field("ts", arrow::timestamp(micros, "UTC")),
      arrow::field("date", arrow::date32()),
      arrow::field("odd name", arrow::int64()),
      arrow::field("r", arrow::struct_({arrow::field("x", arrow::int64()), arrow::field("y", arrow::utf8())})),
      arrow::field("l", arrow::list(arrow::int64())),
      arrow::field("geo", arrow::utf8(), true, text("google:sqlType:geography")),
      arrow::field("j", arrow::utf8(), true, text("arrow.json")),
      arrow::field("y", arrow::binary()),
      arrow::field("pico", arrow::utf8(), true, text("google:sqlType:timestamp_picos")),
      arrow::field("gap", arrow::struct_({arrow::field("months", arrow::int32())}), true, text("google:sqlType:interval")),
      arrow::field("span", arrow::struct_({arrow::field("start", arrow::date32()), arrow::field("end", arrow::date32())}), true,
                   text("google:sqlType:range")),
  });
  auto array = [&](int index, const std::string& json) {
    return arrow::json::ArrayFromJSONString(schema->field(index)->type(), json).ValueOrDie();
  };
  // Four rows; the last is null everywhere.
  arrow::BinaryBuilder bytes;
  EXPECT_TRUE(bytes.Append("a").ok() && bytes.Append("b").ok() && bytes.Append("").ok() && bytes.AppendNull().ok());
  return arrow::RecordBatch::Make(
      schema, 4,
      {array(0, "[1, 2, 9007199254740993, null]"),
       array(1, "[1.5, -0.0, NaN, null]"),
       array(2, "[true, false, true, null]"),
       array(3, R"(["a", "B'\n", "", null])"),
       array(4, R"(["1.500000000", "-2.000000001", "0.000000000", null])"),
       array(5, R"(["1.50", "2.00", "-3.25", null])"),
       array(
           6,
           R"(["1.50000000000000000000000000000000000000", "0.00000000000000000000000000000000000001", "-1.00000000000000000000000000000000000000", null])"),
       array(7, "[0, -719162, 2932896, null]"),
       array(8, "[0, 3723000004, 86399999999, null]"),
       array(9, "[0, -1, 1000000, null]"),
       array(10, "[0, -1, 1000000, null]"),
       array(11, "[1, 2, 3, null]"),
       array(12, "[5, 6, 7, null]"),
       array(13, R"([{"x": 1, "y": "p"}, {"x": null, "y": "q"}, {"x": 3, "y": null}, null])"),
       array(14, "[[1], [], [2, 3], null]"),
       array(15, R"x(["POINT(1 2)", "", "", null])x"),
       array(16, R"(["1", "2", "3", null])"),
       *bytes.Finish(),
       array(18,
             R"(["1970-01-01T00:00:00.000000000000Z", "1970-01-01T00:00:00.000000000001Z", "1969-12-31T23:59:59.999999999999Z", null])"),
       array(19, R"([{"months": 1}, {"months": 2}, {"months": 3}, null])"),
       array(20, R"([{"start": 1, "end": 2}, {"start": null, "end": 2}, {"start": 1, "end": null}, null])")});
}

// One letter a row: T, F or N.
std::string Evaluate(const std::string& text) {
  auto rows = Rows();
  auto bound = Restriction::Bind(text, *rows->schema());
  if (!bound.ok()) return bound.status().message();
  auto values = (*bound)->Evaluate(*rows);
  if (!values.ok()) return values.status().message();
  std::string letters;
  for (int64_t i = 0; i < rows->num_rows(); ++i) letters += (*values)->IsNull(i) ? 'N' : (*values)->Value(i) ? 'T' : 'F';
  return letters;
}

struct Case {
  const char* text;
  const char* rows;
};

TEST(RestrictionTest, Values) {
  const Case kCases[] = {
      // Comparisons, each operator.
      {"i = 1", "TFFN"},
      {"i != 1", "FTTN"},
      {"i <> 1", "FTTN"},
      {"i < 2", "TFFN"},
      {"i <= 2", "TTFN"},
      {"i > 2", "FFTN"},
      {"i >= 2", "FTTN"},
      {"1 < i", "FTTN"},
      {"I = 1", "TFFN"},
      {"i=+1", "TFFN"},
      {"i > -1", "TTTN"},
      {"i = 0x2", "FTFN"},
      {"i = 9007199254740993", "FFTN"},
      {"i = -9223372036854775808", "FFFN"},
      // Numbers of two kinds.
      {"i < 1.5", "TFFN"},
      {"f > 1", "TFFN"},
      {"f = 15e-1", "TFFN"},
      {"f = .15E+1", "TFFN"},
      {"f = 0", "FTFN"},
      {"f = f", "TTFN"},
      {"f != f", "FFTN"},
      {"i > f", "FTFN"},
      {"i = 9007199254740992.0", "FFTN"},
      {"n = 1.5", "TFFN"},
      {"n < NUMERIC '-2'", "FTFN"},
      {"n = DECIMAL '1.5'", "TFFN"},
      {"n > 0.0000000001", "TFFN"},
      {"n < 1", "FTTN"},
      {"p = 1.5", "TFFN"},
      {"p < 1.505", "TFTN"},
      {"p = NUMERIC '1.500'", "TFFN"},
      {"n = p", "TFFN"},
      {"i = p", "FTFN"},
      {"big = 1e-38", "FTFN"},
      {"big = BIGNUMERIC '1.5'", "TFFN"},
      {"big = n", "TFFN"},
      {"f = n", "TFFN"},
      {"i = NUMERIC '2'", "FTFN"},
      // Text.
      {"s = 'a'", "TFFN"},
      {"s = \"B'\\n\"", "FTFN"},
      {"s = 'B\\'\\n'", "FTFN"},
      {"s = '\\x61'", "TFFN"},
      {"s = '\\141'", "TFFN"},
      {"s = '\\u0061'", "TFFN"},
      {"s = ''", "FFTN"},
      {"s > 'A'", "TTFN"},
      // Truth.
      {"b", "TFTN"},
      {"NOT b", "FTFN"},
      {"NOT NOT b", "TFTN"},
      {"b = true", "TFTN"},
      {"b IS TRUE", "TFTF"},
      {"b IS NOT TRUE", "FTFT"},
      {"b IS FALSE", "FTFF"},
      {"b is not false", "TFTT"},
      {"TRUE", "TTTT"},
      {"NULL", "NNNN"},
      {"1 = 1", "TTTT"},
      {"1 = 1.0", "TTTT"},
      {"'2020-01-01' = DATE '2020-01-01'", "TTTT"},
      {"DATE '2020-01-01' > '2020-01-01'", "FFFF"},
      {"NULL = 1", "NNNN"},
      {"1 = NULL", "NNNN"},
      {"NULL = NULL", "NNNN"},
      // Time.
      {"d = DATE '1970-01-01'", "TFFN"},
      {"d = '0001-01-01'", "FTFN"},
      {"d = DATE '9999-12-31'", "FFTN"},
      {"d < '1970-1-1'", "FTFN"},
      {"t = TIME '01:02:03.000004'", "FTFN"},
      {"t >= '23:59:59.999999'", "FFTN"},
      {"dt = DATETIME '1970-01-01 00:00:00'", "TFFN"},
      {"dt = DATETIME '1969-12-31T23:59:59.999999'", "FTFN"},
      {"dt = '1970-01-01'", "TFFN"},
      {"ts = TIMESTAMP '1970-01-01'", "TFFN"},
      {"ts = TIMESTAMP '1970-01-01 00:00:01Z'", "FFTN"},
      {"ts = TIMESTAMP '1970-01-01 01:00:01+01:00'", "FFTN"},
      {"ts = '1969-12-31 16:00:01-8'", "FFTN"},
      {"ts = TIMESTAMP '1970-01-01 00:00:01 UTC'", "FFTN"},
      {"date = '1970-01-02'", "TFFN"},
      {"date > date '1970-01-03'", "FFTN"},
      // Names.
      {"`odd name` = 6", "FTFN"},
      {"`I` = 1", "TFFN"},
      {"r.x = 1", "TNFN"},
      {"R.Y = 'q'", "FTNN"},
      {"r.x IS NULL", "FTFT"},
      {"r IS NULL", "FFFT"},
      {"l IS NOT NULL", "TTTF"},
      {"geo is null", "FFFT"},
      {"y IS NULL", "FFFT"},
      {"y = y", "TTTN"},
      // Three-valued AND, OR, NOT.
      {"i = 1 AND b", "TFFN"},
      {"NULL AND b", "NFNN"},
      {"NULL OR b", "TNTN"},
      {"b AND NULL IS NULL", "TFTN"},
      {"NOT (i = NULL)", "NNNN"},
      {"i = 1 OR i = 2 AND s = 'a'", "TFFN"},
      {"(i = 1 OR i = 2) AND s = 'a'", "TFFN"},
      {"i = 2 OR s IS NULL", "FTFT"},
      {"NOT i = 1 AND b", "FFTN"},
      {"i = 1 or i = 2 or i = 3", "TTFN"},
      // IN, with null in the list: never false.
      {"i IN (1)", "TFFN"},
      {"i in (1, 2)", "TTFN"},
      {"i NOT IN (1, 2)", "FFTN"},
      {"i IN (1, NULL)", "TNNN"},
      {"i NOT IN (1, NULL)", "FNNN"},
      {"i IN (NULL)", "NNNN"},
      {"i IN (1.0, 2)", "TTFN"},
      {"f IN (0, 1.5)", "TTFN"},
      {"s IN ('a', '')", "TFTN"},
      {"p IN (1.5, 2.005)", "TFFN"},
      {"i IN (i)", "TTTN"},
      {"1 IN (1, 2)", "TTTT"},
      {"d IN ('1970-01-01', '2000-01-01')", "TFFN"},
      {"i BETWEEN 1 AND 2", "TTFN"},
      {"i NOT BETWEEN 1 AND 2", "FFTN"},
      {"n BETWEEN 1.0 AND 5.0 AND b", "TFFN"},
      {"i + 0 BETWEEN 1 AND 2", "TTFN"},
      {"(i = 1) IN (TRUE)", "TFFN"},
      {"(i = 1) BETWEEN FALSE AND TRUE", "TTTN"},
      // LIKE.
      {"s LIKE 'a%'", "TFFN"},
      {"s NOT LIKE 'a%'", "FTTN"},
      {"s LIKE '_'", "TFFN"},
      {"s LIKE '%'", "TTTN"},
      {"s LIKE ''", "FFTN"},
      {"s LIKE '__\\n'", "FTFN"},
      {"s LIKE 'B%'", "FTFN"},
      {"s LIKE '\\\\%'", "FFFN"},
      {"'50%' LIKE '50\\\\%'", "TTTT"},
      {"'50x' LIKE '50\\\\%'", "FFFF"},
      {"'a.b' LIKE 'a_b'", "TTTT"},
      {"'axb' LIKE 'a.b'", "FFFF"},
      {"s LIKE NULL", "NNNN"},
      {"'aXbXc' LIKE 'a%X%c' AND 'aXbXc' LIKE '%X_' AND NOT 'aXbXc' LIKE '%X__'", "TTTT"},
      {"'Ærø' LIKE '_r_' AND 'Ærø' LIKE '%ø' AND NOT 'Ærø' LIKE '____'", "TTTT"},
      {"b'\\xc3\\x86' LIKE b'__' AND 'Æ' LIKE '_'", "TTTT"},
      {"'' LIKE '%%' AND NOT '' LIKE '_'", "TTTT"},
      {"y LIKE b'a'", "TFFN"},
      {"s LIKE 'a' = TRUE", nullptr},
      // IS DISTINCT FROM.
      {"i IS DISTINCT FROM 1", "FTTT"},
      {"i IS NOT DISTINCT FROM NULL", "FFFT"},
      {"i IS DISTINCT FROM i", "FFFF"},
      {"s IS NOT DISTINCT FROM 'a' OR b", "TFTN"},
      // Arithmetic: ranks, from the left, types, NULL.
      {"i + 1 = 2", "TFFN"},
      {"i = 1 + 1", "FTFN"},
      {"-i = -1", "TFFN"},
      {"- - i = 1", "TFFN"},
      {"+i = 1", "TFFN"},
      {"i - 1 - 1 = 0", "FTFN"},
      {"2 + 3 * 2 = 8", "TTTT"},
      {"(2 + 3) * 2 = 10", "TTTT"},
      {"1 / 2 = 0.5", "TTTT"},
      {"i / 2 = 0.5", "TFFN"},
      {"i + 0.5 = 1.5", "TFFN"},
      {"f * 2 = 3", "TFFN"},
      {"n + 1 = 2.5", "TFFN"},
      {"n - p = 0", "TFFN"},
      {"n + 0.000000001 = -2", "FTFN"},
      {"-n = -1.5", "TFFN"},
      {"i + NULL IS NULL", "TTTT"},
      {"s || 'b' = 'ab'", "TFFN"},
      {"'a' || 'b' || 'c' = 'abc'", "TTTT"},
      {"y || b'z' = b'az'", "TFFN"},
      // Functions.
      {"STARTS_WITH(s, 'a')", "TFFN"},
      {"starts_with(s, '')", "TTTN"},
      {"ENDS_WITH(s, '\\n')", "FTFN"},
      {"STARTS_WITH(y, b'b')", "FTFN"},
      {"REGEXP_CONTAINS(s, r'^[ab]$')", "TFFN"},
      {"LENGTH(s) = 1", "TFFN"},
      {"CHAR_LENGTH('Ærø') = 3 AND BYTE_LENGTH('Ærø') = 5", "TTTT"},
      {"LENGTH(y) = 1", "TTFN"},
      {"UPPER(s) = 'A'", "TFFN"},
      {"LOWER(s) = 'b\\'\\n'", "FTFN"},
      {"TRIM(' x ') = 'x' AND LTRIM(' x ') = 'x ' AND RTRIM(' x ') = ' x'", "TTTT"},
      {"CONCAT(s, '-', s) = 'a-a'", "TFFN"},
      {"ABS(-i) = 1", "TFFN"},
      {"ABS(p) = 3.25", "FFTN"},
      {"IS_NAN(f)", "FFTN"},
      {"IS_INF(f)", "FFFN"},
      {"IFNULL(i, 0) = 0", "FFFT"},
      {"COALESCE(NULL, i, 1) = 1", "TFFT"},
      {"IF(b, 1, 2) = 2", "FTFT"},
      {"IF(b, i, NULL) IS NULL", "FTFT"},
      {"NULLIF(i, 1) IS NULL", "TFFT"},
      {"ARRAY_LENGTH(l) = 2", "FFTN"},
      {"DATE(ts) = '1969-12-31'", "FTFN"},
      {"DATE(dt) < DATE '1970-01-01'", "FTFN"},
      // Casts.
      {"d = CAST('1970-1-1' AS DATE)", "TFFN"},
      {"ts = CAST('1970-01-01 00:00:01+00' AS TIMESTAMP)", "FFTN"},
      {"CAST(i AS STRING) = '2'", "FTFN"},
      {"CAST(i AS FLOAT64) / 2 = 1", "FTFN"},
      {"CAST(b AS INT64) = 1", "TFTN"},
      {"CAST(b AS STRING) = 'true'", "TFTN"},
      {"CAST('7' AS INT64) = 7", "TTTT"},
      {"f < CAST('+Infinity' AS FLOAT64)", "TTFN"},
      {"f > CAST('-inf' AS FLOAT64)", "TTFN"},
      {"f = CAST('NaN' AS FLOAT64)", "FFFN"},
      {"f = CAST('+1.5' AS FLOAT64)", "TFFN"},
      {"CAST('1.5' AS NUMERIC) = n", "TFFN"},
      {"CAST(ts AS DATE) = '1970-01-01'", "TFTN"},
      {"CAST(d AS TIMESTAMP) = ts", "TFFN"},
      {"CAST(ts AS DATETIME) = dt", "TTTN"},
      {"CAST(NULL AS DATE) IS NULL", "TTTT"},
      {"CAST(y AS STRING) = s", "TFTN"},
      // Literals.
      {"s = r'a'", "TFFN"},
      {"r'\\n' = '\\\\n'", "TTTT"},
      {"s = \'\'\'a\'\'\'", "TFFN"},
      {"s = \"\"\"B'\n\"\"\"", "FTFN"},
      {"y = b'a'", "TFFN"},
      {"y = b'\\x62'", "FTFN"},
      {"b'\\xff' = b'\\377'", "TTTT"},
      {"rb'\\' = b'\\\\'", nullptr},
      {"BR'\\x' = b'\\\\x'", "TTTT"},
      // TIMESTAMP(12): every digit counts.
      {"pico = '1970-01-01 00:00:00.000000000001Z'", "FTFN"},
      {"pico > TIMESTAMP '1970-01-01'", "FTFN"},
      {"pico <= TIMESTAMP '1970-01-01 01:00:00+01:00'", "TFTN"},
      {"pico IN ('1970-01-01 00:00:00 UTC')", "TFFN"},
      {"pico IS NULL", "FFFT"},
      {"gap IS NULL OR span IS NULL", "FFFT"},
  };
  for (const Case& c : kCases) {
    if (c.rows != nullptr) {
      EXPECT_EQ(Evaluate(c.text), c.rows) << c.text;
    } else {
      EXPECT_THAT(Evaluate(c.text), HasSubstr("Syntax error")) << c.text;
    }
  }
}

TEST(RestrictionTest, WhatCannotBeEvaluatedIsAnError) {
  const Case kCases[] = {
      {"i + 9223372036854775807 = 1", "cannot be evaluated: overflow"},
      {"1 / (i - 1) = 1", "cannot be evaluated: divide by zero"},
      {"-(i - 9223372036854775807 - 2) = 1", "cannot be evaluated: overflow"},
      {"CAST(s AS INT64) = 1", "cannot be evaluated: Failed to parse string"},
      {"CAST(b'\\xff' AS STRING) = 'a'", "cannot be evaluated: Invalid UTF8"},
  };
  for (const Case& c : kCases) EXPECT_THAT(Evaluate(c.text), HasSubstr(c.rows)) << c.text;
}

TEST(RestrictionTest, ErrorsNameThePosition) {
  const Case kCases[] = {
      {"", "Expected an expression but got end of input at [1:1]"},
      {"i =", "Expected an expression but got end of input at [1:4]"},
      {"i = 1 i", "Expected end of input but got identifier \"i\" at [1:7]"},
      {"i = 1\nAND AND b", "Expected an expression but got keyword AND at [2:5]"},
      {"(i = 1", "Expected \")\" but got end of input at [1:7]"},
      {"i = 1)", "Expected end of input but got \")\" at [1:6]"},
      {"i IN ()", "Expected an expression but got \")\" at [1:7]"},
      {"i IN (1", "Expected \",\" or \")\" but got end of input at [1:8]"},
      {"i < 1 < 2", "Expected end of input but got \"<\" at [1:7]"},
      {"i IS 5", "Expected keyword NULL, TRUE or FALSE but got number \"5\" at [1:6]"},
      {"s = 'abc", "Unclosed string literal at [1:5]"},
      {"s = 'a\nb'", "Unclosed string literal at [1:5]"},
      {"`i = 1", "Unclosed identifier literal at [1:1]"},
      {"s = '\\q'", "Illegal escape sequence at [1:6]"},
      {"s = '\\xZ1'", "Illegal escape sequence at [1:6]"},
      {"s = '\\uD800'", "Illegal escape sequence at [1:6]"},
      {"i = 1a", "Missing whitespace between literal and alias at [1:6]"},
      {"i = 1e", "Invalid floating point literal at [1:5]"},
      {"i = 0x", "Invalid hex integer literal at [1:5]"},
      {"i = $1", "Illegal input character \"$\" at [1:5]"},
      {"i = \x01", "Illegal input character \"\\x01\" at [1:5]"},
      {"i = 9223372036854775808", "Invalid integer literal"},
      {"x = 1", "Unrecognized name: x at [1:1]"},
      {"b AND r.z = 1", "Field name z does not exist at [1:7]"},
      {"i.x = 1", "Cannot access field x on a value with type INT64 at [1:1]"},
      {"i", "Row restriction should be of type BOOL, but is of type INT64 at [1:1]"},
      {"i AND b", "Operand of AND should be of type BOOL, but is of type INT64 at [1:1]"},
      {"NOT s", "should be of type BOOL, but is of type STRING at [1:5]"},
      {"i = 'a'", "No matching signature for operator = for argument types: INT64, STRING at [1:1]"},
      {"s = 1", "argument types: STRING, INT64"},
      {"s = d", "argument types: STRING, DATE"},
      {"dt = ts", "argument types: DATETIME, TIMESTAMP"},
      {"b > 1", "argument types: BOOL, INT64"},
      {"l = 1", "argument types: ARRAY, INT64"},
      {"r = r", "argument types: STRUCT, STRUCT"},
      {"geo = 'a'", "argument types: GEOGRAPHY, STRING"},
      {"j = 'a'", "argument types: JSON, STRING"},
      {"i IN ('a')", "argument types: INT64, STRING"},
      {"d = '2020-02-30'", "Invalid DATE literal \"2020-02-30\" at [1:5]"},
      {"d = DATE '0000-01-01'", "Invalid DATE literal"},
      {"t = '24:00:00'", "Invalid TIME literal"},
      {"dt = '2020-01-01Z'", "Invalid DATETIME literal"},
      {"ts = '2020-01-01 00:00:00 Europe/Berlin'", "Invalid TIMESTAMP literal"},
      {"n = NUMERIC 'x'", "Invalid NUMERIC literal"},
      {"f = 1e999", "Invalid floating point literal"},
      {"n = NUMERIC '1e60'", "out of range or has too many digits"},
      {"s LIKE 1", "No matching signature for operator LIKE for argument types: STRING, INT64 at [1:1]"},
      {"s LIKE 'a\\\\'", "LIKE pattern ends with a backslash at [1:1]"},
      {"i + s = 1", "No matching signature for operator + for argument types: INT64, STRING at [1:3]"},
      {"d + d = d", "No matching signature for operator + for argument types: DATE, DATE"},
      {"-s = s", "No matching signature for operator - for argument types: STRING at [1:1]"},
      {"b AND LENGTH(i) = 1", "No matching signature for function LENGTH for argument types: INT64 at [1:7]"},
      {"STARTS_WITH(s, b'a')", "No matching signature for function STARTS_WITH for argument types: STRING, BYTES"},
      {"REGEXP_CONTAINS(s, '(')", "Cannot parse regular expression"},
      {"IFNULL(i, s) = 1", "argument types: INT64, STRING"},
      {"IF(i, 1, 2) = 1", "No matching signature for function IF"},
      {"CAST(i AS NOPE) = 1", "Type not found: NOPE at [1:1]"},
      {"CAST('x' AS INT64) = 1", "Invalid integer literal \"x\""},
      {"CAST('x' AS BOOL)", "Bad bool value: x"},
      {"f = CAST('nan(1)' AS FLOAT64)", "Invalid floating point literal"},
      {"f = CAST('+-1' AS FLOAT64)", "Invalid floating point literal"},
      {"f = CAST('' AS FLOAT64)", "Invalid floating point literal"},
      {"CAST(i AS)", "Expected a type but got \")\" at [1:10]"},
      {"CAST(i, 1)", "Expected keyword AS but got \",\" at [1:7]"},
      {"ABS(i", "Expected \",\" or \")\" but got end of input at [1:6]"},
      {"s = \"\"\"a\"\"", "Unclosed triple-quoted string literal at [1:5]"},
      {"y = b'\\u0061'", "Illegal escape sequence"},
      {"gap = gap", "argument types: INTERVAL, INTERVAL"},
      {"span = span", "argument types: RANGE, RANGE"},
      {"span.start IS NULL", "Cannot access field start on a value with type RANGE"},
      {"pico = ts", "argument types: TIMESTAMP, TIMESTAMP"},
      {"pico = s", "argument types: TIMESTAMP, STRING"},
      {"pico = 1", "argument types: TIMESTAMP, INT64"},
  };
  for (const Case& c : kCases) EXPECT_THAT(Evaluate(c.text), HasSubstr(c.rows)) << c.text;
  auto status = Restriction::Bind("i =", *Rows()->schema()).status();
  EXPECT_EQ(CodeOf(status), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("request failed: row restriction is invalid: Syntax error"));
}

TEST(RestrictionTest, OtherSqlIsRefusedByName) {
  const Case kCases[] = {
      {"CASE WHEN b THEN 1 END = 1", "CASE"},
      {"SQRT(f) = 1", "the function SQRT in a row restriction, at [1:1]"},
      {"b AND st_equals(geo, geo)", "the function ST_EQUALS in a row restriction, at [1:7]"},
      {"NET.HOST(s) = 'a'", "the function NET.HOST"},
      {"SAFE_CAST(s AS INT64) = 1", "SAFE_CAST"},
      {"EXTRACT(YEAR FROM d) = 1", "EXTRACT"},
      {"CAST(f AS INT64) = 1", "CAST from FLOAT64 to INT64"},
      {"CAST(i AS NUMERIC(10, 2)) = 1", "a type with parameters (NUMERIC)"},
      {"CAST(j AS STRING) = 'a'", "CAST from JSON to STRING"},
      {"STARTS_WITH(s, s)", "STARTS_WITH with a second argument that is no literal"},
      {"s LIKE s", "LIKE with a pattern that is no literal"},
      {"TRIM(s, 'a') = ''", "TRIM with two arguments"},
      {"n * 2 = 3", "the operator * of NUMERIC"},
      {"big + 1 = 2", "the operator + of BIGNUMERIC"},
      {"i & 1 = 1", "the operator &"},
      {"i << 1 = 2", "the operator <<"},
      {"~i = 1", "the operator ~"},
      {"l[0] = 1", "array elements"},
      {"i IN (SELECT 1)", "a subquery"},
      {"i IN UNNEST([1])", "UNNEST"},
      {"INTERVAL 1 DAY IS NULL", "INTERVAL"},
      {"j = JSON '1'", "JSON literals"},
  };
  for (const Case& c : kCases) {
    auto status = Restriction::Bind(c.text, *Rows()->schema()).status();
    EXPECT_EQ(CodeOf(status), Code::kUnimplemented) << c.text << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(c.rows)) << c.text;
  }
}

TEST(RestrictionTest, SizeAndDepthAreBounded) {
  EXPECT_THAT(Evaluate(std::string(kMaxRestrictionBytes + 1, ' ')), HasSubstr("more than the limit of 1 MB"));
  std::string deep(100'000, '(');
  EXPECT_THAT(Evaluate(deep.append("b")), HasSubstr("nested too deeply at [1:201]"));
  std::string allowed(200, '(');
  allowed.append("b").append(200, ')');
  EXPECT_EQ(Evaluate(allowed), "TFTN");
  std::string chain = "i = 1";
  for (int i = 0; i < 20'000; ++i) chain += " OR i = 2";
  EXPECT_EQ(Evaluate(chain), "TTFN");
  std::string list = "i IN (1";
  for (int i = 10; i < 100'000; ++i) list += "," + std::to_string(i);
  EXPECT_EQ(Evaluate(list.append(")")), "TFFN");
  std::string nots;
  for (int i = 0; i < 100'000; ++i) nots += "NOT ";
  EXPECT_EQ(Evaluate(nots.append("b")), "TFTN");
  std::string minuses(100'000, '-');
  for (size_t i = 1; i < minuses.size(); i += 2) minuses[i] = ' ';
  EXPECT_EQ(Evaluate(minuses.append("i = 1")), "TFFN");
  std::string sum = "i";
  for (int i = 0; i < 1000; ++i) sum += " + 0";
  EXPECT_THAT(Evaluate(sum.append(" = 1")), HasSubstr("nested too deeply"));
  std::string calls;
  for (int i = 0; i < 1000; ++i) calls += "ABS(";
  EXPECT_THAT(Evaluate(calls.append("i")), HasSubstr("nested too deeply"));
  // What has several uses of one operand is evaluated once: else this would take 2^60 steps.
  std::string nested = "i = 1";
  for (int i = 0; i < 60; ++i) nested.insert(0, "(").append(") BETWEEN FALSE AND TRUE");
  EXPECT_EQ(Evaluate(nested), "TTTN");
}

}  // namespace
}  // namespace headrace::local
