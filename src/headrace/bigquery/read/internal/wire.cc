#include "headrace/bigquery/read/internal/wire.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace headrace::bigquery {
namespace {

// Field numbers of google/cloud/bigquery/storage/v1/storage.proto and arrow.proto.
constexpr uint32_t kStats = 2;
constexpr uint32_t kAvroRows = 3;
constexpr uint32_t kArrowRecordBatch = 4;
constexpr uint32_t kThrottleState = 5;
constexpr uint32_t kRowCount = 6;
constexpr uint32_t kAvroSchema = 7;
constexpr uint32_t kArrowSchema = 8;
constexpr uint32_t kUncompressedByteSize = 9;
constexpr uint32_t kSerialized = 1;       // of ArrowRecordBatch, ArrowSchema, AvroRows, AvroSchema
constexpr uint32_t kThrottlePercent = 1;  // ThrottleState
constexpr uint32_t kProgress = 2;         // StreamStats
constexpr uint32_t kAtResponseStart = 1;  // StreamStats.Progress
constexpr uint32_t kAtResponseEnd = 2;

// Wire types of protobuf's encoding.
constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kBytes = 2;
constexpr uint32_t kFixed32 = 5;

constexpr int64_t kBodyAlignment = 64;  // Arrow's recommended alignment of buffers
constexpr int64_t kLongestSchema = int64_t{64} << 20;
constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();  // of one response; Arrow's arrays of 32-bit offsets hold no more

arrow::Status Malformed(const char* what) {
  return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read", .method = "ReadRows", .reason = "CORRUPT_RESPONSE"},
                   fmt::format("a response of ReadRows is malformed: {}", what));
}

/// Walks over the pieces of a message. Copies share the pieces.
class Cursor {
 public:
  explicit Cursor(const rpc::ByteMessage& message) : pieces_(&message.pieces), end_(message.size) {}

  int64_t left() const { return end_ - at_; }

  bool Skip(int64_t bytes) {
    return Walk(bytes, [](const uint8_t*, size_t) {});
  }
  bool Copy(uint8_t* to, int64_t bytes) {
    return Walk(bytes, [&](const uint8_t* from, size_t size) {
      std::memcpy(to, from, size);
      to += size;
    });
  }
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t byte = 0;
      if (!Copy(&byte, 1)) return false;
      *value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }
  bool Double(double* value) {
    std::array<uint8_t, 8> bytes{};
    if (!Copy(bytes.data(), 8)) return false;
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(value, bytes.data(), 8);
    return true;
  }
  /// A field's number and wire type; false at a malformed tag.
  bool Tag(uint32_t* field, uint32_t* type) {
    uint64_t tag = 0;
    if (!Varint(&tag) || tag > UINT32_MAX || (tag >> 3) == 0) return false;
    *field = static_cast<uint32_t>(tag >> 3);
    *type = static_cast<uint32_t>(tag & 7);
    return true;
  }
  /// A cursor over a length-delimited field; this one goes on behind it.
  bool Sub(Cursor* sub) {
    uint64_t length = 0;
    if (!Varint(&length) || length > static_cast<uint64_t>(left())) return false;
    *sub = *this;
    sub->end_ = at_ + static_cast<int64_t>(length);
    return Skip(static_cast<int64_t>(length));
  }
  bool SkipField(uint32_t type) {
    uint64_t ignored = 0;
    Cursor sub = *this;
    switch (type) {
      case kVarint:
        return Varint(&ignored);
      case kFixed64:
        return Skip(8);
      case kBytes:
        return Sub(&sub);
      case kFixed32:
        return Skip(4);
      default:
        return false;  // groups are in none of these messages
    }
  }

 private:
  template <typename Visit>
  bool Walk(int64_t bytes, Visit visit) {
    if (bytes < 0 || bytes > left()) return false;
    at_ += bytes;
    while (bytes > 0) {
      const auto& piece = (*pieces_)[piece_];
      const auto take = std::min<size_t>(static_cast<size_t>(bytes), piece.size() - offset_);
      visit(piece.data() + offset_, take);
      offset_ += take;
      bytes -= static_cast<int64_t>(take);
      if (offset_ == piece.size()) {
        ++piece_;
        offset_ = 0;
      }
    }
    return true;
  }

  const std::vector<std::span<const uint8_t>>* pieces_;
  size_t piece_ = 0;
  size_t offset_ = 0;
  int64_t at_ = 0;
  int64_t end_;
};

