// The schema of JSON rows that come without one.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/types/schema.h"

namespace headrace {

/// Sees all rows first; then JsonRowReader with the schema of Finish takes each of them without a change of value, when not strict. A
/// column is the narrowest of INT64, FLOAT64, BOOL, DATE, TIME, DATETIME, TIMESTAMP and STRING that all its values have; numbers in quotes
/// are STRING. Objects are STRUCTs, arrays REPEATED, the rest is NULLABLE. One thread.
class JsonSchemaInference {
 public:
  JsonSchemaInference();
  ~JsonSchemaInference();

  /// One row; `row_number` is for errors. What no schema fits is an error that names column and row: an array here and a value there, an
  /// object here and a scalar there, an array in an array, a null in an array, what is no JSON object.
  arrow::Status Add(std::string_view line, int64_t row_number);

  /// Columns in the order in which they appeared. Whole numbers that no INT64 holds, or that stand in a column of FLOAT64 which would
  /// change them, are an error that names column, row and value; so are an object that never has a field and a name that BigQuery does not
  /// take.
  arrow::Result<TableSchema> Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
