// Arrow columns as the service or an emulator sends them, made the canonical ones of types/type_table.h.
//
// A column whose buffers are laid out like the canonical type's is taken as it is, without a copy, after its values were checked. Any other
// (dictionaries, large offsets, month_day_nano intervals, null arrays, other units) is converted exactly, by types/normalize.h. What
// BigQuery cannot hold is an error that names column, row and value: never another value. Immutable; any thread.
#pragma once

#include <memory>
#include <vector>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "headrace/base/error.h"

namespace headrace::bigquery {

/// The canonical schema of a session's Arrow schema, in its order. Refused by column: what has no BigQuery type, GEOGRAPHY in binary form,
/// names that are equal without regard to case.
arrow::Result<std::shared_ptr<arrow::Schema>> CanonicalSchema(const arrow::Schema& wire);

class CanonicalRows {
 public:
  /// `canonical` is CanonicalSchema(*wire).
  CanonicalRows(std::shared_ptr<arrow::Schema> wire, std::shared_ptr<arrow::Schema> canonical);

  /// `rows` have the wire's schema and were validated (ValidateUntrusted).
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Convert(const arrow::RecordBatch& rows) const;

 private:
  arrow::Result<std::shared_ptr<arrow::Array>> ConvertColumn(int column, const std::shared_ptr<arrow::Array>& array) const;

  std::shared_ptr<arrow::Schema> wire_;
  std::shared_ptr<arrow::Schema> canonical_;
  std::vector<bool> same_layout_;  // of each column
};

}  // namespace headrace::bigquery
