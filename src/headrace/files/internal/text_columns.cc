#include "headrace/files/internal/text_columns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "headrace/files/internal/csv_format.h"
#include "headrace/files/internal/json_column.h"
#include "headrace/types/column_text.h"
#include "headrace/types/type_table.h"

namespace headrace {

class TextColumns::Column {
 public:
  static arrow::Result<std::unique_ptr<Column>> Make(const std::shared_ptr<arrow::Field>& field, const Field& table_field,
                                                     const ParseOptions& options, int64_t first_row) {
    auto column = std::make_unique<Column>();
    if (HasCsvText(*field)) {
      ARROW_ASSIGN_OR_RAISE(column->scalars_, ColumnParser::Make(table_field, options, first_row));
    } else {
      ARROW_ASSIGN_OR_RAISE(column->nested_, JsonColumnParser::Make(field, options));
    }
    return column;
  }

  arrow::Status Append(std::string_view text, int64_t row) { return scalars_ ? scalars_->Append(text) : nested_->Append(text, row); }
  arrow::Status AppendNull(int64_t row) { return scalars_ ? scalars_->AppendNull() : nested_->AppendNull(row); }
  arrow::Result<std::shared_ptr<arrow::Array>> Finish() { return scalars_ ? scalars_->Finish() : nested_->Finish(); }

 private:
  std::unique_ptr<ColumnParser> scalars_;
  std::optional<JsonColumnParser> nested_;
};

TextColumns::TextColumns(std::shared_ptr<arrow::Schema> schema, int64_t first_row) : schema_(std::move(schema)), first_row_(first_row) {}
TextColumns::TextColumns(TextColumns&&) noexcept = default;
TextColumns& TextColumns::operator=(TextColumns&&) noexcept = default;
TextColumns::~TextColumns() = default;

arrow::Result<TextColumns> TextColumns::Make(const std::shared_ptr<arrow::Schema>& schema, const ParseOptions& options, int64_t first_row) {
  ARROW_ASSIGN_OR_RAISE(auto table, FromArrowSchema(*schema));
  TextColumns made(schema, std::max<int64_t>(first_row, 0));
  for (int i = 0; i < schema->num_fields(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto column, Column::Make(schema->field(i), table.fields[static_cast<size_t>(i)], options, made.first_row_));
    made.columns_.push_back(std::move(column));
  }
  return made;
}

int TextColumns::column_count() const { return static_cast<int>(columns_.size()); }

arrow::Status TextColumns::Append(int column, std::string_view text) {
  return columns_[static_cast<size_t>(column)]->Append(text, first_row_ + row_count_);
}

arrow::Status TextColumns::AppendNull(int column) { return columns_[static_cast<size_t>(column)]->AppendNull(first_row_ + row_count_); }

arrow::Result<std::shared_ptr<arrow::RecordBatch>> TextColumns::Finish() {
  arrow::ArrayVector arrays;
  for (int i = 0; i < column_count(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto array, columns_[static_cast<size_t>(i)]->Finish());
    if (!array->type()->Equals(*schema_->field(i)->type())) {
      return arrow::Status::TypeError("column ", schema_->field(i)->name(), " was read as ", array->type()->ToString());
    }
    arrays.push_back(std::move(array));
  }
  const int64_t rows = std::exchange(row_count_, 0);
  first_row_ += rows;
  return arrow::RecordBatch::Make(schema_, rows, std::move(arrays));
}

}  // namespace headrace
