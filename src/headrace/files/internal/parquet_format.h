// Parquet, with row groups bounded by rows and by memory. One thread calls it.
#pragma once

#include <memory>
#include <vector>

#include <arrow/memory_pool.h>

#include "headrace/files/internal/format_writer.h"

namespace arrow::internal {
class ThreadPool;
}
namespace parquet::arrow {
class FileWriter;
}

namespace headrace {

class ParquetFormatWriter final : public FormatWriter {
 public:
  static arrow::Result<std::unique_ptr<FormatWriter>> Make(const FileEncoding& encoding, const std::shared_ptr<arrow::Schema>& schema,
                                                           const std::shared_ptr<arrow::io::OutputStream>& out);
  /// Arrow's writer writes its footer into the stream, which is closed by then and refuses it.
  ~ParquetFormatWriter() override;

  arrow::Status Write(const arrow::RecordBatch& batch) override;
  arrow::Status Finish() override;
  int64_t held() const override { return pool_.bytes_allocated() + waiting_bytes_; }
  int64_t peak_memory() const override { return pool_.max_memory(); }

 private:
  explicit ParquetFormatWriter(const FileEncoding& encoding);
  arrow::Status WriteWaiting();
  arrow::Status WriteInPieces(const arrow::RecordBatch& batch, int64_t bytes);
  arrow::Status WritePiece(const arrow::RecordBatch& piece);

  const FileEncoding encoding_;
  const int64_t piece_bytes_;                                  // of rows that are encoded at once
  arrow::ProxyMemoryPool pool_{arrow::default_memory_pool()};  // counts what the encoder holds; outlives writer_
  std::shared_ptr<arrow::internal::ThreadPool> threads_;       // null = the caller's only
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  std::vector<std::shared_ptr<arrow::RecordBatch>> waiting_;  // for enough rows to be encoded by several threads
  int64_t waiting_bytes_ = 0;                                 // of memory, also that of the batches' own objects
  int64_t columns_ = 0;
  int64_t base_memory_ = 0;  // held by an empty row group
  int64_t rows_ = 0;         // written
  bool begun_ = false;
  bool row_group_full_ = false;
};

}  // namespace headrace
