#include "headrace/bigquery/read/internal/slicer.h"

#include <algorithm>

#include "headrace/base/batch_size.h"

namespace headrace::bigquery {

int64_t NextBatchRows(const arrow::RecordBatch& rows, int64_t first, int64_t max_rows, int64_t max_bytes, bool whole_fits) {
  int64_t most = std::min(max_rows, rows.num_rows() - first);
  if (whole_fits || most <= 1) return most;
  if (ReferencedBytes(*rows.Slice(first, most)) <= max_bytes) return most;
  // The size grows with every row: the largest count that fits, or 1. Sizes are computed only here, for a block above the target.
  int64_t fits = 1;
  while (most - fits > 1) {
    const int64_t middle = fits + (most - fits) / 2;
    (ReferencedBytes(*rows.Slice(first, middle)) <= max_bytes ? fits : most) = middle;
  }
  return fits;
}

int64_t NextBatchRows(std::span<const uint32_t> row_ends, int64_t first, int64_t max_rows, int64_t max_bytes) {
  const int64_t most = std::min(max_rows, static_cast<int64_t>(row_ends.size()) - first);
  const auto begin = row_ends.begin() + first;
  const int64_t start = first == 0 ? 0 : *(begin - 1);
  const auto fits = [&](uint32_t end) { return int64_t{end} - start <= max_bytes; };
  return std::max<int64_t>(std::partition_point(begin, begin + most, fits) - begin, 1);
}

}  // namespace headrace::bigquery
