// Every type of BigQuery in every format: what is written is what is read, or the format refuses the column by name.
// docs/formats/files.md has the table.
#include <arrow/array/concatenate.h>
#include <arrow/json/from_string.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/files/file_sink_testing.h"
#include "headrace/files/read_table.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

using testing::HasSubstr;

struct TypeCase {
  const char* name;
  Field field;         // a NULLABLE column
  const char* values;  // as Arrow's own JSON: null first, then what is extreme or empty
};

std::vector<TypeCase> TypeCases() {
  const auto field = [](TypeKind kind) { return Field{.name = "c", .kind = kind}; };
  const auto range = [](TypeKind element) { return Field{.name = "c", .kind = TypeKind::kRange, .range_element = element}; };
  return {
      {"INT64", field(TypeKind::kInt64), "[null, -9223372036854775808, 9223372036854775807, 0]"},
      {"FLOAT64", field(TypeKind::kFloat64), "[null, -1.5, 1.7976931348623157e308, 5e-324, 0.1, -0.0, 3]"},
      {"FLOAT64s", field(TypeKind::kFloat64), "[null, Inf, -Inf]"},
      {"BOOL", field(TypeKind::kBool), "[null, true, false]"},
      {"STRING", field(TypeKind::kString),
       R"([null, "", "größe", " x ", "a,b", "\"", "a\nb", "a\r\nb", "null", "NULL", "12", "\\N", "a\"\"b", "\u0001"])"},
      {"BYTES", field(TypeKind::kBytes), R"([null, "", "abc", "x", "\u0000\u0001\n,"])"},
      {"NUMERIC", field(TypeKind::kNumeric),
       R"([null, "99999999999999999999999999999.999999999", "-99999999999999999999999999999.999999999", "0.000000001", "0.000000000"])"},
      {"NUMERIC52", {.name = "c", .kind = TypeKind::kNumeric, .precision = 5, .scale = 2}, R"([null, "-999.99", "0.10"])"},
      {"BIGNUMERIC", field(TypeKind::kBigNumeric),
       R"([null, "12345678901234567890123456789012345678.99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001"])"},
      {"DATE", field(TypeKind::kDate), "[null, -719162, 2932896, 0, -1]"},
      {"TIME", field(TypeKind::kTime), "[null, 0, 86399999999, 1, 3600000000]"},
      {"DATETIME", field(TypeKind::kDatetime), "[null, -62135596800000000, 253402300799999999, -1, 0]"},
      {"TIMESTAMP", field(TypeKind::kTimestamp), "[null, -62135596800000000, 253402300799999999, -1, 0]"},
      {"TIMESTAMP12", field(TypeKind::kTimestamp12),
       R"([null, "2024-01-02T03:04:05.123456789012Z", "0001-01-01T00:00:00.000000000000Z", "9999-12-31T23:59:59.999999999999Z"])"},
      {"GEOGRAPHY", field(TypeKind::kGeography), R"x([null, "POINT(1 2)", "LINESTRING(0 0, 1 1)"])x"},
      {"JSON", field(TypeKind::kJson), R"x([null, "{\"a\":[1,null,\"x\"]}", "null", "\"x\"", "12", "[]"])x"},
      {"INTERVAL", field(TypeKind::kInterval),
       R"x([null, {"months": 14, "days": 3, "microseconds": -1}, {"months": -1, "days": 0, "microseconds": 0},
           {"months": 120000, "days": -3660000, "microseconds": 316224000000000000}, {"months": 0, "days": 0, "microseconds": 0}])x"},
      {"RANGE_DATE", range(TypeKind::kDate),
       R"x([null, {"start": -719162, "end": 2932896}, {"start": null, "end": -1}, {"start": 0, "end": null}, {"start": null, "end": null}])x"},
      {"RANGE_DATETIME", range(TypeKind::kDatetime), R"x([null, {"start": -1, "end": 1}, {"start": null, "end": 253402300799999999}])x"},
      {"RANGE_TIMESTAMP", range(TypeKind::kTimestamp),
       R"x([null, {"start": -62135596800000000, "end": 1}, {"start": null, "end": null}])x"},
  };
}

