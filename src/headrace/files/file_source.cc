#include "headrace/files/file_source.h"

#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "headrace/files/internal/file_access.h"
#include "headrace/files/internal/file_enumerator.h"
#include "headrace/files/internal/file_reader.h"
#include "headrace/files/internal/parse_options.h"
#include "headrace/runtime/job_metrics.h"
#include "headrace/types/schema.h"
#include "headrace/types/schema_json.h"

namespace headrace {
namespace {

arrow::Status CheckPaths(const FileSourceOptions& options) {
  if (options.paths.empty()) return InvalidOption("path", "the source has no path");
  for (const auto& path : options.paths) {
    if (path.empty() || path.find('\0') != std::string::npos)
      return InvalidOption("path", "a path of the source is empty, or has a zero byte");
    if (path != "-") continue;
    if (options.paths.size() > 1) return InvalidOption("path", "standard input (-) is read alone, not in a list");
  }
  return arrow::Status::OK();
}

arrow::Status CheckNumbers(const FileSourceOptions& options) {
  const std::pair<const char*, int64_t> numbers[] = {{"max_rows_per_batch", options.max_rows_per_batch},
                                                     {"max_bytes_per_batch", options.max_bytes_per_batch},
                                                     {"split_bytes", options.split_bytes.value_or(kDefaultSplitBytes)}};
  for (const auto& [name, value] : numbers) {
    if (value < 1) return InvalidOption(name, fmt::format("{} is {}; give at least 1", name, value));
  }
  return arrow::Status::OK();
}

arrow::Status CheckFields(const std::vector<std::string>& fields) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].empty()) return InvalidOption("selected_fields", "selected_fields has an empty name");
    for (size_t j = 0; j < i; ++j) {
      if (SameColumnName(fields[i], fields[j]))
        return InvalidOption("selected_fields", fmt::format("selected_fields names {} twice", fields[i]));
    }
  }
  return arrow::Status::OK();
}

/// With a format that is known from the options alone; else the enumerator finds out.
arrow::Status CheckFormatOptions(const FileSourceOptions& options) {
  if (options.from_format.empty()) return arrow::Status::OK();
  const auto format = FileFormatFromName(options.from_format);
  if (!format) {
    return InvalidOption("from_format",
                         fmt::format("from_format is '{}', which is no format: {} are", options.from_format, FileFormatNames()));
  }
  return CheckOptionsOfFormat(options, *format);
}

arrow::Status CheckStandardInput(const FileSourceOptions& options) {
  if (options.paths.front() != "-") return arrow::Status::OK();
  const auto format = FileFormatFromName(options.from_format);
  if (!format) {
    return InvalidOption("from_format",
                         fmt::format("standard input has no name that tells its format: give from_format ({})", FileFormatNames()));
  }
  if (*format == FileFormat::kParquet || *format == FileFormat::kArrow || *format == FileFormat::kAvro) {
    return Unsupported(
        "-", fmt::format("{} is read from its end or in parts, which standard input has not: put it into a file", options.from_format));
  }
  const bool text = *format == FileFormat::kCsv || *format == FileFormat::kNdjson;
  if (text && options.schema.empty()) {
    return InvalidOption("schema", fmt::format("the types of {} rows are found from all of them, and standard input is read once: give "
                                               "schema, or put it into a file",
                                               options.from_format));
  }
  return arrow::Status::OK();
}

}  // namespace

arrow::Result<std::shared_ptr<const FileSource>> FileSource::Make(FileSourceOptions options) {
  ARROW_RETURN_NOT_OK(CheckPaths(options));
  ARROW_RETURN_NOT_OK(CheckNumbers(options));
  ARROW_RETURN_NOT_OK(CheckFields(options.selected_fields));
  ARROW_RETURN_NOT_OK(CheckFormatOptions(options));
  ARROW_RETURN_NOT_OK(ParseOptionsOf(options).status());
  ARROW_RETURN_NOT_OK(CheckStandardInput(options));
  if (!options.schema.empty()) {
    auto schema = SchemaFromJson(options.schema);
    if (!schema.ok()) return InvalidOption("schema", fmt::format("schema cannot be used: {}", schema.status().message()));
  }
  if (!options.csv_header.value_or(true) && options.schema.empty()) {
    return InvalidOption("schema", "a CSV file without a header says nothing of its columns: give schema");
  }
  return std::shared_ptr<const FileSource>(new FileSource(std::move(options)));
}

std::span<const MetricInfo> FileSourceMetrics() {
  static constexpr MetricInfo kMetrics[] = {kRowsRead, kBytesRead};
  return kMetrics;
}

FileSource::FileSource(FileSourceOptions options)
    : options_(std::make_shared<const FileSourceOptions>(std::move(options))),
      input_(std::make_shared<StandardInput>(options_->input_descriptor)) {}

Lineage FileSource::lineage() const {
  Lineage lineage;
  for (const auto& path : options_->paths) {
    // Only the process's working directory is asked, no file.
    std::error_code ignored;
    auto absolute = path == "-" ? path : std::filesystem::absolute(path, ignored).lexically_normal().string();
    lineage.datasets.push_back({.namespace_name = "file", .name = absolute.empty() ? path : absolute});
  }
  return lineage;
}

arrow::Status FileSource::SupportsCheckpoints() const {
  if (!standard_input()) return arrow::Status::OK();
  return InvalidOption("checkpoint",
                       "standard input cannot be read again after a checkpoint: put it into a file, or leave the checkpoint out");
}

arrow::Result<std::unique_ptr<SplitEnumerator>> FileSource::CreateEnumerator(const JobContext& context) const {
  return FileEnumerator::Make({.options = options_, .files = context.files, .input = input_}, context, std::nullopt);
}

arrow::Result<std::unique_ptr<SplitEnumerator>> FileSource::RestoreEnumerator(const JobContext& context, std::string_view state) const {
  ARROW_RETURN_NOT_OK(SupportsCheckpoints());
  return FileEnumerator::Make({.options = options_, .files = context.files, .input = input_}, context, state);
}

arrow::Result<std::unique_ptr<SplitReader>> FileSource::OpenReader(const JobContext& context, const std::shared_ptr<arrow::Schema>& schema,
                                                                   Split split) const {
  return FileReader::Open({.options = options_, .files = context.files, .input = input_}, context, schema, split);
}

}  // namespace headrace
