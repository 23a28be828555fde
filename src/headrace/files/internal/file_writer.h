// The SinkWriter of the file sink: one file at a time under a temporary name, closed at each PrepareCommit. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/files/internal/output_file.h"
#include "headrace/files/internal/standard_stream.h"
#include "headrace/runtime/sink.h"

namespace headrace {

struct FileWriterSettings {
  std::string directory{};
  std::string single_name{};   // empty = part files
  std::string extension{};     // of part files
  int output_descriptor = -1;  // standard output instead of a file
  std::string run_id{};
  int writer_index = 0;
  uint64_t first_checkpoint = 1;
  int64_t max_file_bytes = 0;
  FileEncoding encoding{};
};

class FileSinkWriter final : public SinkWriter {
 public:
  /// `inherited` are the files that the states of earlier writers name.
  FileSinkWriter(FileSystem* files, FileWriterSettings settings, std::shared_ptr<arrow::Schema> schema,
                 std::vector<ManifestFile> inherited);

  arrow::Status Write(const Batch& batch) override;
  arrow::Status Flush() override { return arrow::Status::OK(); }  // nothing is in flight; PrepareCommit makes rows durable
  arrow::Result<std::vector<Committable>> PrepareCommit() override;
  arrow::Result<std::string> Snapshot(uint64_t checkpoint) override;
  int64_t written() const override { return written_; }
  int64_t bytes_written() const override;
  void Abort() override;
  void Cancel() override;

 private:
  arrow::Status OpenFile();
  arrow::Status CloseFile();
  std::string TempPath(const std::string& name) const;

  FileSystem* const files_;
  const FileWriterSettings settings_;
  const std::shared_ptr<arrow::Schema> schema_;
  std::vector<ManifestFile> prepared_;  // inherited and own
  std::vector<ManifestFile> closed_;    // since the last PrepareCommit
  uint64_t checkpoint_;                 // that closes the files being written
  uint64_t sequence_ = 0;               // of the next file of that checkpoint
  std::string name_{};                  // final name of file_
  std::unique_ptr<OutputFile> file_;
  int64_t written_ = 0;
  int64_t closed_bytes_ = 0;
  const std::shared_ptr<StreamInterrupt> interrupt_;  // of standard output
  bool output_ended_ = false;                         // standard output cannot be begun a second time
};

}  // namespace headrace
