#include "headrace/types/schema_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

using testing::HasSubstr;

TEST(SchemaJsonTest, WrittenAsTheRestApiPrintsIt) {
  TableSchema schema{{{.name = "id", .kind = TypeKind::kInt64, .mode = Mode::kRequired, .description = "the \"key\""},
                      {.name = "price", .kind = TypeKind::kNumeric, .precision = 10, .scale = 2},
                      {.name = "code", .kind = TypeKind::kString, .max_length = 3},
                      {.name = "at", .kind = TypeKind::kTimestamp12},
                      {.name = "period", .kind = TypeKind::kRange, .range_element = TypeKind::kDatetime},
                      {.name = "legs",
                       .kind = TypeKind::kStruct,
                       .mode = Mode::kRepeated,
                       .fields = {{.name = "late", .kind = TypeKind::kBool}, {.name = "hours", .kind = TypeKind::kFloat64}}}}};
  const std::string json =
      R"([{"name":"id","type":"INTEGER","mode":"REQUIRED","description":"the \"key\""},)"
      R"({"name":"price","type":"NUMERIC","mode":"NULLABLE","precision":"10","scale":"2"},)"
      R"({"name":"code","type":"STRING","mode":"NULLABLE","maxLength":"3"},)"
      R"({"name":"at","type":"TIMESTAMP","mode":"NULLABLE","timestampPrecision":"12"},)"
      R"({"name":"period","type":"RANGE","mode":"NULLABLE","rangeElementType":{"type":"DATETIME"}},)"
      R"({"name":"legs","type":"RECORD","mode":"REPEATED","fields":[{"name":"late","type":"BOOLEAN","mode":"NULLABLE"},)"
      R"({"name":"hours","type":"FLOAT","mode":"NULLABLE"}]}])";
  EXPECT_EQ(SchemaToJson(schema), json);
  auto back = SchemaFromJson(json);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, schema);
  EXPECT_EQ(*SchemaFromJson(SchemaToJson(schema, 2)), schema);
}

TEST(SchemaJsonTest, WhatPeopleWrite) {
  auto schema =
      SchemaFromJson(R"({"fields": [{"name": "a", "type": "int64"}, {"name": "b", "type": "decimal", "precision": 5, "mode": "required"},
                                              {"name": "c", "type": "Struct", "fields": [{"name": "d", "type": "DOUBLE", "mode": null}]},
                                              {"name": "t", "type": "TIMESTAMP", "timestampPrecision": 6}]})");
  ASSERT_TRUE(schema.ok()) << schema.status();
  TableSchema want{{{.name = "a", .kind = TypeKind::kInt64},
                    {.name = "b", .kind = TypeKind::kNumeric, .mode = Mode::kRequired, .precision = 5},
                    {.name = "c", .kind = TypeKind::kStruct, .fields = {{.name = "d", .kind = TypeKind::kFloat64}}},
                    {.name = "t", .kind = TypeKind::kTimestamp}}};
  EXPECT_EQ(*schema, want);
}

TEST(SchemaJsonTest, RefusedWithThePathOfTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not JSON"},
      {"[{]", "not JSON"},
      {"7", "must be a list"},
      {R"({"schema": []})", "without 'fields'"},
      {R"([7])", "must be an object"},
      {R"([{"type": "STRING"}])", "without a 'name'"},
      {R"([{"name": 7, "type": "STRING"}])", "'name' must be a string"},
      {R"([{"name": "a"}])", "field a: unknown type ''"},
      {R"([{"name": "a", "type": "TEXT"}])", "unknown type 'TEXT'"},
      {R"([{"name": "a", "type": "STRING", "mode": "ARRAY"}])", "unknown mode 'ARRAY'"},
      {R"([{"name": "a", "type": "NUMERIC", "precision": -1}])", "'precision'"},
      {R"([{"name": "a", "type": "NUMERIC", "precision": 1.5}])", "'precision'"},
      {R"([{"name": "a", "type": "NUMERIC", "precision": "5x"}])", "'precision'"},
      {R"([{"name": "a", "type": "NUMERIC", "precision": 18446744073709551615}])", "'precision'"},
      {R"([{"name": "a", "type": "STRING", "maxLength": true}])", "'maxLength'"},
      {R"([{"name": "a", "type": "TIMESTAMP", "timestampPrecision": 9}])", "6 or 12"},
      {R"([{"name": "a", "type": "RANGE"}])", "rangeElementType"},
      {R"([{"name": "a", "type": "RECORD"}])", "needs 'fields'"},
      {R"([{"name": "a", "type": "RECORD", "fields": {}}])", "must be a list"},
      {R"([{"name": "a", "type": "RECORD", "fields": [{"name": "b", "type": "X"}]}])", "field a.b: unknown type"},
      {R"([{"name": "a", "type": "STRING"}, {"name": "A", "type": "STRING"}])", "twice"},
  };
  for (const auto& [json, text] : cases) {
    auto schema = SchemaFromJson(json);
    ASSERT_FALSE(schema.ok()) << json;
    EXPECT_EQ(CodeOf(schema.status()), Code::kInvalidArgument);
    EXPECT_THAT(schema.status().message(), HasSubstr(text)) << json;
  }
}

TEST(SchemaJsonTest, DepthIsBounded) {
  const auto nested = [](int depth) {
    std::string json = R"([{"name": "x", "type": "STRING"}])";
    for (int i = 0; i < depth; ++i) json = R"([{"name": "s", "type": "RECORD", "fields": )" + json + "}]";
    return json;
  };
  EXPECT_TRUE(SchemaFromJson(nested(kMaxNesting)).ok());
  EXPECT_FALSE(SchemaFromJson(nested(kMaxNesting + 1)).ok());
  EXPECT_FALSE(SchemaFromJson(nested(2'000)).ok());
}

}  // namespace
}  // namespace headrace
