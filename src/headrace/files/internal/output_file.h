// One file being written under a temporary name (or the bytes of standard output), in any format; counts and hashes what goes out. One
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/files/internal/format_writer.h"
#include "headrace/files/manifest.h"

namespace headrace {

class OutputFile {
 public:
  /// Makes the file; passes the fail point "file.temp_created".
  static arrow::Result<std::unique_ptr<OutputFile>> Create(FileSystem* files, const std::string& path,
                                                           const std::shared_ptr<arrow::Schema>& schema, const FileEncoding& encoding);
  /// Over a file that is open already.
  static arrow::Result<std::unique_ptr<OutputFile>> Over(std::unique_ptr<WritableFile> file, const std::shared_ptr<arrow::Schema>& schema,
                                                         const FileEncoding& encoding);
  ~OutputFile();  // aborts when not closed

  /// After an error only Abort is of use.
  arrow::Status Write(const arrow::RecordBatch& batch);
  /// Writes what ends the file, syncs and closes. The answer has no name yet.
  arrow::Result<ManifestFile> Close();
  /// Closes without syncing; what is on disk is of no use.
  void Abort();

  int64_t rows() const { return rows_; }
  /// Bytes in the file and on their way to it.
  int64_t size() const;
  /// The most memory that the encoder held.
  int64_t peak_memory() const { return writer_->peak_memory(); }

 private:
  OutputFile() = default;

  std::shared_ptr<HashingOutputStream> out_;
  std::unique_ptr<FormatWriter> writer_;
  int64_t rows_ = 0;
};

}  // namespace headrace
