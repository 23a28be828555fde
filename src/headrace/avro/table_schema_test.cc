#include "headrace/avro/table_schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/types/schema_json.h"

namespace headrace::avro {
namespace {

using testing::HasSubstr;

Field Of(std::string name, TypeKind kind, Mode mode = Mode::kNullable) { return {.name = std::move(name), .kind = kind, .mode = mode}; }
Field StructOf(std::string name, std::vector<Field> fields, Mode mode = Mode::kNullable) {
  return {.name = std::move(name), .kind = TypeKind::kStruct, .mode = mode, .fields = std::move(fields)};
}

TableSchema EveryType() {
  TableSchema table;
  for (TypeKind kind : {TypeKind::kInt64, TypeKind::kFloat64, TypeKind::kBool, TypeKind::kString, TypeKind::kBytes, TypeKind::kNumeric,
                        TypeKind::kBigNumeric, TypeKind::kDate, TypeKind::kTime, TypeKind::kDatetime, TypeKind::kTimestamp,
                        TypeKind::kTimestamp12, TypeKind::kGeography, TypeKind::kJson, TypeKind::kInterval}) {
    for (Mode mode : {Mode::kNullable, Mode::kRequired, Mode::kRepeated}) {
      table.fields.push_back(Of("c" + std::to_string(table.fields.size()), kind, mode));
    }
  }
  for (TypeKind element : {TypeKind::kDate, TypeKind::kDatetime, TypeKind::kTimestamp, TypeKind::kDate}) {
    table.fields.push_back({.name = "r" + std::to_string(table.fields.size()), .kind = TypeKind::kRange, .range_element = element});
  }
  table.fields.push_back({.name = "n", .kind = TypeKind::kNumeric, .precision = 10, .scale = 2, .description = "d\"é"});
  table.fields.push_back({.name = "b", .kind = TypeKind::kBigNumeric, .precision = 60, .scale = 30});
  table.fields.push_back(StructOf("s", {StructOf("s", {Of("größe in m", TypeKind::kInt64), Of("1a", TypeKind::kJson)}, Mode::kRepeated),
                                        StructOf("Root", {Of("x", TypeKind::kInt64)})}));
  table.fields.push_back(StructOf("t", {StructOf("s", {Of("x", TypeKind::kInterval)})}));
  table.fields.push_back(Of("_field_1", TypeKind::kInt64));
  return table;
}

TEST(TableSchemaTest, EveryTypeComesBackFromWhatIsWrittenOfIt) {
  for (auto options :
       {AvroSchemaOptions{.dialect = Dialect::kExport}, AvroSchemaOptions{.dialect = Dialect::kStorageRead, .display_names = true}}) {
    const TableSchema table = EveryType();
    auto text = ToAvroSchema(table, options);
    ASSERT_TRUE(text.ok()) << text.status();
    auto schema = Schema::Parse(*text);
    ASSERT_TRUE(schema.ok()) << schema.status() << *text;
    auto back = FromAvroSchema(**schema);
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(back->fields.size(), table.fields.size());
    for (size_t i = 0; i < table.fields.size(); ++i) EXPECT_EQ(back->fields[i], table.fields[i]) << table.fields[i].name;
  }
}

TEST(TableSchemaTest, WhatTheStorageReadApiSends) {
  const TableSchema table{{Of("a", TypeKind::kInt64),
                           Of("d", TypeKind::kDatetime, Mode::kRequired),
                           Of("j", TypeKind::kJson, Mode::kRepeated),
                           StructOf("s", {Of("i", TypeKind::kInterval)}),
                           {.name = "r", .kind = TypeKind::kRange}}};
  EXPECT_EQ(
      ToAvroSchema(table, {.dialect = Dialect::kStorageRead}).ValueOrDie(),
      R"({"type":"record","name":"__root__","fields":[{"name":"a","type":["null","long"]},)"
      R"({"name":"d","type":{"type":"string","logicalType":"datetime","sqlType":"DATETIME"}},)"
      R"({"name":"j","type":{"type":"array","items":{"type":"string","sqlType":"JSON"}}},)"
      R"({"name":"s","type":["null",{"type":"record","name":"s","fields":[{"name":"i","type":["null",{"type":"record","name":"INTERVAL",)"
      R"("namespace":"google.sqlType","sqlType":"INTERVAL","fields":[{"name":"months","type":"int"},{"name":"days","type":"int"},)"
      R"({"name":"microseconds","type":"long"}]}]}]}]},)"
      R"({"name":"r","type":["null",{"type":"record","name":"RANGE_DATE","namespace":"google.sqlType","sqlType":"RANGE<DATE>","fields":[)"
      R"({"name":"start","type":["null",{"type":"int","logicalType":"date"}]},{"name":"end","type":["null",{"type":"int","logicalType":"date"}]}]}]}]})");
}

TEST(TableSchemaTest, WhatLoadJobsTake) {
  const TableSchema table{{Of("d", TypeKind::kDatetime),
                           Of("j", TypeKind::kJson),
                           Of("g", TypeKind::kGeography),
                           {.name = "n", .kind = TypeKind::kNumeric, .precision = 10, .scale = 2},
                           Of("b", TypeKind::kBigNumeric)}};
  EXPECT_EQ(
      ToAvroSchema(table, {.dialect = Dialect::kLoadFile}).ValueOrDie(),
      R"({"type":"record","name":"Root","fields":[{"name":"d","type":["null",{"type":"long","logicalType":"local-timestamp-micros"}]},)"
      R"({"name":"j","type":["null","string"]},{"name":"g","type":["null","string"]},)"
      R"({"name":"n","type":["null",{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}]},)"
      R"({"name":"b","type":["null",{"type":"bytes","logicalType":"decimal","precision":77,"scale":38}]}]})");
  const std::pair<Field, const char*> refused[] = {
      {StructOf("s", {Of("i", TypeKind::kInterval)}), "column s.i: load jobs take no INTERVAL"},
      {Of("r", TypeKind::kRange), "column r: load jobs take no RANGE"},
      {Of("t", TypeKind::kTimestamp12), "column t: load jobs take no TIMESTAMP(12)"},
      {Of("größe", TypeKind::kInt64), "column größe: the name does not follow Avro's grammar"},
  };
  for (const auto& [field, want] : refused) {
    EXPECT_THAT(ToAvroSchema({{field}}, {.dialect = Dialect::kLoadFile}).status().ToString(), HasSubstr(want));
  }
  EXPECT_THAT(ToAvroSchema({{Of("größe", TypeKind::kInt64)}}, {.dialect = Dialect::kStorageRead}).status().ToString(),
              HasSubstr("Avro's grammar"));
}

TEST(TableSchemaTest, TimestampsOfTwelveDigitsAsTheSessionAsks) {
  const TableSchema table{{Of("t", TypeKind::kTimestamp12, Mode::kRequired)}};
  auto text = [&](PicosPrecision picos) { return ToAvroSchema(table, {.dialect = Dialect::kStorageRead, .picos = picos}).ValueOrDie(); };
  EXPECT_THAT(text(PicosPrecision::kMicros), HasSubstr(R"({"type":"long","logicalType":"timestamp-micros"})"));
  EXPECT_THAT(text(PicosPrecision::kNanos), HasSubstr(R"({"type":"long","logicalType":"timestamp-nanos"})"));
  EXPECT_THAT(text(PicosPrecision::kPicos), HasSubstr(R"x({"type":"string","sqlType":"TIMESTAMP(12)"})x"));
}

TEST(TableSchemaTest, RecordsOfOneNameGetTheirPathAsNamespace) {
  const TableSchema table{{StructOf("a", {StructOf("r", {Of("x", TypeKind::kInt64)})}),
                           StructOf("b", {StructOf("r", {StructOf("q", {Of("x", TypeKind::kInt64)})})}),
                           StructOf("r", {Of("x", TypeKind::kInt64)})}};
  auto schema = Schema::Parse(ToAvroSchema(table, {}).ValueOrDie()).ValueOrDie();
  auto record = [](const Node& node, size_t field) { return SplitOptional(*node.fields[field].type).value; };
  EXPECT_EQ(record(*record(schema->root(), 0), 0)->full_name, "r");
  EXPECT_EQ(record(*record(schema->root(), 1), 0)->full_name, "Root.b.r");
  EXPECT_EQ(record(*record(*record(schema->root(), 1), 0), 0)->full_name, "q");
  EXPECT_EQ(record(schema->root(), 2)->full_name, "Root.r");
  EXPECT_EQ(FromAvroSchema(*schema).ValueOrDie(), table);
}

struct OthersCase {
  const char* avro;
  const char* want;  // as BigQuery's JSON
};

TEST(TableSchemaTest, SchemasOfOthers) {
  const OthersCase cases[] = {
      {R"("int")", R"([{"name":"c","type":"INTEGER","mode":"REQUIRED"}])"},
      {R"(["float","null"])", R"([{"name":"c","type":"FLOAT","mode":"NULLABLE"}])"},
      {R"({"type":"enum","name":"e","symbols":["A"]})", R"([{"name":"c","type":"STRING","mode":"REQUIRED"}])"},
      {R"({"type":"fixed","name":"f","size":3})", R"([{"name":"c","type":"BYTES","mode":"REQUIRED"}])"},
      {R"({"type":"string","logicalType":"uuid"})", R"([{"name":"c","type":"STRING","mode":"REQUIRED"}])"},
      {R"({"type":"int","logicalType":"time-millis"})", R"([{"name":"c","type":"TIME","mode":"REQUIRED"}])"},
      {R"({"type":"long","logicalType":"timestamp-millis"})", R"([{"name":"c","type":"TIMESTAMP","mode":"REQUIRED"}])"},
      {R"({"type":"long","logicalType":"timestamp-nanos"})",
       R"([{"name":"c","type":"TIMESTAMP","mode":"REQUIRED","timestampPrecision":"12"}])"},
      {R"({"type":"long","logicalType":"local-timestamp-millis"})", R"([{"name":"c","type":"DATETIME","mode":"REQUIRED"}])"},
      {R"({"type":"string","sqlType":"DATE"})", R"([{"name":"c","type":"DATE","mode":"REQUIRED"}])"},
      {R"({"type":"bytes","logicalType":"decimal","precision":38,"scale":9})", R"([{"name":"c","type":"NUMERIC","mode":"REQUIRED"}])"},
      {R"({"type":"bytes","logicalType":"decimal","precision":39,"scale":10})",
       R"([{"name":"c","type":"BIGNUMERIC","mode":"REQUIRED","precision":"39","scale":"10"}])"},
      {R"({"type":"bytes","logicalType":"decimal","precision":30,"scale":0})",
       R"([{"name":"c","type":"BIGNUMERIC","mode":"REQUIRED","precision":"30"}])"},
      {R"(["null",{"type":"array","items":["null","long"]}])", R"([{"name":"c","type":"INTEGER","mode":"REPEATED"}])"},
      {R"({"type":"map","values":["null","long"]})",
       R"([{"name":"c","type":"RECORD","mode":"REPEATED","fields":[{"name":"key","type":"STRING","mode":"REQUIRED"},{"name":"value","type":"INTEGER","mode":"NULLABLE"}]}])"},
      {R"({"type":"record","name":"x","fields":[{"name":"start","type":"long"},{"name":"end","type":"long"}]})",
       R"([{"name":"c","type":"RECORD","mode":"REQUIRED","fields":[{"name":"start","type":"INTEGER","mode":"REQUIRED"},{"name":"end","type":"INTEGER","mode":"REQUIRED"}]}])"},
  };
  for (const auto& [avro, want] : cases) {
    auto schema = Schema::Parse(std::string(R"({"type":"record","name":"r","fields":[{"name":"c","type":)") + avro + "}]}").ValueOrDie();
    auto table = FromAvroSchema(*schema);
    ASSERT_TRUE(table.ok()) << avro << table.status();
    EXPECT_EQ(*table, SchemaFromJson(want).ValueOrDie()) << avro;
  }
}

TEST(TableSchemaTest, WhatNoTableHoldsIsRefusedByColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("null")", "column c: null alone is no column"},
      {R"(["null"])", "column c: null alone is no column"},
      {R"(["null","int","string"])", "column c: a union of several types"},
      {R"({"type":"array","items":{"type":"array","items":"int"}})", "column c: an array cannot hold arrays"},
      {R"({"type":"array","items":{"type":"map","values":"int"}})", "column c: an array cannot hold arrays or maps"},
      {R"({"type":"fixed","name":"f","size":12,"logicalType":"duration"})", "column c: fixed (duration)"},
      {R"({"type":"fixed","name":"f","size":16,"logicalType":"uuid"})", "column c: fixed (uuid)"},
      {R"({"type":"bytes","logicalType":"big-decimal"})", "column c: bytes (big-decimal)"},
      {R"({"type":"long","logicalType":"local-timestamp-nanos"})", "column c: local-timestamp-nanos"},
      {R"({"type":"bytes","logicalType":"decimal","precision":77,"scale":30})", "column c: decimal(77, 30)"},
      {R"({"type":"record","name":"n","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","n"]}]})",
       "column c.next: the record n contains itself"},
      {R"({"type":"array","items":"r"})", "column c: the record r contains itself"},
  };
  for (const auto& [avro, want] : cases) {
    auto schema = Schema::Parse(std::string(R"({"type":"record","name":"r","fields":[{"name":"c","type":)") + avro + "}]}").ValueOrDie();
    EXPECT_THAT(FromAvroSchema(*schema).status().ToString(), HasSubstr(want));
  }
  EXPECT_THAT(FromAvroSchema(*Schema::Parse("long").ValueOrDie()).status().ToString(), HasSubstr("a table's rows are records, not long"));
  // A few names that stand for each other twice become very many columns.
  std::string bomb = R"({"type":"record","name":"r0","fields":[{"name":"x","type":"int"}]})";
  for (int i = 1; i < 14; ++i) {
    bomb =
        fmt::format(R"({{"type":"record","name":"r{}","fields":[{{"name":"a","type":{}}},{{"name":"b","type":"r{}"}}]}})", i, bomb, i - 1);
  }
  EXPECT_THAT(FromAvroSchema(*Schema::Parse(bomb).ValueOrDie()).status().ToString(), HasSubstr("more than 10000 columns"));
}

}  // namespace
}  // namespace headrace::avro
