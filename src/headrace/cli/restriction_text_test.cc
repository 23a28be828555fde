// What bigquery/read/restriction_text.h writes is what a server reads: the local service, row by row.
#include "headrace/bigquery/read/restriction_text.h"

#include <limits>
#include <set>

#include <arrow/builder.h>
#include <arrow/table.h>
#include <gtest/gtest.h>

#include "headrace/bigquery/read/source.h"
#include "headrace/local/service.h"
#include "headrace/runtime/read.h"

namespace headrace::cli {
namespace {

using bigquery::SqlColumn;

template <typename Builder, typename Value>
std::shared_ptr<arrow::Array> Column(const std::vector<Value>& values, Builder builder = Builder()) {
  for (const auto& value : values) EXPECT_TRUE(builder.Append(value).ok());
  return builder.Finish().ValueOrDie();
}

/// One column `name` beside the row's number.
std::shared_ptr<arrow::Table> TableOf(const std::string& name, const std::shared_ptr<arrow::Array>& values) {
  arrow::Int64Builder numbers;
  for (int64_t i = 0; i < values->length(); ++i) EXPECT_TRUE(numbers.Append(i).ok());
  return arrow::Table::Make(arrow::schema({arrow::field("row", arrow::int64()), arrow::field(name, values->type())}),
                            {numbers.Finish().ValueOrDie(), values});
}

/// The rows that a restriction leaves.
std::set<int64_t> RowsWhere(const std::string& endpoint, const std::string& restriction) {
  auto source = bigquery::Source::Make(
      {.table = "p.d.t", .selected_fields = {"row"}, .row_restriction = restriction, .bigquery_storage_endpoint = "http://" + endpoint});
  EXPECT_TRUE(source.ok()) << source.status();
  auto reader = Read(*source, {});
  EXPECT_TRUE(reader.ok()) << reader.status() << "\n" << restriction;
  if (!reader.ok()) return {-1};
  auto table = (*reader)->ToTable();
  EXPECT_TRUE(table.ok()) << table.status();
  std::set<int64_t> rows;
  for (const auto& chunk : (*table)->column(0)->chunks()) {
    const auto& numbers = static_cast<const arrow::Int64Array&>(*chunk);
    for (int64_t i = 0; i < numbers.length(); ++i) rows.insert(numbers.Value(i));
  }
  return rows;
}

/// Each of the values, which are all different, is found by its literal, and nothing else is.
template <typename Value, typename Literal>
void ExpectEachFound(const std::vector<Value>& values, const std::shared_ptr<arrow::Array>& column, Literal literal) {
  local::Service service({.tables = {{"p.d.t", TableOf("v", column)}}});
  auto addresses = service.Start();
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string restriction = *SqlColumn("v") + " = " + literal(values[i]);
    EXPECT_EQ(RowsWhere(addresses->grpc, restriction), std::set<int64_t>{static_cast<int64_t>(i)}) << restriction;
  }
}

TEST(RestrictionTextOnAService, EachValueIsItself) {
  const std::vector<std::string> texts = {
      "",        "it's", "\"",   "`",   "\\",   "\\'",     "' OR TRUE --",        "a\nb\r\t", "\x01\x7f", "ü€😀", "%", "\\x41",
      "\\u0041", "A",    "NULL", "'''", "a--b", "/* x */", std::string("a\0b", 3)};
  ExpectEachFound(texts, Column<arrow::StringBuilder>(texts), [](const std::string& text) { return *bigquery::SqlString(text); });
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::vector<std::string> bytes = {"", all, std::string("\xff\0'", 3), "\\"};
  ExpectEachFound(bytes, Column<arrow::BinaryBuilder>(bytes), bigquery::SqlBytes);
  const std::vector<int64_t> whole = {std::numeric_limits<int64_t>::min(), -1, 0, std::numeric_limits<int64_t>::max()};
  ExpectEachFound(whole, Column<arrow::Int64Builder>(whole), bigquery::SqlInt64);
  const std::vector<double> numbers = {
      0.1, 3, -1e300, 5e-324, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  ExpectEachFound(numbers, Column<arrow::DoubleBuilder>(numbers), bigquery::SqlFloat64);
  const std::vector<bool> truths = {true, false};
  ExpectEachFound(truths, Column<arrow::BooleanBuilder>(truths), bigquery::SqlBool);
  const std::vector<int64_t> moments = {0, -1, 1'700'000'000'123'456, 253'402'300'799'999'999, -62'135'596'800'000'000};
  ExpectEachFound(moments,
                  Column(moments, arrow::TimestampBuilder(arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"), arrow::default_memory_pool())),
                  [](int64_t moment) { return *bigquery::SqlTimestamp(moment); });
  const std::vector<int32_t> days = {0, -719'162, 2'932'896, 19'782};
  ExpectEachFound(days, Column<arrow::Date32Builder>(days),
                  [](int32_t day) { return *bigquery::SqlDate(std::chrono::sys_days{std::chrono::days{day}}); });
  const std::vector<std::string> amounts = {"0", "-12.5", "0.000000001"};
  const std::vector<arrow::Decimal128> stored = {arrow::Decimal128(0), arrow::Decimal128(-12'500'000'000), arrow::Decimal128(1)};
  ExpectEachFound(amounts, Column(stored, arrow::Decimal128Builder(arrow::decimal128(38, 9), arrow::default_memory_pool())),
                  [](const std::string& amount) { return *bigquery::SqlNumeric(amount); });
}

TEST(RestrictionTextOnAService, APathIsAField) {
  auto city = Column<arrow::StringBuilder>(std::vector<std::string>{"Rome", "Oslo"});
  auto place = arrow::StructArray::Make({city}, std::vector<std::string>{"city"}).ValueOrDie();
  local::Service service({.tables = {{"p.d.t", TableOf("place", place)}}});
  auto addresses = service.Start();
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_EQ(RowsWhere(addresses->grpc, *SqlColumn("place.city") + " = " + *bigquery::SqlString("Oslo")), std::set<int64_t>{1});
}

}  // namespace
}  // namespace headrace::cli
