// From the Arrow bytes of a response to a record batch in the result's column order.
//
// One thread. Bytes are untrusted: sizes of single buffers are limited, offsets and dictionary indices are checked before anyone follows
// them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/message.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>

#include "headrace/base/error.h"
#include "headrace/bigquery/read/internal/row_decoder.h"
#include "headrace/types/canonicalize.h"

namespace headrace::bigquery {

class ArrowDecoder final : public RowDecoder {
 public:
  /// Of all buffers that are made of one response: sixteen times the largest responses (128 MiB, fact R10). A few compressed bytes may
  /// claim, and become, any size.
  static constexpr int64_t kMostDecodedBytes = int64_t{2} << 30;

  /// `result` is the schema handed out; `result_columns` says for each column of the wire its place in `result` (empty = the same order).
  /// `wire_schema` is the session's, IPC bytes: its columns become the canonical ones. Without it they go out as they come, in the types of
  /// `result` (a state of version 1).
  static arrow::Result<std::unique_ptr<ArrowDecoder>> Make(std::shared_ptr<arrow::Schema> result,
                                                           const std::vector<uint32_t>& result_columns, std::string_view wire_schema = {},
                                                           int64_t most_decoded_bytes = kMostDecodedBytes);

  arrow::Status SetWireSchema(std::string_view bytes) override;
  /// The rows in `bytes`: one bare IPC message normally, dictionary batches before it, or a whole IPC stream (some emulators, fact U48).
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Decode(const std::shared_ptr<arrow::Buffer>& bytes);
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> DecodeRows(const std::shared_ptr<arrow::Buffer>& bytes, int64_t row_count) override;
  bool saw_full_stream() const override { return saw_full_stream_; }

  /// Allocates for decoding; refuses a single buffer above 2 GiB, which no response holds and a forged length may claim, and inside Decode
  /// what goes beyond `most_decoded_bytes`. Never destroyed.
  static arrow::MemoryPool* Pool();

 private:
  class Listener;
  ArrowDecoder() = default;
  arrow::Status Restart(std::string_view schema_bytes);
  arrow::Status CheckWireSchema(const arrow::Schema& schema) const;
  arrow::Status DecodeInto(const std::shared_ptr<arrow::Buffer>& bytes, arrow::RecordBatchVector* batches);
  arrow::Status DecodePlain(std::unique_ptr<arrow::ipc::Message> first, arrow::io::BufferReader* input, arrow::RecordBatchVector* batches);

  std::shared_ptr<arrow::Schema> result_;
  std::shared_ptr<arrow::Schema> wire_;
  std::unique_ptr<Canonicalizer> canonical_;  // from the wire's columns to the result's; null = they go out as they come
  std::vector<int> wire_columns_;             // for each column of the result: its place on the wire; empty = the same
  std::shared_ptr<arrow::Schema> plain_;      // of the messages, when it has no dictionaries: each of them is read by itself
  std::unique_ptr<arrow::ipc::DictionaryMemo> plain_dictionaries_;  // always empty: Arrow's functions want one
  std::shared_ptr<Listener> listener_;
  std::unique_ptr<arrow::ipc::StreamDecoder> decoder_;
  int64_t most_decoded_bytes_ = kMostDecodedBytes;
  bool saw_full_stream_ = false;
};

}  // namespace headrace::bigquery
