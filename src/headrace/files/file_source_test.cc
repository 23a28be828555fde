#include "headrace/files/file_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/files/file_sink_testing.h"
#include "headrace/files/internal/source_state.h"
#include "headrace/files/manifest.h"
#include "headrace/runtime/read.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kFormats[] = {"parquet", "arrow", "arrows", "csv", "csv.gz", "csv.zst", "avro"};

std::string FormatOf(std::string_view extension) { return std::string(extension.substr(0, extension.find('.'))); }

std::shared_ptr<const FileSource> MakeSource(FileSourceOptions options) { return FileSource::Make(std::move(options)).ValueOrDie(); }

arrow::Result<std::shared_ptr<arrow::Table>> ReadAll(const std::shared_ptr<const FileSource>& source) {
  ARROW_ASSIGN_OR_RAISE(auto reader, Read(source, {.ordered = true}));
  return reader->ToTable();
}

std::vector<int64_t> IdsOf(const arrow::Table& table, int column = 0) {
  std::vector<int64_t> ids;
  for (const auto& chunk : table.column(column)->chunks()) {
    const auto& values = static_cast<const arrow::Int64Array&>(*chunk);
    for (int64_t i = 0; i < values.length(); ++i) ids.push_back(values.Value(i));
  }
  return ids;
}

std::vector<int64_t> Counted(int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

/// The sink's options for files of an extension.
FileSinkOptions SinkOptions(const std::string& path, std::string_view extension) {
  FileSinkOptions options{.path = path, .format = FormatOf(extension)};
  if (options.format == "csv" && extension.ends_with(".gz")) options.csv_compression = "gzip";
  if (options.format == "csv" && extension.ends_with(".zst")) options.csv_compression = "zstd";
  if (options.format == "parquet") options.parquet_row_group_rows = 10;
  return options;
}

/// Ids 0 .. total-1 as a directory or file, ten rows a batch.
void WriteIds(const std::string& path, const std::string& extension, int64_t total, std::string run_id = "cafe0123") {
  auto options = SinkOptions(path, extension);
  options.max_file_bytes = path.ends_with('/') ? 100 : 0;
  EngineStore store;
  Engine engine{
      .sink = FileSink::Make(options).ValueOrDie(), .run_id = std::move(run_id), .total = total, .batch_rows = 10, .interval = 1000};
  auto status = engine.Run(&store, 1);
  ASSERT_TRUE(status.ok()) << status;
}

void WriteText(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

JobContext Context() {
  JobContext context;
  static MetricRegistry metrics;
  static MemoryBudget memory(int64_t{1} << 30);
  context.metrics = &metrics;
  context.memory = &memory;
  return context;
}

struct Planned {
  std::unique_ptr<SplitEnumerator> enumerator;
  std::vector<Split> splits;
};

arrow::Result<Planned> Plan(const FileSource& source) {
  Planned planned;
  ARROW_ASSIGN_OR_RAISE(planned.enumerator, source.CreateEnumerator(Context()));
  ARROW_RETURN_NOT_OK(planned.enumerator->Start());
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto next, planned.enumerator->Next());
    if (next.kind != NextSplit::Kind::kSplit) return planned;
    planned.splits.push_back(std::move(next.split));
  }
}

TEST(FileSourceOptionsTest, WrongOptionsAreNamed) {
  const std::pair<FileSourceOptions, const char*> cases[] = {
      {{}, "path"},
      {{.paths = {""}}, "path"},
      {{.paths = {"-", "a.csv"}}, "path"},
      {{.paths = {"a.csv"}, .from_format = "orc"}, "from_format"},
      {{.paths = {"-"}}, "from_format"},
      {{.paths = {"-"}, .from_format = "csv"}, "schema"},
      {{.paths = {"-"}, .from_format = "ndjson"}, "schema"},
      {{.paths = {"a"}, .from_format = "parquet", .schema = R"([{"name":"a","type":"STRING"}])"}, "schema"},
      {{.paths = {"a"}, .from_format = "ndjson", .csv_header = true}, "csv_header"},
      {{.paths = {"a"}, .from_format = "avro", .csv_null_values = {{"x"}}}, "csv_null_values"},
      {{.paths = {"a.csv"}, .schema = "{"}, "schema"},
      {{.paths = {"a.csv"}, .csv_header = false}, "schema"},
      {{.paths = {"a.csv"}, .selected_fields = {"a", "A"}}, "selected_fields"},
      {{.paths = {"a.csv"}, .max_rows_per_batch = 0}, "max_rows_per_batch"},
      {{.paths = {"a.csv"}, .max_bytes_per_batch = 0}, "max_bytes_per_batch"},
      {{.paths = {"a.csv"}, .split_bytes = 0}, "split_bytes"},
      {{.paths = {"a.csv"}, .rounding = "up"}, "rounding"},
      {{.paths = {"a.csv"}, .epoch_unit = "hours"}, "epoch_unit"},
      {{.paths = {"a"}, .from_format = "avro", .strict = true}, "strict"},
      {{.paths = {"a"}, .from_format = "arrow", .rounding = "half_even"}, "rounding"},
      {{.paths = {"a"}, .from_format = "parquet", .epoch_unit = "micros"}, "epoch_unit"},
      {{.paths = {"a"}, .from_format = "csv", .ignore_unknown_values = true}, "ignore_unknown_values"},
      {{.paths = {"a"}, .from_format = "arrows", .split_bytes = 1}, "split_bytes"},
  };
  for (const auto& [options, name] : cases) {
    auto source = FileSource::Make(options);
    ASSERT_FALSE(source.ok()) << name;
    EXPECT_EQ(GetErrorInfo(source.status())->resource, name) << source.status();
  }
  for (const char* format : {"parquet", "arrow", "avro"}) {
    EXPECT_EQ(CodeOf(FileSource::Make({.paths = {"-"}, .from_format = format}).status()), Code::kUnimplemented);
  }
}

