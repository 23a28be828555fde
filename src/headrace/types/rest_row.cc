#include "headrace/types/rest_row.h"

#include <utility>

#include "headrace/types/internal/row_text.h"

namespace headrace {

RestRowWriter::RestRowWriter(std::unique_ptr<internal::RowText> rows) : rows_(std::move(rows)) {}
RestRowWriter::~RestRowWriter() = default;

arrow::Result<std::unique_ptr<RestRowWriter>> RestRowWriter::Make(std::shared_ptr<arrow::Schema> canonical, TextForm form) {
  if (form == TextForm::kPlain) return arrow::Status::Invalid("REST answers have the forms kRest and kRestMicros");
  ARROW_ASSIGN_OR_RAISE(auto rows, internal::RowText::Make(std::move(canonical), internal::RowShape::kCells, form));
  return std::unique_ptr<RestRowWriter>(new RestRowWriter(std::move(rows)));
}

arrow::Status RestRowWriter::Append(const arrow::RecordBatch& batch, int64_t first, int64_t count, std::string* out, int64_t row_number) {
  ARROW_RETURN_NOT_OK(rows_->Bind(batch));
  for (int64_t i = first; i < first + count; ++i) {
    if (i > first) out->push_back(',');
    ARROW_RETURN_NOT_OK(rows_->Append(i, row_number + i, out));
  }
  return arrow::Status::OK();
}

}  // namespace headrace
