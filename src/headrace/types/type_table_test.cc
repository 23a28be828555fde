#include "headrace/types/type_table.h"

#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string RowText(const TypeRow& row) {
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |", row.name, row.rest_type, row.arrow, row.storage_avro,
                     row.protobuf, row.json_row, row.parquet, row.csv, row.rest_answer, row.avro_load);
}

// The rows between the two marks of docs/types.md, head and rule left out.
std::vector<std::string> DocumentedRows() {
  std::ifstream file(HEADRACE_SOURCE_DIR "/docs/types.md");
  std::vector<std::string> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "<!-- type table -->") inside = true;
    if (line == "<!-- end of type table -->") inside = false;
    if (inside && line.starts_with("|")) rows.push_back(line);
  }
  if (rows.size() > 2) rows.erase(rows.begin(), rows.begin() + 2);
  return rows;
}

TEST(TypeTableTest, DocumentAndCodeSayTheSame) {
  std::vector<std::string> rows;
  for (const auto& row : TypeTable()) rows.push_back(RowText(row));
  EXPECT_EQ(DocumentedRows(), rows);
}

TEST(TypeTableTest, EveryTypeHasOneRow) {
  std::set<TypeKind> kinds;
  for (const auto& row : TypeTable()) {
    if (row.kind) {
      EXPECT_TRUE(kinds.insert(*row.kind).second) << row.name;
    }
    for (auto text : {row.name, row.rest_type, row.arrow, row.storage_avro, row.protobuf, row.json_row, row.parquet, row.csv,
                      row.rest_answer, row.avro_load}) {
      EXPECT_FALSE(text.empty()) << row.name;
    }
  }
  EXPECT_EQ(kinds.size(), static_cast<size_t>(TypeKind::kStruct) + 1);
}

TEST(TypeTableTest, NamesOfTypes) {
  for (const auto& row : TypeTable()) {
    if (!row.kind) continue;
    EXPECT_EQ(TypeKindFromName(TypeName(*row.kind)), row.kind) << row.name;
    // TIMESTAMP(12) has the name TIMESTAMP in the schema JSON; the precision tells them apart.
    if (row.kind != TypeKind::kTimestamp12) {
      EXPECT_EQ(TypeKindFromName(row.rest_type), row.kind) << row.name;
    }
  }
  EXPECT_EQ(TypeKindFromName("integer"), TypeKind::kInt64);
  EXPECT_EQ(TypeKindFromName("Record"), TypeKind::kStruct);
  EXPECT_EQ(TypeKindFromName("BIGDECIMAL"), TypeKind::kBigNumeric);
  EXPECT_EQ(TypeKindFromName(""), std::nullopt);
  EXPECT_EQ(TypeKindFromName("VARCHAR"), std::nullopt);
}

TEST(TypeTableTest, ColumnNamesMatchWithoutCase) {
  EXPECT_TRUE(SameColumnName("Tail_Num", "tail_NUM"));
  EXPECT_FALSE(SameColumnName("a", "ab"));
  EXPECT_FALSE(SameColumnName("ab", "a"));
  std::vector<Field> fields = {{.name = "A"}, {.name = "b"}};
  EXPECT_EQ(FindField(fields, "B"), 1u);
  EXPECT_EQ(FindField(fields, "c"), std::nullopt);
}

Field Of(TypeKind kind) {
  Field field{.name = "c", .kind = kind};
  if (kind == TypeKind::kStruct) field.fields = {{.name = "x", .kind = TypeKind::kInt64}, {.name = "y", .kind = TypeKind::kString}};
  return field;
}

struct ArrowCase {
  TypeKind kind;
  const char* type;
};

// Column "Arrow (ours)" of the type table.
const ArrowCase kArrowCases[] = {
    {TypeKind::kInt64, "int64"},
    {TypeKind::kFloat64, "double"},
    {TypeKind::kBool, "bool"},
    {TypeKind::kString, "string"},
    {TypeKind::kBytes, "binary"},
    {TypeKind::kNumeric, "decimal128(38, 9)"},
    {TypeKind::kBigNumeric, "decimal256(76, 38)"},
    {TypeKind::kDate, "date32[day]"},
    {TypeKind::kTime, "time64[us]"},
    {TypeKind::kDatetime, "timestamp[us]"},
    {TypeKind::kTimestamp, "timestamp[us, tz=UTC]"},
    {TypeKind::kTimestamp12, "string"},
    {TypeKind::kGeography, "string"},
    {TypeKind::kJson, "string"},
    {TypeKind::kInterval, "struct<months: int32 not null, days: int32 not null, microseconds: int64 not null>"},
    {TypeKind::kRange, "struct<start: date32[day], end: date32[day]>"},
    {TypeKind::kStruct, "struct<x: int64, y: string>"},
};

