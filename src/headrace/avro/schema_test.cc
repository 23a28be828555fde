#include "headrace/avro/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace::avro {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const Schema> Parsed(std::string_view text) {
  auto schema = Schema::Parse(text);
  EXPECT_TRUE(schema.ok()) << schema.status();
  return schema.ok() ? *schema : nullptr;
}

TEST(SchemaTest, NamesTakeTheNamespaceAroundThem) {
  auto schema = Parsed(R"({"type":"record","name":"outer","namespace":"a.b","fields":[
      {"name":"x","type":{"type":"enum","name":"e","symbols":["A","B"],"default":"A"}},
      {"name":"y","type":"e"},
      {"name":"z","type":{"type":"fixed","name":"c.d.f","size":4}},
      {"name":"w","type":["null","c.d.f","a.b.e"]},
      {"name":"v","type":{"type":"record","name":"r","namespace":"","fields":[{"name":"i","type":{"type":"enum","name":"e","symbols":[]}}]}}]})");
  const auto& fields = schema->root().fields;
  EXPECT_EQ(schema->root().full_name, "a.b.outer");
  EXPECT_EQ(fields[0].type->full_name, "a.b.e");
  EXPECT_THAT(fields[0].type->symbols, ElementsAre("A", "B"));
  EXPECT_EQ(fields[1].type, fields[0].type);
  EXPECT_EQ(fields[2].type->full_name, "c.d.f");
  EXPECT_EQ(fields[3].type->branches[1], fields[2].type);
  EXPECT_EQ(fields[3].type->branches[2], fields[0].type);
  EXPECT_EQ(fields[4].type->full_name, "r");
  EXPECT_EQ(fields[4].type->fields[0].type->full_name, "e");
}

TEST(SchemaTest, LogicalTypesAndAttributesOfBigQuery) {
  auto schema = Parsed(R"({"type":"record","name":"__root__","fields":[
      {"name":"a","type":["null",{"type":"bytes","logicalType":"decimal","precision":77,"scale":38}],"default":null},
      {"name":"b","type":{"type":"string","sqlType":"JSON"},"doc":"why"},
      {"name":"c","type":{"type":"string","logicalType":"datetime"}},
      {"name":"d","type":{"type":"long","logicalType":"timestamp-nanos"}},
      {"name":"e","type":{"type":"string","logicalType":"date"}},
      {"name":"f","type":{"type":"bytes","logicalType":"decimal","precision":2,"scale":3}},
      {"name":"g","type":{"type":"long","logicalType":"of-others"}},
      {"name":"_1","displayName":"größe","aliases":["h"],"type":{"type":"fixed","name":"u","size":16,"logicalType":"uuid"}}]})");
  const auto& fields = schema->root().fields;
  const Optional decimal = SplitOptional(*fields[0].type);
  EXPECT_EQ(decimal.null_branch, 0);
  EXPECT_EQ(decimal.value->logical, Logical::kDecimal);
  EXPECT_EQ(decimal.value->precision, 77);
  EXPECT_EQ(decimal.value->scale, 38);
  EXPECT_EQ(fields[0].default_json, "null");
  EXPECT_EQ(fields[1].type->sql_type, "JSON");
  EXPECT_EQ(fields[1].doc, "why");
  EXPECT_EQ(fields[2].type->logical, Logical::kDatetime);
  EXPECT_EQ(fields[3].type->logical, Logical::kTimestampNanos);
  // What does not fit its type, or is not known, is ignored.
  for (size_t i : {4, 5, 6}) EXPECT_EQ(fields[i].type->logical, Logical::kNone) << fields[i].name;
  EXPECT_EQ(fields[7].column_name(), "größe");
  EXPECT_THAT(fields[7].aliases, ElementsAre("h"));
  EXPECT_EQ(fields[7].type->logical, Logical::kUuid);
}

TEST(SchemaTest, TheTextIsReadAgainAsTheSame) {
  const char* schemas[] = {
      R"("string")",
      R"(["null",{"type":"array","items":"long"}])",
      R"({"type":"record","name":"node","namespace":"n","fields":[{"name":"next","type":["null","n.node"],"default":null}]})",
      R"({"type":"record","name":"r","namespace":"a","fields":[{"name":"x","type":{"type":"record","name":"s","namespace":"","fields":[)"
      R"({"name":"y","type":{"type":"bytes","logicalType":"decimal","precision":5,"scale":2},"displayName":"é","aliases":["q"],"doc":"d"}]}},)"
      R"({"name":"z","type":{"type":"map","values":{"type":"enum","name":"e","symbols":["A"],"default":"A"}}}]})",
  };
  for (const char* text : schemas) EXPECT_EQ(Parsed(text)->ToJson(), text);
}