struct FormatCase {
  const char* extension;
  bool says_types;  // a single file says its very types
};

constexpr FormatCase kFormats[] = {{"parquet", true}, {"arrow", true},   {"arrows", true},      {"csv", false},
                                   {"csv.gz", false}, {"ndjson", false}, {"ndjson.zst", false}, {"avro", true}};

FileSinkOptions OptionsFor(const std::string& path, const std::string& extension) {
  FileSinkOptions options{.path = path, .format = extension.substr(0, extension.find('.'))};
  if (options.format == "csv") options.csv_nested = "json";
  if (extension == "csv.gz") options.csv_compression = "gzip";
  if (extension == "ndjson.zst") options.ndjson_compression = "zstd";
  return options;
}

arrow::Result<std::shared_ptr<arrow::Table>> WriteAndRead(const FileSinkOptions& options,
                                                          const std::shared_ptr<arrow::RecordBatch>& batch) {
  ARROW_ASSIGN_OR_RAISE(auto sink, FileSink::Make(options));
  SinkContext context;
  context.run_id = "cafe0123";
  ARROW_ASSIGN_OR_RAISE(auto state, sink->Prepare(context, batch->schema()));
  ARROW_ASSIGN_OR_RAISE(auto writer, sink->CreateWriter(context, state, batch->schema()));
  ARROW_RETURN_NOT_OK(writer->Write({.rows = batch, .position = {}}));
  ARROW_ASSIGN_OR_RAISE(auto committables, writer->PrepareCommit());
  ARROW_ASSIGN_OR_RAISE(auto writer_state, writer->Snapshot(1));
  ARROW_ASSIGN_OR_RAISE(auto committer, sink->CreateCommitter(context, state));
  for (const auto& result : committer->Commit(committables)) ARROW_RETURN_NOT_OK(result.error);
  ARROW_RETURN_NOT_OK(sink->Finish(context, state, batch->schema(), {writer_state}, {}));
  return ReadTable(LocalFileSystem(), options.path);
}

/// As a directory (its manifest says the types) and, where the file says them itself, as a single file.
void ExpectRoundTrip(const TableSchema& table, const std::shared_ptr<arrow::RecordBatch>& batch) {
  TemporaryDirectory root;
  for (const auto& format : kFormats) {
    for (bool single : {false, true}) {
      if (single && !format.says_types) continue;
      SCOPED_TRACE(fmt::format("{} {}", format.extension, single ? "file" : "directory"));
      const std::string path = root / fmt::format("{}{}.{}", single, format.extension, single ? format.extension : "d/");
      auto read = WriteAndRead(OptionsFor(path, format.extension), batch);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE((*read)->schema()->Equals(*batch->schema(), /*check_metadata=*/true)) << (*read)->schema()->ToString(true);
      EXPECT_EQ(FromArrowSchema(*(*read)->schema()).ValueOrDie(), table);
      ASSERT_EQ((*read)->num_rows(), batch->num_rows());
      for (int i = 0; i < batch->num_columns(); ++i) {
        auto chunks = (*read)->column(i);
        EXPECT_TRUE(chunks->Equals(arrow::ChunkedArray(batch->column(i)), arrow::EqualOptions().nans_equal(true).signed_zeros_equal(false)))
            << chunks->ToString() << " instead of " << batch->column(i)->ToString();
      }
    }
  }
}

/// The storage form has no field that cannot be null, so that Arrow's JSON reader makes nulls of structs.
std::shared_ptr<arrow::DataType> Nullable(const std::shared_ptr<arrow::DataType>& type) {
  if (type->id() == arrow::Type::LIST) return arrow::list(arrow::field("item", Nullable(type->field(0)->type())));
  if (type->id() != arrow::Type::STRUCT) return type;
  arrow::FieldVector fields;
  for (const auto& field : type->fields()) fields.push_back(arrow::field(field->name(), Nullable(field->type())));
  return arrow::struct_(fields);
}

