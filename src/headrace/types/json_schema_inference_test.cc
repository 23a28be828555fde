#include "headrace/types/json_schema_inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/types/json_row.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

using testing::HasSubstr;

struct InferCase {
  std::vector<std::string> values;  // of "c", row by row
  TypeKind kind;
  Mode mode = Mode::kNullable;
};

TEST(JsonSchemaInferenceTest, NarrowestTypeOfAllValues) {
  const InferCase cases[] = {
      {{"1", "-9223372036854775808", "null"}, TypeKind::kInt64},
      {{"9007199254740993"}, TypeKind::kInt64},
      {{"1", "1.5"}, TypeKind::kFloat64},
      {{"1.0"}, TypeKind::kFloat64},
      {{"7", "-0"}, TypeKind::kFloat64},
      {{"5e-324", "0e-400"}, TypeKind::kFloat64},
      {{"1e3", "9007199254740992"}, TypeKind::kFloat64},
      {{"true", "null", "false"}, TypeKind::kBool},
      {{"true", "1"}, TypeKind::kString},
      {{"\"a\"", "1.50"}, TypeKind::kString},
      {{"\"12\""}, TypeKind::kString},
      {{"\"NaN\"", "1.5"}, TypeKind::kString},
      {{"9223372036854775808", "\"x\""}, TypeKind::kString},
      {{"null", "null"}, TypeKind::kString},
      {{"\"2024-02-29\""}, TypeKind::kDate},
      {{"\"2024-02-29\"", "\"2023-02-29\""}, TypeKind::kString},
      {{"\"2024-2-9\""}, TypeKind::kString},
      {{"\"23:59:59.5\"", "\"00:00:00\""}, TypeKind::kTime},
      {{"\"2024-02-29T00:00:00\"", "\"2024-02-29 00:00:00.123456\""}, TypeKind::kDatetime},
      {{"\"2024-02-29T00:00:00Z\"", "\"2024-02-29 00:00:00+05:45\""}, TypeKind::kTimestamp},
      {{"\"2024-02-29T00:00:00Z\"", "\"2024-02-29T00:00:00\""}, TypeKind::kString},
      {{"\"2024-02-29\"", "\"2024-02-29T00:00:00\""}, TypeKind::kString},
      {{"\"\""}, TypeKind::kString},
      {{"[1, 2]", "[]", "null", "[3.5]"}, TypeKind::kFloat64, Mode::kRepeated},
      {{"[]"}, TypeKind::kString, Mode::kRepeated},
  };
  for (const auto& item : cases) {
    JsonSchemaInference inference;
    std::vector<std::string> rows;
    rows.reserve(item.values.size() + 1);
    for (const auto& value : item.values) rows.push_back("{\"c\": " + value + "}");
    rows.push_back("{}");
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_TRUE(inference.Add(rows[i], static_cast<int64_t>(i)).ok()) << rows[i];
    auto schema = inference.Finish();
    ASSERT_TRUE(schema.ok()) << schema.status();
    EXPECT_EQ(*schema, (TableSchema{{{.name = "c", .kind = item.kind, .mode = item.mode}}})) << item.values[0];
    // The reader takes all that was seen.
    auto reader = JsonRowReader::Make(ToArrowSchema(*schema).ValueOrDie(), {}).ValueOrDie();
    for (size_t i = 0; i < rows.size(); ++i) {
      auto status = reader->Append(rows[i], static_cast<int64_t>(i));
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

TEST(JsonSchemaInferenceTest, ObjectsAndArraysOfObjects) {
  JsonSchemaInference inference;
  ASSERT_TRUE(inference.Add(R"({"id": 1, "s": {"x": 1}, "l": [{"d": "2024-02-29"}, {"n": {"f": 1.5}}]})", 0).ok());
  ASSERT_TRUE(inference.Add(R"({"s": {"X": null, "y": [true]}, "ID": 2, "l": [], "s2": null})", 1).ok());
  const TableSchema want{
      {{.name = "id", .kind = TypeKind::kInt64},
       {.name = "s",
        .kind = TypeKind::kStruct,
        .fields = {{.name = "x", .kind = TypeKind::kInt64}, {.name = "y", .kind = TypeKind::kBool, .mode = Mode::kRepeated}}},
       {.name = "l",
        .kind = TypeKind::kStruct,
        .mode = Mode::kRepeated,
        .fields = {{.name = "d", .kind = TypeKind::kDate},
                   {.name = "n", .kind = TypeKind::kStruct, .fields = {{.name = "f", .kind = TypeKind::kFloat64}}}}},
       {.name = "s2", .kind = TypeKind::kString}}};
  EXPECT_EQ(inference.Finish().ValueOrDie(), want);
  EXPECT_TRUE(JsonSchemaInference().Finish().ValueOrDie().fields.empty());
}

struct BadCase {
  std::vector<std::string> rows;
  const char* column;
  const char* text;
};

TEST(JsonSchemaInferenceTest, WhatNoSchemaFitsIsNamed) {
  std::string deep = "1";
  for (int i = 0; i < 5'000; ++i) deep.insert(0, "{\"s\":").append("}");
  const BadCase cases[] = {
      {{"{\"c\": [1]}", "{\"c\": 1}"}, "c", "an array in one row"},
      {{"{\"c\": {\"x\": 1}}", "{\"c\": 1}"}, "c", "an object in one row"},
      {{"{\"c\": 1}", "{\"c\": {\"x\": 1}}"}, "c", "an object in one row"},
      {{"{\"c\": [[1]]}"}, "c", "cannot hold arrays"},
      {{"{\"c\": {\"x\": [null]}}"}, "c.x", "holds a null"},
      {{"{\"c\": 1}", "[]"}, "", "a row is a JSON object"},
      {{"{\"c\": 1} 2"}, "", "a row is a JSON object"},
      {{"{\"c\": 01}"}, "c", "'01'"},
      {{"{\"c\": tru}"}, "c", "not JSON"},
      {{"{\"c\": \"\xFF\"}"}, "", "UTF-8"},
      {{""}, "", "not JSON"},
      {{deep}, "s.s.s.s.s.s.s.s.s.s.s.s.s.s.s.s", "15 STRUCTs"},
  };
  for (const auto& item : cases) {
    JsonSchemaInference inference;
    arrow::Status status;
    for (size_t i = 0; i < item.rows.size(); ++i) {
      ASSERT_TRUE(status.ok()) << status;
      status = inference.Add(item.rows[i], static_cast<int64_t>(i));
    }
    ASSERT_FALSE(status.ok()) << item.rows[0].substr(0, 60);
    ASSERT_NE(GetErrorInfo(status), nullptr);
    EXPECT_EQ(GetErrorInfo(status)->column, item.column) << status;
    EXPECT_EQ(GetErrorInfo(status)->row, static_cast<int64_t>(item.rows.size()) - 1);
    EXPECT_THAT(status.message(), HasSubstr(item.text));
  }
  const BadCase at_the_end[] = {
      {{"{\"c\": 1}", "{\"c\": 9223372036854775809}"}, "c", "'9223372036854775809'"},
      {{"{\"c\": 1.5}", "{\"c\": 9007199254740993}"}, "c", "'9007199254740993'"},
      {{"{}", "{\"c\": 123456789012345678.12}"}, "c", "'123456789012345678.12'"},
      {{"{}", "{\"c\": 1e-400}"}, "c", "'1e-400'"},
      {{"{}", "{\"c\": {}}"}, "c", "never have a field"},
      {{"{}", "{\"a.b\": 1}"}, "a.b", "character ."},
      {{"{}", "{\"\": 1}"}, "", "no name"},
  };
  for (const auto& item : at_the_end) {
    JsonSchemaInference inference;
    for (size_t i = 0; i < item.rows.size(); ++i) ASSERT_TRUE(inference.Add(item.rows[i], static_cast<int64_t>(i)).ok());
    auto schema = inference.Finish();
    ASSERT_FALSE(schema.ok()) << item.rows[1];
    EXPECT_EQ(GetErrorInfo(schema.status())->column, item.column);
    EXPECT_THAT(schema.status().message(), HasSubstr(item.text));
  }
}

}  // namespace
}  // namespace headrace