TEST(FileSourceTest, OptionsThatActOnNoneOfTheFilesAreRefused) {
  TemporaryDirectory root;
  for (const auto& [name, format] : {std::pair("a.arrows", "arrows"),
                                     {"a.csv.gz", "csv"},
                                     {"a.ndjson.zst", "ndjson"},
                                     {"a.csv", "csv"},
                                     {"a.ndjson", "ndjson"},
                                     {"a.avro", "avro"},
                                     {"a.parquet", "parquet"},
                                     {"a.arrow", "arrow"}})
    WriteIds(root / name, format, 20);
  WriteIds(root / "result/", "parquet", 20);
  const auto one_column = R"([{"name": "id", "type": "INT64"}])";
  const struct {
    FileSourceOptions options;
    const char* refused;  // "" = it acts
  } cases[] = {
      {{.paths = {root / "a.arrows"}, .split_bytes = 100}, "split_bytes"},
      {{.paths = {root / "a.csv.gz"}, .split_bytes = 100}, "split_bytes"},
      {{.paths = {root / "a.ndjson.zst"}, .split_bytes = kDefaultSplitBytes}, "split_bytes"},
      {{.paths = {root / "a.csv.gz", root / "a.csv"}, .split_bytes = 100}, ""},
      {{.paths = {root / "a.ndjson"}, .split_bytes = 100}, ""},
      {{.paths = {root / "a.avro"}, .split_bytes = 100}, ""},
      {{.paths = {root / "a.parquet"}, .split_bytes = 100}, ""},
      {{.paths = {root / "a.arrow"}, .split_bytes = 100}, ""},
      {{.paths = {root / "result"}, .from_format = "csv"}, "from_format"},
      {{.paths = {root / "result"}, .from_format = "parquet"}, ""},
      {{.paths = {root / "a.csv"}, .rounding = "half_even"}, "rounding"},
      {{.paths = {root / "a.ndjson"}, .epoch_unit = "millis"}, "epoch_unit"},
      {{.paths = {root / "a.ndjson"}, .ignore_unknown_values = true}, "ignore_unknown_values"},
      {{.paths = {root / "a.ndjson"}, .schema = one_column, .ignore_unknown_values = true}, ""},
      {{.paths = {root / "a.ndjson"}, .strict = true}, ""},
  };
  for (const auto& [options, refused] : cases) {
    SCOPED_TRACE(options.paths.front() + " " + refused);
    auto source = FileSource::Make(options);
    auto table = source.ok() ? ReadAll(*source) : source.status();
    if (*refused == '\0') {
      EXPECT_TRUE(table.ok()) << table.status();
      continue;
    }
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(GetErrorInfo(table.status())->resource, refused) << table.status();
  }
}

TEST(FileSourceTest, AnyShapeOfPathInEveryFormat) {
  for (const std::string format : kFormats) {
    SCOPED_TRACE(format);
    TemporaryDirectory root;
    WriteIds(root / "result/", format, 95);
    WriteIds(root / ("single." + format), format, 95);
    ASSERT_GT(NamesIn(root / "result").size(), 3u) << "a result of several files";
    std::filesystem::create_directory(root / "copied");
    for (const auto& name : NamesIn(root / "result")) {
      if (name != kManifestName) std::filesystem::copy_file(root / ("result/" + name), root / ("copied/" + name.substr(5)));
    }
    std::vector<std::string> list;
    for (const auto& name : NamesIn(root / "copied")) list.push_back(root / ("copied/" + name));
    const FileSourceOptions cases[] = {{.paths = {root / "result"}},
                                       {.paths = {root / "result/"}},
                                       {.paths = {root / ("single." + format)}},
                                       {.paths = {root / "copied"}},
                                       {.paths = {root / "copied"}, .from_format = FormatOf(format)},
                                       {.paths = {root / ("copied/*." + format)}},
                                       {.paths = {root / ("c?p*/[a-z]*." + format)}},
                                       {.paths = list}};
    for (const auto& options : cases) {
      SCOPED_TRACE(options.paths.front());
      auto table = ReadAll(MakeSource(options));
      ASSERT_TRUE(table.ok()) << table.status();
      EXPECT_EQ(IdsOf(**table), Counted(95));
      // A CSV file alone does not say that a column has no nulls; a manifest does.
      const bool said = FormatOf(format) != "csv" || options.paths.front().find("result") != std::string::npos;
      EXPECT_EQ((*table)->schema()->ToString(), said ? "id: int64 not null" : "id: int64");
    }
  }
}

