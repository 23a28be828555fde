#include "headrace/local/row_message.h"

#include <algorithm>
#include <utility>

#include <arrow/io/interfaces.h>
#include <arrow/ipc/options.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/compression.h>
#include <google/cloud/bigquery/storage/v1/storage.pb.h>

#include "headrace/base/batch_size.h"

namespace headrace::local {
namespace {

namespace storage = google::cloud::bigquery::storage::v1;

// Below this a copy costs less than one more piece on its way through gRPC.
constexpr int64_t kCopyBelow = 4096;

// Collects what the IPC writer writes: large buffers by reference, small ones gathered.
class PieceStream final : public arrow::io::OutputStream {
 public:
  arrow::Status Write(const void* data, int64_t size) override {
    gathered_.append(static_cast<const char*>(data), static_cast<size_t>(size));
    size_ += size;
    return arrow::Status::OK();
  }
  arrow::Status Write(const std::shared_ptr<arrow::Buffer>& data) override {
    if (data->size() < kCopyBelow) return Write(data->data(), data->size());
    Gathered();
    pieces_.push_back(data);
    size_ += data->size();
    return arrow::Status::OK();
  }
  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }
  arrow::Result<int64_t> Tell() const override { return size_; }

  Pieces Finish() {
    Gathered();
    return std::move(pieces_);
  }

 private:
  void Gathered() {
    if (!gathered_.empty()) pieces_.push_back(arrow::Buffer::FromString(std::exchange(gathered_, {})));
  }

