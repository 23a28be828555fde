#include "headrace/files/internal/file_encoding.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/base/file_system.h"

namespace headrace {
namespace {

using Codec = std::pair<std::string_view, arrow::Compression::type>;

// The first is the default.
constexpr Codec kParquetCodecs[] = {{"zstd", arrow::Compression::ZSTD},
                                    {"snappy", arrow::Compression::SNAPPY},
                                    {"gzip", arrow::Compression::GZIP},
                                    {"lz4", arrow::Compression::LZ4},  // LZ4_RAW in the file
                                    {"none", arrow::Compression::UNCOMPRESSED}};
constexpr Codec kArrowCodecs[] = {
    {"none", arrow::Compression::UNCOMPRESSED}, {"lz4", arrow::Compression::LZ4_FRAME}, {"zstd", arrow::Compression::ZSTD}};

arrow::Result<arrow::Compression::type> CodecOfOption(const char* option, const std::string& value, std::span<const Codec> codecs) {
  if (value.empty()) return codecs.front().second;
  for (const auto& [known, type] : codecs) {
    if (known == value) return type;
  }
  std::vector<std::string_view> names;
  for (const auto& [known, type] : codecs) names.push_back(known);
  return InvalidOption(option, fmt::format("{} is '{}': it is one of {}", option, value, fmt::join(names, ", ")));
}

/// An option that only one format has.
struct FormatOption {
  const char* name;
  bool given;
  bool applies;
};

arrow::Status CheckApplies(std::initializer_list<FormatOption> options, FileFormat format) {
  for (const auto& option : options) {
    if (!option.given || option.applies) continue;
    return InvalidOption(option.name, fmt::format("{} does nothing here: the format is {}", option.name, FileFormatName(format)));
  }
  return arrow::Status::OK();
}

arrow::Status CheckAtLeastOne(const char* name, const std::optional<int64_t>& value) {
  if (!value || *value >= 1) return arrow::Status::OK();
  return InvalidOption(name, fmt::format("{} must be at least 1", name));
}

}  // namespace

arrow::Result<FileKind> KindOfOptions(const FileSinkOptions& options, bool single_file) {
  const auto named = FileFormatFromName(options.format);
  if (!options.format.empty() && !named) {
    return InvalidOption("format", fmt::format("format is '{}', which is no format: {} are", options.format, FileFormatNames()));
  }
  if (options.path == "-") {
    if (named) return FileKind{.format = *named};
    return InvalidOption("format", fmt::format("the format of standard output must be given (option format): {}", FileFormatNames()));
  }
  if (!single_file) return FileKind{.format = named.value_or(FileFormat::kParquet)};
  const auto by_name = FileKindOfName(options.path);
  if (by_name && (!named || *named == by_name->format)) return *by_name;
  if (by_name) {
    return InvalidOption("format", fmt::format("the name of {} says {} and the option format says {}", options.path,
                                               FileFormatName(by_name->format), options.format));
  }
  if (named) return FileKind{.format = *named};
  return InvalidOption("path", fmt::format("{}: the target's name must end in .parquet, .arrow, .arrows, .csv, .ndjson or .avro (a single "
                                           "file) or in '/' (a directory of files), or the option format must say what it is",
                                           options.path));
}

arrow::Result<FileEncoding> EncodingOfOptions(const FileSinkOptions& options, FileKind kind, int64_t writer_memory) {
  const bool parquet = kind.format == FileFormat::kParquet;
  const bool arrow_ipc = kind.format == FileFormat::kArrow || kind.format == FileFormat::kArrowStream;
  ARROW_RETURN_NOT_OK(CheckApplies({{"parquet_compression", !options.parquet_compression.empty(), parquet},
                                    {"parquet_row_group_rows", options.parquet_row_group_rows.has_value(), parquet},
                                    {"parquet_row_group_bytes", options.parquet_row_group_bytes.has_value(), parquet},
                                    {"arrow_compression", !options.arrow_compression.empty(), arrow_ipc}},
                                   kind.format));
  ARROW_RETURN_NOT_OK(CheckAtLeastOne("parquet_row_group_rows", options.parquet_row_group_rows));
  ARROW_RETURN_NOT_OK(CheckAtLeastOne("parquet_row_group_bytes", options.parquet_row_group_bytes));
  if (!parquet && !arrow_ipc) return Unsupported("format", fmt::format("writing {} is not built", FileFormatName(kind.format)));
  FileEncoding encoding{.kind = kind};
  if (parquet) {
    ARROW_ASSIGN_OR_RAISE(encoding.codec, CodecOfOption("parquet_compression", options.parquet_compression, kParquetCodecs));
    encoding.row_group_rows = options.parquet_row_group_rows.value_or(encoding.row_group_rows);
    encoding.row_group_memory = options.parquet_row_group_bytes.value_or(encoding.row_group_memory);
    if (writer_memory > 0) encoding.row_group_memory = std::min(encoding.row_group_memory, writer_memory);
  }
  if (arrow_ipc) {
    ARROW_ASSIGN_OR_RAISE(encoding.codec, CodecOfOption("arrow_compression", options.arrow_compression, kArrowCodecs));
  }
  return encoding;
}

}  // namespace headrace
