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
  });
  auto array = [&](int index, const std::string& json) {
    return arrow::json::ArrayFromJSONString(schema->field(index)->type(), json).ValueOrDie();
  };
  // Four rows; the last is null everywhere.
  arrow::BinaryBuilder bytes;
  EXPECT_TRUE(bytes.Append("a").ok() && bytes.Append("b").ok() && bytes.Append("").ok() && bytes.AppendNull().ok());
  return arrow::RecordBatch::Make(
      schema, 4,
      {array(0, "[1, 2, 9007199254740993, null]"), array(1, "[1.5, -0.0, NaN, null]"), array(2, "[true, false, true, null]"),
       array(3, R"(["a", "B'\n", "", null])"), array(4, R"(["1.500000000", "-2.000000001", "0.000000000", null])"),
       array(5, R"(["1.50", "2.00", "-3.25", null])"),
       array(
           6,
           R"(["1.50000000000000000000000000000000000000", "0.00000000000000000000000000000000000001", "-1.00000000000000000000000000000000000000", null])"),
       array(7, "[0, -719162, 2932896, null]"), array(8, "[0, 3723000004, 86399999999, null]"), array(9, "[0, -1, 1000000, null]"),
       array(10, "[0, -1, 1000000, null]"), array(11, "[1, 2, 3, null]"), array(12, "[5, 6, 7, null]"),
       array(13, R"([{"x": 1, "y": "p"}, {"x": null, "y": "q"}, {"x": 3, "y": null}, null])"), array(14, "[[1], [], [2, 3], null]"),
       array(15, R"x(["POINT(1 2)", "", "", null])x"), array(16, R"(["1", "2", "3", null])"), *bytes.Finish()});
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
  };
  for (const Case& c : kCases) EXPECT_EQ(Evaluate(c.text), c.rows) << c.text;
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
  };
  for (const Case& c : kCases) EXPECT_THAT(Evaluate(c.text), HasSubstr(c.rows)) << c.text;
  auto status = Restriction::Bind("i =", *Rows()->schema()).status();
  EXPECT_EQ(CodeOf(status), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("request failed: row restriction is invalid: Syntax error"));
}

TEST(RestrictionTest, OtherSqlIsRefusedByName) {
  const Case kCases[] = {
      {"s LIKE 'a%'", "LIKE in a row restriction, at [1:3]"},
      {"s NOT LIKE 'a%'", "LIKE"},
      {"CAST('1' AS INT64) = i", "CAST"},
      {"CASE WHEN b THEN 1 END = 1", "CASE"},
      {"LENGTH(s) = 1", "the function LENGTH in a row restriction, at [1:1]"},
      {"i + 1 = 2", "the operator +"},
      {"i = 1 + 1", "the operator +"},
      {"-i = 1", "the operator -"},
      {"s || 'a' = 'b'", "the operator ||"},
      {"l[0] = 1", "array elements"},
      {"i IN (SELECT 1)", "a subquery"},
      {"i IN UNNEST([1])", "UNNEST"},
      {"i IS DISTINCT FROM 1", "IS DISTINCT FROM"},
      {"s = r'a'", "raw and bytes literals"},
      {"y = b'a'", "raw and bytes literals"},
      {"s = '''a'''", "triple-quoted strings"},
      {"(i = 1) IN (TRUE)", "an expression before IN"},
      {"(i = 1) BETWEEN FALSE AND TRUE", "an expression before BETWEEN"},
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
}

}  // namespace
}  // namespace headrace::local