TEST(FileSourceTest, PathsThatAreNoSource) {
  TemporaryDirectory root;
  WriteIds(root / "result/", "parquet", 95);
  WriteIds(root / "a.parquet", "parquet", 5);
  WriteIds(root / "b.arrow", "arrow", 5);
  WriteText(root / "c.txt", "x");
  WriteText(root / "d.zip", "x");
  for (const char* name : {"empty", "unfinished", "begun", "mixed", "letters", "cut"}) std::filesystem::create_directory(root / name);
  WriteText(root / "unfinished/part-cafe0123-00000-0001.parquet", "x");
  WriteText(root / "begun/.part-cafe0123-00000-0001.csv.tmp", "x");
  WriteText(root / "letters/letter.txt", "x");
  std::filesystem::copy_file(root / "a.parquet", root / "mixed/a.parquet");
  std::filesystem::copy_file(root / "b.arrow", root / "mixed/b.arrow");
  std::filesystem::copy(root / "result", root / "cut");
  std::filesystem::resize_file(root / "cut/part-cafe0123-00000-0001.parquet", 7);
  struct Case {
    std::vector<std::string> paths;
    Code code;
    const char* reason;
  };
  const Case cases[] = {
      {{root / "none.parquet"}, Code::kNotFound, "NO_FILES"},
      {{root / "none*.parquet"}, Code::kNotFound, "NO_FILES"},
      {{root / "none/*.parquet"}, Code::kNotFound, "NO_FILES"},
      {{root / "empty"}, Code::kNotFound, "NO_FILES"},
      {{root / "letters"}, Code::kNotFound, "NO_FILES"},
      {{root / "unfinished"}, Code::kFailedPrecondition, "NOT_A_RESULT"},
      {{root / "begun"}, Code::kFailedPrecondition, "NOT_A_RESULT"},
      {{root / "mixed"}, Code::kInvalidArgument, "SEVERAL_FORMATS"},
      {{root / "a.parquet", root / "b.arrow"}, Code::kInvalidArgument, "SEVERAL_FORMATS"},
      {{root / "a.parquet", root / "a.parquet"}, Code::kInvalidArgument, "FILE_TWICE"},
      {{root / "a.parquet", root / "result"}, Code::kInvalidArgument, "IS_DIRECTORY"},
      {{root / "cut"}, Code::kDataLoss, "FILE_DIFFERS"},
      {{root / "c.txt"}, Code::kUnimplemented, "UNSUPPORTED"},
      {{root / "d.zip"}, Code::kUnimplemented, "UNSUPPORTED"},
  };
  for (const auto& item : cases) {
    SCOPED_TRACE(item.paths.front());
    auto table = ReadAll(MakeSource({.paths = item.paths}));
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(CodeOf(table.status()), item.code) << table.status();
    EXPECT_EQ(GetErrorInfo(table.status())->reason, item.reason) << table.status();
  }
  EXPECT_EQ(IdsOf(**ReadAll(MakeSource({.paths = {root / "mixed"}, .from_format = "arrow"}))), Counted(5));
}

