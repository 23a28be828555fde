// The values of one column as JSON texts, for CSV files whose ARRAYs and STRUCTs are written as JSON: both ways, by way of JSON rows of
// that one column. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <arrow/array.h>
#include <arrow/type.h>

#include "headrace/base/error.h"
#include "headrace/types/json_row.h"

namespace headrace {

class JsonColumnWriter {
 public:
  static arrow::Result<JsonColumnWriter> Make(const std::shared_ptr<arrow::Field>& field);
  /// Appends the text of a value that is not null; `row` is for errors.
  arrow::Status Append(const std::shared_ptr<arrow::Array>& column, int64_t index, int64_t row, std::string* out);

 private:
  JsonColumnWriter(std::shared_ptr<arrow::Schema> schema, std::unique_ptr<JsonRowWriter> rows, std::string key);

  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<JsonRowWriter> rows_;
  std::string key_;  // `{"name":`
  std::string line_{};
};

class JsonColumnParser {
 public:
  static arrow::Result<JsonColumnParser> Make(const std::shared_ptr<arrow::Field>& field, const ParseOptions& options = {});
  arrow::Status Append(std::string_view text, int64_t row);
  /// A null STRUCT, or an empty array.
  arrow::Status AppendNull(int64_t row);
  arrow::Result<std::shared_ptr<arrow::Array>> Finish();

 private:
  JsonColumnParser(std::unique_ptr<JsonRowReader> rows, std::string key) : rows_(std::move(rows)), key_(std::move(key)) {}

  std::unique_ptr<JsonRowReader> rows_;
  std::string key_;
  std::string line_{};
};

}  // namespace headrace
