#include "headrace/bigquery/read/internal/slicer.h"

#include <algorithm>

#include <arrow/util/byte_size.h>

namespace headrace::bigquery {

arrow::Result<int64_t> ReferencedBytes(const arrow::RecordBatch& rows) { return arrow::util::ReferencedBufferSize(rows); }

arrow::Result<int64_t> NextBatchRows(const arrow::RecordBatch& rows, int64_t first, int64_t max_rows, int64_t max_bytes, bool whole_fits) {
  int64_t most = std::min(max_rows, rows.num_rows() - first);
  if (whole_fits || most <= 1) return most;
  ARROW_ASSIGN_OR_RAISE(const int64_t all, ReferencedBytes(*rows.Slice(first, most)));
  if (all <= max_bytes) return most;
  // The size grows with every row: the largest count that fits, or 1. Sizes are computed only here, for a block above the target.
  int64_t fits = 1;
  while (most - fits > 1) {
    const int64_t middle = fits + (most - fits) / 2;
    ARROW_ASSIGN_OR_RAISE(const int64_t bytes, ReferencedBytes(*rows.Slice(first, middle)));
    (bytes <= max_bytes ? fits : most) = middle;
  }
  return fits;
}

}  // namespace headrace::bigquery