TEST(FileSourceTest, DamagedFilesAreNamed) {
  TemporaryDirectory root;
  for (const std::string format : kFormats) {
    const std::string path = root / ("x." + format);
    WriteIds(path, format, 50);
    std::string bytes;
    {
      std::ifstream in(path, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    for (size_t size : {size_t{0}, size_t{3}, bytes.size() / 2}) {
      WriteText(path, std::string_view(bytes).substr(0, size));
      auto table = ReadAll(MakeSource({.paths = {path}}));
      // A stream that ends behind a batch is whole, and so is text that ends behind a digit.
      if (table.ok() && size > 0 && (format == "arrows" || format == "csv")) continue;
      ASSERT_FALSE(table.ok()) << format << " " << size;
      EXPECT_THAT(table.status().message(), HasSubstr(path));
    }
  }
}

TEST(FileSourceTest, EverySplitResumesAtEveryRow) {
  TemporaryDirectory root;
  for (const std::string format : kFormats) {
    SCOPED_TRACE(format);
    const std::string path = root / ("x." + format);
    WriteIds(path, format, 60);
    const bool divisible = format != "arrows" && format != "csv.gz" && format != "csv.zst";
    FileSourceOptions options{.paths = {path}, .max_rows_per_batch = 7};
    if (divisible) options.split_bytes = format == "csv" || format == "avro" ? 50 : 300;
    auto source = MakeSource(options);
    auto planned = Plan(*source);
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_EQ(planned->splits.size() > 1, divisible) << planned->splits.size();
    std::vector<int64_t> all;
    for (const auto& split : planned->splits) {
      auto rows_from = [&](const Split& from) {
        std::vector<int64_t> rows;
        auto reader = source->OpenReader(Context(), planned->enumerator->schema(), from).ValueOrDie();
        while (true) {
          auto result = reader->Next().ValueOrDie();
          if (std::holds_alternative<End>(result)) break;
          const auto& batch = std::get<Batch>(result);
          EXPECT_LE(batch.rows->num_rows(), 7);
          const auto& ids = static_cast<const arrow::Int64Array&>(*batch.rows->column(0));
          for (int64_t i = 0; i < ids.length(); ++i) rows.push_back(ids.Value(i));
          EXPECT_EQ(reader->PositionAt(batch, 0).ValueOrDie(), fmt::format("{}", std::stoll(batch.position) - batch.rows->num_rows()));
        }
        EXPECT_EQ(reader->Progress().fraction, 1);
        return rows;
      };
      const auto whole = rows_from(split);
      for (size_t row = 0; row <= whole.size(); ++row) {
        Split later = split;
        later.position = fmt::format("{}", row);
        EXPECT_EQ(rows_from(later), std::vector<int64_t>(whole.begin() + static_cast<std::ptrdiff_t>(row), whole.end()));
        Split bounded = split;
        bounded.end_position = fmt::format("{}", row);
        EXPECT_EQ(rows_from(bounded), std::vector<int64_t>(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(row)));
      }
      all.insert(all.end(), whole.begin(), whole.end());
    }
    EXPECT_EQ(all, Counted(60));
  }
}

TEST(FileSourceTest, ARestoredPlanIsNotMadeAgain) {
  TemporaryDirectory root;
  WriteIds(root / "out/", "parquet", 95);
  auto source = MakeSource({.paths = {root / "out"}});
  auto enumerator = source->CreateEnumerator(Context()).ValueOrDie();
  ASSERT_TRUE(enumerator->Start().ok());
  const auto queued = enumerator->queued();
  EXPECT_EQ(enumerator->estimated_rows(), 95);
  const std::string state = enumerator->Snapshot();
  std::filesystem::remove_all(root / "out");
  auto restored = source->RestoreEnumerator(Context(), state).ValueOrDie();
  ASSERT_TRUE(restored->Start().ok());
  EXPECT_EQ(restored->queued(), queued);
  EXPECT_TRUE(restored->schema()->Equals(*enumerator->schema(), true));
  auto next = restored->Next().ValueOrDie();
  auto reader = source->OpenReader(Context(), restored->schema(), next.split);
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(GetErrorInfo(reader.status())->reason, "FILE_CHANGED");
}

TEST(FileSourceTest, AFileThatChangedSinceThePlanIsAnError) {
  TemporaryDirectory root;
  for (const std::string format : kFormats) {
    for (bool while_reading : {false, true}) {
      const std::string path = root / fmt::format("{}.{}", while_reading, format);
      WriteIds(path, format, 30);
      auto source = MakeSource({.paths = {path}});
      auto planned = Plan(*source).ValueOrDie();
      auto change = [&] { std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1)); };
      if (!while_reading) change();
      auto reader = source->OpenReader(Context(), planned.enumerator->schema(), planned.splits.at(0));
      ASSERT_EQ(reader.ok(), while_reading) << reader.status();
      auto status = reader.status();
      if (while_reading) {
        change();
        while (status.ok()) {
          auto result = (*reader)->Next();
          status = result.status();
          if (status.ok()) {
            ASSERT_FALSE(std::holds_alternative<End>(*result)) << "the end, as if nothing had happened";
          }
        }
      }
      EXPECT_EQ(GetErrorInfo(status)->reason, "FILE_CHANGED") << status;
      EXPECT_THAT(status.message(), HasSubstr(path));
    }
  }
}

TEST(FileSourceTest, CancelledIsNeverTheEnd) {
  TemporaryDirectory root;
  WriteIds(root / "x.parquet", "parquet", 30);
  auto source = MakeSource({.paths = {root / "x.parquet"}});
  auto planned = Plan(*source).ValueOrDie();
  auto reader = source->OpenReader(Context(), planned.enumerator->schema(), planned.splits.at(0)).ValueOrDie();
  reader->Cancel();
  EXPECT_EQ(CodeOf(reader->Next().status()), Code::kCancelled);
}

void WriteBatch(const std::string& path, const std::shared_ptr<arrow::RecordBatch>& batch) {
  auto sink = FileSink::Make({.path = path}).ValueOrDie();
  SinkContext context;
  context.run_id = "cafe0123";
  auto state = sink->Prepare(context, batch->schema()).ValueOrDie();
  auto writer = sink->CreateWriter(context, state, batch->schema()).ValueOrDie();
  ASSERT_TRUE(writer->Write({.rows = batch, .position = {}}).ok());
  auto committed = sink->CreateCommitter(context, state).ValueOrDie()->Commit(writer->PrepareCommit().ValueOrDie());
  ASSERT_EQ(committed.at(0).outcome, CommitOutcome::kCommitted);
}

std::shared_ptr<arrow::RecordBatch> FromJson(const arrow::FieldVector& fields, const char* json) {
  auto array = arrow::json::ArrayFromJSONString(arrow::struct_(fields), json).ValueOrDie();
  return arrow::RecordBatch::FromStructArray(array).ValueOrDie()->ReplaceSchemaMetadata(nullptr);
}

