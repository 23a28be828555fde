// Files that end early: what is missing must not pass for the end.
#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include "headrace/files/file_sink_testing.h"
#include "headrace/files/file_source.h"
#include "headrace/files/internal/source_state.h"
#include "headrace/runtime/read.h"

namespace headrace {
namespace {

using testing::HasSubstr;

void WriteText(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

arrow::Result<std::shared_ptr<arrow::Table>> ReadAll(FileSourceOptions options) {
  ARROW_ASSIGN_OR_RAISE(auto source, FileSource::Make(std::move(options)));
  ARROW_ASSIGN_OR_RAISE(auto reader, Read(source, {.ordered = true}));
  return reader->ToTable();
}

constexpr int64_t kPageRows = 1000;

/// Two REQUIRED columns a row group, each of two pages of kPageRows rows.
void WritePages(const std::string& path, int row_groups) {
  const int64_t rows = 2 * kPageRows * row_groups;
  const auto ids = Ids(0, rows).rows->column(0);
  const auto schema = arrow::schema({arrow::field("a", arrow::int64(), false), arrow::field("b", arrow::int64(), false)});
  parquet::WriterProperties::Builder properties;
  properties.disable_dictionary()->disable_statistics()->compression(parquet::Compression::UNCOMPRESSED);
  properties.write_batch_size(kPageRows)->data_pagesize(kPageRows * static_cast<int64_t>(sizeof(int64_t)));
  auto out = arrow::io::FileOutputStream::Open(path).ValueOrDie();
  const auto table = arrow::Table::Make(schema, {ids, ids});
  ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out, 2 * kPageRows, properties.build()).ok());
  ASSERT_TRUE(out->Close().ok());
}

/// The header of a page (PageHeader in Thrift's compact protocol) says a row less than it has: field 5, a struct, whose field 1 is the
/// number.
void LowerCount(std::string* bytes, int page) {
  const std::string full = "\x2c\x15\xd0\x0f";
  const std::string less = "\x2c\x15\xce\x0f";
  size_t at = bytes->find(full);
  for (; page > 0; --page) at = bytes->find(full, at + 1);
  ASSERT_NE(at, std::string::npos);
  bytes->replace(at, less.size(), less);
}

// Nothing but the file's own end says that a column has fewer values than the footer.
TEST(EarlyEndTest, AColumnOfParquetThatEndsEarlyIsNotTheEndOfThePart) {
  TemporaryDirectory root;
  struct Case {
    int row_groups;
    std::vector<int> pages;  // whose count is lowered; in the order of the file
    const char* selected;
    int64_t split_bytes;
    const char* error;
  };
  const Case cases[] = {
      {1, {}, "a", 1 << 20, ""},
      {1, {1}, "a", 1 << 20, "the part that begins at row 0 should have 2000 rows and has 1999"},
      {1, {1}, "b", 1 << 20, ""},
      {1, {1}, "a,b", 1 << 20, "x.parquet"},
      {1, {0, 2}, "a,b", 1 << 20, "the part that begins at row 0 should have 2000 rows and has 1999"},
      {2, {5}, "a", 1 << 20, "the part that begins at row 0 should have 4000 rows and has 3999"},
      {2, {5}, "a", 1, "the part that begins at row 2000 should have 2000 rows and has 1999"},
  };
  for (const auto& item : cases) {
    const std::string path = root / "x.parquet";
    WritePages(path, item.row_groups);
    auto bytes = BytesOf(path);
    for (int page : item.pages) LowerCount(&bytes, page);
    WriteText(path, bytes);
    for (int64_t batch : {int64_t{65'536}, int64_t{100}, int64_t{1999}}) {
      SCOPED_TRACE(fmt::format("{} of {} row groups, batches of {}: {}", item.selected, item.row_groups, batch, item.error));
      FileSourceOptions options{.paths = {path}, .selected_fields = {"a"}, .max_rows_per_batch = batch, .split_bytes = item.split_bytes};
      if (std::string_view(item.selected) == "b") options.selected_fields = {"b"};
      if (std::string_view(item.selected) == "a,b") options.selected_fields = {};
      auto table = ReadAll(options);
      if (*item.error == '\0') {
        ASSERT_TRUE(table.ok()) << table.status();
        EXPECT_EQ((*table)->num_rows(), 2 * kPageRows * item.row_groups);
        continue;
      }
      ASSERT_FALSE(table.ok()) << (*table)->num_rows() << " rows";
      EXPECT_EQ(GetErrorInfo(table.status())->reason, "UNREADABLE_FILE") << table.status();
      EXPECT_EQ(GetErrorInfo(table.status())->resource, path);
      EXPECT_THAT(table.status().message(), HasSubstr(item.error));
    }
  }
}

using Change = std::function<void(FilePart*, Split*)>;

/// Rows that a reader hands over of the only split, after `change`.
arrow::Result<int64_t> RowsOfPart(const FileSource& source, const Change& change) {
  ARROW_ASSIGN_OR_RAISE(auto enumerator, source.CreateEnumerator({}));
  ARROW_RETURN_NOT_OK(enumerator->Start());
  ARROW_ASSIGN_OR_RAISE(auto next, enumerator->Next());
  ARROW_ASSIGN_OR_RAISE(auto part, DecodeFilePart(next.split.descriptor));
  change(&part, &next.split);
  next.split.descriptor = EncodeFilePart(part);
  ARROW_ASSIGN_OR_RAISE(auto reader, source.OpenReader({}, enumerator->schema(), next.split));
  int64_t rows = 0;
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto result, reader->Next());
    if (std::holds_alternative<End>(result)) return rows;
    rows += std::get<Batch>(result).rows->num_rows();
  }
}

// Of every format whose plan knows the rows; wherever a reader begins, and not where it is told to stop.
TEST(EarlyEndTest, ThePlanSaysHowManyRowsAPartHas) {
  TemporaryDirectory root;
  WriteText(root / "x.csv", "id\n1\n2\n3\n4\n");
  WritePages(root / "x.parquet", 1);
  for (const auto& [name, rows] : {std::pair("x.csv", int64_t{4}), std::pair("x.parquet", 2 * kPageRows)}) {
    SCOPED_TRACE(name);
    auto source = FileSource::Make({.paths = {root / name}, .max_rows_per_batch = 3}).ValueOrDie();
    EXPECT_EQ(RowsOfPart(*source, [](FilePart*, Split*) {}).ValueOrDie(), rows);
    EXPECT_EQ(RowsOfPart(*source, [](FilePart* part, Split*) { part->rows = -1; }).ValueOrDie(), rows);
    EXPECT_EQ(RowsOfPart(*source, [](FilePart*, Split* split) { split->position = "3"; }).ValueOrDie(), rows - 3);
    EXPECT_EQ(RowsOfPart(*source, [](FilePart*, Split* split) { split->end_position = "2"; }).ValueOrDie(), 2);
    const Change wrong[] = {[](FilePart* part, Split*) { ++part->rows; }, [](FilePart* part, Split*) { --part->rows; },
                            [](FilePart* part, Split* split) {
                              ++part->rows;
                              split->position = "4";
                            }};
    for (const auto& change : wrong) {
      auto status = RowsOfPart(*source, change).status();
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(CodeOf(status), Code::kDataLoss) << status;
      EXPECT_EQ(GetErrorInfo(status)->reason, "UNREADABLE_FILE") << status;
      EXPECT_THAT(status.message(), HasSubstr(fmt::format("rows and has {}", rows)));
    }
    const auto beyond = RowsOfPart(*source, [](FilePart*, Split* split) { split->position = "2001"; }).status();
    EXPECT_EQ(GetErrorInfo(beyond)->reason, "CORRUPT_STATE") << beyond;
  }
}

class Warnings final : public Logger {
 public:
  void Log(LogLevel level, std::string_view message) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (level == LogLevel::kWarning) texts_.emplace_back(message);
  }
  std::vector<std::string> Take() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return std::exchange(texts_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

std::string StreamOf(int batches) {
  auto out = arrow::io::BufferOutputStream::Create().ValueOrDie();
  auto writer = arrow::ipc::MakeStreamWriter(out, IdSchema()).ValueOrDie();
  for (int i = 0; i < batches; ++i) EXPECT_TRUE(writer->WriteRecordBatch(*Ids(int64_t{2} * i, 2).rows).ok());
  EXPECT_TRUE(writer->Close().ok());
  return out->Finish().ValueOrDie()->ToString();
}

// A writer that dies between two batches leaves a stream that Arrow's format allows: nobody can tell that it is not whole.
TEST(EarlyEndTest, AnArrowStreamWithoutItsEndMarkerIsReadWithAWarning) {
  TemporaryDirectory root;
  const std::string path = root / "x.arrows";
  const std::string whole = StreamOf(2);
  const std::string marker("\xff\xff\xff\xff\0\0\0\0", 8);
  ASSERT_TRUE(whole.ends_with(marker));
  const std::string rows = whole.substr(0, whole.size() - marker.size());
  const std::string nothing = StreamOf(0);
  struct Case {
    const char* name;
    std::string bytes;
    int64_t rows;  // negative = an error
    bool warns;
  };
  const Case cases[] = {{"whole", whole, 4, false},
                        {"no marker", rows, 4, true},
                        {"a marker of old", rows + std::string(4, '\0'), 4, false},
                        {"half a marker", rows + marker.substr(0, 4), -1, false},
                        {"less of it", rows + marker.substr(0, 2), -1, false},
                        {"cut in a batch", rows.substr(0, rows.size() - 8), -1, false},
                        {"nothing", nothing, 0, false},
                        {"nothing, no marker", nothing.substr(0, nothing.size() - marker.size()), 0, true},
                        {"two streams", whole + whole, -1, false},
                        {"a byte behind it", whole + "x", -1, false}};
  for (const auto& item : cases) {
    WriteText(path, item.bytes);
    for (bool standard_input : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, {}", item.name, standard_input));
      const int descriptor = open(path.c_str(), O_RDONLY);
      FileSourceOptions options{.paths = {path}};
      if (standard_input) options = {.paths = {"-"}, .from_format = "arrows", .input_descriptor = descriptor};
      Warnings warnings;
      ReadOptions read{.ordered = true};
      read.context.logger = &warnings;
      auto reader = Read(FileSource::Make(options).ValueOrDie(), read);
      auto table = reader.ok() ? (*reader)->ToTable() : reader.status();
      close(descriptor);
      EXPECT_EQ(table.ok(), item.rows >= 0) << table.status();
      if (table.ok()) {
        EXPECT_EQ((*table)->num_rows(), item.rows);
      }
      if (!table.ok()) {
        EXPECT_EQ(GetErrorInfo(table.status())->reason, "UNREADABLE_FILE") << table.status();
      }
      const auto texts = warnings.Take();
      ASSERT_EQ(texts.size(), item.warns ? 1U : 0U) << testing::PrintToString(texts);
      if (item.warns) {
        EXPECT_THAT(texts[0], HasSubstr((standard_input ? "standard input" : path) + " has no end marker"));
      }
    }
  }
}

std::string Compressed(arrow::Compression::type kind, const std::string& text) {
  auto codec = arrow::util::Codec::Create(kind).ValueOrDie();
  const auto* input = reinterpret_cast<const uint8_t*>(text.data());
  const auto size = static_cast<int64_t>(text.size());
  std::string out(static_cast<size_t>(codec->MaxCompressedLen(size, input)), '\0');
  out.resize(static_cast<size_t>(
      codec->Compress(size, input, static_cast<int64_t>(out.size()), reinterpret_cast<uint8_t*>(out.data())).ValueOrDie()));
  return out;
}

// Without even one byte it passed for a file without rows.
TEST(EarlyEndTest, CompressedTextThatIsCutAnywhereIsNoText) {
  TemporaryDirectory root;
  struct Case {
    const char* name;
    arrow::Compression::type kind;
    const char* text;
  };
  const Case cases[] = {{"x.ndjson.gz", arrow::Compression::GZIP, "{\"a\": 1}\n{\"a\": 2}\n"},
                        {"x.ndjson.zst", arrow::Compression::ZSTD, "{\"a\": 1}\n{\"a\": 2}\n"},
                        {"x.csv.gz", arrow::Compression::GZIP, "1\n2\n"},
                        {"x.csv.zst", arrow::Compression::ZSTD, "1\n2\n"}};
  for (const auto& item : cases) {
    FileSourceOptions options{.paths = {root / item.name}, .schema = R"([{"name": "a", "type": "INTEGER"}])"};
    if (std::string_view(item.name).starts_with("x.csv")) options.csv_header = false;
    const std::string bytes = Compressed(item.kind, item.text);
    for (size_t size = 0; size < bytes.size(); ++size) {
      WriteText(options.paths[0], std::string_view(bytes).substr(0, size));
      auto table = ReadAll(options);
      ASSERT_FALSE(table.ok()) << item.name << ": " << size << " of " << bytes.size() << " bytes, " << (*table)->num_rows() << " rows";
      EXPECT_EQ(GetErrorInfo(table.status())->reason, "UNREADABLE_FILE") << table.status();
      EXPECT_THAT(table.status().message(), HasSubstr(options.paths[0]));
    }
    WriteText(options.paths[0], bytes);
    EXPECT_EQ(ReadAll(options).ValueOrDie()->num_rows(), 2);
    WriteText(options.paths[0], Compressed(item.kind, ""));
    EXPECT_EQ(ReadAll(options).ValueOrDie()->num_rows(), 0) << "nothing, compressed";
  }
}

}  // namespace
}  // namespace headrace
