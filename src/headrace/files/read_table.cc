#include "headrace/files/read_table.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/builder.h>
#include <arrow/compute/cast.h>
#include <arrow/csv/api.h>
#include <arrow/io/compressed.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/reader.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>

#include "headrace/files/file_format.h"
#include "headrace/files/manifest.h"
#include "headrace/types/normalize.h"

namespace headrace {
namespace {

using TablePtr = std::shared_ptr<arrow::Table>;

arrow::Result<TablePtr> ReadParquet(FileSystem* files, const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto file, files->Open(path));
  ARROW_ASSIGN_OR_RAISE(auto reader, parquet::arrow::OpenFile(file, arrow::default_memory_pool()));
  ARROW_ASSIGN_OR_RAISE(auto table, reader->ReadTable());
  return NormalizeToBigQuery(table);
}

arrow::Result<TablePtr> ReadArrow(FileSystem* files, const std::string& path, FileFormat format) {
  ARROW_ASSIGN_OR_RAISE(auto file, files->Open(path));
  if (format == FileFormat::kArrow) {
    ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchFileReader::Open(file));
    ARROW_ASSIGN_OR_RAISE(auto table, reader->ToTable());
    return NormalizeToBigQuery(table);
  }
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchStreamReader::Open(file));
  ARROW_ASSIGN_OR_RAISE(auto table, reader->ToTable());
  return NormalizeToBigQuery(table);
}

arrow::Result<std::shared_ptr<arrow::Schema>> NormalizedSchema(const std::shared_ptr<arrow::Schema>& schema) {
  ARROW_ASSIGN_OR_RAISE(auto empty, arrow::Table::MakeEmpty(schema));
  ARROW_ASSIGN_OR_RAISE(auto table, NormalizeToBigQuery(empty));
  return table->schema();
}

arrow::Result<std::shared_ptr<arrow::Schema>> ReadParquetSchema(FileSystem* files, const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto file, files->Open(path));
  ARROW_ASSIGN_OR_RAISE(auto reader, parquet::arrow::OpenFile(file, arrow::default_memory_pool()));
  std::shared_ptr<arrow::Schema> schema;
  ARROW_RETURN_NOT_OK(reader->GetSchema(&schema));
  return NormalizedSchema(schema);
}

// HH:MM:SS with one to six digits after the point, as microseconds of the day. (Arrow has no cast from text to a time.)
std::optional<int64_t> TimeOfDay(std::string_view text) {
  const auto number = [&](size_t first, size_t count) -> int64_t {
    int64_t value = 0;
    for (char c : text.substr(first, count)) {
      if (c < '0' || c > '9') return -1;
      value = value * 10 + (c - '0');
    }
    return value;
  };
  if (text.size() < 8 || text[2] != ':' || text[5] != ':' || text.size() == 9 || text.size() > 15) return std::nullopt;
  const int64_t hours = number(0, 2);
  const int64_t minutes = number(3, 2);
  const int64_t seconds = number(6, 2);
  int64_t fraction = text.size() > 8 ? number(9, 6) : 0;
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || seconds < 0 || seconds > 59 || fraction < 0) return std::nullopt;
  if (text.size() > 8 && text[8] != '.') return std::nullopt;
  for (size_t digits = text.size() > 8 ? text.size() - 9 : 6; digits < 6; ++digits) fraction *= 10;
  return ((hours * 60 + minutes) * 60 + seconds) * 1'000'000 + fraction;
}

// The column as TIME; null when one of its values is none.
arrow::Result<std::shared_ptr<arrow::ChunkedArray>> TimesOfDay(const arrow::ChunkedArray& column) {
  const auto type = arrow::time64(arrow::TimeUnit::MICRO);
  arrow::ArrayVector chunks;
  for (const auto& chunk : column.chunks()) {
    const auto& texts = static_cast<const arrow::StringArray&>(*chunk);
    arrow::Time64Builder builder(type, arrow::default_memory_pool());
    ARROW_RETURN_NOT_OK(builder.Reserve(texts.length()));
    for (int64_t i = 0; i < texts.length(); ++i) {
      auto time = texts.IsNull(i) ? std::nullopt : TimeOfDay(texts.GetView(i));
      if (!time && texts.IsValid(i)) return nullptr;
      if (time) {
        builder.UnsafeAppend(*time);
      } else {
        builder.UnsafeAppendNull();
      }
    }
    ARROW_ASSIGN_OR_RAISE(auto times, builder.Finish());
    chunks.push_back(std::move(times));
  }
  return std::make_shared<arrow::ChunkedArray>(std::move(chunks), type);
}

