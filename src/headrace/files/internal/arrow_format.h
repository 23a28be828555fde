// Arrow IPC: files with a footer and streams. A batch that is written is one record batch in the file. One thread.
#pragma once

#include <memory>

#include <arrow/ipc/writer.h>
#include <arrow/memory_pool.h>

#include "headrace/files/internal/chunked_output.h"
#include "headrace/files/internal/format_writer.h"

namespace headrace {

class ArrowFormatWriter final : public FormatWriter {
 public:
  static arrow::Result<std::unique_ptr<FormatWriter>> Make(const FileEncoding& encoding, const std::shared_ptr<arrow::Schema>& schema,
                                                           const std::shared_ptr<arrow::io::OutputStream>& out);
  arrow::Status Write(const arrow::RecordBatch& batch) override;
  arrow::Status Finish() override;
  int64_t held() const override { return out_->held(); }
  int64_t peak_memory() const override { return pool_.max_memory() + ChunkedOutput::kChunkBytes; }

 private:
  explicit ArrowFormatWriter(std::shared_ptr<ChunkedOutput> out) : out_(std::move(out)) {}

  arrow::ProxyMemoryPool pool_{arrow::default_memory_pool()};  // outlives writer_
  const std::shared_ptr<ChunkedOutput> out_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

}  // namespace headrace