TEST(FileSourceTest, SelectedFieldsInTheirOrderWhateverTheirCase) {
  TemporaryDirectory root;
  for (const char* extension : {"parquet", "arrow", "arrows", "avro"}) {
    const std::string path = root / fmt::format("x.{}", extension);
    auto inner = arrow::struct_({arrow::field("x", arrow::int64()), arrow::field("y", arrow::utf8())});
    WriteBatch(path, FromJson({arrow::field("a", arrow::int64()), arrow::field("b", inner), arrow::field("c", arrow::utf8())},
                              R"([{"a": 1, "b": {"x": 2, "y": "three"}, "c": "four"}, {"a": null, "b": null, "c": ""}])"));
    auto table = ReadAll(MakeSource({.paths = {path}, .selected_fields = {"C", "b"}}));
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ((*table)->schema()->ToString(), "c: string\nb: struct<x: int64, y: string>");
    EXPECT_EQ((*table)->num_rows(), 2);
    auto wrong = ReadAll(MakeSource({.paths = {path}, .selected_fields = {"d"}}));
    EXPECT_EQ(GetErrorInfo(wrong.status())->column, "d");
    EXPECT_THAT(wrong.status().message(), HasSubstr("a, b, c"));
  }
}

TEST(FileSourceTest, OneSchemaForAllFiles) {
  TemporaryDirectory root;
  const auto a = arrow::field("a", arrow::int64(), false);
  const auto b = arrow::field("b", arrow::utf8());
  WriteBatch(root / "1.parquet", FromJson({a, b}, R"([{"a": 1, "b": "x"}])"));
  WriteBatch(root / "2.parquet", FromJson({b->WithName("B"), a->WithNullable(true)}, R"([{"B": "y", "a": null}])"));
  auto table = ReadAll(MakeSource({.paths = {root.path()}}));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->schema()->ToString(), "a: int64\nb: string");
  EXPECT_EQ((*table)->num_rows(), 2);
  const std::pair<std::shared_ptr<arrow::RecordBatch>, const char*> cases[] = {
      {FromJson({a}, R"([{"a": 1}])"), "b"},
      {FromJson({a, b, arrow::field("c", arrow::utf8())}, R"([{"a": 1, "b": "x", "c": "z"}])"), "c"},
      {FromJson({a, arrow::field("b", arrow::int64())}, R"([{"a": 1, "b": 2}])"), "b"},
  };
  for (const auto& [batch, column] : cases) {
    std::filesystem::remove(root / "3.parquet");
    WriteBatch(root / "3.parquet", batch);
    auto refused = ReadAll(MakeSource({.paths = {root.path()}}));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(GetErrorInfo(refused.status())->reason, "SCHEMA_DIFFERS");
    EXPECT_EQ(GetErrorInfo(refused.status())->column, column);
    EXPECT_THAT(refused.status().message(), HasSubstr("3.parquet"));
  }
}

TEST(FileSourceTest, AnEmptyTableHasItsColumns) {
  TemporaryDirectory root;
  for (const std::string format : kFormats) {
    WriteIds(root / (format + "/"), format, 0);
    auto table = ReadAll(MakeSource({.paths = {root / format}}));
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ((*table)->num_rows(), 0);
    EXPECT_EQ((*table)->schema()->ToString(), "id: int64 not null");
  }
}

TEST(FileSourceTest, BatchesAreBoundedByBytes) {
  TemporaryDirectory root;
  WriteIds(root / "x.arrow", "arrow", 100);
  auto source = MakeSource({.paths = {root / "x.arrow"}, .max_bytes_per_batch = 40});
  auto planned = Plan(*source).ValueOrDie();
  auto reader = source->OpenReader(Context(), planned.enumerator->schema(), planned.splits.at(0)).ValueOrDie();
  for (int i = 0; i < 10; ++i) {
    auto result = reader->Next().ValueOrDie();
    EXPECT_LE(std::get<Batch>(result).rows->num_rows(), 5);
  }
}

TEST(StandardInputTest, IsReadOnceWithoutCheckpoints) {
  TemporaryDirectory root;
  for (const std::string format : {"arrows", "csv", "ndjson"}) {
    for (int64_t total : {0, 30}) {
      const std::string path = root / fmt::format("{}.{}", total, format);
      WriteIds(path, format, total);
      const int descriptor = open(path.c_str(), O_RDONLY);
      const std::string schema = format == "arrows" ? "" : R"([{"name": "id", "type": "INTEGER", "mode": "REQUIRED"}])";
      auto source = MakeSource({.paths = {"-"}, .from_format = format, .schema = schema, .input_descriptor = descriptor});
      EXPECT_THAT(source->SupportsCheckpoints().message(), HasSubstr("standard input"));
      auto table = ReadAll(source);
      ASSERT_TRUE(table.ok()) << table.status();
      EXPECT_EQ(IdsOf(**table), Counted(total));
      EXPECT_EQ((*table)->num_columns(), 1);
      auto again = ReadAll(source);
      EXPECT_FALSE(again.ok());
      EXPECT_EQ(fcntl(descriptor, F_GETFD), 0);
      close(descriptor);
    }
  }
}

struct TextCase {
  const char* name;
  const char* text;
  const char* schema;  // BigQuery's JSON; empty = found from the values
  const char* rows;    // as text, empty = an error with ...
  const char* error;
};

constexpr const char* kIntAndText = R"([{"name": "a", "type": "INTEGER"}, {"name": "b", "type": "STRING"}])";

