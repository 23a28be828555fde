// Arrow columns as rows in Avro's binary encoding: the inverse of decoder.h.
//
// Compiled once for a schema and the columns. Used by one thread at a time; keeps the schema.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "headrace/avro/schema.h"

namespace headrace::avro {

class Encoder {
 public:
  /// `schema`'s root is a record; each of its fields takes the column of its name (displayName where it has one) without regard to case, of
  /// the canonical type (types/type_table.h). Refused by column: a field without column, a column without field, types that do not fit.
  static arrow::Result<std::unique_ptr<Encoder>> Make(std::shared_ptr<const Schema> schema, std::shared_ptr<arrow::Schema> columns);
  ~Encoder();

  /// Appends `count` rows from row `first` on. An error names column and row (of the batch) and leaves `out` as it was: null where the
  /// schema has none, a decimal of too many digits, a date or time outside BigQuery's range where it is written as text.
  arrow::Status Append(const arrow::RecordBatch& batch, int64_t first, int64_t count, std::string* out);
  /// The same for as many of the rows as keep `out` within `max_bytes`, but one row at least; answers their number.
  arrow::Result<int64_t> AppendUpTo(const arrow::RecordBatch& batch, int64_t first, int64_t count, int64_t max_bytes, std::string* out);

 private:
  class Impl;
  explicit Encoder(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::avro
