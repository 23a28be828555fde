// From the Avro rows of a response to a record batch: avro::Decoder behind the face of RowDecoder.
//
// One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "headrace/avro/decoder.h"
#include "headrace/bigquery/read/internal/row_decoder.h"

namespace headrace::bigquery {

class AvroDecoder final : public RowDecoder {
 public:
  /// `wire_schema` is the session's, JSON; `result` has its columns, in the canonical types and any order.
  static arrow::Result<std::unique_ptr<AvroDecoder>> Make(std::shared_ptr<arrow::Schema> result, std::string_view wire_schema);

  arrow::Status SetWireSchema(std::string_view bytes) override;
  /// Bytes behind the rows are ignored, unless they are further rows from the first to the last byte: then the response's number of rows is
  /// wrong, and that is DATA_LOSS.
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> DecodeRows(const std::shared_ptr<arrow::Buffer>& bytes, int64_t row_count) override;
  std::span<const uint32_t> row_ends() const override { return decoder_->row_ends(); }

 private:
  arrow::Status CheckNoRowsIn(std::string_view rest, int64_t row_count);
  explicit AvroDecoder(std::shared_ptr<arrow::Schema> result) : result_(std::move(result)) {}
  /// Decodes what was written with `writer` from here on.
  arrow::Status Restart(std::shared_ptr<const avro::Schema> writer, std::string_view text);

  const std::shared_ptr<arrow::Schema> result_;
  std::shared_ptr<arrow::Schema> session_;  // the session's columns, canonical, in the service's order
  std::string text_;                        // of the schema that decoder_ was made for
  std::unique_ptr<avro::Decoder> decoder_;
};

}  // namespace headrace::bigquery