TEST(SchemaTest, ABareNameIsASchema) {
  EXPECT_EQ(Parsed("long")->root().kind, Kind::kLong);
  EXPECT_EQ(Parsed(R"({"type":{"type":"int"}})")->root().kind, Kind::kInt);
}

TEST(SchemaTest, TheLeastSizeOfValues) {
  EXPECT_EQ(
      Parsed(
          R"({"type":"record","name":"r","fields":[{"name":"a","type":"double"},{"name":"b","type":["null","double"]},{"name":"c","type":"null"}]})")
          ->root()
          .min_bytes,
      9);
  EXPECT_TRUE(Parsed(R"({"type":"record","name":"r","fields":[{"name":"c","type":"null"}]})")->root().always_empty);
  auto endless = Parsed(R"({"type":"record","name":"r","fields":[{"name":"c","type":"r"}]})");
  EXPECT_FALSE(endless->root().always_empty);
  EXPECT_EQ(endless->root().min_bytes, 0);
}

TEST(SchemaTest, WhatIsWrongIsNamed) {
  std::string deep = R"("long")";
  for (int i = 0; i < 70; ++i) deep.insert(0, R"({"type":"array","items":)").append("}");
  const std::pair<std::string, const char*> cases[] = {
      {"", "the text is no JSON"},
      {"{", "the text is no JSON"},
      {"\"a\xff\"", "the text is no JSON"},
      {"17", "a type is a name, an object or an array"},
      {R"("strin")", "the type 'strin' is not defined"},
      {R"({"type":"array"})", "array without \"items\""},
      {R"({"type":"record","fields":[]})", "a type record has no name"},
      {R"({"type":"record","name":"r"})", "the record r without \"fields\""},
      {R"({"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]})",
       "a: the record r has the field twice"},
      {R"({"type":"record","name":"r","fields":[{"name":"a","type":{"type":"fixed","name":"r","size":1}}]})",
       "the type 'r' is defined twice"},
      {R"({"type":"record","name":"r","fields":[{"name":"a"}]})", "Avro schema, a: a field without \"type\""},
      {R"({"type":"record","name":"r","fields":[{"type":"int"}]})", "a field of r has no name"},
      {R"({"type":"fixed","name":"f","size":-1})", "needs a \"size\""},
      {R"({"type":"fixed","name":"f","size":2000000000})", "needs a \"size\""},
      {R"({"type":"enum","name":"e","symbols":["A","A"]})", "the symbol 'A' twice"},
      {R"(["int","int"])", "a union has the type 'int' twice"},
      {R"(["int",["null"]])", "a union directly in a union"},
      {"[]", "a union without types"},
      {deep, "more than 64 types inside each other"},
      {std::string(1000, '['), "levels of JSON"},
      {std::string(static_cast<size_t>(Schema::kMaxTextBytes) + 1, ' '), "bytes are more than"},
      {"[" + std::string(3'000'000, ',') + "]", "JSON values"},
  };
  for (const auto& [text, want] : cases) {
    auto status = Schema::Parse(text).status();
    EXPECT_THAT(status.ToString(), HasSubstr(want)) << text.substr(0, 100);
    EXPECT_EQ(CodeOf(status), Code::kInvalidArgument);
  }
  std::string many = R"({"type":"enum","name":"e","symbols":[)";
  for (int64_t i = 0; i <= Schema::kMaxNames; ++i) many += (i == 0 ? "\"s" : ",\"s") + std::to_string(i) + "\"";
  EXPECT_THAT(Schema::Parse(many + "]}").status().ToString(), HasSubstr("more than 100000 names"));
}

TEST(SchemaTest, ALongChainOfNamesIsNoDeepRecursion) {
  std::string text = R"(["null",{"type":"record","name":"r0","fields":[]})";
  for (int i = 1; i < 20'000; ++i) {
    auto number = std::to_string(i);
    text += R"(,{"type":"record","name":"r)" + number + R"(","fields":[{"name":"a","type":"r)" + std::to_string(i - 1) + R"("}]})";
  }
  auto schema = Schema::Parse(text + "]");
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_TRUE((*schema)->root().branches.back()->always_empty);
  EXPECT_FALSE((*schema)->ToJson().empty());
}

}  // namespace
}  // namespace headrace::avro
