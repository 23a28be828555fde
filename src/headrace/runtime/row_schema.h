// The columns of rows, compiled once: what RowView looks names and types up in. And RowBatch, the rows of one record batch.
//
// A RowSchema is immutable and may be shared by threads; batches keep it alive. Sources give columns of canonical type
// (types/type_table.h); columns of other Arrow types that BigQuery has a type for are converted batch by batch.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "headrace/base/error.h"
#include "headrace/runtime/row_view.h"
#include "headrace/types/schema.h"

namespace headrace {

class Canonicalizer;
class RowSchema;

/// The rows of one batch. Owns the batch; its views hold as long as it does. Movable.
class RowBatch {
 public:
  int64_t size() const { return batch_->num_rows(); }
  /// `row` is in bounds.
  RowView operator[](int64_t row) const { return {plan_, columns_.data(), nullptr, row, first_row_ + row}; }

 private:
  friend class RowSchema;
  RowBatch() = default;

  std::shared_ptr<const RowSchema> schema_;
  const internal::RowPlan* plan_ = nullptr;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::vector<const arrow::Array*> columns_;
  int64_t first_row_ = 0;
};

class RowSchema : public std::enable_shared_from_this<RowSchema> {
 public:
  /// UNIMPLEMENTED for a column whose Arrow type no BigQuery type has.
  static arrow::Result<std::shared_ptr<const RowSchema>> Make(const std::shared_ptr<arrow::Schema>& schema);
  ~RowSchema();

  int column_count() const;
  /// `column` is in bounds.
  const Field& field(int column) const;
  /// The index of the column of that name, whatever its case; NOT_FOUND lists those that there are.
  arrow::Result<int> Find(std::string_view name) const;
  /// The columns as they are read, all of canonical type.
  const std::shared_ptr<arrow::Schema>& arrow_schema() const { return canonical_; }

  /// The rows of a batch of the schema that this one was made from. Their numbers begin with `first_row`.
  arrow::Result<RowBatch> Bind(std::shared_ptr<arrow::RecordBatch> batch, int64_t first_row = 0) const;

 private:
  RowSchema();

  std::shared_ptr<arrow::Schema> canonical_;
  std::unique_ptr<Canonicalizer> canonicalizer_;  // null when the columns are canonical
  std::shared_ptr<arrow::Schema> given_;
  std::unique_ptr<internal::RowPlan> plan_;
};

}  // namespace headrace
