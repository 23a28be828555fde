#include "headrace/files/internal/row_stream.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/files/internal/arrow_rows.h"
#include "headrace/files/internal/avro_rows.h"
#include "headrace/files/internal/csv_rows.h"
#include "headrace/files/internal/ndjson_rows.h"
#include "headrace/files/internal/parquet_rows.h"
#include "headrace/types/canonicalize.h"
#include "headrace/types/schema.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

arrow::Result<int> ColumnOf(const arrow::Schema& schema, const std::string& name, const std::string& path) {
  for (int i = 0; i < schema.num_fields(); ++i) {
    if (SameColumnName(schema.field(i)->name(), name)) return i;
  }
  return MakeError({.code = Code::kInvalidArgument, .service = "local files", .resource = path, .reason = "SCHEMA_DIFFERS", .column = name},
                   fmt::format("{} has no column {}", path, name));
}

/// Arrow and Parquet hand on texts of others with their line ends, and end their own sentences.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) line += c == '\n' || c == '\r' ? ' ' : c;
  line.erase(line.find_last_not_of(" .") + 1);
  return line;
}

}  // namespace

arrow::Result<std::unique_ptr<RowStream>> OpenRowStream(const FileAccess& access, const FilePart& part,
                                                        const std::shared_ptr<arrow::Schema>& schema) {
  switch (part.file.kind.format) {
    case FileFormat::kParquet:
      return ParquetRows::Open(access, part, schema);
    case FileFormat::kArrow:
      return ArrowFileRows::Open(access, part, schema);
    case FileFormat::kArrowStream:
      return ArrowStreamRows::Open(access, part, schema);
    case FileFormat::kCsv:
      return CsvRows::Open(access, part, schema);
    case FileFormat::kNdjson:
      return NdjsonRows::Open(access, part, schema);
    case FileFormat::kAvro:
      return AvroRows::Open(access, part, schema);
  }
  return arrow::Status::UnknownError("no such format");
}

arrow::Result<FoundFile> LookAtFile(const FileAccess& access, const FileIdentity& file) {
  switch (file.kind.format) {
    case FileFormat::kParquet:
      return LookAtParquet(access, file);
    case FileFormat::kArrow:
    case FileFormat::kArrowStream:
      return LookAtArrow(access, file);
    case FileFormat::kAvro:
      return LookAtAvro(access, file);
    case FileFormat::kCsv:
    case FileFormat::kNdjson:
      break;  // LookAtText
  }
  return arrow::Status::UnknownError("no format with a schema of its own");
}

arrow::Status ExplainFileError(const arrow::Status& status, const std::string& path) {
  if (status.ok() || status.IsCancelled()) return status;
  if (const ErrorInfo* info = GetErrorInfo(status)) {
    if (!info->resource.empty()) return status.message().find(path) == std::string::npos ? WithContext(status, path) : status;
    ErrorInfo named = *info;
    named.service = "local files";
    named.resource = path;
    const bool has_path = status.message().starts_with(path);
    return MakeError(std::move(named), fmt::format("{}{}{}{}", has_path ? "" : path, has_path ? "" : ": ", status.message(),
                                                   info->reason == "BAD_AVRO_DATA" ? kDamagedFile : ""));
  }
  return MakeError({.code = Code::kInvalidArgument, .service = "local files", .resource = path, .reason = "UNREADABLE_FILE"},
                   fmt::format("cannot read {}: {}{}", path, OneLine(status.message()), kDamagedFile));
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> ToResultColumns(const std::shared_ptr<arrow::RecordBatch>& batch,
                                                                   const std::shared_ptr<arrow::Schema>& schema, const std::string& path,
                                                                   int64_t first_row) {
  ARROW_ASSIGN_OR_RAISE(auto canonical, CanonicalFileSchema(batch->schema(), path));
  ARROW_ASSIGN_OR_RAISE(auto canonicalizer, Canonicalizer::Make(batch->schema(), canonical));
  arrow::ArrayVector columns;
  for (const auto& field : schema->fields()) {
    ARROW_ASSIGN_OR_RAISE(int index, ColumnOf(*canonical, field->name(), path));
    const auto& type = *canonical->field(index)->type();
    if (!type.Equals(*field->type())) {
      return MakeError(
          {.code = Code::kInvalidArgument, .service = "local files", .resource = path, .reason = "SCHEMA_DIFFERS", .column = field->name()},
          fmt::format("{}: column {} is {} and was {} when the files were planned", path, field->name(), type.ToString(),
                      field->type()->ToString()));
    }
    auto column = canonicalizer->ConvertColumn(index, batch->column(canonicalizer->WireIndex(index)), first_row);
    ARROW_RETURN_NOT_OK(ExplainFileError(column.status(), path));
    columns.push_back(*std::move(column));
  }
  return arrow::RecordBatch::Make(schema, batch->num_rows(), std::move(columns));
}

arrow::Result<std::shared_ptr<arrow::Schema>> CanonicalFileSchema(const std::shared_ptr<arrow::Schema>& schema, const std::string& path) {
  auto table_schema = FromArrowSchema(*schema);
  ARROW_RETURN_NOT_OK(ExplainFileError(table_schema.status(), path));
  auto canonical = ToArrowSchema(*table_schema);
  ARROW_RETURN_NOT_OK(ExplainFileError(canonical.status(), path));
  return canonical;
}

}  // namespace headrace
