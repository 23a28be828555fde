// Fields of a CSV record into the columns of the result. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/record_batch.h>

#include "headrace/base/error.h"
#include "headrace/types/coercion.h"

namespace headrace {

class TextColumns {
 public:
  /// Scalars by their CSV text, ARRAYs and STRUCTs by their JSON text. `first_row` is for errors.
  static arrow::Result<TextColumns> Make(const std::shared_ptr<arrow::Schema>& schema, const ParseOptions& options, int64_t first_row);
  TextColumns(TextColumns&&) noexcept;
  TextColumns& operator=(TextColumns&&) noexcept;
  ~TextColumns();

  int column_count() const;
  /// One value of one column; every column gets one for each row. Errors name column, row and value.
  arrow::Status Append(int column, std::string_view text);
  arrow::Status AppendNull(int column);
  int64_t row_count() const { return row_count_; }
  void EndRow() { ++row_count_; }
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Finish();

 private:
  class Column;

  TextColumns(std::shared_ptr<arrow::Schema> schema, int64_t first_row);

  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::unique_ptr<Column>> columns_;
  int64_t first_row_;  // of the batch being made
  int64_t row_count_ = 0;
};

}  // namespace headrace
