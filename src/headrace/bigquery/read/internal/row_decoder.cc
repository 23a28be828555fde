#include "headrace/bigquery/read/internal/row_decoder.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/bigquery/read/internal/avro_decoder.h"
#include "headrace/bigquery/read/internal/decoder.h"
#include "headrace/bigquery/read/internal/response_lz4.h"
#include "headrace/bigquery/read/internal/state.h"
#include "headrace/bigquery/read/internal/wire.h"

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

arrow::Result<std::shared_ptr<arrow::Buffer>> RowBytes(const ReadRowsMessage& message, const StreamState& stream) {
  // Rows of a projection without columns may have no bytes.
  std::shared_ptr<arrow::Buffer> bytes = message.rows != nullptr ? message.rows : arrow::Buffer::FromString("");
  if (message.uncompressed_bytes > 0 && stream.response_compression != ResponseCompression::kNone)
    return DecompressResponse(*bytes, message.uncompressed_bytes, ArrowDecoder::Pool());
  if (message.uncompressed_bytes > 0 && message.uncompressed_bytes != bytes->size()) {
    return MakeError({.code = Code::kDataLoss,
                      .service = "BigQuery Storage Read",
                      .method = "ReadRows",
                      .resource = stream.stream,
                      .reason = "CORRUPT_RESPONSE"},
                     fmt::format("a response says that its {} bytes were {} before compression, which was not asked for", bytes->size(),
                                 message.uncompressed_bytes));
  }
  return bytes;
}

}  // namespace headrace::bigquery