TEST(ArrowSchemaTest, EachTypeThereAndBackInEachMode) {
  EXPECT_EQ(std::size(kArrowCases), TypeTable().size() - 1);
  for (const auto& item : kArrowCases) {
    for (Mode mode : {Mode::kNullable, Mode::kRequired, Mode::kRepeated}) {
      Field field = Of(item.kind);
      field.mode = mode;
      auto schema = ToArrowSchema({{field}});
      ASSERT_TRUE(schema.ok()) << schema.status();
      const auto& column = *(*schema)->field(0);
      EXPECT_EQ(column.nullable(), mode == Mode::kNullable);
      std::string type = mode == Mode::kRepeated ? column.type()->field(0)->type()->ToString() : column.type()->ToString();
      EXPECT_EQ(type, item.type);
      auto back = FromArrowSchema(**schema);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_THAT(back->fields, ElementsAre(field)) << item.type;
      EXPECT_EQ(KindOfCanonical(column), item.kind);
    }
  }
}

std::string MarkOf(const arrow::Field& field) {
  if (field.metadata() == nullptr) return "";
  return field.metadata()->Get(std::string(kExtensionNameKey)).ValueOr("");
}

TEST(ArrowSchemaTest, WhatTheTypeDoesNotSayIsMarked) {
  const std::pair<TypeKind, const char*> cases[] = {{TypeKind::kJson, "arrow.json"},
                                                    {TypeKind::kGeography, "google:sqlType:geography"},
                                                    {TypeKind::kInterval, "google:sqlType:interval"},
                                                    {TypeKind::kRange, "google:sqlType:range"},
                                                    {TypeKind::kTimestamp12, "google:sqlType:timestamp_picos"},
                                                    {TypeKind::kString, ""}};
  for (const auto& [kind, mark] : cases) {
    EXPECT_EQ(MarkOf(*ToArrowField(Of(kind)).ValueOrDie()), mark);
    auto field = Of(kind);
    field.mode = Mode::kRepeated;
    auto list = ToArrowField(field).ValueOrDie();
    EXPECT_EQ(MarkOf(*list), "");
    EXPECT_EQ(MarkOf(*list->type()->field(0)), mark);
  }
}

TEST(ArrowSchemaTest, RangesOfEachElement) {
  const std::pair<TypeKind, const char*> cases[] = {
      {TypeKind::kDate, "date32[day]"}, {TypeKind::kDatetime, "timestamp[us]"}, {TypeKind::kTimestamp, "timestamp[us, tz=UTC]"}};
  for (const auto& [element, type] : cases) {
    Field field{.name = "r", .kind = TypeKind::kRange, .range_element = element};
    auto schema = ToArrowSchema({{field}}).ValueOrDie();
    EXPECT_EQ(schema->field(0)->type()->ToString(), fmt::format("struct<start: {}, end: {}>", type, type));
    EXPECT_THAT(FromArrowSchema(*schema)->fields, ElementsAre(field));
  }
}

TEST(ArrowSchemaTest, PicosecondsAsAsked) {
  Field field{.name = "t", .kind = TypeKind::kTimestamp12};
  Field cut{.name = "t", .kind = TypeKind::kTimestamp};
  const std::tuple<TimestampPrecision, const char*, Field> cases[] = {{TimestampPrecision::kPicos, "string", field},
                                                                      {TimestampPrecision::kNanos, "timestamp[ns, tz=UTC]", field},
                                                                      {TimestampPrecision::kMicros, "timestamp[us, tz=UTC]", cut}};
  for (const auto& [precision, type, back] : cases) {
    auto schema = ToArrowSchema({{field}}, precision).ValueOrDie();
    EXPECT_EQ(schema->field(0)->type()->ToString(), type);
    EXPECT_THAT(FromArrowSchema(*schema)->fields, ElementsAre(back));
  }
}

struct DecimalCase {
  TypeKind kind;
  int precision;
  int scale;
  bool valid;
  const char* type;
};

