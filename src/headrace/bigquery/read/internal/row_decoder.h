// From the row bytes of a response to a record batch in the result's schema, whatever the wire's format.
//
// One thread. Bytes are untrusted: an error is DATA_LOSS, or names the value that BigQuery cannot hold.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <arrow/buffer.h>
#include <arrow/record_batch.h>

#include "headrace/base/error.h"

namespace headrace::bigquery {

struct ReadRowsMessage;
struct StreamState;

class RowDecoder {
 public:
  /// Of the responses of `stream`; `result` is the schema that its rows are handed out in.
  static arrow::Result<std::unique_ptr<RowDecoder>> Make(const StreamState& stream, std::shared_ptr<arrow::Schema> result);
  virtual ~RowDecoder() = default;

  /// The schema that a response carried (the first of each call may); an error when it is not the session's.
  virtual arrow::Status SetWireSchema(std::string_view bytes) = 0;
  /// The `row_count` rows in `bytes`. An error about a value names its row, from 0.
  virtual arrow::Result<std::shared_ptr<arrow::RecordBatch>> DecodeRows(const std::shared_ptr<arrow::Buffer>& bytes, int64_t row_count) = 0;
  /// Where each row of the last DecodeRows ended among its bytes; empty when rows have no bytes of their own.
  virtual std::span<const uint32_t> row_ends() const { return {}; }
  /// Whole Arrow IPC streams were seen instead of bare messages.
  virtual bool saw_full_stream() const { return false; }
};

/// The row bytes of a response of `stream`, decompressed; empty ones when it has none.
arrow::Result<std::shared_ptr<arrow::Buffer>> RowBytes(const ReadRowsMessage& message, const StreamState& stream);

}  // namespace headrace::bigquery
