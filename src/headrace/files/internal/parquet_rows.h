// Row groups of a Parquet file. One thread.
#pragma once

#include <memory>

#include "headrace/files/internal/row_stream.h"

namespace parquet::arrow {
class FileReader;
}

namespace headrace {

class ParquetRows final : public RowStream {
 public:
  static arrow::Result<std::unique_ptr<RowStream>> Open(const FileAccess& access, const FilePart& part,
                                                        std::shared_ptr<arrow::Schema> schema);
  ~ParquetRows() override;
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() override;

 private:
  ParquetRows(const FilePart& part, std::shared_ptr<arrow::Schema> schema);

  const std::string path_;
  const std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::unique_ptr<arrow::RecordBatchReader> rows_;  // reads from file_
  int64_t next_row_;                                // in the file
};

}  // namespace headrace