// https://cloud.google.com/bigquery/docs/reference/standard-sql/data-types#parameterized_decimal_type
const DecimalCase kDecimalCases[] = {
    {TypeKind::kNumeric, 10, 2, true, "decimal128(10, 2)"},
    {TypeKind::kNumeric, 29, 0, true, "decimal128(29, 0)"},
    {TypeKind::kNumeric, 30, 0, false, ""},
    {TypeKind::kNumeric, 9, 9, true, "decimal128(9, 9)"},
    {TypeKind::kNumeric, 8, 9, false, ""},
    {TypeKind::kNumeric, 12, 10, false, ""},
    {TypeKind::kNumeric, 0, 2, false, ""},
    {TypeKind::kBigNumeric, 38, 0, true, "decimal256(38, 0)"},
    {TypeKind::kBigNumeric, 39, 0, false, ""},
    {TypeKind::kBigNumeric, 76, 38, true, "decimal256(76, 38)"},
    {TypeKind::kBigNumeric, 77, 38, false, ""},
    {TypeKind::kString, 5, 0, false, ""},
};

TEST(ArrowSchemaTest, PrecisionAndScale) {
  for (const auto& item : kDecimalCases) {
    auto field = ToArrowField({.name = "d", .kind = item.kind, .precision = item.precision, .scale = item.scale});
    ASSERT_EQ(field.ok(), item.valid) << TypeName(item.kind) << " " << item.precision << " " << item.scale << " " << field.status();
    if (item.valid) {
      EXPECT_EQ((*field)->type()->ToString(), item.type);
    }
  }
}

struct FromCase {
  std::shared_ptr<arrow::DataType> type;
  Field field;
};

Field NumericField(TypeKind kind, int precision, int scale) { return {.name = "c", .kind = kind, .precision = precision, .scale = scale}; }

TEST(ArrowSchemaTest, OtherArrowTypesAsBigQueryStoresThem) {
  const auto list_of = [](TypeKind kind) { return Field{.name = "c", .kind = kind, .mode = Mode::kRepeated}; };
  const FromCase cases[] = {
      {arrow::int8(), Of(TypeKind::kInt64)},
      {arrow::int16(), Of(TypeKind::kInt64)},
      {arrow::int32(), Of(TypeKind::kInt64)},
      {arrow::uint8(), Of(TypeKind::kInt64)},
      {arrow::uint16(), Of(TypeKind::kInt64)},
      {arrow::uint32(), Of(TypeKind::kInt64)},
      {arrow::uint64(), Of(TypeKind::kInt64)},
      {arrow::float16(), Of(TypeKind::kFloat64)},
      {arrow::float32(), Of(TypeKind::kFloat64)},
      {arrow::null(), Of(TypeKind::kString)},
      {arrow::large_utf8(), Of(TypeKind::kString)},
      {arrow::utf8_view(), Of(TypeKind::kString)},
      {arrow::dictionary(arrow::int8(), arrow::utf8()), Of(TypeKind::kString)},
      {arrow::large_binary(), Of(TypeKind::kBytes)},
      {arrow::fixed_size_binary(4), Of(TypeKind::kBytes)},
      {arrow::date64(), Of(TypeKind::kDate)},
      {arrow::time32(arrow::TimeUnit::SECOND), Of(TypeKind::kTime)},
      {arrow::time64(arrow::TimeUnit::NANO), Of(TypeKind::kTime)},
      {arrow::timestamp(arrow::TimeUnit::SECOND), Of(TypeKind::kDatetime)},
      {arrow::timestamp(arrow::TimeUnit::NANO, "Europe/Berlin"), Of(TypeKind::kTimestamp)},
      {arrow::month_day_nano_interval(), Of(TypeKind::kInterval)},
      {arrow::decimal128(38, 9), Of(TypeKind::kNumeric)},
      {arrow::decimal128(10, 2), NumericField(TypeKind::kNumeric, 10, 2)},
      {arrow::decimal32(5, 5), NumericField(TypeKind::kNumeric, 5, 5)},
      {arrow::decimal128(38, 10), NumericField(TypeKind::kBigNumeric, 38, 10)},
      {arrow::decimal128(38, 0), NumericField(TypeKind::kBigNumeric, 38, 0)},
      {arrow::large_list(arrow::int32()), list_of(TypeKind::kInt64)},
      {arrow::fixed_size_list(arrow::float32(), 3), list_of(TypeKind::kFloat64)},
  };
  for (const auto& item : cases) {
    auto schema = FromArrowSchema(*arrow::schema({arrow::field("c", item.type)}));
    ASSERT_TRUE(schema.ok()) << schema.status();
    EXPECT_THAT(schema->fields, ElementsAre(item.field)) << item.type->ToString();
  }
}

