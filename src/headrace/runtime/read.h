// Reads a whole bounded source as a stream of record batches, without a sink and without checkpoints.
//
// Read plans, starts reader threads and returns; the reader that it returns is used by one thread at a time. Destroying or closing it
// cancels the threads and waits for them.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include <arrow/record_batch.h>

#include "headrace/runtime/source.h"

namespace headrace {

struct ReadOptions {
  std::string job_name{};
  int readers = 0;                            // 0 = one per split, at most 4
  int64_t memory_limit = int64_t{256} << 20;  // bytes received, decoded or queued; a batch leaves the budget when it is handed out
  bool ordered = false;                       // splits one after the other, in the order of the plan
  /// Requested by any thread: what waits ends with Cancelled, planning included, and so does every later call.
  std::stop_token stop{};
  /// Lent by the caller; `memory` and `metrics` are replaced by the reader's own when null.
  JobContext context{};
};

/// What Read and ReadRows begin with; looks at nothing else. Refuses options that make no sense, and a source that never ends.
arrow::Status CheckReadOptions(const Source& source, const ReadOptions& options);

/// Plans the source (which may take long) and reads it. A continuous source is refused.
arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> Read(std::shared_ptr<const Source> source, const ReadOptions& options);

}  // namespace headrace
