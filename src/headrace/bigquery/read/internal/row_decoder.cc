#include "headrace/bigquery/read/internal/row_decoder.h"

#include <utility>

#include "headrace/bigquery/read/internal/avro_decoder.h"
#include "headrace/bigquery/read/internal/decoder.h"
#include "headrace/bigquery/read/internal/state.h"

namespace headrace::bigquery {

arrow::Result<std::unique_ptr<RowDecoder>> RowDecoder::Make(const StreamState& stream, std::shared_ptr<arrow::Schema> result) {
  if (stream.format == SourceFormat::kAvro) {
    if (stream.wire_schema.empty()) {
      return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read", .reason = "CORRUPT_STATE"},
                       "the persisted descriptor of a BigQuery read stream is corrupt: it is of Avro but has no schema");
    }
    ARROW_ASSIGN_OR_RAISE(auto decoder, AvroDecoder::Make(std::move(result), stream.wire_schema));
    return std::unique_ptr<RowDecoder>(std::move(decoder));
  }
  ARROW_ASSIGN_OR_RAISE(auto decoder, ArrowDecoder::Make(std::move(result), stream.result_columns, stream.wire_schema));
  return std::unique_ptr<RowDecoder>(std::move(decoder));
}

}  // namespace headrace::bigquery
