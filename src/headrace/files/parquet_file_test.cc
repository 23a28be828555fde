// Parquet as the sink writes it: row groups and their memory, compression, every type.
#include <random>

#include <arrow/array/util.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/json/from_string.h>
#include <arrow/scalar.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>

#include "headrace/files/faulty_file_system_testing.h"
#include "headrace/files/file_sink_testing.h"
#include "headrace/files/internal/output_file.h"
#include "headrace/files/read_table.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

using testing::HasSubstr;

std::shared_ptr<arrow::RecordBatch> Noise(int64_t rows, int columns) {
  std::mt19937_64 random(7);
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (int c = 0; c < columns; ++c) {
    arrow::StringBuilder builder;
    for (int64_t i = 0; i < rows; ++i) {
      std::string text(64, '\0');
      for (char& byte : text) byte = static_cast<char>(' ' + random() % 90);
      (void)builder.Append(text);
    }
    arrays.push_back(builder.Finish().ValueOrDie());
    fields.push_back(arrow::field(fmt::format("c{}", c), arrow::utf8()));
  }
  return arrow::RecordBatch::Make(arrow::schema(fields), rows, arrays);
}

TEST(ParquetFileTest, RowGroupsAreBoundedByRows) {
  TemporaryDirectory root;
  auto file = OutputFile::Create(LocalFileSystem(), root / "f", IdSchema(), {.row_group_rows = 1000}).ValueOrDie();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(file->Write(*Ids(int64_t{500} * i, 500).rows).ok());
  ASSERT_TRUE(file->Close().ok());
  auto metadata = parquet::ParquetFileReader::OpenFile(root / "f")->metadata();
  ASSERT_EQ(metadata->num_row_groups(), 3);
  EXPECT_EQ(metadata->RowGroup(0)->num_rows(), 1000);
  EXPECT_EQ(metadata->RowGroup(2)->num_rows(), 500);
}

