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
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |", row.name, row.rest_type, row.arrow, row.storage_avro,
                     row.protobuf, row.json_row, row.parquet, row.csv, row.rest_answer, row.avro_load, row.built ? "yes" : "not yet");
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
    {TypeKind::kGeography, "string"},
    {TypeKind::kJson, "string"},
    {TypeKind::kStruct, "struct<x: int64, y: string>"},
};

TEST(ArrowSchemaTest, EachBuiltTypeThereAndBackInEachMode) {
  size_t built = 0;
  for (const auto& row : TypeTable()) built += row.built && row.kind ? 1 : 0;
  EXPECT_EQ(std::size(kArrowCases), built);
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
    }
  }
}

TEST(ArrowSchemaTest, WhatIsNotBuiltIsRefusedByNameAndColumn) {
  for (const auto& row : TypeTable()) {
    if (row.built) continue;
    Field outer{.name = "outer", .kind = TypeKind::kStruct, .fields = {Of(*row.kind)}};
    auto schema = ToArrowSchema({{outer}});
    ASSERT_FALSE(schema.ok()) << row.name;
    EXPECT_EQ(CodeOf(schema.status()), Code::kUnimplemented);
    EXPECT_EQ(GetErrorInfo(schema.status())->column, "outer.c");
    EXPECT_THAT(schema.status().message(), HasSubstr(std::string(TypeName(*row.kind))));
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
      arrow::month_day_nano_interval(),
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
}

}  // namespace
}  // namespace headrace