/// Where the body of an encapsulated IPC message that starts with these bytes begins; 0 when it is none.
int64_t BodyOffset(Cursor cursor) {
  std::array<uint8_t, 8> prefix{};
  if (!cursor.Copy(prefix.data(), 8)) return 0;
  uint32_t continuation = 0;
  int32_t length = 0;
  std::memcpy(&continuation, prefix.data(), 4);
  std::memcpy(&length, prefix.data() + 4, 4);
  return continuation == 0xFFFFFFFF && length > 0 ? 8 + static_cast<int64_t>(length) : 0;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> CopyAligned(Cursor bytes, arrow::MemoryPool* pool) {
  const int64_t size = bytes.left();
  const int64_t lead = (kBodyAlignment - BodyOffset(bytes) % kBodyAlignment) % kBodyAlignment;
  ARROW_ASSIGN_OR_RAISE(auto owned, arrow::AllocateBuffer(size + lead, kBodyAlignment, pool));
  std::shared_ptr<arrow::Buffer> buffer = std::move(owned);
  if (!bytes.Copy(buffer->mutable_data() + lead, size)) return Malformed("its bytes end early");
  return arrow::SliceBuffer(buffer, lead, size);
}

/// Field 1 of the messages of rows and schemas; the last one counts, as protobuf says.
arrow::Status FindSerialized(Cursor message, Cursor* bytes, bool* found) {
  *found = false;
  while (message.left() > 0) {
    uint32_t field = 0, type = 0;
    if (!message.Tag(&field, &type)) return Malformed("a bad tag");
    const bool wanted = field == kSerialized && type == kBytes;
    if (wanted ? !message.Sub(bytes) : !message.SkipField(type)) return Malformed("a field ends early");
    *found = *found || wanted;
  }
  return arrow::Status::OK();
}

arrow::Status ReadProgress(Cursor progress, ReadRowsMessage* out) {
  while (progress.left() > 0) {
    uint32_t field = 0, type = 0;
    if (!progress.Tag(&field, &type)) return Malformed("a bad tag in its progress");
    const bool wanted = type == kFixed64 && (field == kAtResponseStart || field == kAtResponseEnd);
    double* target = field == kAtResponseStart ? &out->progress_start : &out->progress_end;
    if (wanted ? !progress.Double(target) : !progress.SkipField(type)) return Malformed("its progress ends early");
    if (wanted) *target = std::isfinite(*target) ? std::clamp(*target, 0.0, 1.0) : 0.0;
  }
  return arrow::Status::OK();
}

arrow::Status ReadStats(Cursor stats, ReadRowsMessage* out) {
  while (stats.left() > 0) {
    uint32_t field = 0, type = 0;
    Cursor progress = stats;
    if (!stats.Tag(&field, &type)) return Malformed("a bad tag in its statistics");
    const bool wanted = field == kProgress && type == kBytes;
    if (wanted ? !stats.Sub(&progress) : !stats.SkipField(type)) return Malformed("its statistics end early");
    if (wanted) ARROW_RETURN_NOT_OK(ReadProgress(progress, out));
  }
  return arrow::Status::OK();
}

arrow::Status ReadThrottle(Cursor throttle, ReadRowsMessage* out) {
  while (throttle.left() > 0) {
    uint32_t field = 0, type = 0;
    uint64_t value = 0;
    if (!throttle.Tag(&field, &type)) return Malformed("a bad tag in its throttle state");
    const bool wanted = field == kThrottlePercent && type == kVarint;
    if (wanted ? !throttle.Varint(&value) : !throttle.SkipField(type)) return Malformed("its throttle state ends early");
    if (wanted) out->throttle_percent = static_cast<int32_t>(std::min<uint64_t>(value, 100));
  }
  return arrow::Status::OK();
}

arrow::Status ReadSchema(const Cursor& schema, ReadRowsMessage* out) {
  Cursor bytes = schema;
  bool found = false;
  ARROW_RETURN_NOT_OK(FindSerialized(schema, &bytes, &found));
  if (!found) return arrow::Status::OK();
  if (bytes.left() > kLongestSchema) return Malformed("its schema is longer than 64 MiB");
  out->schema.resize(static_cast<size_t>(bytes.left()));
  bytes.Copy(reinterpret_cast<uint8_t*>(out->schema.data()), bytes.left());
  return arrow::Status::OK();
}

}  // namespace

arrow::Result<ReadRowsMessage> ParseReadRowsResponse(const rpc::ByteMessage& message, arrow::MemoryPool* pool) {
  ReadRowsMessage out{.wire_bytes = message.size};
  Cursor cursor(message);
  Cursor rows = cursor;
  bool has_rows = false;
  while (cursor.left() > 0) {
    uint32_t field = 0, type = 0;
    if (!cursor.Tag(&field, &type)) return Malformed("a bad tag");
    if (field == kRowCount && type == kVarint) {
      uint64_t count = 0;
      if (!cursor.Varint(&count)) return Malformed("its row count ends early");
      if (count > static_cast<uint64_t>(kMostRows)) return Malformed("its row count is negative or above 2^31 - 1");
      out.row_count = static_cast<int64_t>(count);
      continue;
    }
    if (field == kUncompressedByteSize && type == kVarint) {
      uint64_t size = 0;
      if (!cursor.Varint(&size)) return Malformed("its uncompressed size ends early");
      // -1: compression would not have made it smaller (storage.proto).
      out.uncompressed_bytes = std::max<int64_t>(static_cast<int64_t>(size), 0);
      continue;
    }
    Cursor sub = cursor;
    if (type != kBytes) {
      if (!cursor.SkipField(type)) return Malformed("a field ends early");
      continue;
    }
    if (!cursor.Sub(&sub)) return Malformed("a field ends early");
    if (field == kStats) ARROW_RETURN_NOT_OK(ReadStats(sub, &out));
    if (field == kThrottleState) ARROW_RETURN_NOT_OK(ReadThrottle(sub, &out));
    if (field == kArrowSchema || field == kAvroSchema) ARROW_RETURN_NOT_OK(ReadSchema(sub, &out));
    if (field == kArrowRecordBatch || field == kAvroRows) ARROW_RETURN_NOT_OK(FindSerialized(sub, &rows, &has_rows));
    out.has_arrow = out.has_arrow || field == kArrowSchema || field == kArrowRecordBatch;
    out.has_avro = out.has_avro || field == kAvroSchema || field == kAvroRows;
  }
  if (has_rows && rows.left() > 0) {
    ARROW_ASSIGN_OR_RAISE(out.rows, CopyAligned(rows, pool));
  }
  return out;
}

}  // namespace headrace::bigquery
