// Responses of ReadRows in Arrow: cut into pieces as a network would, taken apart, decompressed, decoded, checked, made canonical, and
// every value looked at.
#include <algorithm>
#include <memory>

#include <arrow/array/builder_dict.h>
#include <arrow/builder.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/table_builder.h>

#include "fuzz/fuzz_target.h"
#include "google/cloud/bigquery/storage/v1/storage.pb.h"
#include "headrace/bigquery/read/internal/canonical_schema.h"
#include "headrace/bigquery/read/internal/decoder.h"
#include "headrace/bigquery/read/internal/response_lz4.h"
#include "headrace/bigquery/read/internal/wire.h"
#include "headrace/types/untrusted.h"

namespace headrace::fuzz {
namespace {

std::shared_ptr<arrow::Schema> TableSchema() {
  return arrow::schema({arrow::field("n", arrow::int64()), arrow::field("s", arrow::utf8()), arrow::field("l", arrow::list(arrow::utf8())),
                        arrow::field("d", arrow::dictionary(arrow::int32(), arrow::utf8()))});
}

std::shared_ptr<arrow::RecordBatch> Rows() {
  auto builder = arrow::RecordBatchBuilder::Make(TableSchema(), arrow::default_memory_pool()).ValueOrDie();
  auto& list = *builder->GetFieldAs<arrow::ListBuilder>(2);
  for (int i = 0; i < 3; ++i) {
    bool ok = builder->GetFieldAs<arrow::Int64Builder>(0)->Append(i).ok() &&
              builder->GetFieldAs<arrow::StringBuilder>(1)->Append("text").ok() && list.Append().ok() &&
              static_cast<arrow::StringBuilder*>(list.value_builder())->Append("x").ok() &&
              builder->GetFieldAs<arrow::StringDictionaryBuilder>(3)->Append("y").ok();
    if (!ok) __builtin_trap();
  }
  return builder->Flush().ValueOrDie();
}

std::string Response(arrow::Compression::type compression, bool whole_stream, bool lz4_block = false) {
  auto rows = Rows();
  google::cloud::bigquery::storage::v1::ReadRowsResponse response;
  response.set_row_count(rows->num_rows());
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  if (compression != arrow::Compression::UNCOMPRESSED) options.codec = arrow::util::Codec::Create(compression).ValueOrDie();
  auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  auto writer = arrow::ipc::MakeStreamWriter(sink, rows->schema(), options).ValueOrDie();
  if (!writer->WriteRecordBatch(*rows).ok() || !writer->Close().ok()) __builtin_trap();
  auto stream = sink->Finish().ValueOrDie();
  auto schema = arrow::ipc::SerializeSchema(*rows->schema()).ValueOrDie();
  response.mutable_arrow_schema()->set_serialized_schema(schema->ToString());
  // The service sends the messages that follow the schema; some emulators the whole stream.
  std::string bytes = stream->ToString().substr(whole_stream ? 0 : schema->size());
  if (lz4_block) {
    response.set_uncompressed_byte_size(static_cast<int64_t>(bytes.size()));
    auto codec = arrow::util::Codec::Create(arrow::Compression::LZ4).ValueOrDie();
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    std::string block(static_cast<size_t>(codec->MaxCompressedLen(static_cast<int64_t>(bytes.size()), data)), '\0');
    auto size = codec->Compress(static_cast<int64_t>(bytes.size()), data, static_cast<int64_t>(block.size()),
                                reinterpret_cast<uint8_t*>(block.data()));
    bytes = block.substr(0, static_cast<size_t>(size.ValueOrDie()));
  }
  response.mutable_arrow_record_batch()->set_serialized_record_batch(bytes);
  return response.SerializeAsString();
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  if (bytes.empty()) return;
  // The first byte is the size of the pieces; 0 = one piece.
  size_t piece = static_cast<unsigned char>(bytes.front());
  auto owner = std::make_shared<const std::string>(bytes.substr(1));
  rpc::ByteMessage message{.size = static_cast<int64_t>(owner->size()), .owner = owner};
  const auto* data = reinterpret_cast<const uint8_t*>(owner->data());
  for (size_t start = 0; start < owner->size();) {
    size_t size = piece == 0 ? owner->size() : std::min(piece, owner->size() - start);
    message.pieces.emplace_back(data + start, size);
    start += size;
  }

  auto response = bigquery::ParseReadRowsResponse(message, bigquery::ArrowDecoder::Pool());
  if (!response.ok()) return;
  if (response->rows == nullptr) return;
  auto serialized = response->rows;
  if (response->uncompressed_bytes > 0) {
    auto whole = bigquery::DecompressResponse(*serialized, response->uncompressed_bytes, bigquery::ArrowDecoder::Pool());
    if (!whole.ok()) return;
    serialized = *whole;
  }
  // As a job of version 1 reads them, and in canonical types.
  static const auto wire = arrow::ipc::SerializeSchema(*TableSchema()).ValueOrDie()->ToString();
  static const auto canonical = bigquery::CanonicalSchema(*TableSchema(), TimestampPrecision::kPicos).ValueOrDie();
  for (bool as_sent : {true, false}) {
    auto decoder = as_sent ? bigquery::ArrowDecoder::Make(TableSchema(), {}) : bigquery::ArrowDecoder::Make(canonical, {}, wire);
    if (!decoder.ok()) __builtin_trap();
    if (!response->schema.empty() && !(*decoder)->SetWireSchema(response->schema).ok()) return;
    auto rows = (*decoder)->Decode(serialized);
    if (!rows.ok()) continue;
    // What passed the check can be followed everywhere.
    if (!CheckUntrusted(**rows).ok() || !(*rows)->Equals(**rows) || (*rows)->ToString().empty()) __builtin_trap();
  }
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (auto compression : {arrow::Compression::UNCOMPRESSED, arrow::Compression::LZ4_FRAME, arrow::Compression::ZSTD}) {
    seeds.push_back('\0' + Response(compression, false));
    seeds.push_back('\x07' + Response(compression, true));
  }
  seeds.push_back('\0' + Response(arrow::Compression::UNCOMPRESSED, false, true));
  return seeds;
}

}  // namespace headrace::fuzz