std::shared_ptr<arrow::Array> Retyped(const std::shared_ptr<arrow::Array>& array, const std::shared_ptr<arrow::DataType>& type) {
  auto data = array->data()->Copy();
  data->type = type;
  for (size_t i = 0; i < data->child_data.size(); ++i) {
    data->child_data[i] = Retyped(arrow::MakeArray(data->child_data[i]), type->field(static_cast<int>(i))->type())->data();
  }
  return arrow::MakeArray(data);
}

std::shared_ptr<arrow::Array> ArrayOf(const std::shared_ptr<arrow::DataType>& type, const std::string& json) {
  return Retyped(arrow::json::ArrayFromJSONString(Nullable(type), json).ValueOrDie(), type);
}

TEST(FormatTypesTest, EveryTypeNullable) {
  for (const auto& item : TypeCases()) {
    SCOPED_TRACE(item.name);
    const TableSchema table{{item.field}};
    auto schema = ToArrowSchema(table).ValueOrDie();
    auto values = ArrayOf(schema->field(0)->type(), item.values);
    ExpectRoundTrip(table, arrow::RecordBatch::Make(schema, values->length(), {values}));
  }
}

TEST(FormatTypesTest, EveryTypeRequiredAndRepeated) {
  for (const auto& item : TypeCases()) {
    SCOPED_TRACE(item.name);
    auto required = item.field;
    required.mode = Mode::kRequired;
    auto repeated = item.field;
    repeated.name = "r";
    repeated.mode = Mode::kRepeated;
    const TableSchema table{{required, repeated}};
    auto schema = ToArrowSchema(table).ValueOrDie();
    auto values = ArrayOf(schema->field(0)->type(), item.values)->Slice(1);
    auto count = values->length();
    auto offsets = arrow::json::ArrayFromJSONString(arrow::int32(), count > 2 ? "[0, 2, 2, 3]" : "[0, 2, 2, 2]").ValueOrDie();
    auto lists = arrow::ListArray::FromArrays(schema->field(1)->type(), *offsets, *values).ValueOrDie();
    auto first = arrow::Concatenate({values, values, values}).ValueOrDie()->Slice(0, 3);
    ExpectRoundTrip(table, arrow::RecordBatch::Make(schema, 3, {first, lists}));
  }
}

TEST(FormatTypesTest, EveryTypeInArraysOfStructsInArrays) {
  Field inner{.name = "inner", .kind = TypeKind::kStruct, .mode = Mode::kRepeated};
  std::string present;
  std::string absent;
  for (const auto& item : TypeCases()) {
    auto field = item.field;
    field.name = item.name;
    inner.fields.push_back(field);
    // The second value of each: what stands between the first comma and the next one at the top of the list.
    std::string values = item.values;
    int depth = 0;
    size_t begin = 0;
    bool text = false;
    for (size_t i = 1; i < values.size(); ++i) {
      if (values[i] == '"' && values[i - 1] != '\\') text = !text;
      if (text) continue;
      if (values[i] == '{' || values[i] == '[') ++depth;
      if (values[i] == '}') --depth;
      if ((values[i] == ',' || values[i] == ']') && depth == 0) {
        if (begin > 0) {
          present += fmt::format("{}\"{}\": {}", present.empty() ? "" : ", ", item.name, values.substr(begin, i - begin));
          break;
        }
        begin = i + 1;
      }
    }
    absent += fmt::format("{}\"{}\": null", absent.empty() ? "" : ", ", item.name);
  }
  const Field outer{
      .name = "outer", .kind = TypeKind::kStruct, .mode = Mode::kRepeated, .fields = {inner, {.name = "n", .kind = TypeKind::kInt64}}};
  const TableSchema table{{outer, {.name = "s", .kind = TypeKind::kStruct, .fields = {inner}}}};
  auto schema = ToArrowSchema(table).ValueOrDie();
  const std::string rows = fmt::format("[{{{}}}, {{{}}}]", present, absent);
  auto lists = ArrayOf(schema->field(0)->type(),
                       fmt::format(R"([[{{"inner": {0}, "n": 1}}, {{"inner": [], "n": null}}], [], [{{"inner": {0}, "n": 2}}]])", rows));
  auto structs = ArrayOf(schema->field(1)->type(), fmt::format(R"([{{"inner": {}}}, {{"inner": []}}, {{"inner": []}}])", rows));
  ExpectRoundTrip(table, arrow::RecordBatch::Make(schema, 3, {lists, structs}));
}

