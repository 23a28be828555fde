#include "bench/micro/responses.h"

#include <algorithm>

#include <google/cloud/bigquery/storage/v1/arrow.pb.h>

#include "bench/table.h"
#include "headrace/avro/encoder.h"
#include "headrace/avro/table_schema.h"
#include "headrace/base/batch_size.h"
#include "headrace/bigquery/read/internal/session_schema.h"
#include "headrace/local/row_message.h"
#include "headrace/types/type_table.h"

namespace headrace::bench {
namespace {

namespace storage = google::cloud::bigquery::storage::v1;

/// The message as it came, in the pieces that it was sent in.
rpc::ByteMessage Received(local::Pieces sent) {
  auto owner = std::make_shared<local::Pieces>(std::move(sent));
  rpc::ByteMessage message;
  for (const auto& piece : *owner) {
    message.pieces.emplace_back(piece->data(), static_cast<size_t>(piece->size()));
    message.size += piece->size();
  }
  message.owner = std::move(owner);
  return message;
}

arrow::Result<int64_t> RowsOfAResponse(std::string_view table, int64_t bytes) {
  constexpr int64_t kSample = 1'000;
  constexpr int64_t kMostRows = 65'536;  // local/row_message.h
  ARROW_ASSIGN_OR_RAISE(const auto rows, MakeRows(table, 0, kSample));
  return std::clamp<int64_t>(bytes * kSample / ReferencedBytes(*rows), 1, kMostRows);
}

}  // namespace

std::string_view PackingName(Packing packing) {
  switch (packing) {
    case Packing::kAvro:
      return "Avro";
    case Packing::kArrow:
      return "Arrow";
    case Packing::kLz4Buffers:
      return "Arrow, LZ4 buffers";
    case Packing::kZstdBuffers:
      return "Arrow, ZSTD buffers";
    case Packing::kLz4Block:
      return "Arrow, one LZ4 block";
  }
  return "";
}

arrow::Result<Responses> Prepared::Make(std::string_view table, Packing packing) const {
  ARROW_ASSIGN_OR_RAISE(const TableSchema columns, FromArrowSchema(*TableSchemaOf(table)));
  ARROW_ASSIGN_OR_RAISE(const auto sent_schema, ToArrowSchema(columns));
  Responses made;
  std::unique_ptr<avro::Encoder> encoder;
  local::RowEncoding encoding{.lz4 = packing == Packing::kLz4Block};
  if (packing == Packing::kLz4Buffers) encoding.buffer_compression = storage::ArrowSerializationOptions::LZ4_FRAME;
  if (packing == Packing::kZstdBuffers) encoding.buffer_compression = storage::ArrowSerializationOptions::ZSTD;
  if (encoding.lz4) made.stream.response_compression = bigquery::ResponseCompression::kLz4;
  if (packing == Packing::kAvro) {
    made.stream.format = bigquery::SourceFormat::kAvro;
    ARROW_ASSIGN_OR_RAISE(made.stream.wire_schema, avro::ToAvroSchema(columns, {.dialect = avro::Dialect::kStorageRead}));
    ARROW_ASSIGN_OR_RAISE(auto parsed, avro::Schema::Parse(made.stream.wire_schema));
    ARROW_ASSIGN_OR_RAISE(encoder, avro::Encoder::Make(std::move(parsed), sent_schema));
    encoding.avro = encoder.get();
  } else {
    ARROW_ASSIGN_OR_RAISE(made.stream.wire_schema, local::SerializeSchema(*sent_schema));
  }
  ARROW_ASSIGN_OR_RAISE(made.schema, bigquery::SessionSchema(made.stream.format, made.stream.wire_schema));
  ARROW_ASSIGN_OR_RAISE(const int64_t row_count, RowsOfAResponse(table, sizes_.response_bytes));
  for (int64_t i = 0; i < sizes_.responses; ++i) {
    Response response;
    ARROW_ASSIGN_OR_RAISE(const auto rows, MakeRows(table, i * row_count, row_count));
    response.rows = arrow::RecordBatch::Make(made.schema, row_count, rows->columns());
    response.column_bytes = ReferencedBytes(*rows);
    ARROW_ASSIGN_OR_RAISE(auto sent, local::EncodeResponse(*rows, encoding, {}));
    ARROW_ASSIGN_OR_RAISE(response.message, bigquery::ParseReadRowsResponse(Received(std::move(sent)), arrow::default_memory_pool()));
    made.each.push_back(std::move(response));
  }
  return made;
}

arrow::Result<const Responses*> Prepared::ResponsesOf(std::string_view table, Packing packing) {
  std::pair key(std::string(table), packing);
  auto found = responses_.find(key);
  if (found == responses_.end()) {
    ARROW_ASSIGN_OR_RAISE(Responses made, Make(table, packing));
    found = responses_.emplace(std::move(key), std::move(made)).first;
  }
  return &found->second;
}

arrow::Result<const arrow::RecordBatchVector*> Prepared::BatchesOf(std::string_view table) {
  auto found = batches_.find(table);
  if (found == batches_.end()) {
    arrow::RecordBatchVector made;
    for (int64_t i = 0; i < sizes_.batches; ++i) {
      ARROW_ASSIGN_OR_RAISE(made.emplace_back(), MakeRows(table, i * sizes_.batch_rows, sizes_.batch_rows));
    }
    found = batches_.emplace(table, std::move(made)).first;
  }
  return &found->second;
}

}  // namespace headrace::bench
