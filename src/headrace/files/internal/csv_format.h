// CSV (RFC 4180) with a header: null is the null text unquoted, and a value that looks like it (the empty text too) is quoted. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type.h>

#include "headrace/files/internal/chunked_output.h"
#include "headrace/files/internal/format_writer.h"

namespace headrace {

class CsvFormatWriter final : public FormatWriter {
 public:
  static arrow::Result<std::unique_ptr<FormatWriter>> Make(const FileEncoding& encoding, const std::shared_ptr<arrow::Schema>& schema,
                                                           const std::shared_ptr<arrow::io::OutputStream>& out);
  ~CsvFormatWriter() override;
  arrow::Status Write(const arrow::RecordBatch& batch) override;
  arrow::Status Finish() override { return out_->Finish(); }
  int64_t held() const override { return out_->held(); }
  int64_t peak_memory() const override { return ChunkedOutput::kChunkBytes + static_cast<int64_t>(text_.capacity()); }

 private:
  class Column;

  explicit CsvFormatWriter(std::string null_value);
  void AppendField(std::string_view text);

  const std::string null_value_;
  std::vector<std::unique_ptr<Column>> columns_;
  std::shared_ptr<ChunkedOutput> out_;
  std::string value_{};
  std::string text_{};
  int64_t rows_ = 0;
};

/// Refuses columns that are no scalars, by name, unless they are to be written as JSON.
arrow::Status CheckCsvSchema(const arrow::Schema& schema, bool nested_as_json);
/// Whether a column's values have a CSV text of their own: no ARRAY, no STRUCT.
bool HasCsvText(const arrow::Field& field);

}  // namespace headrace
