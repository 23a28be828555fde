#include "headrace/bigquery/read/internal/row_decoder.h"

#include <utility>

#include "headrace/bigquery/read/internal/decoder.h"
#include "headrace/bigquery/read/internal/state.h"

namespace headrace::bigquery {

arrow::Result<std::unique_ptr<RowDecoder>> RowDecoder::Make(const StreamState& stream, std::shared_ptr<arrow::Schema> result) {
  ARROW_ASSIGN_OR_RAISE(auto decoder, ArrowDecoder::Make(std::move(result), stream.result_columns, stream.wire_schema));
  return std::unique_ptr<RowDecoder>(std::move(decoder));
}

}  // namespace headrace::bigquery
