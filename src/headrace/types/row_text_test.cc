// ColumnText, ColumnParser, JsonRowWriter, JsonRowReader and RestRowWriter over the same values.
#include <array>
#include <random>

#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/types/canonicalize.h"
#include "headrace/types/column_text.h"
#include "headrace/types/json_row.h"
#include "headrace/types/json_text.h"
#include "headrace/types/rest_row.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

using testing::HasSubstr;

constexpr const char* kLargestBig = "578960446186580977117854925043439539266.34992332820282019728792003956564819967";
constexpr const char* kSmallestBig = "-578960446186580977117854925043439539266.34992332820282019728792003956564819968";

struct ValueCase {
  Field field;
  const char* text;            // CSV, and what is read
  const char* json = nullptr;  // where it is not the text in quotes
  const char* rest = nullptr;  // where it is not the text
};

Field Of(TypeKind kind) { return {.name = "c", .kind = kind}; }
Field RangeOf(TypeKind element) { return {.name = "c", .kind = TypeKind::kRange, .range_element = element}; }

const std::vector<ValueCase>& ValueCases() {
  static const std::vector<ValueCase> cases = {
      {Of(TypeKind::kInt64), "0"},
      {Of(TypeKind::kInt64), "9223372036854775807"},
      {Of(TypeKind::kInt64), "-9223372036854775808"},
      {Of(TypeKind::kFloat64), "-0.0", "-0.0"},
      {Of(TypeKind::kFloat64), "5e-324", "5e-324"},
      {Of(TypeKind::kFloat64), "1.7976931348623157e+308", "1.7976931348623157e+308"},
      {Of(TypeKind::kFloat64), "NaN"},
      {Of(TypeKind::kFloat64), "Infinity"},
      {Of(TypeKind::kFloat64), "-Infinity"},
      {Of(TypeKind::kBool), "true", "true"},
      {Of(TypeKind::kBool), "false", "false"},
      {Of(TypeKind::kString), ""},
      {Of(TypeKind::kString), "größe, \"x\"\n\\", "\"größe, \\\"x\\\"\\n\\\\\""},
      {Of(TypeKind::kBytes), ""},
      {Of(TypeKind::kBytes), "AP/+"},
      {Of(TypeKind::kNumeric), "99999999999999999999999999999.999999999"},
      {Of(TypeKind::kNumeric), "-0.000000001"},
      {Field{.name = "c", .kind = TypeKind::kNumeric, .precision = 5, .scale = 2}, "-999.99"},
      {Of(TypeKind::kBigNumeric), kLargestBig},
      {Of(TypeKind::kBigNumeric), kSmallestBig},
      {Field{.name = "c", .kind = TypeKind::kBigNumeric, .precision = 40, .scale = 38}, "99.99999999999999999999999999999999999999"},
      {Of(TypeKind::kDate), "0001-01-01"},
      {Of(TypeKind::kDate), "9999-12-31"},
      {Of(TypeKind::kTime), "23:59:59.999999"},
      {Of(TypeKind::kTime), "00:00:00"},
      {Of(TypeKind::kDatetime), "1969-12-31T23:59:59.999999"},
      {Of(TypeKind::kDatetime), "0001-01-01T00:00:00"},
      {Of(TypeKind::kTimestamp), "1969-12-31T23:59:59.500000Z", nullptr, "-0.5"},
      {Of(TypeKind::kTimestamp), "9999-12-31T23:59:59.999999Z", nullptr, "253402300799.999999"},
      {Of(TypeKind::kTimestamp), "0001-01-01T00:00:00Z", nullptr, "-62135596800.0"},
      {Of(TypeKind::kTimestamp12), "1969-12-31T23:59:59.999999999999Z"},
      {Of(TypeKind::kGeography), "POINT(1 2)"},
      {Of(TypeKind::kJson), R"({"a":[1,null]})", R"("{\"a\":[1,null]}")"},
      {Of(TypeKind::kJson), "null"},
      {Of(TypeKind::kInterval), "-1-2 3 -4:5:6.789999"},
      {RangeOf(TypeKind::kDate), "[2024-01-01, UNBOUNDED)"},
      {RangeOf(TypeKind::kDate), "[UNBOUNDED, UNBOUNDED)"},
      {RangeOf(TypeKind::kDatetime), "[0001-01-01T00:00:00, 9999-12-31T23:59:59.999999)"},
      {RangeOf(TypeKind::kTimestamp), "[1970-01-01T00:00:00Z, 1970-01-01T00:00:01Z)", nullptr, "[0.0, 1.0)"},
  };
  return cases;
}

std::shared_ptr<arrow::Array> Parsed(const Field& field, const std::string& text) {
  auto parser = ColumnParser::Make(field, {.strict = true}).ValueOrDie();
  EXPECT_TRUE(parser->Append(text).ok()) << parser->Append(text);
  EXPECT_TRUE(parser->AppendNull().ok());
  return parser->Finish().ValueOrDie();
}

TEST(ColumnTextTest, EveryTypeThereAndBack) {
  for (const auto& item : ValueCases()) {
    auto column = Parsed(item.field, item.text);
    EXPECT_TRUE(column->IsNull(1));
    auto text = ColumnText::Make(*ToArrowField(item.field).ValueOrDie()).ValueOrDie();
    std::string out;
    auto status = text.Append(*column, 0, &out);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(out, item.text);
    auto rest = ColumnText::Make(*ToArrowField(item.field).ValueOrDie(), TextForm::kRest).ValueOrDie();
    out.clear();
    ASSERT_TRUE(rest.Append(*column, 0, &out).ok());
    EXPECT_EQ(out, item.rest != nullptr ? item.rest : item.text);
  }
}

TEST(ColumnTextTest, MicrosecondsWhenAsked) {
  auto column = Parsed(Of(TypeKind::kTimestamp), "1969-12-31T23:59:59.500000Z");
  auto text = ColumnText::Make(*ToArrowField(Of(TypeKind::kTimestamp)).ValueOrDie(), TextForm::kRestMicros).ValueOrDie();
  std::string out;
  ASSERT_TRUE(text.Append(*column, 0, &out).ok());
  EXPECT_EQ(out, "-500000");
}

std::shared_ptr<arrow::Array> FromJson(const std::shared_ptr<arrow::DataType>& type, const std::string& json) {
  return arrow::json::ArrayFromJSONString(type, json).ValueOrDie();
}

TEST(ColumnTextTest, ValuesThatBigQueryHasNotAreNamed) {
  struct Bad {
    Field field;
    std::shared_ptr<arrow::Array> column;
    const char* text;
  };
  const Bad cases[] = {
      {Of(TypeKind::kDate), FromJson(arrow::date32(), "[0, 2932897]"), "10000-01-01"},
      {Of(TypeKind::kTime), FromJson(arrow::int64(), "[0, 86400000000]")->View(arrow::time64(arrow::TimeUnit::MICRO)).ValueOrDie(),
       "24:00:00"},
      {Of(TypeKind::kTime), FromJson(arrow::int64(), "[0, -1]")->View(arrow::time64(arrow::TimeUnit::MICRO)).ValueOrDie(),
       "-00:00:00.000001"},
      {Of(TypeKind::kDatetime), FromJson(arrow::timestamp(arrow::TimeUnit::MICRO), "[0, -62135596800000001]"),
       "0000-12-31T23:59:59.999999"},
      {Of(TypeKind::kTimestamp), FromJson(arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"), "[0, 253402300800000000]"), "10000-01-01"},
      {Of(TypeKind::kString), FromJson(arrow::binary(), "[\"a\", \"\"]"), ""},
  };
  for (const auto& item : cases) {
    auto column = item.column;
    if (item.field.kind == TypeKind::kString) {
      arrow::BinaryBuilder builder;
      ASSERT_TRUE(builder.AppendValues({"a", "\xFFz"}).ok());
      column = builder.Finish().ValueOrDie()->View(arrow::utf8()).ValueOrDie();
    }
    auto text = ColumnText::Make(*ToArrowField(item.field).ValueOrDie()).ValueOrDie();
    std::string out;
    EXPECT_TRUE(text.Append(*column, 0, &out).ok());
    auto status = text.Append(*column, 1, &out, 40);
    ASSERT_FALSE(status.ok()) << item.text;
    EXPECT_EQ(GetErrorInfo(status)->column, "c");
    EXPECT_EQ(GetErrorInfo(status)->row, 41);
    EXPECT_THAT(status.message(), HasSubstr(item.field.kind == TypeKind::kString ? "'\\xFFz'" : item.text));
  }
}

TEST(ColumnTextTest, NestedColumnsAndOtherTypesAreRefusedByName) {
  Field list{.name = "l", .kind = TypeKind::kInt64, .mode = Mode::kRepeated};
  Field record{.name = "s", .kind = TypeKind::kStruct, .fields = {Of(TypeKind::kInt64)}};
  for (const auto& field : {list, record}) {
    auto text = ColumnText::Make(*ToArrowField(field).ValueOrDie());
    EXPECT_EQ(CodeOf(text.status()), Code::kUnimplemented);
    EXPECT_EQ(GetErrorInfo(text.status())->column, field.name);
    EXPECT_EQ(CodeOf(ColumnParser::Make(field, {}).status()), Code::kUnimplemented);
  }
  for (const auto& type : {arrow::int32(), arrow::large_utf8(), arrow::timestamp(arrow::TimeUnit::NANO), arrow::date64()}) {
    auto text = ColumnText::Make(*arrow::field("c", type));
    ASSERT_FALSE(text.ok()) << type->ToString();
    EXPECT_EQ(GetErrorInfo(text.status())->column, "c");
  }
}

struct ReadCase {
  Field field;
  ParseOptions options;
  const char* text;
  const char* want;  // null: refused
};

TEST(ColumnParserTest, TextsByTheCoercionTable) {
  const ParseOptions strict{.strict = true};
  const ReadCase cases[] = {
      {Of(TypeKind::kInt64), {}, "12.0", "12"},
      {Of(TypeKind::kInt64), strict, "12.0", nullptr},
      {Of(TypeKind::kInt64), {}, "12.5", nullptr},
      {Of(TypeKind::kInt64), {}, "9223372036854775808", nullptr},
      {Of(TypeKind::kInt64), {}, "", nullptr},
      {Of(TypeKind::kBool), {}, "TRUE", "true"},
      {Of(TypeKind::kBool), {}, "yes", nullptr},
      {Of(TypeKind::kBool), {}, "0", nullptr},
      {Of(TypeKind::kBytes), {}, "Zg", nullptr},
      {Of(TypeKind::kNumeric), {}, "1.0000000005", nullptr},
      {Of(TypeKind::kNumeric), {.rounding = DecimalRounding::kHalfAwayFromZero}, "1.0000000005", "1.000000001"},
      {Of(TypeKind::kNumeric), {.rounding = DecimalRounding::kHalfEven}, "1.0000000005", "1"},
      {Of(TypeKind::kNumeric), {}, "100000000000000000000000000000", nullptr},
      {Of(TypeKind::kDate), {}, "2023-02-29", nullptr},
      {Of(TypeKind::kDatetime), {}, "2024-02-29", "2024-02-29T00:00:00"},
      {Of(TypeKind::kDatetime), strict, "2024-02-29", nullptr},
      {Of(TypeKind::kDatetime), {}, "2024-02-29 01:02:03.5", "2024-02-29T01:02:03.500000"},
      {Of(TypeKind::kTimestamp), {}, "2024-02-29 05:45:00+05:45", "2024-02-29T00:00:00Z"},
      {Of(TypeKind::kTimestamp), {}, "2024-02-29 05:45:00", "2024-02-29T05:45:00Z"},
      {Of(TypeKind::kTimestamp), strict, "2024-02-29 05:45:00", nullptr},
      {Of(TypeKind::kTimestamp), {}, "2024-02-29", "2024-02-29T00:00:00Z"},
      {Of(TypeKind::kTimestamp), {}, "1", nullptr},
      {Of(TypeKind::kTimestamp), {.epoch_unit = EpochUnit::kSeconds}, "-1", "1969-12-31T23:59:59Z"},
      {Of(TypeKind::kTimestamp), {.epoch_unit = EpochUnit::kMillis}, "1", "1970-01-01T00:00:00.001000Z"},
      {Of(TypeKind::kTimestamp), {.epoch_unit = EpochUnit::kMicros}, "1", "1970-01-01T00:00:00.000001Z"},
      {Of(TypeKind::kTimestamp), {.epoch_unit = EpochUnit::kSeconds}, "253402300799", "9999-12-31T23:59:59Z"},
      {Of(TypeKind::kTimestamp), {.epoch_unit = EpochUnit::kSeconds}, "253402300800", nullptr},
      {Of(TypeKind::kTimestamp), {.epoch_unit = EpochUnit::kSeconds}, "-62135596801", nullptr},
      {Of(TypeKind::kTimestamp), {.epoch_unit = EpochUnit::kMicros}, "253402300800000000", nullptr},
      {Of(TypeKind::kTimestamp), {.epoch_unit = EpochUnit::kSeconds}, "1.5", nullptr},
      {Of(TypeKind::kTimestamp12), {}, "1970-01-01 01:00:00.123456789+01", "1970-01-01T00:00:00.123456789000Z"},
      {Of(TypeKind::kTimestamp12), {}, "1970-01-01 01:00:00.123456789012", "1970-01-01T01:00:00.123456789012Z"},
      {Of(TypeKind::kTimestamp12), {}, "1970-01-01", "1970-01-01T00:00:00.000000000000Z"},
      {Of(TypeKind::kTimestamp12), strict, "1970-01-01", nullptr},
      {Of(TypeKind::kTimestamp12), {.epoch_unit = EpochUnit::kMicros}, "-1", "1969-12-31T23:59:59.999999000000Z"},
      {Of(TypeKind::kTimestamp12), {}, "7", nullptr},
      {Of(TypeKind::kJson), {}, "{\"a\": 1e999, \"a\": [tru]}", nullptr},
      {Of(TypeKind::kJson), {}, "{\"a\": 1e999, \"a\": [true]}", "{\"a\": 1e999, \"a\": [true]}"},
      {Of(TypeKind::kJson), {}, "", nullptr},
      {Of(TypeKind::kString), {}, "\xFF", nullptr},
      {Of(TypeKind::kInterval), {}, "1 day", nullptr},
      {RangeOf(TypeKind::kDate), {}, "[2024-01-01,null)", "[2024-01-01, UNBOUNDED)"},
      {RangeOf(TypeKind::kDate), {}, "[2024-01-01, 2024-01-01)", nullptr},
      {RangeOf(TypeKind::kDate), {}, "[2024-01-02, 2024-01-01)", nullptr},
      {RangeOf(TypeKind::kDate), {}, "(2024-01-01, 2024-01-02)", nullptr},
      {RangeOf(TypeKind::kDate), {}, "[)", nullptr},
      {RangeOf(TypeKind::kDate), {}, "[", nullptr},
      {RangeOf(TypeKind::kDate), {}, "[2024-01-01T00:00:00, )", nullptr},
  };
  for (const auto& item : cases) {
    auto parser = ColumnParser::Make(item.field, item.options, 10).ValueOrDie();
    auto status = parser->Append(item.text);
    ASSERT_EQ(status.ok(), item.want != nullptr) << item.text << " " << status;
    if (!status.ok()) {
      EXPECT_EQ(GetErrorInfo(status)->column, "c");
      EXPECT_EQ(GetErrorInfo(status)->row, 10);
      EXPECT_THAT(status.message(), HasSubstr(Quoted(item.text)));
      EXPECT_EQ(parser->row_count(), 0);
      EXPECT_TRUE(parser->AppendNull().ok());
      EXPECT_TRUE(parser->Finish().ValueOrDie()->ValidateFull().ok());
      continue;
    }
    auto text = ColumnText::Make(*ToArrowField(item.field).ValueOrDie()).ValueOrDie();
    std::string out;
    ASSERT_TRUE(text.Append(*parser->Finish().ValueOrDie(), 0, &out).ok());
    EXPECT_EQ(out, item.want);
  }
}

TEST(ColumnParserTest, ANullInARequiredColumn) {
  auto parser = ColumnParser::Make({.name = "c", .kind = TypeKind::kInt64, .mode = Mode::kRequired}, {}).ValueOrDie();
  EXPECT_EQ(GetErrorInfo(parser->AppendNull())->column, "c");
}

// One row {"c": value} of each case, and {"c": null}.
TEST(JsonRowTest, EveryTypeThereAndBack) {
  for (const auto& item : ValueCases()) {
    auto schema = ToArrowSchema({{item.field}}).ValueOrDie();
    auto batch = arrow::RecordBatch::Make(schema, 2, {Parsed(item.field, item.text)});
    std::string quoted;
    AppendJsonString(item.text, &quoted);
    const std::string want = "{\"c\":" + (item.json != nullptr ? std::string(item.json) : quoted) + "}\n{\"c\":null}\n";
    auto writer = JsonRowWriter::Make(schema).ValueOrDie();
    std::string out;
    ASSERT_TRUE(writer->Append(*batch, 0, 2, &out).ok());
    EXPECT_EQ(out, want);
    auto reader = JsonRowReader::Make(schema, {.strict = true}).ValueOrDie();
    auto status = reader->Append(want.substr(0, want.find('\n')), 0);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(reader->Append("{}", 1).ok());
    auto back = reader->Finish().ValueOrDie();
    EXPECT_TRUE(back->Equals(*batch, arrow::EqualOptions::Defaults().nans_equal(true))) << back->ToString();
    EXPECT_TRUE(back->schema()->Equals(*schema, true));
  }
}

TableSchema NestedSchema() {
  return {{{.name = "id", .kind = TypeKind::kInt64, .mode = Mode::kRequired},
           {.name = "s",
            .kind = TypeKind::kStruct,
            .fields = {{.name = "x", .kind = TypeKind::kInt64},
                       {.name = "r", .kind = TypeKind::kString, .mode = Mode::kRepeated},
                       {.name = "must", .kind = TypeKind::kBool, .mode = Mode::kRequired}}},
           {.name = "l",
            .kind = TypeKind::kStruct,
            .mode = Mode::kRepeated,
            .fields = {{.name = "d", .kind = TypeKind::kDate},
                       {.name = "n", .kind = TypeKind::kStruct, .fields = {{.name = "f", .kind = TypeKind::kFloat64}}}}}}};
}

constexpr const char* kNestedRows =
    R"({"id":"1","s":{"x":"7","r":["a",""],"must":true},"l":[{"d":"2024-02-29","n":{"f":1.5}},{"d":null,"n":null}]}
{"id":"2","s":null,"l":[]}
{"id":"3","s":{"x":null,"r":[],"must":false},"l":[{"d":null,"n":{"f":null}}]}
)";

std::shared_ptr<arrow::RecordBatch> ReadRows(const std::shared_ptr<arrow::Schema>& schema, std::string_view rows) {
  auto reader = JsonRowReader::Make(schema, {}).ValueOrDie();
  for (int64_t row = 0; !rows.empty(); ++row) {
    const size_t end = rows.find('\n');
    auto status = reader->Append(rows.substr(0, end), row);
    EXPECT_TRUE(status.ok()) << status;
    rows.remove_prefix(end + 1);
  }
  return reader->Finish().ValueOrDie();
}

TEST(JsonRowTest, NestedRowsKeepNullEmptyAndMissingApart) {
  auto schema = ToArrowSchema(NestedSchema()).ValueOrDie();
  auto batch = ReadRows(schema, kNestedRows);
  ASSERT_TRUE(batch->ValidateFull().ok()) << batch->ValidateFull();
  auto writer = JsonRowWriter::Make(schema).ValueOrDie();
  std::string out;
  ASSERT_TRUE(writer->Append(*batch, 0, 3, &out).ok());
  EXPECT_EQ(out, kNestedRows);
  // Slices begin anywhere.
  std::string_view rows(kNestedRows);
  out.clear();
  ASSERT_TRUE(writer->Append(*batch->Slice(1), 1, 1, &out).ok());
  EXPECT_EQ(out, rows.substr(rows.rfind('\n', rows.size() - 2) + 1));
  // A null struct has null children and an empty array.
  const auto& s = static_cast<const arrow::StructArray&>(*batch->column(1));
  EXPECT_TRUE(s.IsNull(1));
  EXPECT_TRUE(s.field(0)->IsNull(1));
  EXPECT_TRUE(s.field(1)->IsValid(1));
  EXPECT_EQ(s.field(2)->null_count(), 0);
}

TEST(JsonRowTest, KeysInAnyOrderAndCaseAndWhatIsMissing) {
  auto schema = ToArrowSchema(NestedSchema()).ValueOrDie();
  auto batch = ReadRows(schema, " {\"L\": null, \"S\": {\"MUST\": \"True\", \"X\": 1.0}, \"Id\" : 5 } \n");
  auto writer = JsonRowWriter::Make(schema).ValueOrDie();
  std::string out;
  ASSERT_TRUE(writer->Append(*batch, 0, 1, &out).ok());
  EXPECT_EQ(out, "{\"id\":\"5\",\"s\":{\"x\":\"1\",\"r\":[],\"must\":true},\"l\":[]}\n");
}

struct BadRow {
  const char* line;
  const char* column;  // "" : none known
  const char* text;
};

TEST(JsonRowTest, ErrorsNameColumnRowAndValue) {
  auto schema = ToArrowSchema(NestedSchema()).ValueOrDie();
  const BadRow cases[] = {
      {"", "", "not JSON"},
      {"[]", "", "not an array"},
      {"7", "", "not a number"},
      {"{\"id\":1", "", "not JSON"},
      {"{\"id\":1} x", "", "not JSON"},
      {"{\"id\":1}{\"id\":2}", "", "follows"},
      {"{\"id\" 1}", "", "not JSON"},
      {"{\"id\":1,}", "", "not JSON"},
      {"{}", "id", "no value for a REQUIRED column"},
      {"{\"id\":null}", "id", "null in a REQUIRED column"},
      {"{\"id\":1,\"ID\":2}", "id", "'ID' appears twice"},
      {"{\"id\":1,\"idd\":2}", "", "'idd'"},
      {"{\"id\":9223372036854775808}", "id", "'9223372036854775808'"},
      {"{\"id\":1.5}", "id", "'1.5'"},
      {"{\"id\":01}", "id", "'01'"},
      {"{\"id\":+1}", "id", "not JSON"},
      {"{\"id\":-}", "id", "'-'"},
      {"{\"id\":1e}", "id", "'1e'"},
      {"{\"id\":nul}", "id", "not JSON"},
      {"{\"id\":tru}", "id", "not JSON"},
      {"{\"id\":true}", "id", "'true' is a boolean, which is not taken for INT64"},
      {"{\"id\":{}}", "id", "'{}' is a object"},
      {"{\"id\":[1]}", "id", "'[1]' is a array"},
      {"{\"id\":\"x\"}", "id", "'x'"},
      {"{\"id\":\"\\x\"}", "id", "bad escape"},
      {"{\"id\":\"\\ud800\"}", "id", "bad escape"},
      {"{\"id\":\"\xFF\"}", "", "UTF-8"},
      {"{\"id\":\"a\nb\"}", "", "control character"},
      {"{\"id\":1,\"s\":7}", "s", "a number in a STRUCT"},
      {"{\"id\":1,\"s\":{\"x\":1}}", "s.must", "no value"},
      {"{\"id\":1,\"s\":{\"must\":\"ja\"}}", "s.must", "'ja'"},
      {"{\"id\":1,\"s\":{\"must\":1}}", "s.must", "'1' is a whole number"},
      {"{\"id\":1,\"s\":{\"must\":true,\"r\":\"x\"}}", "s.r", "a text in a REPEATED column"},
      {"{\"id\":1,\"s\":{\"must\":true,\"r\":[null]}}", "s.r", "null"},
      {"{\"id\":1,\"s\":{\"must\":true,\"r\":[[]]}}", "s.r", "'[]'"},
      {"{\"id\":1,\"s\":{\"must\":true,\"y\":1}}", "s", "'y'"},
      {"{\"id\":1,\"l\":[{\"d\":\"2024-02-30\"}]}", "l.d", "'2024-02-30'"},
      {"{\"id\":1,\"l\":[{\"n\":{\"f\":1e400}}]}", "l.n.f", "'1e400'"},
  };
  for (const auto& item : cases) {
    auto reader = JsonRowReader::Make(schema, {}).ValueOrDie();
    auto status = reader->Append(item.line, 41);
    ASSERT_FALSE(status.ok()) << item.line;
    const auto* info = GetErrorInfo(status);
    ASSERT_NE(info, nullptr) << status;
    EXPECT_EQ(info->code, Code::kInvalidArgument);
    EXPECT_EQ(info->column, item.column) << item.line << " " << status;
    EXPECT_EQ(info->row, 41) << item.line;
    EXPECT_THAT(status.message(), HasSubstr(item.text)) << item.line;
    EXPECT_FALSE(reader->Append("{\"id\":1}", 42).ok()) << "a reader that failed has read a part of a row";
    EXPECT_FALSE(reader->Finish().ok());
  }
}

TEST(JsonRowTest, UnknownKeysAreIgnoredWhenAskedAndStillJson) {
  auto schema = ToArrowSchema({{Of(TypeKind::kInt64)}}).ValueOrDie();
  auto reader = JsonRowReader::Make(schema, {.ignore_unknown_keys = true}).ValueOrDie();
  ASSERT_TRUE(reader->Append(R"({"u": {"a": [1, "x", {"b": null}]}, "c": 1, "v": -1e5})", 0).ok());
  EXPECT_TRUE(reader->Finish().ValueOrDie()->column(0)->Equals(FromJson(arrow::int64(), "[1]")));
  for (const char* line : {R"({"u": {"a": tru}, "c": 1})", R"({"u": [1 2], "c": 1})", R"({"u": 01, "c": 1})"}) {
    auto fresh = JsonRowReader::Make(schema, {.ignore_unknown_keys = true}).ValueOrDie();
    EXPECT_FALSE(fresh->Append(line, 0).ok()) << line;
  }
}

TEST(JsonRowTest, NumbersKeepTheirDigits) {
  auto schema = ToArrowSchema({{{.name = "i", .kind = TypeKind::kInt64},
                                {.name = "n", .kind = TypeKind::kNumeric},
                                {.name = "b", .kind = TypeKind::kBigNumeric},
                                {.name = "s", .kind = TypeKind::kString},
                                {.name = "j", .kind = TypeKind::kJson}}})
                    .ValueOrDie();
  const std::string big(kLargestBig);
  auto batch =
      ReadRows(schema, "{\"i\": 9007199254740993, \"n\": 2.3, \"b\": " + big + " , \"s\": 1.10 ,\"j\": {\"k\": [1.10, 1e999]} }\n");
  std::string out;
  ASSERT_TRUE(JsonRowWriter::Make(schema).ValueOrDie()->Append(*batch, 0, 1, &out).ok());
  EXPECT_EQ(out, "{\"i\":\"9007199254740993\",\"n\":\"2.3\",\"b\":\"" + big + "\",\"s\":\"1.10\",\"j\":\"{\\\"k\\\": [1.10, 1e999]}\"}\n");
}

TEST(JsonRowTest, NestingOfValuesIsBounded) {
  auto schema = ToArrowSchema({{Of(TypeKind::kJson)}}).ValueOrDie();
  const auto nested = [](size_t depth) { return "{\"c\": " + std::string(depth, '[') + std::string(depth, ']') + "}"; };
  EXPECT_TRUE(JsonRowReader::Make(schema, {}).ValueOrDie()->Append(nested(kMaxJsonNesting), 0).ok());
  for (size_t depth : {size_t{kMaxJsonNesting} + 1, size_t{100'000}}) {
    auto status = JsonRowReader::Make(schema, {}).ValueOrDie()->Append(nested(depth), 0);
    EXPECT_EQ(GetErrorInfo(status)->column, "c") << status;
    auto ignoring = JsonRowReader::Make(ToArrowSchema({{{.name = "other"}}}).ValueOrDie(), {.ignore_unknown_keys = true}).ValueOrDie();
    EXPECT_FALSE(ignoring->Append(nested(depth), 0).ok());
  }
}

TEST(JsonRowTest, FifteenLevelsAndNoColumns) {
  Field field{.name = "x", .kind = TypeKind::kInt64};
  for (int i = 0; i < kMaxNesting; ++i) field = {.name = "s", .kind = TypeKind::kStruct, .mode = Mode::kRepeated, .fields = {field}};
  auto schema = ToArrowSchema({{field}}).ValueOrDie();
  std::string row = "\"7\"";
  for (int i = 0; i < kMaxNesting; ++i) row = std::string("[{\"") + (i == 0 ? "x" : "s") + "\":" + row + "}]";
  row = "{\"s\":" + row + "}\n";
  std::string out;
  ASSERT_TRUE(JsonRowWriter::Make(schema).ValueOrDie()->Append(*ReadRows(schema, row), 0, 1, &out).ok());
  EXPECT_EQ(out, row);
  auto none = arrow::schema({});
  auto batch = ReadRows(none, "{}\n{}\n");
  EXPECT_EQ(batch->num_rows(), 2);
  out.clear();
  ASSERT_TRUE(JsonRowWriter::Make(none).ValueOrDie()->Append(*batch, 0, 2, &out).ok());
  EXPECT_EQ(out, "{}\n{}\n");
}

// A field of a random type and what makes its values, children included.
struct Shape {
  Field field;
  const ValueCase* value = nullptr;  // null: STRUCT
  std::vector<Shape> fields;
};

Shape RandomShape(std::mt19937_64* random, const std::string& name, int depth) {
  Shape shape;
  if (depth > 0 && (*random)() % 3 == 0) {
    shape.field = {.name = name, .kind = TypeKind::kStruct};
    for (size_t i = 0; i <= (*random)() % 4; ++i) {
      shape.fields.push_back(RandomShape(random, "f" + std::to_string(i), depth - 1));
      shape.field.fields.push_back(shape.fields.back().field);
    }
  } else {
    shape.value = &ValueCases()[(*random)() % ValueCases().size()];
    shape.field = shape.value->field;
    shape.field.name = name;
  }
  shape.field.mode = std::array{Mode::kNullable, Mode::kRequired, Mode::kRepeated}[(*random)() % 3];
  return shape;
}

std::string RandomObject(std::mt19937_64* random, const std::vector<Shape>& fields);

std::string RandomSingle(std::mt19937_64* random, const Shape& shape) {
  if (shape.value == nullptr) return RandomObject(random, shape.fields);
  if (shape.value->json != nullptr) return shape.value->json;
  std::string quoted;
  AppendJsonString(shape.value->text, &quoted);
  return quoted;
}

std::string RandomObject(std::mt19937_64* random, const std::vector<Shape>& fields) {
  std::string object = "{";
  for (const Shape& shape : fields) {
    if (object.size() > 1) object += ",";
    object += "\"" + shape.field.name + "\":";
    if (shape.field.mode == Mode::kRepeated) {
      object += "[";
      for (size_t i = 0, count = (*random)() % 4; i < count; ++i) object += (i > 0 ? "," : "") + RandomSingle(random, shape);
      object += "]";
    } else {
      object += shape.field.mode == Mode::kNullable && (*random)() % 3 == 0 ? "null" : RandomSingle(random, shape);
    }
  }
  return object + "}";
}

TEST(JsonRowTest, RandomRowsOfRandomNestedSchemas) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Shape> columns;
    TableSchema table;
    for (size_t i = 0; i <= random() % 5; ++i) {
      columns.push_back(RandomShape(&random, "c" + std::to_string(i), 4));
      table.fields.push_back(columns.back().field);
    }
    std::vector<std::string> rows;
    std::string all;
    for (int row = 0; row < 10; ++row) all += rows.emplace_back(RandomObject(&random, columns) + "\n");
    auto schema = ToArrowSchema(table).ValueOrDie();
    auto batch = ReadRows(schema, all);
    ASSERT_TRUE(batch->Validate().ok()) << batch->Validate();
    auto writer = JsonRowWriter::Make(schema).ValueOrDie();
    std::string out;
    ASSERT_TRUE(writer->Append(*batch, 0, 10, &out).ok());
    ASSERT_EQ(out, all);
    // Canonical data is canonical, whole and sliced.
    auto canonicalizer = Canonicalizer::Make(schema, schema).ValueOrDie();
    const auto first = static_cast<int64_t>(random() % 10);
    auto slice = canonicalizer->Convert(*batch->Slice(first));
    ASSERT_TRUE(slice.ok()) << slice.status();
    out.clear();
    ASSERT_TRUE(writer->Append(**slice, 0, 10 - first, &out).ok());
    std::string want;
    for (auto row = static_cast<size_t>(first); row < rows.size(); ++row) want += rows[row];
    ASSERT_EQ(out, want);
  }
}

TEST(JsonRowTest, OtherSchemasAreRefused) {
  auto schema = ToArrowSchema({{Of(TypeKind::kInt64)}}).ValueOrDie();
  auto writer = JsonRowWriter::Make(schema).ValueOrDie();
  std::string out;
  auto other = arrow::RecordBatch::Make(arrow::schema({arrow::field("c", arrow::utf8())}), 1, {FromJson(arrow::utf8(), "[\"a\"]")});
  EXPECT_FALSE(writer->Append(*other, 0, 1, &out).ok());
  EXPECT_FALSE(JsonRowWriter::Make(arrow::schema({arrow::field("c", arrow::int32())})).ok());
  EXPECT_FALSE(JsonRowWriter::Make(arrow::schema({arrow::field("c", arrow::large_list(arrow::int64()), false)})).ok());
  EXPECT_FALSE(JsonRowReader::Make(arrow::schema({arrow::field("c", arrow::int32())}), {}).ok());
}

TEST(JsonRowTest, NullInsideAnArrayIsNamed) {
  auto schema = ToArrowSchema({{{.name = "l", .kind = TypeKind::kInt64, .mode = Mode::kRepeated}}}).ValueOrDie();
  auto batch = arrow::RecordBatch::Make(schema, 2, {FromJson(schema->field(0)->type(), "[[1], [2, null]]")});
  std::string out;
  auto status = JsonRowWriter::Make(schema).ValueOrDie()->Append(*batch, 0, 2, &out, 100);
  EXPECT_EQ(GetErrorInfo(status)->column, "l");
  EXPECT_EQ(GetErrorInfo(status)->row, 101);
}

TEST(RestRowTest, CellsAtAnyNesting) {
  auto schema = ToArrowSchema(NestedSchema()).ValueOrDie();
  auto batch = ReadRows(schema, kNestedRows);
  auto writer = RestRowWriter::Make(schema, TextForm::kRest).ValueOrDie();
  std::string out;
  ASSERT_TRUE(writer->Append(*batch, 0, 2, &out).ok());
  EXPECT_EQ(out, R"({"f":[{"v":"1"},{"v":{"f":[{"v":"7"},{"v":[{"v":"a"},{"v":""}]},{"v":"true"}]}},)"
                 R"({"v":[{"v":{"f":[{"v":"2024-02-29"},{"v":{"f":[{"v":"1.5"}]}}]}},{"v":{"f":[{"v":null},{"v":null}]}}]}]},)"
                 R"({"f":[{"v":"2"},{"v":null},{"v":[]}]})");
  EXPECT_FALSE(RestRowWriter::Make(schema, TextForm::kPlain).ok());
}

TEST(JsonTextTest, Numbers) {
  for (const char* token : {"0", "-0", "1", "10", "1.0", "-1.5e3", "1E+9", "1e-999999"}) EXPECT_TRUE(IsJsonNumber(token)) << token;
  for (const char* token : {"", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "1x", " 1", "1 ", "0x1", "NaN", "1.e1"}) {
    EXPECT_FALSE(IsJsonNumber(token)) << token;
  }
}

TEST(JsonTextTest, OneValue) {
  JsonChecker checker;
  for (const char* text :
       {"null", "true", " 1 ", "\"x\"", "[]", "{}", "[1,[2,{\"a\":\"\\u00e4\"}]]", "1e999", "{\"a\":1,\"a\":2}", "\"\\ud83d\\ude00\""}) {
    EXPECT_TRUE(checker.Check(text).ok()) << text << checker.Check(text);
  }
  for (const char* text : {"",
                           " ",
                           "nul",
                           "nulll",
                           "tru",
                           "truex",
                           "01",
                           "1 2",
                           "1,2",
                           "1],[2",
                           "]",
                           "[",
                           "[1",
                           "[1,]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a:1}",
                           "'x'",
                           "\"x",
                           "\"\x01\"",
                           "\"\\ud83d\"",
                           "\xFF",
                           "{\"a\":1}}",
                           "[1 2]",
                           "{\"a\":1 \"b\":2}",
                           "NaN",
                           "--1",
                           "\"\\u12\""}) {
    EXPECT_FALSE(checker.Check(text).ok()) << text;
  }
}

}  // namespace
}  // namespace headrace
