#include "headrace/files/internal/avro_format.h"

#include <algorithm>
#include <utility>

#include "headrace/avro/schema.h"
#include "headrace/avro/table_schema.h"
#include "headrace/base/random.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

// So many that the calls do not count, so few that what is complete of them is no large part of what a writer may hold.
constexpr int64_t kRowsAtOnce = 1024;

avro::BlockCompression CompressionOf(arrow::Compression::type codec) {
  switch (codec) {
    case arrow::Compression::GZIP:
      return avro::BlockCompression::kDeflate;
    case arrow::Compression::SNAPPY:
      return avro::BlockCompression::kSnappy;
    case arrow::Compression::ZSTD:
      return avro::BlockCompression::kZstandard;
    default:
      return avro::BlockCompression::kNull;
  }
}

}  // namespace

arrow::Result<std::unique_ptr<FormatWriter>> AvroFormatWriter::Make(const FileEncoding& encoding,
                                                                    const std::shared_ptr<arrow::Schema>& schema,
                                                                    const std::shared_ptr<arrow::io::OutputStream>& out) {
  ARROW_ASSIGN_OR_RAISE(auto table, FromArrowSchema(*schema));
  ARROW_ASSIGN_OR_RAISE(auto text, avro::ToAvroSchema(table, {.dialect = avro::Dialect::kExport}));
  ARROW_ASSIGN_OR_RAISE(auto avro_schema, avro::Schema::Parse(text));
  ARROW_ASSIGN_OR_RAISE(auto rows,
                        avro::ContainerWriter::Make(avro_schema, schema, {.compression = CompressionOf(encoding.codec)}, SystemRandom()));
  ARROW_ASSIGN_OR_RAISE(auto chunked, ChunkedOutput::Make(out, FileCompression::kNone));
  return std::unique_ptr<FormatWriter>(new AvroFormatWriter(std::move(rows), std::move(chunked)));
}

arrow::Status AvroFormatWriter::Write(const arrow::RecordBatch& batch) {
  for (int64_t first = 0; first < batch.num_rows(); first += kRowsAtOnce) {
    bytes_.clear();
    ARROW_RETURN_NOT_OK(rows_->Append(batch, first, std::min(kRowsAtOnce, batch.num_rows() - first), &bytes_));
    ARROW_RETURN_NOT_OK(out_->Write(bytes_));
    peak_ = std::max(peak_, ChunkedOutput::kChunkBytes + rows_->waiting_bytes() + static_cast<int64_t>(bytes_.capacity()));
  }
  return arrow::Status::OK();
}

arrow::Status AvroFormatWriter::Finish() {
  bytes_.clear();
  ARROW_RETURN_NOT_OK(rows_->Finish(&bytes_));
  ARROW_RETURN_NOT_OK(out_->Write(bytes_));
  return out_->Finish();
}

}  // namespace headrace
