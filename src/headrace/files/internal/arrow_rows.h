// Record batches of Arrow IPC files and streams. One thread.
#pragma once

#include <memory>

#include <arrow/ipc/reader.h>

#include "headrace/files/internal/row_stream.h"

namespace headrace {

class ArrowFileRows final : public RowStream {
 public:
  static arrow::Result<std::unique_ptr<RowStream>> Open(const FileAccess& access, const FilePart& part,
                                                        std::shared_ptr<arrow::Schema> schema);
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() override;

 private:
  ArrowFileRows(FilePart part, std::shared_ptr<arrow::Schema> schema) : part_(std::move(part)), schema_(std::move(schema)) {}

  FilePart part_;  // begin is the next batch
  const std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> file_;
};

/// A whole stream: a file, or standard input. One that ends without a marker is taken, as Arrow's format wants it, with a warning; one that
/// goes on behind its marker is an error.
class ArrowStreamRows final : public RowStream {
 public:
  static arrow::Result<std::unique_ptr<RowStream>> Open(const FileAccess& access, const FilePart& part,
                                                        std::shared_ptr<arrow::Schema> schema);
  ~ArrowStreamRows() override;
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() override;
  std::string warning() const override;

 private:
  class Input;
  ArrowStreamRows(std::string path, std::shared_ptr<arrow::Schema> schema);
  arrow::Status CheckEnd();

  const std::string path_;
  const std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<Input> input_;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> stream_;
  int64_t next_row_ = 0;
  bool has_marker_ = false;
};

}  // namespace headrace