TEST(ArrowSchemaTest, ArrowTypesWithoutABigQueryTypeAreRefusedByPath) {
  const std::shared_ptr<arrow::DataType> types[] = {
      arrow::month_interval(),
      arrow::duration(arrow::TimeUnit::SECOND),
      arrow::map(arrow::utf8(), arrow::int64()),
      arrow::list(arrow::list(arrow::int64())),
      arrow::decimal256(76, 0),
      arrow::decimal128(10, -2),
      arrow::dense_union({arrow::field("u", arrow::int8())}),
  };
  for (const auto& type : types) {
    auto schema = FromArrowSchema(*arrow::schema({arrow::field("s", arrow::struct_({arrow::field("c", type)}))}));
    ASSERT_FALSE(schema.ok()) << type->ToString();
    EXPECT_EQ(CodeOf(schema.status()), Code::kUnimplemented);
    EXPECT_EQ(GetErrorInfo(schema.status())->column, "s.c") << type->ToString();
    EXPECT_THAT(schema.status().message(), HasSubstr(type->ToString()));
  }
}

TEST(ArrowSchemaTest, TheServicesOwnExtensionNames) {
  auto json = arrow::key_value_metadata({"ARROW:extension:name"}, {"google:sqlType:json"});
  auto geography = arrow::key_value_metadata({"ARROW:extension:name"}, {"google:sqlType:geography"});
  auto datetime = arrow::key_value_metadata({"ARROW:extension:name"}, {"google:sqlType:datetime"});
  auto schema =
      FromArrowSchema(*arrow::schema({arrow::field("j", arrow::utf8(), true, json), arrow::field("g", arrow::utf8(), true, geography),
                                      arrow::field("d", arrow::timestamp(arrow::TimeUnit::MICRO), true, datetime),
                                      arrow::field("r", arrow::list(arrow::utf8()), false, json)}));
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(schema->fields[0].kind, TypeKind::kJson);
  EXPECT_EQ(schema->fields[1].kind, TypeKind::kGeography);
  EXPECT_EQ(schema->fields[2].kind, TypeKind::kDatetime);
  EXPECT_EQ(schema->fields[3].kind, TypeKind::kJson);
  EXPECT_EQ(schema->fields[3].mode, Mode::kRepeated);
}

TEST(ArrowSchemaTest, MarkedStructsOfOtherMakers) {
  const auto marked = [](const char* mark, std::shared_ptr<arrow::DataType> type) {
    return arrow::schema({arrow::field("c", std::move(type), true, arrow::key_value_metadata({"ARROW:extension:name"}, {mark}))});
  };
  const auto nullable = arrow::struct_(
      {arrow::field("MONTHS", arrow::int32()), arrow::field("days", arrow::int32()), arrow::field("microseconds", arrow::int64())});
  EXPECT_EQ(FromArrowSchema(*marked("google:sqlType:interval", nullable))->fields[0].kind, TypeKind::kInterval);
  EXPECT_EQ(FromArrowSchema(*marked("other", nullable))->fields[0].kind, TypeKind::kStruct);
  const auto pair = [](std::shared_ptr<arrow::DataType> a, std::shared_ptr<arrow::DataType> b, const char* end = "end") {
    return arrow::struct_({arrow::field("start", std::move(a)), arrow::field(end, std::move(b))});
  };
  EXPECT_EQ(FromArrowSchema(*marked("google:sqlType:range", pair(arrow::date64(), arrow::date32())))->fields[0].kind, TypeKind::kRange);
  const auto seconds = arrow::timestamp(arrow::TimeUnit::SECOND, "Asia/Kathmandu");
  EXPECT_EQ(FromArrowSchema(*marked("google:sqlType:range", pair(seconds, seconds)))->fields[0].range_element, TypeKind::kTimestamp);
  const std::pair<const char*, std::shared_ptr<arrow::DataType>> wrong[] = {
      {"google:sqlType:interval", pair(arrow::int32(), arrow::int32())},
      {"google:sqlType:interval", arrow::struct_({arrow::field("months", arrow::int64()), arrow::field("days", arrow::int32()),
                                                  arrow::field("microseconds", arrow::int64())})},
      {"google:sqlType:range", pair(arrow::int32(), arrow::int32())},
      {"google:sqlType:range", pair(arrow::date32(), seconds)},
      {"google:sqlType:range", pair(arrow::date32(), arrow::date32(), "stop")},
      {"google:sqlType:range", pair(arrow::list(arrow::date32()), arrow::list(arrow::date32()))},
  };
  for (const auto& [mark, type] : wrong) {
    auto schema = FromArrowSchema(*marked(mark, type));
    ASSERT_FALSE(schema.ok()) << type->ToString();
    EXPECT_EQ(GetErrorInfo(schema.status())->column, "c");
  }
}

