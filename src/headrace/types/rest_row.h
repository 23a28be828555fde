// Rows as the REST API answers them: {"f":[{"v":...}]}, every scalar a string, the column "REST answer" of the type table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "headrace/base/error.h"
#include "headrace/types/column_text.h"

namespace headrace {

/// One thread.
class RestRowWriter {
 public:
  /// kRest or kRestMicros (formatOptions.useInt64Timestamp). INVALID_ARGUMENT for a schema whose types are not the canonical ones.
  static arrow::Result<std::unique_ptr<RestRowWriter>> Make(std::shared_ptr<arrow::Schema> canonical, TextForm form);
  ~RestRowWriter();

  /// Rows `first` to `first` + `count` of a batch of the writer's schema, with commas between them: the content of the list "rows". Errors
  /// as JsonRowWriter's.
  arrow::Status Append(const arrow::RecordBatch& batch, int64_t first, int64_t count, std::string* out, int64_t row_number = 0);

 private:
  explicit RestRowWriter(std::unique_ptr<internal::RowText> rows);
  std::unique_ptr<internal::RowText> rows_;
};

}  // namespace headrace