const TextCase kTextCases[] = {
    {"plain.csv", "a,b\n1,x\n", kIntAndText, "1|x", ""},
    {"order.csv", "B,A\nx,1\n", kIntAndText, "1|x", ""},
    {"nulls.csv", "a,b\n,\n1,\"\"\n", kIntAndText, "null|null 1|", ""},
    {"blank.csv", "a,b\n\n1,x\n\n", kIntAndText, "1|x", ""},
    {"one.csv", "a\n\n1\n\n", R"([{"name": "a", "type": "INTEGER"}])", "null 1 null", ""},
    {"quoted.csv", "a,b\r\n1,\"x\r\ny, \"\"z\"\"\"\r\n", kIntAndText, "1|x\r\ny, \"z\"", ""},
    {"nested.csv", "a,r\n1,\"[1,2]\"\n2,\n", R"([{"name": "a", "type": "INTEGER"}, {"name": "r", "type": "INTEGER", "mode": "REPEATED"}])",
     "1|[1,2] 2|[]", ""},
    {"injected.csv", "r\n\"[1],\"\"r\"\":[2]\"\n", R"([{"name": "r", "type": "INTEGER", "mode": "REPEATED"}])", "", "line 2"},
    {"value.csv", "a,b\n1,x\nseven,y\n", kIntAndText, "", "value.csv, line 3: column a, row 1: "},
    {"long.csv", "a,b\n1,x,y\n", kIntAndText, "", "long.csv, line 2: the row has 3 fields, and there are 2 columns"},
    {"short.csv", "a,b\n1,x\n2\n", kIntAndText, "", "short.csv, line 3: the row has 1 fields"},
    {"open.csv", "a,b\n1,x\n2,\"y\n3,z\n", kIntAndText, "", "open.csv, line 3, field 2: the quote"},
    {"more.csv", "a,b,c\n1,x,y\n", kIntAndText, "", "more.csv has a column c"},
    {"less.csv", "a\n1\n", kIntAndText, "", "less.csv has no column b"},
    {"required.csv", "a\n1\n\n", R"([{"name": "a", "type": "INTEGER", "mode": "REQUIRED"}])", "", "required.csv, line 3: column a"},
    {"utf8.csv", "a,b\n1,\xff\n", kIntAndText, "", "utf8.csv, line 2: column b"},
    {"plain.ndjson", "{\"a\": 1, \"b\": \"x\"}\n", kIntAndText, "1|x", ""},
    {"blank.jsonl", "\n {\"A\": 1}\r\n\n{\"b\": \"\"}", kIntAndText, "1|null null|", ""},
    {"value.json", "{\"a\": 1}\n\n{\"a\": \"seven\"}\n", kIntAndText, "", "value.json, line 3: "},
    {"unknown.ndjson", "{\"a\": 1, \"c\": 2}\n", kIntAndText, "", "unknown.ndjson, line 1: "},
    {"broken.ndjson", "{\"a\": 1}\n{\"a\": \n", kIntAndText, "", "broken.ndjson, line 2: "},
    {"empty.ndjson", "", kIntAndText, "-", ""},
};

std::string RowsOf(const arrow::Table& table) {
  std::string all;
  for (int64_t row = 0; row < table.num_rows(); ++row) {
    if (row > 0) all += ' ';
    for (int i = 0; i < table.num_columns(); ++i) {
      auto value = table.column(i)->GetScalar(row).ValueOrDie();
      std::string text = value->ToString();
      if (value->is_valid && value->type->id() == arrow::Type::LIST) {
        text = static_cast<const arrow::BaseListScalar&>(*value).value->ToString();
        std::erase_if(text, [](char c) { return c == '\n' || c == ' '; });
      }
      all += (i > 0 ? "|" : "") + text;
    }
  }
  return all.empty() ? "-" : all;
}

TEST(TextRowsTest, RowsAndWhatIsWrongWithThem) {
  TemporaryDirectory root;
  for (const auto& item : kTextCases) {
    SCOPED_TRACE(item.name);
    WriteText(root / item.name, item.text);
    auto table = ReadAll(MakeSource({.paths = {root / item.name}, .schema = item.schema}));
    if (*item.error == '\0') {
      ASSERT_TRUE(table.ok()) << table.status();
      EXPECT_EQ(RowsOf(**table), item.rows);
      continue;
    }
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(CodeOf(table.status()), Code::kInvalidArgument) << table.status();
    EXPECT_THAT(table.status().message(), HasSubstr(item.error));
  }
}

TEST(TextRowsTest, OptionsOfCsv) {
  TemporaryDirectory root;
  WriteText(root / "h.csv", "1,NA\n,x\n");
  auto table =
      ReadAll(MakeSource({.paths = {root / "h.csv"}, .schema = kIntAndText, .csv_header = false, .csv_null_values = {{"NA", ""}}}));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(RowsOf(**table), "1|null null|x");
  WriteText(root / "x.data", "a,b\n1,x\n");
  EXPECT_EQ(RowsOf(**ReadAll(MakeSource({.paths = {root / "x.data"}, .from_format = "csv"}))), "1|x");
}

