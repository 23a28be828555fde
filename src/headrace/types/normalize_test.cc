#include "headrace/types/normalize.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/compute/cast.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/types/type_table.h"

namespace headrace {
namespace {

using arrow::json::ArrayFromJSONString;
using arrow::json::ChunkedArrayFromJSONString;
using testing::HasSubstr;

std::shared_ptr<arrow::Table> TableOf(const std::shared_ptr<arrow::DataType>& type, std::vector<std::string> chunks, bool nullable = true) {
  auto column = ChunkedArrayFromJSONString(type, chunks).ValueOrDie();
  return arrow::Table::Make(arrow::schema({arrow::field("c", type, nullable)}), {column});
}

struct NormalizeCase {
  std::shared_ptr<arrow::DataType> from;
  const char* values;
  std::shared_ptr<arrow::DataType> to;
  const char* want;
};

const auto kMicros = arrow::TimeUnit::MICRO;

TEST(NormalizeTest, EveryOtherTypeBecomesTheTablesOwn) {
  auto list = [](std::shared_ptr<arrow::DataType> type) { return arrow::list(arrow::field("item", std::move(type))); };
  const NormalizeCase cases[] = {
      {arrow::int8(), "[-128, null]", arrow::int64(), "[-128, null]"},
      {arrow::uint64(), "[9223372036854775807]", arrow::int64(), "[9223372036854775807]"},
      {arrow::float32(), "[1.5, null]", arrow::float64(), "[1.5, null]"},
      {arrow::null(), "[null, null]", arrow::utf8(), "[null, null]"},
      {arrow::large_utf8(), R"(["a", "", null])", arrow::utf8(), R"(["a", "", null])"},
      {arrow::utf8_view(), R"(["a", null])", arrow::utf8(), R"(["a", null])"},
      {arrow::large_binary(), R"(["", null])", arrow::binary(), R"(["", null])"},
      {arrow::fixed_size_binary(2), R"(["ab", null])", arrow::binary(), R"(["ab", null])"},
      {arrow::date64(), "[86400000, null]", arrow::date32(), "[1, null]"},
      {arrow::time32(arrow::TimeUnit::SECOND), "[1, null]", arrow::time64(kMicros), "[1000000, null]"},
      {arrow::time64(arrow::TimeUnit::NANO), "[1000]", arrow::time64(kMicros), "[1]"},
      {arrow::timestamp(arrow::TimeUnit::SECOND), "[-1]", arrow::timestamp(kMicros), "[-1000000]"},
      {arrow::timestamp(arrow::TimeUnit::NANO, "Europe/Berlin"), "[1000]", arrow::timestamp(kMicros, "UTC"), "[1]"},
      {arrow::decimal32(5, 2), R"(["1.25", null])", arrow::decimal128(5, 2), R"(["1.25", null])"},
      {arrow::decimal128(38, 10), R"(["1.0000000001"])", arrow::decimal256(38, 10), R"(["1.0000000001"])"},
      {arrow::dictionary(arrow::int8(), arrow::utf8()), R"(["a", null, "a"])", arrow::utf8(), R"(["a", null, "a"])"},
      {arrow::list(arrow::int32()), "[[1, 2], null, []]", list(arrow::int64()), "[[1, 2], [], []]"},
      {arrow::large_list(arrow::int32()), "[[1], null]", list(arrow::int64()), "[[1], []]"},
      {arrow::fixed_size_list(arrow::int32(), 2), "[[1, 2], null, [3, 4]]", list(arrow::int64()), "[[1, 2], [], [3, 4]]"},
      {arrow::struct_({arrow::field("x", arrow::int16()), arrow::field("y", arrow::list(arrow::float32()))}),
       R"([{"x": 1, "y": [2]}, null, {"x": null, "y": null}])",
       arrow::struct_({arrow::field("x", arrow::int64()), arrow::field("y", list(arrow::float64()), false)}),
       R"([{"x": 1, "y": [2]}, null, {"x": null, "y": []}])"},
  };
  for (const auto& item : cases) {
    auto table = NormalizeToBigQuery(TableOf(item.from, {item.values, item.values}));
    ASSERT_TRUE(table.ok()) << item.from->ToString() << ": " << table.status();
    ASSERT_TRUE((*table)->ValidateFull().ok()) << (*table)->ValidateFull();
    EXPECT_EQ((*table)->field(0)->type()->ToString(), item.to->ToString());
    ASSERT_EQ((*table)->column(0)->num_chunks(), 2);
    for (const auto& chunk : (*table)->column(0)->chunks()) {
      if (item.to->id() == arrow::Type::STRUCT) {
        // JSON cannot make a null struct with a child that is not nullable: compare child by child.
        const auto& rows = static_cast<const arrow::StructArray&>(*chunk);
        EXPECT_EQ(rows.null_count(), 1);
        EXPECT_TRUE(rows.IsNull(1));
        EXPECT_TRUE(rows.field(0)->Equals(ArrayFromJSONString(arrow::int64(), "[1, null, null]").ValueOrDie()));
        EXPECT_EQ(rows.field(1)->null_count(), 0);
        continue;
      }
      EXPECT_TRUE(chunk->Equals(ArrayFromJSONString(item.to, item.want).ValueOrDie()))
          << item.from->ToString() << ": " << chunk->ToString();
    }
  }
}

TEST(NormalizeTest, SlicesKeepTheirValues) {
  auto type = arrow::struct_({arrow::field("x", arrow::int32()), arrow::field("l", arrow::list(arrow::int32()))});
  auto array = ArrayFromJSONString(type, R"([{"x": 1, "l": [1]}, null, {"x": 3, "l": [3, 3]}, {"x": 4, "l": null}, {"x": 5, "l": [5]}])")
                   .ValueOrDie();
  auto sliced = array->Slice(1, 3);
  auto table = NormalizeToBigQuery(arrow::Table::Make(arrow::schema({arrow::field("c", type)}), {sliced}));
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_TRUE((*table)->ValidateFull().ok());
  const auto& rows = static_cast<const arrow::StructArray&>(*(*table)->column(0)->chunk(0));
  EXPECT_TRUE(rows.IsNull(0));
  EXPECT_TRUE(rows.field(0)->Slice(1)->Equals(ArrayFromJSONString(arrow::int64(), "[3, 4]").ValueOrDie()));
  EXPECT_TRUE(rows.field(1)->Slice(1)->Equals(ArrayFromJSONString(arrow::list(arrow::int64()), "[[3, 3], []]").ValueOrDie()));
}

struct BadCase {
  std::shared_ptr<arrow::DataType> from;
  std::vector<std::string> chunks;
  std::optional<int64_t> row;
  const char* column;
  const char* text;
};

TEST(NormalizeTest, AValueThatDoesNotFitIsNamedByColumnAndRow) {
  const BadCase cases[] = {
      {arrow::uint64(), {"[1, 2]", "[3, 9223372036854775808]"}, 3, "c", "9223372036854775808"},
      {arrow::timestamp(arrow::TimeUnit::NANO), {"[1000, null, 1001, 1002]"}, 2, "c", "1001"},
      {arrow::timestamp(arrow::TimeUnit::SECOND), {"[0, 9223372036854775807]"}, 1, "c", "9223372036854775807"},
      {arrow::time64(arrow::TimeUnit::NANO), {"[1]"}, 0, "c", "time64[us]"},
      {arrow::date32(), {"[0]", "[0, -719163]"}, 2, "c", "0000-12-31"},
      {arrow::date32(), {"[2932897]"}, 0, "c", "0001-01-01 to 9999-12-31"},
      {arrow::timestamp(kMicros, "UTC"), {"[253402300800000000]"}, 0, "c", "0001-01-01 to 9999-12-31"},
      {arrow::list(arrow::int32()), {"[[1], [null]]"}, 1, "c", "null"},
      {arrow::list(arrow::uint64()), {"[[1], [9223372036854775808]]"}, 1, "c", "9223372036854775808"},
      {arrow::struct_({arrow::field("x", arrow::uint64())}),
       {R"([{"x": 1}, {"x": 9223372036854775808}])"},
       1,
       "c.x",
       "9223372036854775808"},
  };
  for (const auto& item : cases) {
    auto table = NormalizeToBigQuery(TableOf(item.from, item.chunks));
    ASSERT_FALSE(table.ok()) << item.from->ToString();
    const auto* info = GetErrorInfo(table.status());
    ASSERT_NE(info, nullptr) << table.status();
    EXPECT_EQ(info->code, Code::kInvalidArgument);
    EXPECT_EQ(info->column, item.column);
    EXPECT_EQ(info->row, item.row) << table.status();
    EXPECT_THAT(table.status().message(), HasSubstr(item.text));
  }
}

TEST(NormalizeTest, FirstAndLastMomentFit) {
  EXPECT_TRUE(NormalizeToBigQuery(TableOf(arrow::date32(), {"[-719162, 2932896]"})).ok());
  EXPECT_TRUE(NormalizeToBigQuery(TableOf(arrow::timestamp(kMicros, "UTC"), {"[-62135596800000000, 253402300799999999]"})).ok());
}

TEST(NormalizeTest, NullInARequiredColumn) {
  auto table = arrow::Table::Make(arrow::schema({arrow::field("c", arrow::int64(), false)}),
                                  {ArrayFromJSONString(arrow::int64(), "[1, null]").ValueOrDie()});
  auto result = NormalizeToBigQuery(table);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(GetErrorInfo(result.status())->row, 1);
}

TEST(NormalizeTest, EmptyTableKeepsItsColumnsAndNoColumnsKeepTheRows) {
  auto empty = NormalizeToBigQuery(arrow::Table::MakeEmpty(arrow::schema({arrow::field("c", arrow::int32())})).ValueOrDie());
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ((*empty)->field(0)->type()->id(), arrow::Type::INT64);
  auto rows = NormalizeToBigQuery(arrow::Table::Make(arrow::schema({}), std::vector<std::shared_ptr<arrow::ChunkedArray>>{}, 7));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ((*rows)->num_rows(), 7);
}

}  // namespace
}  // namespace headrace
