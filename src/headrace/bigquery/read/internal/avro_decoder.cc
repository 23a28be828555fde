#include "headrace/bigquery/read/internal/avro_decoder.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/avro/table_schema.h"
#include "headrace/bigquery/read/internal/decoder.h"
#include "headrace/bigquery/read/internal/schema_drift.h"
#include "headrace/bigquery/read/internal/session_schema.h"

namespace headrace::bigquery {
namespace {

// Rows are looked for behind the last one only to tell a wrong number of rows from bytes without a meaning; so many are enough.
constexpr int64_t kMostRowsLookedFor = 1'000;

arrow::Result<std::shared_ptr<const avro::Schema>> ParseWriter(std::string_view text) {
  auto schema = avro::Schema::Parse(text);
  if (schema.ok()) return schema;
  return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read", .method = "ReadRows", .reason = "CORRUPT_RESPONSE"},
                   fmt::format("the Avro schema of a response cannot be read: {}", schema.status().message()));
}

}  // namespace

arrow::Result<std::unique_ptr<AvroDecoder>> AvroDecoder::Make(std::shared_ptr<arrow::Schema> result, std::string_view wire_schema) {
  std::unique_ptr<AvroDecoder> decoder(new AvroDecoder(std::move(result)));
  ARROW_ASSIGN_OR_RAISE(decoder->session_, SessionSchema(SourceFormat::kAvro, wire_schema));
  ARROW_ASSIGN_OR_RAISE(auto writer, ParseWriter(wire_schema));
  ARROW_RETURN_NOT_OK(decoder->Restart(std::move(writer), wire_schema));
  return decoder;
}

arrow::Status AvroDecoder::Restart(std::shared_ptr<const avro::Schema> writer, std::string_view text) {
  ARROW_ASSIGN_OR_RAISE(decoder_, avro::Decoder::Make(std::move(writer), result_, ArrowDecoder::Pool(),
                                                      {.max_batch_bytes = ArrowDecoder::kMostDecodedBytes}));
  text_ = std::string(text);
  return arrow::Status::OK();
}

arrow::Status AvroDecoder::SetWireSchema(std::string_view bytes) {
  if (bytes == text_) return arrow::Status::OK();
  // Another text may mean the same, or put the branches of a union in another order: rows are decoded by what came with them.
  ARROW_ASSIGN_OR_RAISE(auto writer, ParseWriter(bytes));
  ARROW_ASSIGN_OR_RAISE(const auto columns, SessionSchema(SourceFormat::kAvro, bytes));
  ARROW_RETURN_NOT_OK(CheckSameColumns(*session_, *columns));
  return Restart(std::move(writer), bytes);
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> AvroDecoder::DecodeRows(const std::shared_ptr<arrow::Buffer>& bytes, int64_t row_count) {
  const std::string_view all(*bytes);
  int64_t used = 0;
  ARROW_ASSIGN_OR_RAISE(auto rows, decoder_->Decode(all, row_count, &used));
  const std::string_view rest = all.substr(static_cast<size_t>(used));
  if (rest.empty()) return rows;
  ARROW_RETURN_NOT_OK(CheckNoRowsIn(rest, row_count));
  return decoder_->Decode(all, row_count);  // again, for row_ends
}

arrow::Status AvroDecoder::CheckNoRowsIn(std::string_view rest, int64_t row_count) {
  // Padding would decode as rows of nulls and zeros.
  if (rest.find_first_not_of('\0') == std::string_view::npos) return arrow::Status::OK();
  int64_t rows = 0;
  while (!rest.empty() && rows < kMostRowsLookedFor) {
    int64_t used = 0;
    if (!decoder_->Decode(rest, 1, &used).ok() || used == 0) return arrow::Status::OK();
    rest.remove_prefix(static_cast<size_t>(used));
    ++rows;
  }
  return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read", .method = "ReadRows", .reason = "ROW_COUNT"},
                   fmt::format("a response says that it has {} rows, but {}{} more stand behind them", row_count,
                               rest.empty() ? "" : "at least ", rows));
}

}  // namespace headrace::bigquery
