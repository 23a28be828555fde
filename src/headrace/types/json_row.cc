#include "headrace/types/json_row.h"

#include <utility>

#include "headrace/types/internal/json_row_tree.h"
#include "headrace/types/internal/row_text.h"

namespace headrace {

JsonRowWriter::JsonRowWriter(std::unique_ptr<internal::RowText> rows) : rows_(std::move(rows)) {}
JsonRowWriter::~JsonRowWriter() = default;

arrow::Result<std::unique_ptr<JsonRowWriter>> JsonRowWriter::Make(std::shared_ptr<arrow::Schema> canonical) {
  ARROW_ASSIGN_OR_RAISE(auto rows, internal::RowText::Make(std::move(canonical), internal::RowShape::kObjects, TextForm::kPlain));
  return std::unique_ptr<JsonRowWriter>(new JsonRowWriter(std::move(rows)));
}

arrow::Status JsonRowWriter::Append(const arrow::RecordBatch& batch, int64_t first, int64_t count, std::string* out, int64_t row_number) {
  ARROW_RETURN_NOT_OK(rows_->Bind(batch));
  for (int64_t i = first; i < first + count; ++i) {
    ARROW_RETURN_NOT_OK(rows_->Append(i, row_number + i, out));
    out->push_back('\n');
  }
  return arrow::Status::OK();
}

JsonRowReader::JsonRowReader(std::shared_ptr<arrow::Schema> schema, std::unique_ptr<internal::JsonRowTree> tree)
    : schema_(std::move(schema)), tree_(std::move(tree)) {}
JsonRowReader::~JsonRowReader() = default;

arrow::Result<std::unique_ptr<JsonRowReader>> JsonRowReader::Make(std::shared_ptr<arrow::Schema> canonical, const ParseOptions& options,
                                                                  arrow::MemoryPool* pool) {
  ARROW_ASSIGN_OR_RAISE(auto tree, internal::JsonRowTree::Make(*canonical, options, pool));
  return std::unique_ptr<JsonRowReader>(new JsonRowReader(std::move(canonical), std::move(tree)));
}

arrow::Status JsonRowReader::Append(std::string_view line, int64_t row_number) {
  ARROW_RETURN_NOT_OK(failed_);
  failed_ = tree_->Append(line, row_number);
  if (failed_.ok()) ++row_count_;
  return failed_;
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> JsonRowReader::Finish() {
  ARROW_RETURN_NOT_OK(failed_);
  ARROW_ASSIGN_OR_RAISE(auto columns, tree_->Finish());
  return arrow::RecordBatch::Make(schema_, std::exchange(row_count_, 0), std::move(columns));
}

}  // namespace headrace
