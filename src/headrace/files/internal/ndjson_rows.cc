#include "headrace/files/internal/ndjson_rows.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headrace/files/internal/parse_options.h"
#include "headrace/types/json_schema_inference.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

/// Lines before a byte of a file; only for messages, so that dividing a file need not count them.
arrow::Result<int64_t> LinesBefore(const FileAccess& access, const FileIdentity& file, int64_t offset) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  ARROW_ASSIGN_OR_RAISE(auto opened, access.OpenFile(file));
  int64_t lines = 0;
  for (int64_t at = 0; at < offset;) {
    ARROW_ASSIGN_OR_RAISE(auto piece, opened->ReadAt(at, std::min(kPiece, offset - at)));
    if (piece->size() == 0) break;
    const std::string_view text(*piece);
    lines += std::count(text.begin(), text.end(), '\n');
    at += piece->size();
  }
  return lines;
}

arrow::Status BadLine(const std::string& path, const std::string& line, const arrow::Status& status) {
  const ErrorInfo* info = GetErrorInfo(status);
  return MakeError({.code = Code::kInvalidArgument,
                    .service = "local files",
                    .resource = path,
                    .reason = "BAD_ROW",
                    .column = info == nullptr ? "" : info->column},
                   fmt::format("{}, line {}: {}", path, line, status.message()));
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::Schema>> InferNdjsonSchema(const FileAccess& access, const std::vector<FileIdentity>& files,
                                                                const std::stop_token& stop) {
  constexpr int64_t kRowsBetweenLooks = 4096;  // at whether planning was cancelled
  JsonSchemaInference inference;
  int64_t row = 0;
  for (const auto& file : files) {
    ARROW_ASSIGN_OR_RAISE(auto stream, access.OpenStream(file, /*look=*/false));
    LineReader lines(std::move(stream), file.path);
    while (true) {
      if (row % kRowsBetweenLooks == 0 && stop.stop_requested()) return arrow::Status::Cancelled("planning was cancelled");
      ARROW_ASSIGN_OR_RAISE(bool more, lines.Next());
      if (!more) break;
      if (auto status = inference.Add(lines.line(), row++); !status.ok()) {
        return BadLine(file.path, fmt::format("{}", lines.lines_before() + 1), status);
      }
    }
  }
  const std::string which = files.size() == 1 ? files.front().path : fmt::format("{} and {} more", files.front().path, files.size() - 1);
  if (row == 0) {
    return InvalidOption("schema", fmt::format("{}: there are no rows that would say what columns there are: give schema", which));
  }
  auto table = inference.Finish();
  if (!table.ok()) return ExplainFileError(WithContext(table.status(), which), files.front().path);
  return ToArrowSchema(*table);
}

arrow::Result<std::unique_ptr<RowStream>> NdjsonRows::Open(const FileAccess& access, const FilePart& part,
                                                           const std::shared_ptr<arrow::Schema>& schema) {
  std::shared_ptr<arrow::io::InputStream> stream;
  if (part.end == 0) {
    ARROW_ASSIGN_OR_RAISE(stream, access.OpenStream(part.file, /*look=*/false));
  } else {
    ARROW_ASSIGN_OR_RAISE(stream, access.OpenRange(part.file, part.begin, part.end));
  }
  // Columns that were not selected are keys that no column has. That a key belongs to none at all is seen when all are selected.
  ARROW_ASSIGN_OR_RAISE(auto parse, ParseOptionsOf(*access.options));
  parse.ignore_unknown_keys = parse.ignore_unknown_keys || !access.options->selected_fields.empty();
  ARROW_ASSIGN_OR_RAISE(auto rows, JsonRowReader::Make(schema, parse));
  return std::unique_ptr<RowStream>(
      new NdjsonRows(access, part, LineReader(std::move(stream), part.file.path, part.begin), std::move(rows)));
}

NdjsonRows::NdjsonRows(const FileAccess& access, FilePart part, LineReader lines, std::unique_ptr<JsonRowReader> rows)
    : access_(access), part_(std::move(part)), lines_(std::move(lines)), rows_(std::move(rows)) {}

int64_t NdjsonRows::bytes_read() const {
  return part_.file.kind.compression == FileCompression::kNone ? lines_.end_offset() - part_.begin : -1;
}

arrow::Status NdjsonRows::BadRow(const arrow::Status& status) const {
  const int64_t before = part_.begin == 0 ? 0 : LinesBefore(access_, part_.file, part_.begin).ValueOr(-1);
  const std::string line = before < 0 ? std::string("unknown") : fmt::format("{}", before + lines_.lines_before() + 1);
  return BadLine(part_.file.path, line, status);
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> NdjsonRows::Next() {
  const auto& options = *access_.options;
  int64_t text_bytes = 0;
  while (rows_->row_count() < options.max_rows_per_batch && text_bytes < options.max_bytes_per_batch) {
    ARROW_ASSIGN_OR_RAISE(bool more, lines_.Next());
    if (!more) break;
    text_bytes += static_cast<int64_t>(lines_.line().size());
    if (auto status = rows_->Append(lines_.line(), std::max<int64_t>(part_.first_row, 0) + row_); !status.ok()) return BadRow(status);
    ++row_;
  }
  if (rows_->row_count() == 0) return nullptr;
  return rows_->Finish();
}

}  // namespace headrace
