#include "headrace/files/internal/ndjson_format.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

// So many that the calls do not count, so few that the text of wide rows does not.
constexpr int64_t kRowsAtOnce = 64;

}  // namespace

arrow::Result<std::unique_ptr<FormatWriter>> NdjsonFormatWriter::Make(const FileEncoding& encoding,
                                                                      const std::shared_ptr<arrow::Schema>& schema,
                                                                      const std::shared_ptr<arrow::io::OutputStream>& out) {
  ARROW_ASSIGN_OR_RAISE(auto rows, JsonRowWriter::Make(schema));
  ARROW_ASSIGN_OR_RAISE(auto chunked, ChunkedOutput::Make(out, encoding.kind.compression));
  return std::unique_ptr<FormatWriter>(new NdjsonFormatWriter(std::move(rows), std::move(chunked)));
}

arrow::Status NdjsonFormatWriter::Write(const arrow::RecordBatch& batch) {
  for (int64_t first = 0; first < batch.num_rows(); first += kRowsAtOnce) {
    text_.clear();
    ARROW_RETURN_NOT_OK(json_->Append(batch, first, std::min(kRowsAtOnce, batch.num_rows() - first), &text_, rows_));
    ARROW_RETURN_NOT_OK(out_->Write(text_));
  }
  rows_ += batch.num_rows();
  return arrow::Status::OK();
}

}  // namespace headrace
