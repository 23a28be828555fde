// The rows of a table, or of a part of it, as consecutive record batches. Immutable once made; any thread may read them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/record_batch.h>
#include <arrow/table.h>

#include "headrace/base/error.h"

namespace headrace::local {

/// Consecutive record batches with the rows before each.
struct RowBatches {
  std::shared_ptr<arrow::Schema> schema{};
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches{};
  std::vector<int64_t> starts{};
  int64_t rows = 0;
  int64_t bytes = 0;  // of the buffers' parts that the rows refer to

  static arrow::Result<RowBatches> Make(const std::shared_ptr<arrow::Table>& table);
  static arrow::Result<RowBatches> Make(std::shared_ptr<arrow::Schema> schema, std::vector<std::shared_ptr<arrow::RecordBatch>> batches);
  /// The rows [offset, offset + at most `length`) that lie in one batch; `offset` < rows.
  std::shared_ptr<arrow::RecordBatch> Slice(int64_t offset, int64_t length) const;
  /// The columns at `indices`, without copying.
  arrow::Result<RowBatches> Select(const std::vector<int>& indices) const;
  /// The same values under another schema, matched by name at every depth: what only `wanted` has is null (an array is empty), what only
  /// this has is left out. The types of what both have must be the same but for nullability and metadata. Nothing is copied.
  arrow::Result<RowBatches> Reshape(const std::shared_ptr<arrow::Schema>& wanted) const;
};

/// A checksum of every value. Not of what lies under a null, nor of how the rows are cut into batches' memory, so that the same file gives
/// the same one each time.
uint64_t ContentChecksum(const RowBatches& rows);

}  // namespace headrace::local
