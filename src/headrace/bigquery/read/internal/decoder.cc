#include "headrace/bigquery/read/internal/decoder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <arrow/array.h>
#include <arrow/ipc/writer.h>
#include <arrow/memory_pool.h>
#include <arrow/table.h>
#include <fmt/format.h>

#include "headrace/base/block_pool.h"
#include "headrace/bigquery/read/internal/columns.h"
#include "headrace/bigquery/read/internal/schema_drift.h"
#include "headrace/types/untrusted.h"

namespace headrace::bigquery {
namespace {

// Freed buffers that stay for the next messages, of all readers together: about what one of them receives ahead, twice.
constexpr int64_t kKeptBytes = int64_t{32} << 20;
constexpr int64_t kLargestBuffer = int64_t{1} << 31;

arrow::Status BadRows(std::string_view why) {
  return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read", .method = "ReadRows", .reason = "CORRUPT_RESPONSE"},
                   fmt::format("the Arrow rows of a response cannot be decoded: {}", why));
}

/// What the decoding thread may still allocate. Of the thread and not of a pool, because buffers outlive any decoder and their pool must
/// outlive them.
thread_local int64_t allowance = std::numeric_limits<int64_t>::max();

class Allowance {
 public:
  explicit Allowance(int64_t bytes) { allowance = bytes; }
  ~Allowance() { allowance = std::numeric_limits<int64_t>::max(); }
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;
};

class LimitedPool final : public arrow::MemoryPool {
 public:
  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;
  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    ARROW_RETURN_NOT_OK(Check(size, size));
    return pool_->Allocate(size, alignment, out);
  }
  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** pointer) override {
    ARROW_RETURN_NOT_OK(Check(new_size, std::max<int64_t>(new_size - old_size, 0)));
    return pool_->Reallocate(old_size, new_size, alignment, pointer);
  }
  void Free(uint8_t* buffer, int64_t size, int64_t alignment) override { pool_->Free(buffer, size, alignment); }
  int64_t bytes_allocated() const override { return pool_->bytes_allocated(); }
  int64_t total_bytes_allocated() const override { return pool_->total_bytes_allocated(); }
  int64_t num_allocations() const override { return pool_->num_allocations(); }
  int64_t max_memory() const override { return pool_->max_memory(); }
  std::string backend_name() const override { return pool_->backend_name(); }

 private:
  static arrow::Status Check(int64_t size, int64_t added) {
    if (size < 0 || size > kLargestBuffer) {
      return arrow::Status::OutOfMemory("a response claims a buffer of ", size, " bytes; no buffer may have more than 2 GiB");
    }
    if (added > allowance) return arrow::Status::OutOfMemory("a response claims more bytes of rows than any response may have");
    allowance -= added;
    return arrow::Status::OK();
  }
  BlockPool blocks_{arrow::default_memory_pool(), kKeptBytes};
  arrow::MemoryPool* const pool_ = &blocks_;
};

arrow::ipc::IpcReadOptions ReadOptions() {
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;  // the reader's own thread: the engine chooses how many there are
  options.memory_pool = ArrowDecoder::Pool();
  return options;
}

/// The same error, as one of what the server sent.
arrow::Status DataLoss(const arrow::Status& status) {
  const ErrorInfo* info = GetErrorInfo(status);
  if (info == nullptr) return BadRows(status.message());
  ErrorInfo lost = *info;
  lost.code = Code::kDataLoss;
  lost.service = "BigQuery Storage Read";
  lost.method = "ReadRows";
  return MakeError(std::move(lost), status.message());
}

}  // namespace

class ArrowDecoder::Listener final : public arrow::ipc::Listener {
 public:
  arrow::Status OnRecordBatchDecoded(std::shared_ptr<arrow::RecordBatch> batch) override {
    batches.push_back(std::move(batch));
    return arrow::Status::OK();
  }
  arrow::RecordBatchVector batches;
};

arrow::MemoryPool* ArrowDecoder::Pool() {
  static LimitedPool* pool = new LimitedPool;
  return pool;
}

