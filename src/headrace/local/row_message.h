// Encodes rows into the bytes of a google.cloud.bigquery.storage.v1.ReadRowsResponse without copying large buffers. Free functions, any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/buffer.h>

#include "headrace/avro/encoder.h"
#include "headrace/local/row_batches.h"

namespace headrace::local {

/// Consecutive pieces of one message.
using Pieces = std::vector<std::shared_ptr<arrow::Buffer>>;

struct MessageLimits {
  int64_t bytes = 1 << 20;
  int64_t rows = 65536;
};

/// How many rows from `offset` make the next message of a range that ends at `end`: at least one.
arrow::Result<std::shared_ptr<arrow::RecordBatch>> NextMessageRows(const RowBatches& rows, int64_t offset, int64_t end,
                                                                   const MessageLimits& limits);

/// What a faulty server does to the rows of a response.
struct RowDamage {
  int64_t cut_bytes = 0;   // from the end, at most all
  int64_t flip_at = 0;     // every bit of the bytes from here on changes; negative: so many bytes before the end
  int64_t flip_bytes = 0;  // how many of them
  int64_t row_count_off_by = 0;
};

struct ResponseFields {
  double progress_at_start = 0;
  double progress_at_end = 0;
  int throttle_percent = 0;
  std::string schema{};  // IPC or JSON; empty = none
  std::vector<RowDamage> damages{};
};

/// What the rows are in and how they are packed.
struct RowEncoding {
  int buffer_compression = 0;     // ArrowSerializationOptions.CompressionCodec
  bool lz4 = false;               // the whole response: one raw LZ4 block
  avro::Encoder* avro = nullptr;  // null = Arrow
};

/// An Arrow record batch is one bare IPC message, as the service frames it (case
/// U48).
arrow::Result<Pieces> EncodeResponse(const arrow::RecordBatch& rows, const RowEncoding& encoding, const ResponseFields& fields);

/// One bare IPC message.
arrow::Result<std::string> SerializeSchema(const arrow::Schema& schema);

}  // namespace headrace::local