Field Nested(int depth) {
  Field field{.name = "x", .kind = TypeKind::kInt64};
  for (int i = 0; i < depth; ++i) field = {.name = "s", .kind = TypeKind::kStruct, .mode = Mode::kRepeated, .fields = {field}};
  return field;
}

TEST(SchemaTest, NestingToTheServicesLimit) {
  auto deepest = ToArrowSchema({{Nested(kMaxNesting)}});
  ASSERT_TRUE(deepest.ok()) << deepest.status();
  EXPECT_TRUE(FromArrowSchema(**deepest).ok());
  EXPECT_FALSE(ToArrowSchema({{Nested(kMaxNesting + 1)}}).ok());
  auto too_deep = arrow::schema({arrow::field("s", arrow::struct_({arrow::field("s", (*deepest)->field(0)->type())}))});
  EXPECT_FALSE(FromArrowSchema(*too_deep).ok());
}

TEST(SchemaTest, WhatIsNoSchema) {
  const std::pair<TableSchema, const char*> cases[] = {
      {{{{.name = ""}}}, "no name"},
      {{{{.name = "a"}, {.name = "A"}}}, "twice"},
      {{{{.name = std::string(301, 'x')}}}, "300 characters"},
      {{{{.name = "s", .kind = TypeKind::kStruct}}}, "at least one field"},
      {{{{.name = "s", .kind = TypeKind::kStruct, .fields = {{.name = "b"}, {.name = "B"}}}}}, "s.B"},
      {{{{.name = "i", .kind = TypeKind::kInt64, .fields = {{.name = "b"}}}}}, "has no fields"},
      {{{{.name = "i", .kind = TypeKind::kInt64, .max_length = 3}}}, "maximum length"},
      {{{{.name = "r", .kind = TypeKind::kRange, .range_element = TypeKind::kInt64}}}, "RANGE"},
  };
  for (const auto& [schema, text] : cases) {
    auto status = ValidateSchema(schema);
    EXPECT_EQ(CodeOf(status), Code::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr(text));
  }
  // 300 characters of several bytes each; flexible names.
  std::string wide;
  for (int i = 0; i < 300; ++i) wide += "ä";
  EXPECT_TRUE(ValidateSchema({{{.name = wide}, {.name = "1 größe"}}}).ok());
  EXPECT_FALSE(ValidateSchema({{{.name = wide + "ä"}}}).ok());
}

TEST(SchemaTest, ColumnNames) {
  for (const char* name : {"a", "_a", "1a", "12", "a b", " ", "größe", "日本語", "\xF0\x9F\x98\x80", "a-b", "a&b%c=d+e:f'g<h>i#j|k", "__a",
                           "TABLE_", "_PARTITIO", "_CHANGE_TYPE", "a_partition"}) {
    EXPECT_EQ(WhatIsWrongWithColumnName(name), std::nullopt) << name;
  }
  const std::pair<std::string, const char*> wrong[] = {
      {"", "needs a name"},
      {"a.b", "character ."},
      {"a`b", "character `"},
      {"a\"b", "character \""},
      {"a/b", "character /"},
      {"a\\b", "character \\"},
      {"a\nb", "U+000A"},
      {"a\x7F", "U+007F"},
      {"a\xC2\x85", "U+0085"},
      {std::string("a\0b", 3), "U+0000"},
      {"a\xFF", "UTF-8"},
      {"a\xC3", "UTF-8"},
      {"\xC0\x80", "UTF-8"},
      {"\xE0\x80\x80", "UTF-8"},
      {"\xED\xA0\x80", "UTF-8"},
      {"\xF4\x90\x80\x80", "UTF-8"},
      {"_PARTITIONTIME", "_PARTITION"},
      {"_partitiondate", "_PARTITION"},
      {"_TABLE_SUFFIX", "_TABLE_"},
      {"__root__", "__ROOT__"},
  };
  for (const auto& [name, text] : wrong) {
    auto what = WhatIsWrongWithColumnName(name);
    ASSERT_TRUE(what.has_value()) << name;
    EXPECT_THAT(*what, HasSubstr(text));
    auto status = ValidateSchema({{{.name = "s", .kind = TypeKind::kStruct, .fields = {{.name = name}}}}});
    EXPECT_EQ(GetErrorInfo(status)->column, "s." + name);
  }
}

}  // namespace
}  // namespace headrace