  std::string gathered_;
  Pieces pieces_;
  int64_t size_ = 0;
};

void AppendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

constexpr char Tag(int field, int wire_type) { return static_cast<char>((field << 3) | wire_type); }
constexpr int kVarint = 0;
constexpr int kLengthDelimited = 2;

arrow::Result<arrow::ipc::IpcWriteOptions> WriteOptions(int compression) {
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  options.use_threads = false;  // the streams are the parallelism
  if (compression == storage::ArrowSerializationOptions::LZ4_FRAME) {
    ARROW_ASSIGN_OR_RAISE(options.codec, arrow::util::Codec::Create(arrow::Compression::LZ4_FRAME));
  } else if (compression == storage::ArrowSerializationOptions::ZSTD) {
    ARROW_ASSIGN_OR_RAISE(options.codec, arrow::util::Codec::Create(arrow::Compression::ZSTD));
  }
  return options;
}

arrow::Result<Pieces> ArrowRows(const arrow::RecordBatch& rows, int compression) {
  ARROW_ASSIGN_OR_RAISE(auto options, WriteOptions(compression));
  arrow::ipc::IpcPayload payload;
  ARROW_RETURN_NOT_OK(arrow::ipc::GetRecordBatchPayload(rows, options, &payload));
  PieceStream stream;
  int32_t metadata_length = 0;
  ARROW_RETURN_NOT_OK(arrow::ipc::WriteIpcPayload(payload, options, &stream, &metadata_length));
  return stream.Finish();
}

arrow::Result<Pieces> AvroRows(const arrow::RecordBatch& rows, avro::Encoder* encoder) {
  std::string bytes;
  ARROW_RETURN_NOT_OK(encoder->Append(rows, 0, rows.num_rows(), &bytes));
  return Pieces{arrow::Buffer::FromString(std::move(bytes))};
}

int64_t SizeOf(const Pieces& pieces) {
  int64_t size = 0;
  for (const auto& piece : pieces) size += piece->size();
  return size;
}

// What uncompressed_byte_size says: the size before, or -1 when the rows stay as they are because that is shorter.
arrow::Result<int64_t> CompressLz4(Pieces* rows) {
  ARROW_ASSIGN_OR_RAISE(auto whole, arrow::ConcatenateBuffers(*rows));
  ARROW_ASSIGN_OR_RAISE(auto codec, arrow::util::Codec::Create(arrow::Compression::LZ4));
  ARROW_ASSIGN_OR_RAISE(auto packed, arrow::AllocateResizableBuffer(codec->MaxCompressedLen(whole->size(), whole->data())));
  ARROW_ASSIGN_OR_RAISE(int64_t size, codec->Compress(whole->size(), whole->data(), packed->size(), packed->mutable_data()));
  if (size >= whole->size()) return -1;
  ARROW_RETURN_NOT_OK(packed->Resize(size));
  *rows = {std::shared_ptr<arrow::Buffer>(std::move(packed))};
  return whole->size();
}

// In order: each finds what the one before left.
arrow::Status Damage(const std::vector<RowDamage>& damages, Pieces* rows, int64_t* row_count) {
  if (damages.empty()) return arrow::Status::OK();
  ARROW_ASSIGN_OR_RAISE(auto whole, arrow::ConcatenateBuffers(*rows));
  std::string bytes = whole->ToString();
  for (const RowDamage& damage : damages) {
    auto size = static_cast<int64_t>(bytes.size());
    bytes.resize(static_cast<size_t>(size - std::min(size, damage.cut_bytes)));
    size = static_cast<int64_t>(bytes.size());
    int64_t begin = damage.flip_at >= 0 ? std::min(size, damage.flip_at) : std::max(-size, damage.flip_at) + size;
    int64_t end = begin + std::min(size - begin, damage.flip_bytes);
    for (int64_t i = begin; i < end; ++i) bytes[static_cast<size_t>(i)] = static_cast<char>(~bytes[static_cast<size_t>(i)]);
    // No overflow: what does not fit stays at the end of the range.
    if (__builtin_add_overflow(*row_count, damage.row_count_off_by, row_count)) *row_count = INT64_MAX;
  }
  *rows = {arrow::Buffer::FromString(std::move(bytes))};
  return arrow::Status::OK();
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::RecordBatch>> NextMessageRows(const RowBatches& rows, int64_t offset, int64_t end,
                                                                   const MessageLimits& limits) {
  int64_t average = std::max<int64_t>(1, rows.bytes / std::max<int64_t>(1, rows.rows));
  int64_t count = std::clamp<int64_t>(limits.bytes / average, 1, std::min(limits.rows, end - offset));
  while (true) {
    auto batch = rows.Slice(offset, count);
    if (batch->num_rows() == 1) return batch;
    // These rows may be larger than the average: half of them again, until the message is near its size.
    if (ReferencedBytes(*batch) <= 2 * limits.bytes) return batch;
    count = batch->num_rows() / 2;
  }
}

arrow::Result<Pieces> EncodeResponse(const arrow::RecordBatch& rows, const RowEncoding& encoding, const ResponseFields& fields) {
  bool avro = encoding.avro != nullptr;
  Pieces packed;
  if (avro) {
    ARROW_ASSIGN_OR_RAISE(packed, AvroRows(rows, encoding.avro));
  } else {
    ARROW_ASSIGN_OR_RAISE(packed, ArrowRows(rows, encoding.buffer_compression));
  }
  storage::ReadRowsResponse response;
  auto* progress = response.mutable_stats()->mutable_progress();
  progress->set_at_response_start(fields.progress_at_start);
  progress->set_at_response_end(fields.progress_at_end);
  response.mutable_throttle_state()->set_throttle_percent(fields.throttle_percent);
  if (!fields.schema.empty() && avro) response.mutable_avro_schema()->set_schema(fields.schema);
  if (!fields.schema.empty() && !avro) response.mutable_arrow_schema()->set_serialized_schema(fields.schema);
  if (encoding.lz4) {
    ARROW_ASSIGN_OR_RAISE(int64_t uncompressed, CompressLz4(&packed));
    response.set_uncompressed_byte_size(uncompressed);
  }
  int64_t row_count = rows.num_rows();
  ARROW_RETURN_NOT_OK(Damage(fields.damages, &packed, &row_count));
  response.set_row_count(row_count);

  // The rows go behind the other fields by hand: protobuf would copy them twice.
  constexpr int kArrow = storage::ReadRowsResponse::kArrowRecordBatchFieldNumber;
  constexpr int kAvro = storage::ReadRowsResponse::kAvroRowsFieldNumber;
  // The fields inside have the same numbers in both messages.
  static_assert(int{storage::ArrowRecordBatch::kSerializedRecordBatchFieldNumber} ==
                int{storage::AvroRows::kSerializedBinaryRowsFieldNumber});
  static_assert(int{storage::ArrowRecordBatch::kRowCountFieldNumber} == int{storage::AvroRows::kRowCountFieldNumber});
  auto bytes = static_cast<uint64_t>(SizeOf(packed));
  std::string tail(1, Tag(storage::ArrowRecordBatch::kRowCountFieldNumber, kVarint));
  AppendVarint(static_cast<uint64_t>(row_count), &tail);
  std::string inner(1, Tag(storage::ArrowRecordBatch::kSerializedRecordBatchFieldNumber, kLengthDelimited));
  AppendVarint(bytes, &inner);
  std::string head = response.SerializeAsString();
  head.push_back(Tag(avro ? kAvro : kArrow, kLengthDelimited));
  AppendVarint(inner.size() + bytes + tail.size(), &head);
  head += inner;

  Pieces pieces;
  pieces.push_back(arrow::Buffer::FromString(std::move(head)));
  for (auto& piece : packed) pieces.push_back(std::move(piece));
  pieces.push_back(arrow::Buffer::FromString(std::move(tail)));
  return pieces;
}

arrow::Result<std::string> SerializeSchema(const arrow::Schema& schema) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::ipc::SerializeSchema(schema));
  return buffer->ToString();
}

}  // namespace headrace::local
