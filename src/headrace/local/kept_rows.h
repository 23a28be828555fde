// Which rows of a table a restriction or a sample keeps, and where each of them lies in the table. Immutable once made; any thread may read
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/array/array_primitive.h>

namespace headrace::local {

class KeptRows {
 public:
  /// Keeps every row.
  KeptRows() = default;
  /// `masks` are of consecutive rows of the table; a null keeps nothing.
  explicit KeptRows(std::vector<std::shared_ptr<arrow::BooleanArray>> masks);

  /// How many of the table's rows before `row` are kept; `row` is at most the table's number of rows.
  int64_t Before(int64_t row) const;
  /// The table's row that is the `kept`-th of those that are kept, from 0; there must be so many.
  int64_t RowOf(int64_t kept) const;

 private:
  // A part of one mask, short enough to be counted through for one answer.
  struct Block {
    int64_t row = 0;   // of the table
    int64_t kept = 0;  // before this block
    size_t mask = 0;
    int64_t offset = 0;  // in the mask
    int64_t length = 0;
  };
  std::vector<std::shared_ptr<arrow::BooleanArray>> masks_;
  std::vector<Block> blocks_;  // empty = all rows are kept
  bool all_ = true;
};

}  // namespace headrace::local