arrow::Result<std::unique_ptr<ArrowDecoder>> ArrowDecoder::Make(std::shared_ptr<arrow::Schema> result,
                                                                const std::vector<uint32_t>& result_columns, std::string_view wire_schema,
                                                                int64_t most_decoded_bytes) {
  std::unique_ptr<ArrowDecoder> decoder(new ArrowDecoder);
  decoder->most_decoded_bytes_ = most_decoded_bytes;
  decoder->result_ = std::move(result);
  std::shared_ptr<arrow::Schema> in_wire_order = decoder->result_;
  if (!result_columns.empty()) {
    if (result_columns.size() != static_cast<size_t>(decoder->result_->num_fields())) {
      return MakeError({.code = Code::kDataLoss, .reason = "CORRUPT_STATE"}, "the persisted order of columns does not fit the schema");
    }
    ARROW_ASSIGN_OR_RAISE(const auto wire_columns, InvertColumns(result_columns));
    ARROW_ASSIGN_OR_RAISE(in_wire_order, SelectFields(decoder->result_, result_columns));
    if (!IsIdentity(wire_columns)) decoder->wire_columns_.assign(wire_columns.begin(), wire_columns.end());
  }
  if (wire_schema.empty()) {
    decoder->wire_ = in_wire_order;
    ARROW_ASSIGN_OR_RAISE(const auto bytes, arrow::ipc::SerializeSchema(*decoder->wire_));
    ARROW_RETURN_NOT_OK(decoder->Restart(std::string_view(*bytes)));
    return decoder;
  }
  ARROW_ASSIGN_OR_RAISE(decoder->wire_, ReadSchemaBytes(wire_schema));
  auto canonical = Canonicalizer::Make(decoder->wire_, decoder->result_, {.pool = Pool()});
  if (!canonical.ok()) return WithContext(canonical.status(), "the persisted schema of the session does not fit the job's");
  decoder->canonical_ = *std::move(canonical);
  ARROW_RETURN_NOT_OK(decoder->Restart(wire_schema));
  return decoder;
}

arrow::Status ArrowDecoder::Restart(std::string_view schema_bytes) {
  listener_ = std::make_shared<Listener>();
  decoder_ = std::make_unique<arrow::ipc::StreamDecoder>(listener_, ReadOptions());
  // The schema alone: some servers end it like a whole stream, and after an end marker the decoder takes the rows for nothing.
  const auto bytes = arrow::Buffer::FromString(std::string(schema_bytes));
  arrow::io::BufferReader input(bytes);
  const auto schema = arrow::ipc::ReadMessage(&input, Pool());
  if (!schema.ok()) return BadRows(schema.status().message());
  ARROW_ASSIGN_OR_RAISE(const int64_t end, input.Tell());
  const auto status = decoder_->Consume(arrow::SliceBuffer(bytes, 0, end));
  if (!status.ok()) return BadRows(status.message());
  plain_dictionaries_ = std::make_unique<arrow::ipc::DictionaryMemo>();
  ARROW_ASSIGN_OR_RAISE(plain_, arrow::ipc::ReadSchema(**schema, plain_dictionaries_.get()));
  if (!plain_->is_native_endian() || plain_dictionaries_->fields().num_fields() > 0) plain_ = nullptr;
  return arrow::Status::OK();
}

arrow::Status ArrowDecoder::CheckWireSchema(const arrow::Schema& schema) const {
  ARROW_RETURN_NOT_OK(CheckSameColumns(*wire_, schema));
  // Columns that go out as they come have exactly the types of the result.
  if (canonical_ != nullptr || schema.Equals(*wire_, /*check_metadata=*/false)) return arrow::Status::OK();
  return BadRows(fmt::format("their schema is not the session's. Session: {} Response: {}", wire_->ToString(), schema.ToString()));
}

arrow::Status ArrowDecoder::SetWireSchema(std::string_view bytes) {
  ARROW_ASSIGN_OR_RAISE(const auto schema, ReadSchemaBytes(bytes));
  ARROW_RETURN_NOT_OK(CheckWireSchema(*schema));
  return Restart(bytes);
}

/// Nearly every response: one record batch, parsed once.
arrow::Status ArrowDecoder::DecodePlain(std::unique_ptr<arrow::ipc::Message> first, arrow::io::BufferReader* input,
                                        arrow::RecordBatchVector* batches) {
  static const auto options = ReadOptions();
  for (auto message = std::move(first); message != nullptr;) {
    if (message->type() != arrow::ipc::MessageType::RECORD_BATCH) {
      return arrow::Status::Invalid("a message of type ", arrow::ipc::FormatMessageType(message->type()), " among the rows");
    }
    ARROW_ASSIGN_OR_RAISE(auto batch, arrow::ipc::ReadRecordBatch(*message, plain_, plain_dictionaries_.get(), options));
    batches->push_back(std::move(batch));
    ARROW_ASSIGN_OR_RAISE(message, arrow::ipc::ReadMessage(input, Pool()));
  }
  return arrow::Status::OK();
}

