#include "headrace/files/internal/file_access.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <arrow/buffer.h>
#include <arrow/io/compressed.h>
#include <fmt/format.h>

#include "headrace/files/internal/chunked_output.h"
#include "headrace/files/internal/row_stream.h"

namespace headrace {

/// Keeps what is read until it is rewound, then gives it out again before it goes on.
class StandardInput::Stream final : public arrow::io::InputStream {
 public:
  explicit Stream(std::shared_ptr<arrow::io::InputStream> below) : below_(std::move(below)) {}
  ~Stream() override = default;

  void Rewind() {
    recording_ = false;
    position_ = 0;
  }

  arrow::Result<int64_t> Read(int64_t size, void* out) override {
    int64_t total = 0;
    if (!recording_ && replayed_ < kept_.size()) {
      total = std::min<int64_t>(size, static_cast<int64_t>(kept_.size() - replayed_));
      std::memcpy(out, kept_.data() + replayed_, static_cast<size_t>(total));
      replayed_ += static_cast<size_t>(total);
    }
    if (total < size) {
      ARROW_ASSIGN_OR_RAISE(int64_t got, below_->Read(size - total, static_cast<char*>(out) + total));
      if (recording_) kept_.append(static_cast<const char*>(out) + total, static_cast<size_t>(got));
      total += got;
    }
    position_ += total;
    return total;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(size));
    ARROW_ASSIGN_OR_RAISE(int64_t got, Read(size, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Close() override { return arrow::Status::OK(); }  // whoever looked at it closes it, and it is read after that
  bool closed() const override { return false; }

 private:
  const std::shared_ptr<arrow::io::InputStream> below_;
  bool recording_ = true;
  std::string kept_{};
  size_t replayed_ = 0;
  int64_t position_ = 0;
};

arrow::Result<std::shared_ptr<arrow::io::InputStream>> StandardInput::Look() {
  std::lock_guard<std::mutex> guard(mutex_);
  if (stream_ != nullptr) return arrow::Status::Invalid("standard input is looked at once");
  stream_ = std::make_shared<Stream>(OpenInputDescriptor(descriptor_, interrupt_));
  return stream_;
}

arrow::Result<std::shared_ptr<arrow::io::InputStream>> StandardInput::Take() {
  std::lock_guard<std::mutex> guard(mutex_);
  if (std::exchange(taken_, true)) {
    return MakeError({.code = Code::kFailedPrecondition, .service = "local files", .resource = "-", .reason = "INPUT_IS_GONE"},
                     "standard input has been read already and cannot be read again: put it into a file to read it more than once");
  }
  if (stream_ == nullptr) stream_ = std::make_shared<Stream>(OpenInputDescriptor(descriptor_, interrupt_));
  stream_->Rewind();
  return stream_;
}

arrow::Result<std::shared_ptr<arrow::io::InputStream>> FileAccess::OpenStream(const FileIdentity& file, bool look) const {
  if (file.path == "-") return look ? input->Look() : input->Take();  // never compressed: it has no name that would say so
  ARROW_ASSIGN_OR_RAISE(auto opened, files->Open(file.path));
  ARROW_ASSIGN_OR_RAISE(auto codec, CodecOf(file.kind.compression));
  if (codec == nullptr) return opened;
  // Arrow's stream sees that bytes are missing only when it has had one.
  ARROW_ASSIGN_OR_RAISE(const int64_t size, opened->GetSize());
  if (size == 0) return ExplainFileError(arrow::Status::IOError("it is empty, and compressed text never is"), file.path);
  // The stream makes its decompressor at once and keeps no reference to the codec.
  return arrow::io::CompressedInputStream::Make(codec.get(), opened);
}

arrow::Result<std::shared_ptr<arrow::io::InputStream>> FileAccess::OpenRange(const FileIdentity& file, int64_t begin, int64_t end) const {
  ARROW_ASSIGN_OR_RAISE(auto opened, OpenFile(file));
  return arrow::io::RandomAccessFile::GetStream(std::move(opened), begin, end - begin);
}

arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> FileAccess::OpenFile(const FileIdentity& file) const {
  if (file.path != "-") return files->Open(file.path);
  return Unsupported("-", fmt::format("a {} file is read from its end, and standard input has none to begin with: put it into a file",
                                      FileFormatName(file.kind.format)));
}

}  // namespace headrace
