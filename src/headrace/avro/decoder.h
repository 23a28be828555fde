// Rows in Avro's binary encoding, decoded into Arrow columns.
//
// Compiled once for a writer's schema and the columns wanted: fields nobody wants are walked over without being built, and values are
// written into the columns' buffers as they are read. Columns are found by name (a field's displayName where it has one) without regard to
// case. A Decoder is used by one thread at a time and keeps the writer's schema; batches that it answered own their memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "headrace/avro/schema.h"

namespace headrace::avro {

struct DecoderLimits {
  /// Bytes that the columns of one batch may take; checked before they are reserved.
  int64_t max_batch_bytes = int64_t{4} << 30;
  /// Rows and array elements that take no byte of the input (nulls by type), which nothing else would bound.
  int64_t max_empty_values = int64_t{1} << 20;
};

class Decoder {
 public:
  /// `writer`'s root is a record with a field for each column of `target`, whose types are the canonical ones (types/type_table.h). Refused
  /// by column: one that the writer lacks or has twice, a type that does not fit, a union of several types, a record that contains itself.
  static arrow::Result<std::unique_ptr<Decoder>> Make(std::shared_ptr<const Schema> writer, std::shared_ptr<arrow::Schema> target,
                                                      arrow::MemoryPool* pool, DecoderLimits limits = {});
  ~Decoder();

  /// Exactly `row_count` rows. Bytes after them are ignored; `used` tells how many were read. Wrong bytes and values outside a type's range
  /// are DATA_LOSS with column and row (from 0); RESOURCE_EXHAUSTED when the columns outgrow the limits. Input is at most 2 GiB.
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Decode(std::string_view bytes, int64_t row_count, int64_t* used = nullptr);

  /// Where each row of the last Decode ends in its bytes.
  const std::vector<uint32_t>& row_ends() const;

 private:
  class Impl;
  explicit Decoder(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::avro
