// Avro object container files, written in the dialect that reads back as the same table (avro/table_schema.h). One thread.
#pragma once

#include <memory>
#include <string>

#include "headrace/avro/container_writer.h"
#include "headrace/files/internal/chunked_output.h"
#include "headrace/files/internal/format_writer.h"

namespace headrace {

class AvroFormatWriter final : public FormatWriter {
 public:
  static arrow::Result<std::unique_ptr<FormatWriter>> Make(const FileEncoding& encoding, const std::shared_ptr<arrow::Schema>& schema,
                                                           const std::shared_ptr<arrow::io::OutputStream>& out);
  arrow::Status Write(const arrow::RecordBatch& batch) override;
  arrow::Status Finish() override;
  int64_t held() const override { return rows_->waiting_bytes() + out_->held(); }
  int64_t peak_memory() const override { return peak_; }

 private:
  AvroFormatWriter(std::unique_ptr<avro::ContainerWriter> rows, std::shared_ptr<ChunkedOutput> out)
      : rows_(std::move(rows)), out_(std::move(out)) {}

  const std::unique_ptr<avro::ContainerWriter> rows_;
  const std::shared_ptr<ChunkedOutput> out_;
  std::string bytes_{};
  int64_t peak_ = ChunkedOutput::kChunkBytes;
};

}  // namespace headrace