// Wherever a split ends, every row is in one of them, whatever the quotes hold.
TEST(TextRowsTest, AnyDivisionGivesEveryRowOnce) {
  TemporaryDirectory root;
  std::string csv = "id,t\n";
  std::string json;
  for (int i = 0; i < 40; ++i) {
    csv += fmt::format("{},\"{}\n,\"\"\n{}\"\n", i, i, std::string(static_cast<size_t>(i % 7), '\n'));
    json += fmt::format("{{\"id\": {}, \"t\": \"{}\"}}\n{}", i, std::string(static_cast<size_t>(i), 'x'), i % 5 == 0 ? "\n" : "");
  }
  WriteText(root / "x.csv", csv);
  WriteText(root / "x.ndjson", json);
  const char* schema = R"([{"name": "id", "type": "INTEGER"}, {"name": "t", "type": "STRING"}])";
  for (const char* name : {"x.csv", "x.ndjson"}) {
    for (int64_t split_bytes = 1; split_bytes < 300; split_bytes += split_bytes < 20 ? 1 : 17) {
      SCOPED_TRACE(fmt::format("{} in splits of {}", name, split_bytes));
      auto table = ReadAll(MakeSource({.paths = {root / name}, .schema = schema, .split_bytes = split_bytes}));
      ASSERT_TRUE(table.ok()) << table.status();
      ASSERT_EQ(IdsOf(**table), Counted(40));
    }
  }
}

// The line of an error is that of the file, also in a split that begins in its middle.
TEST(TextRowsTest, LinesOfErrorsAreThoseOfTheFile) {
  TemporaryDirectory root;
  std::string csv = "a,b\n";
  std::string json;
  for (int i = 0; i < 50; ++i) {
    csv += fmt::format("{},\"x\ny\"\n", i);
    json += fmt::format("{{\"a\": {}}}\n", i);
  }
  WriteText(root / "x.csv", csv + "bad,z\n");
  WriteText(root / "x.ndjson", json + "{\"a\": \"bad\"}\n");
  for (const auto& [name, where] : {std::pair("x.csv", "x.csv, line 102: "), std::pair("x.ndjson", "x.ndjson, line 51: ")}) {
    auto table = ReadAll(MakeSource({.paths = {root / name}, .schema = kIntAndText, .split_bytes = 40}));
    ASSERT_FALSE(table.ok());
    EXPECT_THAT(table.status().message(), HasSubstr(where));
  }
}

TEST(TextRowsTest, TypesAreThoseOfAllFiles) {
  TemporaryDirectory root;
  WriteText(root / "1.csv", "a,b\n1,2024-01-01\n");
  WriteText(root / "2.csv", "b,a\n2024-01-01T10:00:00,1.5\n");
  auto table = ReadAll(MakeSource({.paths = {root.path()}}));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->schema()->ToString(), "a: double\nb: timestamp[us]");
  std::filesystem::create_directory(root / "json");
  WriteText(root / "json/1.jsonl", "{\"a\": 1, \"b\": \"2024-01-01\"}\n");
  WriteText(root / "json/2.jsonl", "{\"a\": 1.5, \"r\": [{\"x\": true}]}\n");
  auto json = ReadAll(MakeSource({.paths = {root / "json"}}));
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_THAT((*json)->schema()->ToString(), HasSubstr("a: double\nb: date32[day]\nr: list<item: struct<x: bool>"));
  EXPECT_EQ((*json)->num_rows(), 2);
  WriteText(root / "json/3.jsonl", "\n{\"a\": [1]}\n");
  auto mixed = ReadAll(MakeSource({.paths = {root / "json"}}));
  EXPECT_THAT(mixed.status().message(), HasSubstr("json/3.jsonl, line 2: "));
  WriteText(root / "none.jsonl", "\n");
  EXPECT_EQ(GetErrorInfo(ReadAll(MakeSource({.paths = {root / "none.jsonl"}})).status())->resource, "schema");
  WriteText(root / "3.csv", "b\n2024-01-01\n");
  auto refused = ReadAll(MakeSource({.paths = {root / "*.csv"}}));
  EXPECT_EQ(GetErrorInfo(refused.status())->reason, "SCHEMA_DIFFERS");
  EXPECT_THAT(refused.status().message(), HasSubstr("3.csv has no column a"));
}

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

FilePart SamplePart() {
  return {.file = {.path = "a.csv.gz", .kind = {FileFormat::kCsv, FileCompression::kGzip}, .size = 300, .modified_ns = 7},
          .begin = 1,
          .end = 200,
          .first_row = 5,
          .first_line = 3,
          .rows = -1,
          .bytes = 199};
}

TEST(FileSourceStateTest, GoldenBytes) {
  EXPECT_EQ(Hex(EncodeFilePart(SamplePart())),
            "08011208612e6373762e677a1a03637376200128ac023007380140c801480550ffffffffffffffffff0158c7016003");
  EXPECT_EQ(DecodeFilePart(EncodeFilePart(SamplePart())).ValueOrDie(), SamplePart());
  FilePlanState plan{.planned = true, .schema = "S", .files = 2, .bytes = 9, .rows = 4};
  plan.queue.push_back({.id = "0", .descriptor = "d", .position = "5", .end_position = "9", .estimated_bytes = 0.5});
  EXPECT_EQ(Hex(EncodeFilePlan(plan)), "080110011a01532002280930043a150a01301201641a013522013929000000000000e03f");
  auto back = DecodeFilePlan(EncodeFilePlan(plan)).ValueOrDie();
  EXPECT_EQ(back.queue, plan.queue);
  EXPECT_EQ(back.schema, "S");
  EXPECT_EQ(back.rows, 4);
  EXPECT_TRUE(back.reads.empty());
  plan.reads = {{"path", "a"}};
  EXPECT_THAT(Hex(EncodeFilePlan(plan)), ::testing::EndsWith("42090a0470617468120161"));
  EXPECT_EQ(DecodeFilePlan(EncodeFilePlan(plan)).ValueOrDie().reads, plan.reads);
}

