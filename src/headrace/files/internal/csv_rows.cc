#include "headrace/files/internal/csv_rows.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headrace/files/internal/parse_options.h"
#include "headrace/types/schema.h"
#include "headrace/types/schema_json.h"

namespace headrace {
namespace {

arrow::Status BadRow(const std::string& path, int64_t line, std::string column, std::string message) {
  return MakeError(
      {.code = Code::kInvalidArgument, .service = "local files", .resource = path, .reason = "BAD_ROW", .column = std::move(column)},
      fmt::format("{}, line {}: {}", path, line, message));
}

}  // namespace

bool IsCsvNull(const FileSourceOptions& options, const CsvField& field) {
  if (field.quoted) return false;
  if (!options.csv_null_values) return field.text.empty();
  return std::find(options.csv_null_values->begin(), options.csv_null_values->end(), field.text) != options.csv_null_values->end();
}

arrow::Result<CsvHeader> CsvHeader::Read(CsvTokenizer* tokenizer, const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(bool more, tokenizer->Next());
  if (!more || tokenizer->empty_line()) {
    return BadRow(path, 1, "", "there is no header: the first line of a CSV file names its columns");
  }
  std::vector<std::string> names;
  for (const auto& field : tokenizer->fields()) {
    if (field.text.empty()) return BadRow(path, tokenizer->line(), "", fmt::format("column {} has no name", names.size() + 1));
    for (const auto& name : names) {
      if (SameColumnName(name, field.text)) {
        return BadRow(path, tokenizer->line(), name, fmt::format("the header names column {} twice", field.text));
      }
    }
    names.emplace_back(field.text);
  }
  return CsvHeader(std::move(names));
}

arrow::Result<std::vector<size_t>> CsvHeader::PlacesOf(const arrow::Schema& schema, const std::string& path) const {
  std::vector<size_t> places;
  for (const auto& field : schema.fields()) {
    const auto found =
        std::find_if(names_.begin(), names_.end(), [&](const std::string& name) { return SameColumnName(name, field->name()); });
    if (found == names_.end()) {
      return MakeError(
          {.code = Code::kInvalidArgument, .service = "local files", .resource = path, .reason = "SCHEMA_DIFFERS", .column = field->name()},
          fmt::format("{} has no column {}", path, field->name()));
    }
    places.push_back(static_cast<size_t>(found - names_.begin()));
  }
  return places;
}

arrow::Status CsvHeader::CheckRecord(const CsvTokenizer& tokenizer, const std::string& path) const {
  if (tokenizer.fields().size() == names_.size()) return arrow::Status::OK();
  return BadRow(path, tokenizer.line(), "",
                fmt::format("the row has {} fields, and there are {} columns", tokenizer.fields().size(), names_.size()));
}

arrow::Result<CsvHeader> HeaderOf(const FileAccess& access, const FileIdentity& file) {
  if (!access.options->csv_header.value_or(true)) {
    ARROW_ASSIGN_OR_RAISE(auto schema, SchemaFromJson(access.options->schema));  // Make has seen to it that there is one
    std::vector<std::string> names;
    names.reserve(schema.fields.size());
    for (const auto& field : schema.fields) names.push_back(field.name);
    return CsvHeader(std::move(names));
  }
  ARROW_ASSIGN_OR_RAISE(auto stream, access.OpenStream(file, /*look=*/true));
  CsvTokenizer tokenizer(std::move(stream), file.path);
  return CsvHeader::Read(&tokenizer, file.path);
}

arrow::Result<std::unique_ptr<RowStream>> CsvRows::Open(const FileAccess& access, const FilePart& part,
                                                        const std::shared_ptr<arrow::Schema>& schema) {
  std::shared_ptr<arrow::io::InputStream> stream;
  const bool whole = part.end == 0;
  if (whole) {
    ARROW_ASSIGN_OR_RAISE(stream, access.OpenStream(part.file, /*look=*/false));
  } else {
    ARROW_ASSIGN_OR_RAISE(stream, access.OpenRange(part.file, part.begin, part.end));
  }
  CsvTokenizer tokenizer(std::move(stream), part.file.path, part.begin, std::max<int64_t>(part.first_line, 1));
  CsvHeader header({});
  if (part.begin == 0 && access.options->csv_header.value_or(true)) {
    ARROW_ASSIGN_OR_RAISE(header, CsvHeader::Read(&tokenizer, part.file.path));
  } else {
    ARROW_ASSIGN_OR_RAISE(header, HeaderOf(access, part.file));
  }
  ARROW_ASSIGN_OR_RAISE(auto places, header.PlacesOf(*schema, part.file.path));
  ARROW_ASSIGN_OR_RAISE(const auto parse, ParseOptionsOf(*access.options));
  ARROW_ASSIGN_OR_RAISE(auto columns, TextColumns::Make(schema, parse, part.first_row));
  return std::unique_ptr<RowStream>(
      new CsvRows(access, part, std::move(tokenizer), std::move(header), std::move(columns), std::move(places)));
}

CsvRows::CsvRows(const FileAccess& access, FilePart part, CsvTokenizer tokenizer, CsvHeader header, TextColumns columns,
                 std::vector<size_t> places)
    : options_(access.options),
      part_(std::move(part)),
      tokenizer_(std::move(tokenizer)),
      header_(std::move(header)),
      columns_(std::move(columns)),
      places_(std::move(places)) {}

int64_t CsvRows::bytes_read() const {
  return part_.file.kind.compression == FileCompression::kNone ? tokenizer_.end_offset() - part_.begin : -1;
}

arrow::Status CsvRows::ReadRecord() {
  ARROW_RETURN_NOT_OK(header_.CheckRecord(tokenizer_, part_.file.path));
  for (int i = 0; i < columns_.column_count(); ++i) {
    const CsvField& field = tokenizer_.fields()[places_[static_cast<size_t>(i)]];
    const auto status = IsCsvNull(*options_, field) ? columns_.AppendNull(i) : columns_.Append(i, field.text);
    if (status.ok()) continue;
    const ErrorInfo* info = GetErrorInfo(status);
    return BadRow(part_.file.path, tokenizer_.line(), info == nullptr ? "" : info->column, status.message());
  }
  columns_.EndRow();
  return arrow::Status::OK();
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> CsvRows::Next() {
  int64_t text_bytes = 0;
  while (columns_.row_count() < options_->max_rows_per_batch && (columns_.row_count() == 0 || text_bytes < options_->max_bytes_per_batch)) {
    ARROW_ASSIGN_OR_RAISE(bool more, tokenizer_.Next());
    if (!more) break;
    text_bytes += tokenizer_.end_offset() - tokenizer_.record_offset();
    if (!header_.IsNoRecord(tokenizer_)) ARROW_RETURN_NOT_OK(ReadRecord());
  }
  if (columns_.row_count() == 0) return nullptr;
  return columns_.Finish();
}

}  // namespace headrace
