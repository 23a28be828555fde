// One ReadRowsResponse, read from its bytes without a generated message.
//
// Free function; any thread. Bytes are untrusted: every length is checked against what is there before it is used.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <arrow/buffer.h>
#include <arrow/memory_pool.h>

#include "headrace/base/error.h"
#include "headrace/rpc/byte_stream.h"

namespace headrace::bigquery {

struct ReadRowsMessage {
  /// serialized_record_batch or serialized_binary_rows, copied once, and so placed that the body of the (first) IPC message is 64-byte
  /// aligned. Null without rows.
  std::shared_ptr<arrow::Buffer> rows{};
  int64_t uncompressed_bytes = 0;  // when positive, `rows` is one LZ4 block that becomes so many bytes
  std::string schema{};            // serialized_schema or Avro's JSON; only in the first response of a call, if at all
  int64_t row_count = 0;
  double progress_start = 0;  // fraction of the stream before this response; 0 also when not told
  double progress_end = 0;
  int32_t throttle_percent = 0;
  bool has_arrow = false;  // rows or a schema
  bool has_avro = false;
  int64_t wire_bytes = 0;
};

arrow::Result<ReadRowsMessage> ParseReadRowsResponse(const rpc::ByteMessage& message, arrow::MemoryPool* pool);

}  // namespace headrace::bigquery
