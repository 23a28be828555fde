// Rows as lines of JSON (NDJSON), both ways: the column "JSON row" of the type table, at any nesting.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "headrace/base/error.h"
#include "headrace/types/coercion.h"

namespace headrace {

namespace internal {
class RowText;
class JsonRowTree;
}  // namespace internal

/// Writes one object and a line feed for each row. Every column is written: a null as null, a REPEATED column always as an array. One
/// thread.
class JsonRowWriter {
 public:
  /// INVALID_ARGUMENT for a schema whose types are not the canonical ones.
  static arrow::Result<std::unique_ptr<JsonRowWriter>> Make(std::shared_ptr<arrow::Schema> canonical);
  ~JsonRowWriter();

  /// Rows `first` to `first` + `count` of a batch of the writer's schema. A value that BigQuery has not is an error that names column, row
  /// (the row in the batch plus `row_number`) and value; `out` then ends in an unfinished row.
  arrow::Status Append(const arrow::RecordBatch& batch, int64_t first, int64_t count, std::string* out, int64_t row_number = 0);

 private:
  explicit JsonRowWriter(std::unique_ptr<internal::RowText> rows);
  std::unique_ptr<internal::RowText> rows_;
};

/// Reads rows into a batch by the coercion table. Keys match column names whatever their case. A missing key is a null (an empty array for
/// a REPEATED column), as is null; for a REQUIRED column both are errors. A key that appears twice, a value that does not fit, a null
/// inside an array, text after the object and anything that is not JSON are errors that name column, row and value. One thread.
class JsonRowReader {
 public:
  static arrow::Result<std::unique_ptr<JsonRowReader>> Make(std::shared_ptr<arrow::Schema> canonical, const ParseOptions& options,
                                                            arrow::MemoryPool* pool = arrow::default_memory_pool());
  ~JsonRowReader();

  /// One object; white space around it is allowed. `row_number` is for errors. After an error the reader answers that error for ever: the
  /// row may have been read in part.
  arrow::Status Append(std::string_view line, int64_t row_number);
  int64_t row_count() const { return row_count_; }
  /// The rows since the last Finish, of the canonical schema.
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Finish();

 private:
  JsonRowReader(std::shared_ptr<arrow::Schema> schema, std::unique_ptr<internal::JsonRowTree> tree);

  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<internal::JsonRowTree> tree_;
  arrow::Status failed_;
  int64_t row_count_ = 0;
};

}  // namespace headrace