// Arrow infers times only with whole seconds and timestamps with a fraction only as nanoseconds, whose range ends in 2262: what is left as
// text is tried again with microseconds.
arrow::Result<std::shared_ptr<arrow::ChunkedArray>> TimesOfText(const std::shared_ptr<arrow::ChunkedArray>& column) {
  if (column->type()->id() != arrow::Type::STRING || column->null_count() == column->length()) return column;
  ARROW_ASSIGN_OR_RAISE(auto times, TimesOfDay(*column));
  if (times != nullptr) return times;
  for (const char* zone : {"", "UTC"}) {
    auto cast = arrow::compute::Cast(column, arrow::timestamp(arrow::TimeUnit::MICRO, zone));
    if (cast.ok()) return cast->chunked_array();
  }
  return column;
}

arrow::csv::ConvertOptions ConvertOptionsOf(const ReadTableOptions& options) {
  auto convert = arrow::csv::ConvertOptions::Defaults();
  convert.null_values = options.csv_null_values;
  convert.strings_can_be_null = true;
  convert.quoted_strings_can_be_null = false;
  convert.true_values = {"true", "True", "TRUE"};
  convert.false_values = {"false", "False", "FALSE"};
  return convert;
}

arrow::Result<TablePtr> ReadCsvAs(const arrow::csv::ConvertOptions& convert, FileSystem* files, const std::string& path, bool gzip) {
  std::shared_ptr<arrow::io::InputStream> input;
  ARROW_ASSIGN_OR_RAISE(input, files->Open(path));
  std::unique_ptr<arrow::util::Codec> codec;
  if (gzip) {
    ARROW_ASSIGN_OR_RAISE(codec, arrow::util::Codec::Create(arrow::Compression::GZIP));
    ARROW_ASSIGN_OR_RAISE(input, arrow::io::CompressedInputStream::Make(codec.get(), input));
  }
  auto read = arrow::csv::ReadOptions::Defaults();
  // One row, with line breaks inside quotes, must fit into a block. Inference is over all blocks: Arrow converts the earlier ones again
  // when a later one needs a wider type.
  read.block_size = 16 << 20;
  auto parse = arrow::csv::ParseOptions::Defaults();
  parse.newlines_in_values = true;
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::csv::TableReader::Make(arrow::io::default_io_context(), input, read, parse, convert));
  return reader->Read();
}

/// True for a whole number whose digits are not those of `value`, the double that it was read as.
bool LosesDigits(std::string_view text, double value) {
  std::string_view digits = text.substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  bool whole = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  return whole && digits != fmt::format("{:.0f}", std::abs(value));
}

/// A column of whole numbers of which one is beyond INT64 is taken for FLOAT64, and its long numbers would lose digits: an error instead.
arrow::Status RefuseLostDigits(const TablePtr& table, FileSystem* files, const std::string& path, const ReadTableOptions& options,
                               bool gzip) {
  constexpr double kExactBelow = 9007199254740992.0;  // 2^53: every whole number below is a double
  auto convert = ConvertOptionsOf(options);
  for (const auto& field : table->fields()) {
    if (field->type()->id() != arrow::Type::DOUBLE) continue;
    bool large = false;
    for (const auto& chunk : table->GetColumnByName(field->name())->chunks()) {
      const auto& values = static_cast<const arrow::DoubleArray&>(*chunk);
      for (int64_t row = 0; row < values.length() && !large; ++row)
        large = values.IsValid(row) && std::abs(values.Value(row)) >= kExactBelow;
    }
    if (!large) continue;
    convert.include_columns.push_back(field->name());
    convert.column_types[field->name()] = arrow::utf8();
  }
  if (convert.include_columns.empty()) return arrow::Status::OK();
  ARROW_ASSIGN_OR_RAISE(auto texts, ReadCsvAs(convert, files, path, gzip));
  for (const auto& field : texts->fields()) {
    ARROW_ASSIGN_OR_RAISE(auto text_column, arrow::Concatenate(texts->GetColumnByName(field->name())->chunks()));
    ARROW_ASSIGN_OR_RAISE(auto value_column, arrow::Concatenate(table->GetColumnByName(field->name())->chunks()));
    const auto& text = static_cast<const arrow::StringArray&>(*text_column);
    const auto& value = static_cast<const arrow::DoubleArray&>(*value_column);
    for (int64_t row = 0; row < text.length(); ++row) {
      if (text.IsNull(row) || value.IsNull(row) || !LosesDigits(text.GetView(row), value.Value(row))) continue;
      return MakeError({.code = Code::kInvalidArgument, .service = "local files", .resource = path, .row = row, .column = field->name()},
                       fmt::format("{}: column {}, row {}: {} does not fit into INT64, and as FLOAT64 it would lose digits; give the table "
                                   "as Parquet with a DECIMAL or STRING column",
                                   path, field->name(), row, text.GetView(row)));
    }
  }
  return arrow::Status::OK();
}

