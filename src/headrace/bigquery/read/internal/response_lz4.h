// Whole-response compression: the rows of a ReadRowsResponse as one raw LZ4 block (stream.proto, RESPONSE_COMPRESSION_CODEC_LZ4).
//
// Free function; any thread. Bytes are untrusted: what a block claims to become is limited before memory is reserved.
#pragma once

#include <cstdint>
#include <memory>

#include <arrow/buffer.h>
#include <arrow/memory_pool.h>

#include "headrace/base/error.h"

namespace headrace::bigquery {

/// Eight times the largest blocks of the service (128 MiB, fact R10).
inline constexpr int64_t kLargestUncompressedResponse = int64_t{1} << 30;

/// The `uncompressed_bytes` (> 0, ReadRowsResponse.uncompressed_byte_size) bytes in `block`. DATA_LOSS when the block is corrupt, has
/// another size, or claims more than any response has.
arrow::Result<std::shared_ptr<arrow::Buffer>> DecompressResponse(const arrow::Buffer& block, int64_t uncompressed_bytes,
                                                                 arrow::MemoryPool* pool);

}  // namespace headrace::bigquery