TEST(FileSourceTest, AStateOfOtherFilesIsRefusedByOption) {
  TemporaryDirectory root;
  WriteText(root / "a.csv", "x,y\n1,2\n");
  const FileSourceOptions first{.paths = {root / "a.csv"}, .selected_fields = {"x"}};
  auto enumerator = MakeSource(first)->CreateEnumerator(Context()).ValueOrDie();
  ASSERT_TRUE(enumerator->Start().ok());
  const auto state = enumerator->Snapshot();
  const std::pair<FileSourceOptions, const char*> cases[] = {
      {first, ""},
      {{.paths = {root / "b.csv"}, .selected_fields = {"x"}}, "path"},
      {{.paths = {root / "a.csv"}, .from_format = "csv", .selected_fields = {"x"}}, "from_format"},
      {{.paths = {root / "a.csv"}, .selected_fields = {"y"}}, "selected_fields"},
      {{.paths = {root / "a.csv"}, .selected_fields = {"x"}, .schema = R"([{"name":"x","type":"STRING"}])"}, "schema"},
      {{.paths = {root / "a.csv"}, .selected_fields = {"x"}, .csv_null_values = {{"NA"}}}, "csv_null_values"},
      {{.paths = {root / "a.csv"}, .selected_fields = {"x"}, .csv_null_values = {{""}}}, ""},
      {{.paths = {root / "a.csv"}, .selected_fields = {"x"}, .strict = true}, "strict"},
      {{.paths = {root / "a.csv"}, .selected_fields = {"x"}, .rounding = "half_even"}, "rounding"},
      {{.paths = {root / "a.csv"}, .selected_fields = {"x"}, .epoch_unit = "millis"}, "epoch_unit"},
      {{.paths = {root / "a.csv"}, .selected_fields = {"x"}, .max_rows_per_batch = 5}, ""},
  };
  for (const auto& [options, name] : cases) {
    auto restored = MakeSource(options)->RestoreEnumerator(Context(), state);
    EXPECT_EQ(restored.ok(), *name == '\0') << name << restored.status();
    if (*name == '\0') continue;
    EXPECT_EQ(CodeOf(restored.status()), Code::kFailedPrecondition);
    EXPECT_EQ(GetErrorInfo(restored.status())->reason, "SOURCE_CHANGED");
    EXPECT_EQ(GetErrorInfo(restored.status())->resource, name) << restored.status();
  }
  auto earlier = DecodeFilePlan(state).ValueOrDie();
  earlier.reads.clear();
  EXPECT_TRUE(MakeSource(cases[3].first)->RestoreEnumerator(Context(), EncodeFilePlan(earlier)).ok()) << "a state that says nothing of it";
}

TEST(FileSourceStateTest, DamagedStateIsDataLossAndAnotherVersionNamesBoth) {
  std::string other = EncodeFilePart(SamplePart());
  other[1] = 2;
  EXPECT_EQ(CodeOf(DecodeFilePart(other).status()), Code::kUnimplemented);
  EXPECT_THAT(DecodeFilePart(other).status().message(), HasSubstr("version 2, this program reads version 1"));
  for (auto change : {+[](FilePart* part) { part->file.path = ""; }, +[](FilePart* part) { part->file.size = -1; },
                      +[](FilePart* part) { part->end = 0; }, +[](FilePart* part) { part->begin = -1; },
                      +[](FilePart* part) { part->bytes = -1; }, +[](FilePart* part) { part->file.path = std::string("a\0b", 3); }}) {
    auto part = SamplePart();
    change(&part);
    EXPECT_EQ(CodeOf(DecodeFilePart(EncodeFilePart(part)).status()), Code::kDataLoss);
  }
  for (const char* bytes : {"", "\xff", "rubbish"}) {
    EXPECT_EQ(CodeOf(DecodeFilePart(bytes).status()), Code::kDataLoss);
    EXPECT_EQ(CodeOf(DecodeFilePlan(bytes).status()), Code::kDataLoss);
  }
  EXPECT_EQ(CodeOf(DecodeFilePlan(EncodeFilePlan({.planned = true})).status()), Code::kDataLoss);
  for (const char* text : {"-1", "x", "1x", "99999999999999999999"}) EXPECT_EQ(CodeOf(ParseFilePosition(text).status()), Code::kDataLoss);
  EXPECT_EQ(ParseFilePosition("").ValueOrDie(), 0);
  EXPECT_EQ(ParseFilePosition("12").ValueOrDie(), 12);
}

}  // namespace
}  // namespace headrace