arrow::Status ArrowDecoder::DecodeInto(const std::shared_ptr<arrow::Buffer>& bytes, arrow::RecordBatchVector* batches) {
  arrow::io::BufferReader input(bytes);
  ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::ipc::Message> first, arrow::ipc::ReadMessage(&input, Pool()));
  if (first != nullptr && first->type() == arrow::ipc::MessageType::RECORD_BATCH && plain_ != nullptr) {
    return DecodePlain(std::move(first), &input, batches);
  }
  if (first == nullptr || first->type() != arrow::ipc::MessageType::SCHEMA) {
    // Whole messages only: a decoder left inside one would take the next response for its rest, and after an end marker for nothing.
    int64_t whole = 0;
    for (auto message = std::move(first); message != nullptr;) {
      ARROW_ASSIGN_OR_RAISE(whole, input.Tell());
      ARROW_ASSIGN_OR_RAISE(message, arrow::ipc::ReadMessage(&input, Pool()));
    }
    ARROW_RETURN_NOT_OK(decoder_->Consume(arrow::SliceBuffer(bytes, 0, whole)));
    *batches = std::exchange(listener_->batches, {});
    return arrow::Status::OK();
  }
  saw_full_stream_ = true;
  ARROW_ASSIGN_OR_RAISE(const auto reader,
                        arrow::ipc::RecordBatchStreamReader::Open(std::make_shared<arrow::io::BufferReader>(bytes), ReadOptions()));
  ARROW_RETURN_NOT_OK(CheckWireSchema(*reader->schema()));
  ARROW_ASSIGN_OR_RAISE(*batches, reader->ToRecordBatches());
  return arrow::Status::OK();
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> ArrowDecoder::Decode(const std::shared_ptr<arrow::Buffer>& bytes) {
  const Allowance limit(most_decoded_bytes_);
  arrow::RecordBatchVector batches;
  if (const auto status = DecodeInto(bytes, &batches); !status.ok()) {
    return GetErrorInfo(status) != nullptr ? status : BadRows(status.message());
  }
  for (const auto& batch : batches) {
    if (const auto valid = CheckUntrusted(*batch); !valid.ok()) return BadRows(valid.message());
  }
  if (batches.empty()) return BadRows("they hold no record batch");
  std::shared_ptr<arrow::RecordBatch> rows = batches.front();
  if (batches.size() > 1) {
    ARROW_ASSIGN_OR_RAISE(const auto table, arrow::Table::FromRecordBatches(rows->schema(), batches));
    ARROW_ASSIGN_OR_RAISE(rows, table->CombineChunksToBatch(Pool()));
  }
  if (canonical_ != nullptr) {
    ForgetNullCounts(*rows);
    auto converted = canonical_->Convert(*rows);
    return converted.ok() ? converted : DataLoss(converted.status());
  }
  std::vector<std::shared_ptr<arrow::Array>> columns;
  columns.reserve(static_cast<size_t>(result_->num_fields()));
  for (int i = 0; i < result_->num_fields(); ++i) {
    columns.push_back(rows->column(wire_columns_.empty() ? i : wire_columns_[static_cast<size_t>(i)]));
  }
  return arrow::RecordBatch::Make(result_, rows->num_rows(), std::move(columns));
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> ArrowDecoder::DecodeRows(const std::shared_ptr<arrow::Buffer>& bytes,
                                                                            int64_t row_count) {
  ARROW_ASSIGN_OR_RAISE(auto rows, Decode(bytes));
  if (rows->num_rows() == row_count) return rows;
  return MakeError(
      {.code = Code::kDataLoss, .service = "BigQuery Storage Read", .method = "ReadRows", .reason = "ROW_COUNT"},
      fmt::format("the Arrow rows of a response cannot be decoded: the response names {} rows but holds {}", row_count, rows->num_rows()));
}

}  // namespace headrace::bigquery
