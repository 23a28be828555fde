// NDJSON: one JSON object a line (types/json_row.h). One thread.
#pragma once

#include <memory>
#include <string>

#include "headrace/files/internal/chunked_output.h"
#include "headrace/files/internal/format_writer.h"
#include "headrace/types/json_row.h"

namespace headrace {

class NdjsonFormatWriter final : public FormatWriter {
 public:
  static arrow::Result<std::unique_ptr<FormatWriter>> Make(const FileEncoding& encoding, const std::shared_ptr<arrow::Schema>& schema,
                                                           const std::shared_ptr<arrow::io::OutputStream>& out);
  arrow::Status Write(const arrow::RecordBatch& batch) override;
  arrow::Status Finish() override { return out_->Finish(); }
  int64_t held() const override { return out_->held(); }
  int64_t peak_memory() const override { return ChunkedOutput::kChunkBytes + static_cast<int64_t>(text_.capacity()); }

 private:
  NdjsonFormatWriter(std::unique_ptr<JsonRowWriter> rows, std::shared_ptr<ChunkedOutput> out)
      : json_(std::move(rows)), out_(std::move(out)) {}

  const std::unique_ptr<JsonRowWriter> json_;
  const std::shared_ptr<ChunkedOutput> out_;
  std::string text_{};
  int64_t rows_ = 0;
};

}  // namespace headrace
