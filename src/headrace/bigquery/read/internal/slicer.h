// Cuts a decoded response into batches of bounded rows and bytes.
//
// The row that would take a non-empty batch over the byte target waits for the next one; a single larger row goes out alone. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <arrow/record_batch.h>

namespace headrace::bigquery {

/// How many rows from `first` on the next batch takes: at least 1 of those left. `whole_fits` says that all rows together are known to be
/// within the byte target, so that no sizes need to be computed.
int64_t NextBatchRows(const arrow::RecordBatch& rows, int64_t first, int64_t max_rows, int64_t max_bytes, bool whole_fits);

/// The same for rows whose serialized bytes count: `row_ends` says where each ended, in order.
int64_t NextBatchRows(std::span<const uint32_t> row_ends, int64_t first, int64_t max_rows, int64_t max_bytes);

}  // namespace headrace::bigquery
