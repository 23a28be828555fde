// A part of an NDJSON file: one JSON object a line. One thread.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "headrace/files/internal/line_reader.h"
#include "headrace/files/internal/row_stream.h"
#include "headrace/types/json_row.h"

namespace headrace {

/// The narrowest schema that every row of all files has.
arrow::Result<std::shared_ptr<arrow::Schema>> InferNdjsonSchema(const FileAccess& access, const std::vector<FileIdentity>& files,
                                                                const std::stop_token& stop);

class NdjsonRows final : public RowStream {
 public:
  static arrow::Result<std::unique_ptr<RowStream>> Open(const FileAccess& access, const FilePart& part,
                                                        const std::shared_ptr<arrow::Schema>& schema);
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() override;
  int64_t bytes_read() const override;

 private:
  NdjsonRows(const FileAccess& access, FilePart part, LineReader lines, std::unique_ptr<JsonRowReader> rows);
  /// The error of the last line, with its file and line.
  arrow::Status BadRow(const arrow::Status& status) const;

  const FileAccess access_;
  const FilePart part_;
  LineReader lines_;
  const std::unique_ptr<JsonRowReader> rows_;
  int64_t row_ = 0;  // of the part
};

}  // namespace headrace
