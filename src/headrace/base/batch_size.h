// How much memory the rows of a batch take. Free functions, any thread.
#pragma once

#include <cstdint>

#include <arrow/record_batch.h>
#include <arrow/type_fwd.h>

namespace headrace {

/// Kinds of columns whose values do not lie row after row: unions, runs and views. None of them is of BigQuery.
bool IsUnusual(arrow::Type::type id);

/// What a batch takes in memory beside its buffers, and each of its columns, about: of batches of a row it is nearly all.
constexpr int64_t kBatchObjectBytes = 1024;
constexpr int64_t kColumnObjectBytes = 512;

/// The bytes of the buffers that the rows of `batch` lie in: of a slice its own part, of a buffer that two columns share each one's. What
/// arrow::util::ReferencedBufferSize tells, for every batch of every source, so without its price (a builder for each column).
int64_t ReferencedBytes(const arrow::RecordBatch& batch);

}  // namespace headrace
