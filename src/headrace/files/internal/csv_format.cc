#include "headrace/files/internal/csv_format.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "headrace/files/internal/json_column.h"
#include "headrace/types/column_text.h"
#include "headrace/types/type_table.h"

namespace headrace {

/// The text of one column's values.
class CsvFormatWriter::Column {
 public:
  static arrow::Result<std::unique_ptr<Column>> Make(const std::shared_ptr<arrow::Field>& field) {
    auto column = std::make_unique<Column>();
    if (HasCsvText(*field)) {
      ARROW_ASSIGN_OR_RAISE(column->scalars_, ColumnText::Make(*field));
    } else {
      ARROW_ASSIGN_OR_RAISE(column->nested_, JsonColumnWriter::Make(field));
    }
    return column;
  }

  arrow::Status Append(const std::shared_ptr<arrow::Array>& array, int64_t index, int64_t first_row, std::string* out) {
    if (scalars_) return scalars_->Append(*array, index, out, first_row);
    return nested_->Append(array, index, first_row + index, out);
  }

 private:
  std::optional<ColumnText> scalars_;
  std::optional<JsonColumnWriter> nested_;
};

bool HasCsvText(const arrow::Field& field) {
  auto table = FromArrowSchema(*arrow::schema({field.Copy()}));
  return table.ok() && table->fields[0].mode != Mode::kRepeated && table->fields[0].kind != TypeKind::kStruct;
}

arrow::Status CheckCsvSchema(const arrow::Schema& schema, bool nested_as_json) {
  for (const auto& field : schema.fields()) {
    if (nested_as_json || HasCsvText(*field)) continue;
    ErrorInfo info{.code = Code::kUnimplemented, .resource = "csv", .reason = "UNSUPPORTED", .column = field->name()};
    return MakeError(
        std::move(info),
        fmt::format("column {} is {}, which CSV has no form for: leave it out (selected_fields), write another format, or have "
                    "such columns written as JSON texts (option csv_nested=json)",
                    field->name(), field->type()->id() == arrow::Type::LIST ? "an ARRAY" : "a STRUCT"));
  }
  return arrow::Status::OK();
}

arrow::Result<std::unique_ptr<FormatWriter>> CsvFormatWriter::Make(const FileEncoding& encoding,
                                                                   const std::shared_ptr<arrow::Schema>& schema,
                                                                   const std::shared_ptr<arrow::io::OutputStream>& out) {
  std::unique_ptr<CsvFormatWriter> made(new CsvFormatWriter(encoding.csv_null_value));
  ARROW_ASSIGN_OR_RAISE(made->out_, ChunkedOutput::Make(out, encoding.kind.compression));
  for (const auto& field : schema->fields()) {
    ARROW_ASSIGN_OR_RAISE(auto column, Column::Make(field));
    made->columns_.push_back(std::move(column));
    if (made->columns_.size() > 1) made->text_ += ',';
    made->AppendField(field->name());
  }
  made->text_ += '\n';
  ARROW_RETURN_NOT_OK(made->out_->Write(made->text_));
  return made;
}

CsvFormatWriter::CsvFormatWriter(std::string null_value) : null_value_(std::move(null_value)) {}
CsvFormatWriter::~CsvFormatWriter() = default;

void CsvFormatWriter::AppendField(std::string_view text) {
  if (text != null_value_ && !text.empty() && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    text_ += text;
    return;
  }
  text_ += '"';
  for (char c : text) {
    if (c == '"') text_ += '"';
    text_ += c;
  }
  text_ += '"';
}

arrow::Status CsvFormatWriter::Write(const arrow::RecordBatch& batch) {
  const auto& arrays = batch.columns();
  for (int64_t row = 0; row < batch.num_rows(); ++row) {
    text_.clear();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) text_ += ',';
      if (arrays[i]->IsNull(row)) {
        text_ += null_value_;
        continue;
      }
      value_.clear();
      ARROW_RETURN_NOT_OK(columns_[i]->Append(arrays[i], row, rows_, &value_));
      AppendField(value_);
    }
    text_ += '\n';
    ARROW_RETURN_NOT_OK(out_->Write(text_));
  }
  rows_ += batch.num_rows();
  return arrow::Status::OK();
}

}  // namespace headrace
