#include "headrace/files/internal/standard_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <arrow/buffer.h>
#include <climits>
#include <fmt/format.h>

namespace headrace {
namespace {

arrow::Status StreamError(int error, std::string_view what) {
  ErrorInfo info{.code = Code::kUnknown, .service = "local files", .resource = "-"};
  if (error == EPIPE) info = {.code = Code::kCancelled, .service = "local files", .resource = "-", .reason = "OUTPUT_CLOSED"};
  if (error == EISDIR) {
    info.code = Code::kFailedPrecondition;
    info.reason = "IS_DIRECTORY";
    return MakeError(std::move(info), fmt::format("cannot {}: it is a directory; give a file or a pipe", what));
  }
  if (error == EBADF) {
    info.code = Code::kFailedPrecondition;
    return MakeError(std::move(info), fmt::format("cannot {}: it is closed", what));
  }
  if (error == ENOSPC || error == EFBIG || error == EDQUOT) info.code = Code::kResourceExhausted, info.reason = "DISK_FULL";
  return MakeError(std::move(info), fmt::format("cannot {}: {}", what, std::strerror(error)));
}

/// Whether to try again: after a signal, and on a descriptor that somebody made non-blocking: at once when the caller waits itself.
bool Retry(int descriptor, short events, bool caller_waits) {
  if (errno == EINTR) return true;
  if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
  if (caller_waits) return true;
  pollfd waiting{.fd = descriptor, .events = events, .revents = 0};
  return poll(&waiting, 1, -1) >= 0 || errno == EINTR;
}

/// Until `descriptor` is ready for `events`, or the interrupt is set. `what` is what is done then.
arrow::Status Await(const StreamInterrupt& interrupt, int descriptor, short events, std::string_view what) {
  pollfd waiting[] = {{interrupt.descriptor(), POLLIN, 0}, {descriptor, events, 0}};
  while (poll(waiting, 2, -1) < 0) {
    if (errno != EINTR) return StreamError(errno, what);
  }
  if (waiting[0].revents != 0) return arrow::Status::Cancelled("cancelled while waiting to ", what);
  return arrow::Status::OK();
}

class OutputDescriptor final : public WritableFile {
 public:
  OutputDescriptor(int descriptor, std::shared_ptr<StreamInterrupt> interrupt) : descriptor_(descriptor), interrupt_(std::move(interrupt)) {
    struct stat info{};
    const bool known = fstat(descriptor, &info) == 0;
    waits_ = interrupt_ != nullptr && (!known || !S_ISREG(info.st_mode));
    // An opening of our own, so that nobody else's writes stop waiting.
    if (waits_ && known && S_ISFIFO(info.st_mode)) {
      own_ = open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    }
  }
  ~OutputDescriptor() override {
    if (own_ >= 0) close(own_);
  }
  arrow::Status Write(const void* data, int64_t size) override {
    const char* next = static_cast<const char*>(data);
    while (size > 0) {
      int64_t piece = size;
      if (waits_) {
        ARROW_RETURN_NOT_OK(Await(*interrupt_, descriptor_, POLLOUT, "write to standard output"));
        if (own_ < 0) piece = std::min<int64_t>(size, PIPE_BUF);  // as much as what is ready takes without waiting
      }
      ssize_t done = write(own_ >= 0 ? own_ : descriptor_, next, static_cast<size_t>(piece));
      if (done < 0 && Retry(descriptor_, POLLOUT, waits_)) continue;
      if (done < 0) return StreamError(errno, "write to standard output");
      next += done;
      size -= done;
    }
    return arrow::Status::OK();
  }
  arrow::Status Sync() override {
    // What is no file has nothing to sync (EINVAL), and a file system that cannot sync has not failed to write.
    while (fsync(descriptor_) != 0) {
      if (errno == EINTR) continue;
      if (errno != EIO && errno != ENOSPC && errno != EDQUOT) break;
      return StreamError(errno, "write to standard output");
    }
    return arrow::Status::OK();
  }
  arrow::Status Close() override {
    // A quota or a full disk behind a network may show only here. The descriptor itself belongs to the process.
    const int copy = fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
    if (copy >= 0 && close(copy) != 0 && errno != EINTR) return StreamError(errno, "write to standard output");
    return arrow::Status::OK();
  }

 private:
  const int descriptor_;
  const std::shared_ptr<StreamInterrupt> interrupt_;
  bool waits_ = false;  // for a reader, and can be interrupted
  int own_ = -1;        // the same pipe, non-blocking; negative = it cannot be opened
};

class InputDescriptor final : public arrow::io::InputStream {
 public:
  InputDescriptor(int descriptor, std::shared_ptr<StreamInterrupt> interrupt) : descriptor_(descriptor), interrupt_(std::move(interrupt)) {}
  ~InputDescriptor() override = default;

  arrow::Result<int64_t> Read(int64_t size, void* out) override {
    if (position_ == 0) ARROW_RETURN_NOT_OK(CheckReadable());
    int64_t total = 0;
    while (total < size) {
      if (interrupt_ != nullptr) ARROW_RETURN_NOT_OK(Await(*interrupt_, descriptor_, POLLIN, "read standard input"));
      ssize_t got = read(descriptor_, static_cast<char*>(out) + total, static_cast<size_t>(size - total));
      if (got < 0 && Retry(descriptor_, POLLIN, interrupt_ != nullptr)) continue;
      if (got < 0) return StreamError(errno, "read standard input");
      if (got == 0) break;
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
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

 private:
  /// Nobody may be waited for at a standard input that is closed. Its number may have been taken: by a stand-in that cannot be read, or by
  /// an event (no kind of file at all), as libgrpc opens one before main begins.
  arrow::Status CheckReadable() const {
    const int flags = fcntl(descriptor_, F_GETFL);
    struct stat info{};
    const bool closed = flags < 0 || (flags & O_ACCMODE) == O_WRONLY || (fstat(descriptor_, &info) == 0 && (info.st_mode & S_IFMT) == 0);
    return closed ? StreamError(EBADF, "read standard input") : arrow::Status::OK();
  }

  const int descriptor_;
  const std::shared_ptr<StreamInterrupt> interrupt_;
  int64_t position_ = 0;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<WritableFile> OpenOutputDescriptor(int descriptor, std::shared_ptr<StreamInterrupt> interrupt) {
  return std::make_unique<OutputDescriptor>(descriptor, std::move(interrupt));
}

StreamInterrupt::StreamInterrupt() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

StreamInterrupt::~StreamInterrupt() {
  if (event_ >= 0) close(event_);
}

void StreamInterrupt::Set() {
  const uint64_t one = 1;
  while (write(event_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

std::shared_ptr<arrow::io::InputStream> OpenInputDescriptor(int descriptor, std::shared_ptr<StreamInterrupt> interrupt) {
  return std::make_shared<InputDescriptor>(descriptor, std::move(interrupt));
}

}  // namespace headrace