// BIGNUMERIC's very largest values have 39 integer digits, which Arrow's validation refuses and 256 bits hold.
TEST(FormatTypesTest, SeventySevenDigits) {
  const TableSchema table{{{.name = "c", .kind = TypeKind::kBigNumeric}}};
  auto schema = ToArrowSchema(table).ValueOrDie();
  const arrow::Decimal256 largest("57896044618658097711785492504343953926634992332820282019728792003956564819967");  // 2^255 - 1
  arrow::Decimal256Builder builder(schema->field(0)->type());
  ASSERT_TRUE(builder.Append(largest).ok());
  ASSERT_TRUE(builder.Append(-largest).ok());
  auto values = builder.Finish().ValueOrDie();
  ExpectRoundTrip(table, arrow::RecordBatch::Make(schema, 2, {values}));
}

TEST(FormatTypesTest, CsvRefusesWhatItHasNoFormForByName) {
  TemporaryDirectory root;
  const Field fields[] = {{.name = "list", .kind = TypeKind::kInt64, .mode = Mode::kRepeated},
                          {.name = "record", .kind = TypeKind::kStruct, .fields = {{.name = "x", .kind = TypeKind::kInt64}}}};
  for (const auto& field : fields) {
    auto schema = ToArrowSchema({{field}}).ValueOrDie();
    auto sink = FileSink::Make({.path = root / "x.csv"}).ValueOrDie();
    SinkContext context;
    context.run_id = "cafe0123";
    auto state = sink->Prepare(context, schema);
    ASSERT_FALSE(state.ok());
    EXPECT_EQ(CodeOf(state.status()), Code::kUnimplemented);
    EXPECT_EQ(GetErrorInfo(state.status())->column, field.name);
    EXPECT_THAT(state.status().message(), HasSubstr("csv_nested=json"));
  }
}

TEST(FormatTypesTest, NullTextOfCsv) {
  TemporaryDirectory root;
  auto schema = ToArrowSchema({{{.name = "a", .kind = TypeKind::kString}, {.name = "b", .kind = TypeKind::kString}}}).ValueOrDie();
  auto values = arrow::json::ArrayFromJSONString(arrow::utf8(), R"([null, "", "\\N", "x"])").ValueOrDie();
  auto batch = arrow::RecordBatch::Make(schema, 4, {values, values});
  const std::pair<std::optional<std::string>, const char*> cases[] = {{std::nullopt, "a,b\n,\n\"\",\"\"\n\\N,\\N\nx,x\n"},
                                                                      {"\\N", "a,b\n\\N,\\N\n\"\",\"\"\n\"\\N\",\"\\N\"\nx,x\n"}};
  int number = 0;
  for (const auto& [null_value, expected] : cases) {
    const std::string path = root / fmt::format("{}.csv", number++);
    ASSERT_TRUE(WriteAndRead({.path = path, .csv_null_value = null_value}, batch).ok());
    EXPECT_EQ(LocalFileSystem()->ReadAll(path, 1000).ValueOrDie(), expected);
    auto read = ReadTable(LocalFileSystem(), path, {.csv_null_values = {null_value.value_or("")}}).ValueOrDie();
    EXPECT_TRUE(read->column(0)->Equals(arrow::ChunkedArray(values)));
  }
}

}  // namespace
}  // namespace headrace
