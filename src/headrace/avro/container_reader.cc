#include "headrace/avro/container_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <arrow/buffer.h>
#include <fmt/format.h>

#include "headrace/avro/internal/varint.h"

namespace headrace::avro {
namespace {

constexpr std::string_view kMagic("Obj\x01", 4);
constexpr int64_t kSyncBytes = std::tuple_size_v<SyncMarker>;
// Read at least this much at once.
constexpr int64_t kReadAhead = int64_t{1} << 20;
constexpr int64_t kFirstRead = int64_t{64} << 10;
// Two varints of ten bytes.
constexpr int64_t kBlockHead = 20;

// Takes from the front of bytes. The first failure stays: every later answer is empty.
class Taker {
 public:
  explicit Taker(std::string_view bytes)
      : begin_(reinterpret_cast<const uint8_t*>(bytes.data())), at_(begin_), end_(begin_ + bytes.size()) {}

  int64_t Long() {
    int64_t value = 0;
    const uint8_t* next = failed_ ? nullptr : ReadLong(at_, end_, &value);
    failed_ = next == nullptr;
    if (!failed_) at_ = next;
    return failed_ ? 0 : value;
  }
  std::string_view Bytes(int64_t size) {
    failed_ = failed_ || size < 0 || size > end_ - at_;
    if (failed_) return {};
    const std::string_view taken(reinterpret_cast<const char*>(at_), static_cast<size_t>(size));
    at_ += size;
    return taken;
  }
  std::string_view Sized() { return Bytes(Long()); }
  bool failed() const { return failed_; }
  int64_t taken() const { return at_ - begin_; }