TEST(ParquetFileTest, RowGroupsAreBoundedByMemory) {
  TemporaryDirectory root;
  auto batch = Noise(50'000, 4);  // 13 MB that no codec makes smaller by much
  constexpr int64_t kLimit = int64_t{4} << 20;
  auto file = OutputFile::Create(LocalFileSystem(), root / "f", batch->schema(), {.row_group_memory = kLimit}).ValueOrDie();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(file->Write(*batch).ok());
  // What an empty row group and the piece being encoded take comes on top.
  EXPECT_LT(file->peak_memory(), 3 * kLimit);
  ASSERT_TRUE(file->Close().ok());
  auto metadata = parquet::ParquetFileReader::OpenFile(root / "f")->metadata();
  EXPECT_EQ(metadata->num_rows(), 200'000);
  EXPECT_GE(metadata->num_row_groups(), 6);
  EXPECT_LE(metadata->num_row_groups(), 20);
  for (int i = 0; i < metadata->num_row_groups(); ++i) EXPECT_GT(metadata->RowGroup(i)->num_rows(), 0);
}

TEST(ParquetFileTest, LendingLessMemoryMakesSmallerRowGroups) {
  TemporaryDirectory root;
  auto batch = Noise(20'000, 1);
  const auto groups = [&](int64_t writer_memory, int64_t row_group_bytes) {
    auto sink =
        MakeSink({.path = root / fmt::format("{}-{}/", writer_memory, row_group_bytes), .parquet_row_group_bytes = row_group_bytes});
    auto context = TestContext();
    context.writer_memory = writer_memory;
    auto state = sink->Prepare(context, batch->schema()).ValueOrDie();
    auto writer = sink->CreateWriter(context, state, batch->schema()).ValueOrDie();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(writer->Write({.rows = batch, .position = {}}).ok());
    EXPECT_TRUE(writer->PrepareCommit().ok());
    auto name = NamesIn(sink->options().path).at(0);
    return parquet::ParquetFileReader::OpenFile(sink->options().path + "/" + name)->metadata()->num_row_groups();
  };
  EXPECT_EQ(groups(0, int64_t{64} << 20), 1);
  EXPECT_GT(groups(1 << 20, int64_t{64} << 20), 2);
  EXPECT_GT(groups(0, 1 << 20), 2);
}

/// Numbers that are all different, which no dictionary makes smaller.
std::shared_ptr<arrow::RecordBatch> Distinct(int64_t rows, int columns) {
  std::mt19937_64 random(7);
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (int c = 0; c < columns; ++c) {
    arrow::Int64Builder builder;
    for (int64_t i = 0; i < rows; ++i) (void)builder.Append(static_cast<int64_t>(random()));
    arrays.push_back(builder.Finish().ValueOrDie());
    fields.push_back(arrow::field(fmt::format("c{}", c), arrow::int64()));
  }
  return arrow::RecordBatch::Make(arrow::schema(fields), rows, arrays);
}

// Dictionaries that are given up take several times the memory of their values. Row groups of a wide table were full of nothing else: 12
// here.
TEST(ParquetFileTest, WideTablesFillTheirRowGroups) {
  TemporaryDirectory root;
  constexpr int64_t kLimit = int64_t{8} << 20;
  auto batch = Distinct(5'000, 40);
  auto file = OutputFile::Create(LocalFileSystem(), root / "f", batch->schema(), {.row_group_memory = kLimit}).ValueOrDie();
  constexpr int kBatches = 8;  // 12.8 MB
  for (int i = 0; i < kBatches; ++i) ASSERT_TRUE(file->Write(*batch).ok());
  EXPECT_LT(file->peak_memory(), 3 * kLimit);
  ASSERT_TRUE(file->Close().ok());
  EXPECT_LE(parquet::ParquetFileReader::OpenFile(root / "f")->metadata()->num_row_groups(), 3);
}

// Several threads encode more rows at once; the rows are the same, and the bytes do not depend on how many threads there are.
TEST(ParquetFileTest, ThreadsChangeNothing) {
  for (const auto& batch : {Noise(20'000, 7), Distinct(20'000, 7), Noise(10, 3)}) {
    TemporaryDirectory root;
    std::vector<std::string> hashes;
    std::shared_ptr<arrow::Table> expected;
    for (const int threads : {1, 2, 5, 64}) {
      const std::string path = root / fmt::format("{}.parquet", threads);
      const FileEncoding encoding{.row_group_memory = 1 << 20, .column_threads = threads};
      auto file = OutputFile::Create(LocalFileSystem(), path, batch->schema(), encoding).ValueOrDie();
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(file->Write(*batch).ok());
        EXPECT_GT(file->size(), 0);
      }
      const auto closed = file->Close().ValueOrDie();
      EXPECT_EQ(closed.rows, 3 * batch->num_rows());
      const auto table = ReadTable(LocalFileSystem(), path).ValueOrDie();
      if (threads == 1) expected = table;
      EXPECT_TRUE(table->Equals(*expected));
      if (threads > 1) hashes.push_back(closed.sha256);
    }
    EXPECT_THAT(hashes, testing::Each(hashes[0]));
  }
}

// Batches of one row are mostly objects of their own: 4 million of two BOOLs took 5 GB while their values were a few bytes.
TEST(ParquetFileTest, BatchesOfOneRowDoNotWaitForMegabytesOfValues) {
  TemporaryDirectory root;
  const auto batch = arrow::RecordBatch::Make(arrow::schema({arrow::field("a", arrow::boolean()), arrow::field("b", arrow::boolean())}), 1,
                                              {arrow::MakeArrayFromScalar(arrow::BooleanScalar(true), 1).ValueOrDie(),
                                               arrow::MakeArrayFromScalar(arrow::BooleanScalar(false), 1).ValueOrDie()});
  auto out = arrow::io::BufferOutputStream::Create().ValueOrDie();
  const FileEncoding encoding{.row_group_memory = 4 << 20, .column_threads = 2};  // 1 MiB at once
  auto writer = MakeFormatWriter(encoding, batch->schema(), out).ValueOrDie();
  int writes = 0;
  for (const int64_t begun = writer->peak_memory(); writes < 100'000 && writer->peak_memory() == begun; ++writes) {
    ASSERT_TRUE(writer->Write(*batch).ok());
    ASSERT_LT(writer->held(), 2 << 20);
  }
  EXPECT_LT(writes, 1000) << "then they are encoded";
  ASSERT_TRUE(writer->Finish().ok());
}

// A value that is a piece by itself is not copied behind what waits.
TEST(ParquetFileTest, LargeBatchesBetweenSmallOnesKeepTheirOrder) {
  TemporaryDirectory root;
  arrow::StringBuilder builder;
  ASSERT_TRUE(builder.Append(std::string(3 << 20, 'x')).ok());
  const auto schema = arrow::schema({arrow::field("a", arrow::utf8()), arrow::field("b", arrow::utf8())});
  const auto long_text = builder.Finish().ValueOrDie();
  const auto large = arrow::RecordBatch::Make(schema, 1, {long_text, long_text});
  const auto text = [](const char* json) { return arrow::json::ArrayFromJSONString(arrow::utf8(), json).ValueOrDie(); };
  const auto small = arrow::RecordBatch::Make(schema, 2, {text(R"(["1", "2"])"), text(R"(["3", null])")});
  const FileEncoding encoding{.row_group_memory = 4 << 20, .column_threads = 2};
  auto file = OutputFile::Create(LocalFileSystem(), root / "f.parquet", schema, encoding).ValueOrDie();
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  for (int i = 0; i < 9; ++i) {
    batches.push_back(i % 3 == 1 ? large : small);
    ASSERT_TRUE(file->Write(*batches.back()).ok());
  }
  ASSERT_TRUE(file->Close().ok());
  EXPECT_TRUE(
      ReadTable(LocalFileSystem(), root / "f.parquet").ValueOrDie()->Equals(*arrow::Table::FromRecordBatches(batches).ValueOrDie()));
}

// The memory of dictionaries is that of columns x writers, whatever the row groups are.
TEST(ParquetFileTest, WideTablesHaveDictionariesOnlyWhereTheMemoryAllowsThem) {
  TemporaryDirectory root;
  arrow::FieldVector members;
  arrow::ArrayVector columns;
  for (int i = 0; i < 100; ++i) {
    members.push_back(arrow::field(fmt::format("c{}", i), arrow::int64()));
    columns.push_back(arrow::json::ArrayFromJSONString(arrow::int64(), "[7, 7, 7]").ValueOrDie());
  }
  auto flat = arrow::RecordBatch::Make(arrow::schema(members), 3, columns);
  auto nested = arrow::RecordBatch::Make(arrow::schema({arrow::field("s", arrow::struct_(members))}), 3,
                                         {arrow::StructArray::Make(columns, members).ValueOrDie()});
  int number = 0;
  for (const auto& batch : {flat, nested}) {
    for (bool enough : {true, false}) {
      const std::string path = root / fmt::format("{}.parquet", number++);
      const FileEncoding encoding{.row_group_memory = (int64_t{128} << 10) * (enough ? 100 : 99)};
      auto file = OutputFile::Create(LocalFileSystem(), path, batch->schema(), encoding).ValueOrDie();
      ASSERT_TRUE(file->Write(*batch).ok());
      ASSERT_TRUE(file->Close().ok());
      auto reader = parquet::ParquetFileReader::OpenFile(path);
      EXPECT_EQ(reader->metadata()->num_columns(), 100);
      EXPECT_EQ(reader->metadata()->RowGroup(0)->ColumnChunk(99)->has_dictionary_page(), enough);
    }
  }
}

TEST(ParquetFileTest, EachCompression) {
  TemporaryDirectory root;
  const std::pair<const char*, parquet::Compression::type> cases[] = {{"zstd", parquet::Compression::ZSTD},
                                                                      {"snappy", parquet::Compression::SNAPPY},
                                                                      {"gzip", parquet::Compression::GZIP},
                                                                      {"lz4", parquet::Compression::LZ4},
                                                                      {"none", parquet::Compression::UNCOMPRESSED}};
  for (const auto& [name, codec] : cases) {
    FaultyFileSystem sound;
    EngineStore store;
    Engine engine{.sink = MakeSink({.path = root / (std::string(name) + ".parquet"), .parquet_compression = name}),
                  .files = &sound,
                  .interval = 1000};
    ASSERT_TRUE(engine.Run(&store, 1).ok());
    auto metadata = parquet::ParquetFileReader::OpenFile(root / (std::string(name) + ".parquet"))->metadata();
    EXPECT_EQ(metadata->RowGroup(0)->ColumnChunk(0)->compression(), codec) << name;
    EXPECT_EQ(ReadTable(LocalFileSystem(), root / (std::string(name) + ".parquet")).ValueOrDie()->num_rows(), 60);
  }
}

struct TypeCase {
  TypeKind kind;
  const char* values;   // as JSON of Arrow's reader; null, extremes, empty
  const char* parquet;  // physical type and annotation, as Parquet's schema printer says them
};

const TypeCase kTypeCases[] = {
    {TypeKind::kInt64, "[null, -9223372036854775808, 9223372036854775807, 0]", "int64 field_id=-1 c;"},
    {TypeKind::kFloat64, "[null, -1.5, 1e308, 0]", "double field_id=-1 c;"},
    {TypeKind::kBool, "[null, true, false, true]", "boolean field_id=-1 c;"},
    {TypeKind::kString, R"([null, "", "größe", "x"])", "binary field_id=-1 c (String);"},
    {TypeKind::kBytes, R"([null, "", "abc", "x"])", "binary field_id=-1 c;"},
    {TypeKind::kNumeric, R"([null, "99999999999999999999999999999.999999999", "-99999999999999999999999999999.999999999", "0.000000001"])",
     "fixed_len_byte_array(16) field_id=-1 c (Decimal(precision=38, scale=9));"},
    {TypeKind::kBigNumeric,
     R"([null, "12345678901234567890123456789012345678.99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001", "1.00000000000000000000000000000000000000"])",
     "fixed_len_byte_array(32) field_id=-1 c (Decimal(precision=76, scale=38));"},
    {TypeKind::kDate, "[null, -719162, 2932896, 0]", "int32 field_id=-1 c (Date);"},
    {TypeKind::kTime, "[null, 0, 86399999999, 1]", "int64 field_id=-1 c (Time(isAdjustedToUTC=false, timeUnit=microseconds));"},
    {TypeKind::kDatetime, "[null, -62135596800000000, 253402300799999999, -1]",
     "int64 field_id=-1 c (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds,"},
    {TypeKind::kTimestamp, "[null, -62135596800000000, 253402300799999999, -1]",
     "int64 field_id=-1 c (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds,"},
    {TypeKind::kTimestamp12,
     R"x([null, "2024-01-02T03:04:05.123456789012Z", "0001-01-01T00:00:00.000000000000Z", "9999-12-31T23:59:59.999999999999Z"])x",
     "binary field_id=-1 c (String);"},
    {TypeKind::kInterval,
     R"x([null, {"months": 14, "days": 3, "microseconds": -1}, {"months": -1, "days": 0, "microseconds": 0},
         {"months": 0, "days": 0, "microseconds": 0}])x",
     "group field_id=-1 c {"},
    {TypeKind::kRange, R"x([null, {"start": 0, "end": 1}, {"start": null, "end": -1}, {"start": null, "end": null}])x",
     "group field_id=-1 c {"},
    {TypeKind::kGeography, R"x([null, "POINT(1 2)", "", "x"])x", "binary field_id=-1 c (String);"},
    {TypeKind::kJson, R"x([null, "{\"a\": [1]}", "null", "\"x\""])x", "binary field_id=-1 c (String);"},
    {TypeKind::kStruct, R"x([null, {"x": null, "r": []}, {"x": 1, "r": ["a", "b"]}, {"x": 2, "r": [""]}])x", "group field_id=-1 c {"},
};

std::shared_ptr<arrow::Table> WriteAndRead(const std::string& path, const std::shared_ptr<arrow::Schema>& schema,
                                           const std::shared_ptr<arrow::RecordBatch>& batch) {
  auto sink = MakeSink({.path = path});
  auto state = sink->Prepare(TestContext(), schema);
  EXPECT_TRUE(state.ok()) << state.status();
  auto writer = sink->CreateWriter(TestContext(), *state, schema).ValueOrDie();
  auto written = writer->Write({.rows = batch, .position = {}});
  EXPECT_TRUE(written.ok()) << written;
  auto committed = sink->CreateCommitter(TestContext(), *state).ValueOrDie()->Commit(writer->PrepareCommit().ValueOrDie());
  EXPECT_EQ(committed.at(0).outcome, CommitOutcome::kCommitted);
  auto table = ReadTable(LocalFileSystem(), path);
  EXPECT_TRUE(table.ok()) << table.status();
  return *table;
}

TEST(ParquetTypesTest, EveryTypeRoundTripsInEveryMode) {
  TemporaryDirectory root;
  EXPECT_EQ(std::size(kTypeCases), TypeTable().size() - 1);
  for (const auto& item : kTypeCases) {
    SCOPED_TRACE(std::string(TypeName(item.kind)));
    Field field{.name = "c", .kind = item.kind};
    if (item.kind == TypeKind::kStruct) {
      field.fields = {{.name = "x", .kind = TypeKind::kInt64}, {.name = "r", .kind = TypeKind::kString, .mode = Mode::kRepeated}};
    }
    auto schema = ToArrowSchema({{field}}).ValueOrDie();
    std::shared_ptr<arrow::Array> values;
    if (item.kind == TypeKind::kStruct || item.kind == TypeKind::kInterval) {
      // Arrow's JSON reader makes no null struct with a child that cannot be null.
      arrow::FieldVector children;
      for (const auto& child : schema->field(0)->type()->fields()) children.push_back(child->WithNullable(true));
      auto inner = arrow::struct_(children);
      auto parsed = arrow::json::ArrayFromJSONString(inner, item.values).ValueOrDie();
      const auto& rows = static_cast<const arrow::StructArray&>(*parsed);
      values = std::make_shared<arrow::StructArray>(schema->field(0)->type(), rows.length(), rows.fields(), rows.null_bitmap(), 1);
    } else {
      values = arrow::json::ArrayFromJSONString(schema->field(0)->type(), item.values).ValueOrDie();
    }
    const std::string name(TypeName(item.kind));
    auto table = WriteAndRead(root / (name + ".parquet"), schema, arrow::RecordBatch::Make(schema, 4, {values}));
    EXPECT_TRUE(table->schema()->Equals(*schema, /*check_metadata=*/true)) << table->schema()->ToString();
    EXPECT_TRUE(table->column(0)->Equals(arrow::ChunkedArray(values))) << table->column(0)->ToString();
    EXPECT_EQ(FromArrowSchema(*table->schema()).ValueOrDie(), TableSchema{{field}});
    std::ostringstream printed;
    auto reader = parquet::ParquetFileReader::OpenFile(root / (name + ".parquet"));
    parquet::schema::PrintSchema(reader->metadata()->schema()->schema_root().get(), printed);
    EXPECT_THAT(printed.str(), HasSubstr(std::string("optional ") + item.parquet));

    field.mode = Mode::kRepeated;
    auto list_schema = ToArrowSchema({{field}}).ValueOrDie();
    auto offsets = arrow::json::ArrayFromJSONString(arrow::int32(), "[0, 2, 2, 3]").ValueOrDie();
    auto lists = arrow::ListArray::FromArrays(list_schema->field(0)->type(), *offsets, *values->Slice(1)).ValueOrDie();
    auto list_table = WriteAndRead(root / (name + "-list.parquet"), list_schema, arrow::RecordBatch::Make(list_schema, 3, {lists}));
    EXPECT_TRUE(list_table->column(0)->Equals(arrow::ChunkedArray(lists))) << list_table->column(0)->ToString();
    EXPECT_EQ(FromArrowSchema(*list_table->schema()).ValueOrDie(), TableSchema{{field}});
    std::ostringstream list_printed;
    auto list_reader = parquet::ParquetFileReader::OpenFile(root / (name + "-list.parquet"));
    parquet::schema::PrintSchema(list_reader->metadata()->schema()->schema_root().get(), list_printed);
    EXPECT_THAT(list_printed.str(), HasSubstr("c (List)"));
    EXPECT_THAT(list_printed.str(), HasSubstr("element"));
  }
}

TEST(ParquetTypesTest, FifteenLevelsOfArraysOfStructs) {
  TemporaryDirectory root;
  Field field{.name = "x", .kind = TypeKind::kInt64};
  for (int i = 0; i < kMaxNesting; ++i) field = {.name = "s", .kind = TypeKind::kStruct, .mode = Mode::kRepeated, .fields = {field}};
  auto schema = ToArrowSchema({{field}}).ValueOrDie();
  std::string value = "7";
  for (int i = 0; i < kMaxNesting; ++i) value = fmt::format(R"([{{"{}": {}}}])", i == 0 ? "x" : "s", value);
  auto values = arrow::json::ArrayFromJSONString(schema->field(0)->type(), "[" + value + ", []]").ValueOrDie();
  auto table = WriteAndRead(root / "deep.parquet", schema, arrow::RecordBatch::Make(schema, 2, {values}));
  EXPECT_TRUE(table->column(0)->Equals(arrow::ChunkedArray(values)));
}

// Of a slice without a null STRUCT of its own the null marks of the rows before it were taken, and the value was gone. Widening w to INT64
// makes the marks below null STRUCTs.
TEST(ParquetTypesTest, ANestedStructInAnyDivisionOfTheRowsIsTheSame) {
  TemporaryDirectory root;
  const auto type = [](bool nullable) {
    return arrow::struct_(
        {arrow::field("e", arrow::struct_({arrow::field("w", arrow::int32(), nullable)})), arrow::field("x", arrow::utf8())});
  };
  // Arrow's reader of JSON makes no null STRUCT with a field that cannot be null.
  const auto values = arrow::json::ArrayFromJSONString(type(true), R"([null, {"e": null, "x": "keep"}, {"e": {"w": 1}, "x": null}])");
  const auto data = values.ValueOrDie()->data();
  data->type = type(false);
  data->child_data[0]->type = data->type->field(0)->type();
  const auto table = arrow::Table::Make(arrow::schema({arrow::field("d", data->type)}), {arrow::MakeArray(data)});
  auto out = arrow::io::FileOutputStream::Open(root / "a.parquet").ValueOrDie();
  ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out).ok());
  ASSERT_TRUE(out->Close().ok());
  const auto rows = ReadTable(LocalFileSystem(), root / "a.parquet").ValueOrDie()->CombineChunksToBatch().ValueOrDie();
  ASSERT_EQ(rows->column(0)->null_count(), 1) << rows->ToString();
  for (int64_t first = 0; first < 3; ++first) {
    const auto slice = rows->Slice(first, 1);
    const auto again = WriteAndRead(root / fmt::format("{}.parquet", first), rows->schema(), slice);
    EXPECT_TRUE(again->column(0)->Equals(arrow::ChunkedArray(slice->column(0)))) << again->ToString();
  }
}

// BIGNUMERIC's very largest values have 39 integer digits, which Arrow's validation refuses and 256 bits hold.
TEST(ParquetTypesTest, ThirtyNineDigitsSurvive) {
  TemporaryDirectory root;
  auto schema = ToArrowSchema({{{.name = "c", .kind = TypeKind::kBigNumeric}}}).ValueOrDie();
  const auto largest = arrow::Decimal256("57896044618658097711785492504343953926634992332820282019728792003956564819967");  // 2^255 - 1
  arrow::Decimal256Builder builder(schema->field(0)->type());
  ASSERT_TRUE(builder.Append(largest).ok());
  auto values = builder.Finish().ValueOrDie();
  auto table = WriteAndRead(root / "b.parquet", schema, arrow::RecordBatch::Make(schema, 1, {values}));
  const auto& read = static_cast<const arrow::Decimal256Array&>(*table->column(0)->chunk(0));
  EXPECT_EQ(arrow::Decimal256(read.GetValue(0)), largest);
}

}  // namespace
}  // namespace headrace
