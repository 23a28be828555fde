// How the formats get at bytes: files through the job's file system, standard input once, decompressed where the name says so.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <arrow/io/interfaces.h>

#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/files/file_source.h"
#include "headrace/files/internal/file_part.h"
#include "headrace/files/internal/standard_stream.h"

namespace headrace {

/// Standard input, looked at (for the schema) and then read from its beginning once. Shared by a source and everything made by it; any
/// thread.
class StandardInput {
 public:
  explicit StandardInput(int descriptor) : descriptor_(descriptor) {}
  /// What is read from the stream is kept for Take. Once.
  arrow::Result<std::shared_ptr<arrow::io::InputStream>> Look();
  /// From the first byte. Once; FAILED_PRECONDITION with the reason INPUT_IS_GONE after that.
  arrow::Result<std::shared_ptr<arrow::io::InputStream>> Take();
  /// Ends every read of it, also one that waits.
  void Cancel() { interrupt_->Set(); }

 private:
  class Stream;
  const int descriptor_;
  const std::shared_ptr<StreamInterrupt> interrupt_ = std::make_shared<StreamInterrupt>();
  std::mutex mutex_;
  std::shared_ptr<Stream> stream_;
  bool taken_ = false;
};

/// Copied freely; what it points to outlives enumerators and readers.
struct FileAccess {
  std::shared_ptr<const FileSourceOptions> options{};
  FileSystem* files = nullptr;
  std::shared_ptr<StandardInput> input{};

  /// The bytes of the whole file or of standard input, decompressed. `look`: the caller will not read it to its end.
  arrow::Result<std::shared_ptr<arrow::io::InputStream>> OpenStream(const FileIdentity& file, bool look) const;
  /// Bytes `begin` to `end` of a file that is not compressed.
  arrow::Result<std::shared_ptr<arrow::io::InputStream>> OpenRange(const FileIdentity& file, int64_t begin, int64_t end) const;
  arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> OpenFile(const FileIdentity& file) const;
};

}  // namespace headrace