 private:
  const uint8_t* begin_;
  const uint8_t* at_;
  const uint8_t* end_;
  bool failed_ = false;
};

}  // namespace

arrow::Result<std::unique_ptr<ContainerReader>> ContainerReader::Open(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                                                      ContainerLimits limits) {
  std::unique_ptr<ContainerReader> reader(new ContainerReader(std::move(file), limits));
  ARROW_RETURN_NOT_OK(reader->ReadHeader());
  return reader;
}

arrow::Status ContainerReader::Damaged(int64_t position, std::string_view why) const {
  return MakeError({.code = Code::kDataLoss, .reason = "BAD_AVRO_DATA"}, fmt::format("Avro file, byte {}: {}", position, why));
}

// Bytes at a place of the file, or fewer at its end.
arrow::Result<std::string_view> ContainerReader::Bytes(int64_t position, int64_t size) {
  size = std::min(size, file_size_ - position);
  const bool there = ahead_ != nullptr && position >= ahead_position_ && position + size <= ahead_position_ + ahead_->size();
  if (!there) {
    ARROW_ASSIGN_OR_RAISE(ahead_, file_->ReadAt(position, std::min(std::max(size, kReadAhead), file_size_ - position)));
    ahead_position_ = position;
    if (ahead_->size() < size) return Damaged(position, "the file ends before its size");
  }
  return std::string_view(reinterpret_cast<const char*>(ahead_->data()) + (position - ahead_position_), static_cast<size_t>(size));
}

arrow::Status ContainerReader::ReadHeader() {
  ARROW_ASSIGN_OR_RAISE(file_size_, file_->GetSize());
  end_ = std::numeric_limits<int64_t>::max();
  bool complete = false;
  for (int64_t size = kFirstRead; !complete; size *= 4) {
    const bool whole = size >= file_size_;
    ARROW_ASSIGN_OR_RAISE(const std::string_view bytes, Bytes(0, size));
    ARROW_RETURN_NOT_OK(ParseHeader(bytes, whole, &complete));
    if (!complete && size >= limits_.max_header_bytes) {
      return Damaged(0, fmt::format("the header is longer than {} bytes", limits_.max_header_bytes));
    }
  }
  const std::string text = std::exchange(metadata_["avro.schema"], {});
  metadata_.erase("avro.schema");
  if (text.empty()) return Damaged(0, "the header has no schema");
  ARROW_ASSIGN_OR_RAISE(schema_, Schema::Parse(text));
  auto codec = metadata_.find("avro.codec");
  ARROW_ASSIGN_OR_RAISE(compression_, CodecFromName(codec == metadata_.end() || codec->second.empty() ? "null" : codec->second));
  ARROW_ASSIGN_OR_RAISE(codec_, BlockCodec::Make(compression_));
  position_ = data_start_;
  return arrow::Status::OK();
}

// `complete` stays false when the header may go on after these bytes.
arrow::Status ContainerReader::ParseHeader(std::string_view bytes, bool whole, bool* complete) {
  if (bytes.substr(0, kMagic.size()) != kMagic) return Damaged(0, "no Avro container file");
  metadata_.clear();
  Taker taker(bytes.substr(kMagic.size()));
  while (!taker.failed()) {
    int64_t count = taker.Long();
    if (count == 0) break;
    if (count < 0) {
      taker.Long();  // the block's size in bytes
      if (count == std::numeric_limits<int64_t>::min()) return Damaged(0, "the header is no map");
      count = -count;
    }
    for (int64_t i = 0; i < count && !taker.failed(); ++i) {
      std::string key(taker.Sized());
      metadata_[std::move(key)] = taker.Sized();
    }
  }
  const std::string_view sync = taker.Bytes(kSyncBytes);
  if (taker.failed()) return whole ? Damaged(static_cast<int64_t>(bytes.size()), "the file ends inside its header") : arrow::Status::OK();
  std::copy(sync.begin(), sync.end(), sync_.begin());
  data_start_ = static_cast<int64_t>(kMagic.size()) + taker.taken();
  *complete = true;
  return arrow::Status::OK();
}

arrow::Status ContainerReader::SetSplit(int64_t begin, int64_t end) {
  end_ = end;
  position_ = data_start_;
  if (begin <= data_start_ - kSyncBytes) return arrow::Status::OK();
  // The first marker that begins at `begin` or later. Pieces overlap so that a marker across their border is found.
  const std::string_view marker(sync_.data(), sync_.size());
  for (int64_t at = begin; at <= file_size_ - kSyncBytes && at < end;) {
    ARROW_ASSIGN_OR_RAISE(const std::string_view piece, Bytes(at, kReadAhead));
    const size_t found = piece.find(marker);
    if (found != std::string_view::npos) {
      position_ = at + static_cast<int64_t>(found) + kSyncBytes;
      return arrow::Status::OK();
    }
    at += static_cast<int64_t>(piece.size()) - kSyncBytes + 1;
  }
  position_ = file_size_;
  return arrow::Status::OK();
}

arrow::Result<std::optional<ContainerBlock>> ContainerReader::Next() {
  while (position_ < file_size_ && position_ - kSyncBytes < end_) {
    const int64_t start = position_;
    ARROW_ASSIGN_OR_RAISE(const std::string_view head, Bytes(start, kBlockHead));
    Taker taker(head);
    const int64_t row_count = taker.Long();
    const int64_t size = taker.Long();
    if (taker.failed() || row_count < 0 || size < 0) return Damaged(start, "no block begins here");
    const int64_t body = start + taker.taken();
    if (size > file_size_ - body - kSyncBytes) return Damaged(start, fmt::format("a block of {} bytes is cut off by the file's end", size));
    if (size > limits_.max_block_bytes) {
      return MakeError({.code = Code::kResourceExhausted, .reason = "BLOCK_TOO_LARGE"},
                       fmt::format("Avro file, byte {}: a block of {} bytes; at most {} are read", start, size, limits_.max_block_bytes));
    }
    ARROW_ASSIGN_OR_RAISE(const std::string_view bytes, Bytes(body, size + kSyncBytes));
    if (bytes.substr(static_cast<size_t>(size)) != std::string_view(sync_.data(), sync_.size())) {
      return Damaged(body + size, "no sync marker after the block");
    }
    position_ = body + size + kSyncBytes;
    if (row_count == 0) continue;
    const std::string_view packed = bytes.substr(0, static_cast<size_t>(size));
    if (compression_ == BlockCompression::kNull) return ContainerBlock{.row_count = row_count, .rows = packed, .position = start};
    const arrow::Status status = codec_->Decompress(packed, limits_.max_block_bytes, &plain_);
    if (!status.ok()) return WithContext(status, fmt::format("Avro file, byte {}: a {} block", start, CodecName(compression_)));
    return ContainerBlock{.row_count = row_count, .rows = plain_, .position = start};
  }
  return std::nullopt;
}

}  // namespace headrace::avro
