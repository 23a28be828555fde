#include "headrace/files/internal/json_column.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/types/json_text.h"

namespace headrace {
namespace {

std::string KeyOf(const std::string& name) {
  std::string key = "{";
  AppendJsonString(name, &key);
  return key + ":";
}

constexpr std::string_view kRowEnd = "}\n";

}  // namespace

JsonColumnWriter::JsonColumnWriter(std::shared_ptr<arrow::Schema> schema, std::unique_ptr<JsonRowWriter> rows, std::string key)
    : schema_(std::move(schema)), rows_(std::move(rows)), key_(std::move(key)) {}

arrow::Result<JsonColumnWriter> JsonColumnWriter::Make(const std::shared_ptr<arrow::Field>& field) {
  auto schema = arrow::schema({field});
  ARROW_ASSIGN_OR_RAISE(auto rows, JsonRowWriter::Make(schema));
  return JsonColumnWriter(std::move(schema), std::move(rows), KeyOf(field->name()));
}

arrow::Status JsonColumnWriter::Append(const std::shared_ptr<arrow::Array>& column, int64_t index, int64_t row, std::string* out) {
  line_.clear();
  const auto batch = arrow::RecordBatch::Make(schema_, column->length(), {column});
  ARROW_RETURN_NOT_OK(rows_->Append(*batch, index, 1, &line_, row - index));
  const std::string_view line = line_;
  if (!line.starts_with(key_) || !line.ends_with(kRowEnd)) return arrow::Status::UnknownError("no JSON row of one column: ", line);
  out->append(line.substr(key_.size(), line.size() - key_.size() - kRowEnd.size()));
  return arrow::Status::OK();
}

arrow::Result<JsonColumnParser> JsonColumnParser::Make(const std::shared_ptr<arrow::Field>& field, const ParseOptions& options) {
  ARROW_ASSIGN_OR_RAISE(auto rows, JsonRowReader::Make(arrow::schema({field}), options));
  return JsonColumnParser(std::move(rows), KeyOf(field->name()));
}

// A text that is more than one value makes a row that is refused: text after the object, or a key that appears twice.
arrow::Status JsonColumnParser::Append(std::string_view text, int64_t row) {
  line_ = key_;
  line_ += text;
  line_ += '}';
  return rows_->Append(line_, row);
}

arrow::Status JsonColumnParser::AppendNull(int64_t row) { return rows_->Append("{}", row); }

arrow::Result<std::shared_ptr<arrow::Array>> JsonColumnParser::Finish() {
  ARROW_ASSIGN_OR_RAISE(auto batch, rows_->Finish());
  return batch->column(0);
}

}  // namespace headrace
