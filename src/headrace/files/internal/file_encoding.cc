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

constexpr Codec kAvroCodecs[] = {{"deflate", arrow::Compression::GZIP},
                                 {"snappy", arrow::Compression::SNAPPY},
                                 {"zstd", arrow::Compression::ZSTD},
                                 {"none", arrow::Compression::UNCOMPRESSED}};

/// The compression of a whole text file, from the option and, for a single file, its name.
arrow::Result<FileCompression> TextCompression(const char* option, const std::string& value, const FileSinkOptions& options, FileKind kind,
                                               bool single_file) {
  if (value.empty()) return kind.compression;
  FileCompression asked = FileCompression::kNone;
  if (value == "gzip") {
    asked = FileCompression::kGzip;
  } else if (value == "zstd") {
    asked = FileCompression::kZstd;
  } else if (value != "none") {
    return InvalidOption(option, fmt::format("{} is '{}': it is one of none, gzip, zstd", option, value));
  }
  if (single_file && options.path != "-" && asked != FileCompressionOfName(options.path)) {
    return InvalidOption(option,
                         fmt::format("{} is {}, and the name {} says otherwise: .gz is gzip, .zst is zstd", option, value, options.path));
  }
  return asked;
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

arrow::Status SetCsv(const FileSinkOptions& options, FileKind kind, bool single_file, FileEncoding* encoding) {
  ARROW_ASSIGN_OR_RAISE(encoding->kind.compression,
                        TextCompression("csv_compression", options.csv_compression, options, kind, single_file));
  encoding->csv_null_value = options.csv_null_value.value_or("");
  if (encoding->csv_null_value.find_first_of(",\"\r\n") != std::string::npos) {
    return InvalidOption("csv_null_value", "csv_null_value has a comma, a quote or a line break in it, and null is written unquoted");
  }
  if (!options.csv_nested.empty() && options.csv_nested != "json") {
    return InvalidOption("csv_nested", fmt::format("csv_nested is '{}': it is json, or left out", options.csv_nested));
  }
  encoding->csv_nested_as_json = options.csv_nested == "json";
  return arrow::Status::OK();
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
  const bool text = named && (*named == FileFormat::kCsv || *named == FileFormat::kNdjson);
  if (named) return FileKind{.format = *named, .compression = text ? FileCompressionOfName(options.path) : FileCompression::kNone};
  return InvalidOption("path", fmt::format("{}: the target's name must end in .parquet, .arrow, .arrows, .csv, .ndjson or .avro (a single "
                                           "file) or in '/' (a directory of files), or the option format must say what it is",
                                           options.path));
}

arrow::Result<FileEncoding> EncodingOfOptions(const FileSinkOptions& options, FileKind kind, bool single_file, int64_t writer_memory) {
  const bool parquet = kind.format == FileFormat::kParquet;
  const bool arrow_ipc = kind.format == FileFormat::kArrow || kind.format == FileFormat::kArrowStream;
  const bool csv = kind.format == FileFormat::kCsv;
  const bool ndjson = kind.format == FileFormat::kNdjson;
  const bool avro = kind.format == FileFormat::kAvro;
  ARROW_RETURN_NOT_OK(CheckApplies({{"parquet_compression", !options.parquet_compression.empty(), parquet},
                                    {"parquet_row_group_rows", options.parquet_row_group_rows.has_value(), parquet},
                                    {"parquet_row_group_bytes", options.parquet_row_group_bytes.has_value(), parquet},
                                    {"arrow_compression", !options.arrow_compression.empty(), arrow_ipc},
                                    {"csv_compression", !options.csv_compression.empty(), csv},
                                    {"csv_null_value", options.csv_null_value.has_value(), csv},
                                    {"csv_nested", !options.csv_nested.empty(), csv},
                                    {"ndjson_compression", !options.ndjson_compression.empty(), ndjson},
                                    {"avro_compression", !options.avro_compression.empty(), avro}},
                                   kind.format));
  ARROW_RETURN_NOT_OK(CheckAtLeastOne("parquet_row_group_rows", options.parquet_row_group_rows));
  ARROW_RETURN_NOT_OK(CheckAtLeastOne("parquet_row_group_bytes", options.parquet_row_group_bytes));
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
  if (avro) {
    ARROW_ASSIGN_OR_RAISE(encoding.codec, CodecOfOption("avro_compression", options.avro_compression, kAvroCodecs));
  }
  if (ndjson) {
    ARROW_ASSIGN_OR_RAISE(encoding.kind.compression,
                          TextCompression("ndjson_compression", options.ndjson_compression, options, kind, single_file));
  }
  if (csv) ARROW_RETURN_NOT_OK(SetCsv(options, kind, single_file, &encoding));
  return encoding;
}

}  // namespace headrace