arrow::Result<TablePtr> ReadCsv(FileSystem* files, const std::string& path, const ReadTableOptions& options, bool gzip) {
  ARROW_ASSIGN_OR_RAISE(auto table, ReadCsvAs(ConvertOptionsOf(options), files, path, gzip));
  for (int i = 0; i < table->num_columns(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto column, TimesOfText(table->column(i)));
    if (column == table->column(i)) continue;
    ARROW_ASSIGN_OR_RAISE(table, table->SetColumn(i, table->field(i)->WithType(column->type()), column));
  }
  ARROW_ASSIGN_OR_RAISE(table, NormalizeToBigQuery(table));
  ARROW_RETURN_NOT_OK(RefuseLostDigits(table, files, path, options, gzip));
  return table;
}

arrow::Result<TablePtr> ReadFile(FileSystem* files, const std::string& path, const ReadTableOptions& options) {
  const auto kind = FileKindOfName(path);
  if (kind && kind->format == FileFormat::kParquet) return ReadParquet(files, path);
  if (kind && (kind->format == FileFormat::kArrow || kind->format == FileFormat::kArrowStream)) return ReadArrow(files, path, kind->format);
  if (path.ends_with(".csv")) return ReadCsv(files, path, options, false);
  if (path.ends_with(".csv.gz")) return ReadCsv(files, path, options, true);
  if (path.ends_with(".zip")) {
    return Unsupported(path,
                       fmt::format("{} is a zip archive, which is not read: unzip it and give the .csv or .parquet file in it", path));
  }
  return Unsupported(
      path,
      fmt::format(
          "{}: the format is not known by its name; .parquet, .arrow, .arrows, .csv, .csv.gz and directories with a manifest are read",
          path));
}

arrow::Result<TablePtr> ReadDirectory(FileSystem* files, const std::string& path, const ReadTableOptions& options) {
  ARROW_ASSIGN_OR_RAISE(auto manifest, ReadManifest(files, path));
  std::vector<TablePtr> tables;
  for (const auto& file : manifest.files) {
    const std::string part = JoinPath(path, file.name);
    ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(part));
    if (!entry || entry->size != file.bytes) {
      return MakeError({.code = Code::kDataLoss, .service = "local files", .resource = part, .reason = "FILE_DIFFERS"},
                       fmt::format("{} is {}, the manifest says {} bytes: the result is damaged", part,
                                   entry ? fmt::format("{} bytes long", entry->size) : "missing", file.bytes));
    }
    ARROW_ASSIGN_OR_RAISE(auto table, ReadFile(files, part, options));
    tables.push_back(std::move(table));
  }
  if (tables.empty()) {
    ARROW_ASSIGN_OR_RAISE(auto empty, arrow::Table::MakeEmpty(manifest.schema));
    return NormalizeToBigQuery(empty);
  }
  return arrow::ConcatenateTables(tables);
}

/// An error of Arrow's own reader: says which file, and that the file is at fault.
arrow::Status Explained(const arrow::Status& status, const std::string& path) {
  if (status.ok() || GetErrorInfo(status) != nullptr) return status;
  return MakeError({.code = Code::kInvalidArgument, .service = "local files", .resource = path, .reason = "UNREADABLE_FILE"},
                   fmt::format("cannot read {}: {}", path, status.message()));
}

}  // namespace

arrow::Result<TablePtr> ReadTable(FileSystem* files, const std::string& path, const ReadTableOptions& options) {
  ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(path));
  if (!entry)
    return MakeError({.code = Code::kNotFound, .service = "local files", .resource = path}, fmt::format("{} does not exist", path));
  if (entry->is_directory) return ReadDirectory(files, path, options);
  auto table = ReadFile(files, path, options);
  ARROW_RETURN_NOT_OK(Explained(table.status(), path));
  return table;
}

arrow::Result<std::shared_ptr<arrow::Schema>> ReadTableSchema(FileSystem* files, const std::string& path, const ReadTableOptions& options) {
  ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(path));
  if (entry && entry->is_directory) {
    ARROW_ASSIGN_OR_RAISE(auto manifest, ReadManifest(files, path));
    return NormalizedSchema(manifest.schema);
  }
  if (entry && path.ends_with(".parquet")) {
    auto schema = ReadParquetSchema(files, path);
    ARROW_RETURN_NOT_OK(Explained(schema.status(), path));
    return schema;
  }
  ARROW_ASSIGN_OR_RAISE(auto table, ReadTable(files, path, options));
  return table->schema();
}

}  // namespace headrace
