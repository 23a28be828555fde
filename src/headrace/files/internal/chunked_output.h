// An output stream that gathers small writes into large ones and compresses them on request. It neither closes nor owns the stream below,
// and nothing that it still holds is written when it is destroyed. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <arrow/io/interfaces.h>
#include <arrow/util/compression.h>

#include "headrace/base/error.h"
#include "headrace/files/file_format.h"

namespace headrace {

class ChunkedOutput final : public arrow::io::OutputStream {
 public:
  static arrow::Result<std::shared_ptr<ChunkedOutput>> Make(std::shared_ptr<arrow::io::OutputStream> below, FileCompression compression);
  ~ChunkedOutput() override = default;

  arrow::Status Write(const void* data, int64_t size) override;
  using arrow::io::OutputStream::Write;
  /// Everything goes down, and a compressed stream ends. Once, at the end.
  arrow::Status Finish();

  /// Bytes not yet below (before compression).
  int64_t held() const { return static_cast<int64_t>(buffer_.size()); }
  static constexpr int64_t kChunkBytes = int64_t{256} << 10;

  /// Arrow's writers ask where they are: bytes written into this stream.
  arrow::Result<int64_t> Tell() const override { return written_; }
  arrow::Status Flush() override { return arrow::Status::OK(); }
  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }

 private:
  ChunkedOutput(std::shared_ptr<arrow::io::OutputStream> below, std::shared_ptr<arrow::util::Compressor> compressor);
  arrow::Status Push(std::string_view bytes);

  const std::shared_ptr<arrow::io::OutputStream> below_;
  const std::shared_ptr<arrow::util::Compressor> compressor_;  // null = none
  std::string buffer_{};
  std::string compressed_{};
  int64_t written_ = 0;
};

/// The codec of a compressed file; null for kNone.
arrow::Result<std::unique_ptr<arrow::util::Codec>> CodecOf(FileCompression compression);

}  // namespace headrace
