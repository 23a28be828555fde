#include "headrace/files/internal/chunked_output.h"

#include <algorithm>
#include <utility>

namespace headrace {

arrow::Result<std::unique_ptr<arrow::util::Codec>> CodecOf(FileCompression compression) {
  if (compression == FileCompression::kNone) return nullptr;
  return arrow::util::Codec::Create(compression == FileCompression::kGzip ? arrow::Compression::GZIP : arrow::Compression::ZSTD);
}

arrow::Result<std::shared_ptr<ChunkedOutput>> ChunkedOutput::Make(std::shared_ptr<arrow::io::OutputStream> below,
                                                                  FileCompression compression) {
  std::shared_ptr<arrow::util::Compressor> compressor;
  ARROW_ASSIGN_OR_RAISE(auto codec, CodecOf(compression));
  if (codec != nullptr) {
    ARROW_ASSIGN_OR_RAISE(compressor, codec->MakeCompressor());
  }
  return std::shared_ptr<ChunkedOutput>(new ChunkedOutput(std::move(below), std::move(compressor)));
}

ChunkedOutput::ChunkedOutput(std::shared_ptr<arrow::io::OutputStream> below, std::shared_ptr<arrow::util::Compressor> compressor)
    : below_(std::move(below)), compressor_(std::move(compressor)) {
  if (compressor_ != nullptr) compressed_.resize(static_cast<size_t>(kChunkBytes));
}

arrow::Status ChunkedOutput::Write(const void* data, int64_t size) {
  written_ += size;
  std::string_view bytes(static_cast<const char*>(data), static_cast<size_t>(size));
  if (buffer_.empty() && size >= kChunkBytes) return Push(bytes);
  buffer_.append(bytes);
  if (held() < kChunkBytes) return arrow::Status::OK();
  ARROW_RETURN_NOT_OK(Push(buffer_));
  buffer_.clear();
  return arrow::Status::OK();
}

arrow::Status ChunkedOutput::Push(std::string_view bytes) {
  if (compressor_ == nullptr) return below_->Write(bytes);
  while (!bytes.empty()) {
    ARROW_ASSIGN_OR_RAISE(auto step,
                          compressor_->Compress(static_cast<int64_t>(bytes.size()), reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int64_t>(compressed_.size()), reinterpret_cast<uint8_t*>(compressed_.data())));
    if (step.bytes_written > 0) ARROW_RETURN_NOT_OK(below_->Write(compressed_.data(), step.bytes_written));
    bytes.remove_prefix(static_cast<size_t>(step.bytes_read));
    // No progress at all means that the room for the answer is too small (Compressor::CompressResult).
    if (step.bytes_read == 0 && step.bytes_written == 0) compressed_.resize(compressed_.size() * 2);
  }
  return arrow::Status::OK();
}

arrow::Status ChunkedOutput::Finish() {
  ARROW_RETURN_NOT_OK(Push(buffer_));
  buffer_.clear();
  if (compressor_ == nullptr) return arrow::Status::OK();
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto step,
                          compressor_->End(static_cast<int64_t>(compressed_.size()), reinterpret_cast<uint8_t*>(compressed_.data())));
    if (step.bytes_written > 0) ARROW_RETURN_NOT_OK(below_->Write(compressed_.data(), step.bytes_written));
    if (!step.should_retry) return arrow::Status::OK();
    if (step.bytes_written == 0) compressed_.resize(compressed_.size() * 2);
  }
}

}  // namespace headrace
