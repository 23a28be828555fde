#include "headrace/bigquery/read/internal/wire.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/ipc/writer.h>
#include <google/cloud/bigquery/storage/v1/storage.pb.h>
#include <gtest/gtest.h>

#include "headrace/bigquery/read/internal/decoder.h"

namespace headrace::bigquery {
namespace {

namespace api = google::cloud::bigquery::storage::v1;

/// The bytes in pieces of `size`.
rpc::ByteMessage InPieces(const std::string& bytes, size_t size) {
  auto owner = std::make_shared<std::vector<std::vector<uint8_t>>>();
  rpc::ByteMessage message{.size = static_cast<int64_t>(bytes.size())};
  for (size_t at = 0; at < bytes.size(); at += size) {
    const std::string piece = bytes.substr(at, size);
    owner->emplace_back(piece.begin(), piece.end());  // exact heap blocks, so that a sanitizer sees every byte too many
  }
  for (const auto& piece : *owner) message.pieces.emplace_back(piece.data(), piece.size());
  message.owner = owner;
  return message;
}

arrow::Result<ReadRowsMessage> Parse(const std::string& bytes, size_t piece = 7) {
  return ParseReadRowsResponse(InPieces(bytes, piece), arrow::default_memory_pool());
}

api::ReadRowsResponse Response() {
  api::ReadRowsResponse response;
  response.mutable_arrow_record_batch()->set_serialized_record_batch("rows of this response");
  response.set_row_count(3);
  response.mutable_stats()->mutable_progress()->set_at_response_start(0.25);
  response.mutable_stats()->mutable_progress()->set_at_response_end(0.5);
  response.mutable_throttle_state()->set_throttle_percent(30);
  response.mutable_arrow_schema()->set_serialized_schema("schema");
  response.set_uncompressed_byte_size(77);
  return response;
}

TEST(ReadRowsResponse, EveryFieldHoweverItIsCutIntoPieces) {
  std::string bytes = Response().SerializeAsString();
  bytes += std::string(
      "\x9a\x06\x03"
      "abc"
      "\xa0\x06\x05"
      "\xad\x06"
      "1234"
      "\xa9\x06"
      "12345678",
      6 + 3 + 6 + 10);  // unknown fields of every type
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    auto parsed = Parse(bytes, piece);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->rows->ToString(), "rows of this response");
    EXPECT_EQ(parsed->row_count, 3);
    EXPECT_EQ(parsed->progress_start, 0.25);
    EXPECT_EQ(parsed->progress_end, 0.5);
    EXPECT_EQ(parsed->throttle_percent, 30);
    EXPECT_EQ(parsed->schema, "schema");
    EXPECT_EQ(parsed->wire_bytes, static_cast<int64_t>(bytes.size()));
    EXPECT_EQ(parsed->uncompressed_bytes, 77);
    EXPECT_TRUE(parsed->has_arrow);
    EXPECT_FALSE(parsed->has_avro);
  }
}

TEST(ReadRowsResponse, EmptyAndAvro) {
  auto empty = Parse("");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->rows, nullptr);
  EXPECT_EQ(empty->row_count, 0);
  api::ReadRowsResponse avro;
  avro.mutable_avro_rows()->set_serialized_binary_rows("xyz");
  avro.mutable_avro_schema()->set_schema("{}");
  avro.set_row_count(2);
  auto parsed = Parse(avro.SerializeAsString());
  EXPECT_TRUE(parsed->has_avro);
  EXPECT_FALSE(parsed->has_arrow);
  EXPECT_EQ(parsed->rows->ToString(), "xyz");
  EXPECT_EQ(parsed->schema, "{}");
  EXPECT_EQ(parsed->row_count, 2);
}

// storage.proto: not greater than 0 means that the bytes are not compressed.
TEST(ReadRowsResponse, UncompressedByteSize) {
  EXPECT_EQ(Parse("")->uncompressed_bytes, 0);
  for (const int64_t size : {int64_t{-1}, INT64_MIN, int64_t{0}, int64_t{1}, INT64_MAX}) {
    api::ReadRowsResponse response;
    response.set_uncompressed_byte_size(size);
    EXPECT_EQ(Parse(response.SerializeAsString())->uncompressed_bytes, std::max<int64_t>(size, 0));
  }
}

TEST(ReadRowsResponse, NumbersOutOfRange) {
  api::ReadRowsResponse response;
  response.set_row_count(-1);
  EXPECT_FALSE(Parse(response.SerializeAsString()).ok());
  response.set_row_count(int64_t{1} << 40);
  EXPECT_FALSE(Parse(response.SerializeAsString()).ok());
  response.set_row_count(0);
  response.mutable_stats()->mutable_progress()->set_at_response_start(std::numeric_limits<double>::quiet_NaN());
  response.mutable_stats()->mutable_progress()->set_at_response_end(7);
  auto parsed = Parse(response.SerializeAsString());
  EXPECT_EQ(parsed->progress_start, 0);
  EXPECT_EQ(parsed->progress_end, 1);
}

TEST(ReadRowsResponse, CutOrDamagedAnywhereItNeverReadsBeyondItsBytes) {
  const std::string good = Response().SerializeAsString();
  for (size_t i = 0; i < good.size(); ++i) {
    (void)Parse(good.substr(0, i));
    for (int value : {0x00, 0x7F, 0x80, 0xFF}) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      (void)Parse(bad);
    }
  }
  EXPECT_FALSE(Parse(std::string("\x22\xFF\xFF\xFF\xFF\x0F", 6)).ok()) << "a length beyond the message";
  EXPECT_FALSE(Parse(std::string("\x30\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 12)).ok()) << "a varint of more than ten bytes";
  EXPECT_FALSE(Parse(std::string("\x0B", 1)).ok()) << "a group";
  EXPECT_FALSE(Parse(std::string("\x02\x00", 2)).ok()) << "field number 0";
}

TEST(ReadRowsResponse, BuffersOfTheBodyAreAligned) {
  for (int rows = 1; rows < 70; ++rows) {
    arrow::Int64Builder builder;
    for (int i = 0; i < rows; ++i) ASSERT_TRUE(builder.Append(i).ok());
    arrow::FieldVector fields;
    arrow::ArrayVector columns;
    const auto column = *builder.Finish();
    for (int i = 0; i < 1 + rows % 5; ++i) {
      fields.push_back(arrow::field("c" + std::to_string(i), arrow::int64()));
      columns.push_back(column);
    }
    const auto schema = arrow::schema(fields);
    auto ipc = arrow::ipc::IpcWriteOptions::Defaults();
    ipc.alignment = 64;
    api::ReadRowsResponse response;
    response.set_row_count(rows);
    response.mutable_arrow_record_batch()->set_serialized_record_batch(
        (*arrow::ipc::SerializeRecordBatch(*arrow::RecordBatch::Make(schema, rows, columns), ipc))->ToString());
    auto parsed = Parse(response.SerializeAsString(), 64);
    auto decoded = (*ArrowDecoder::Make(schema, {}))->Decode(parsed->rows);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    for (int i = 0; i < (*decoded)->num_columns(); ++i) {
      const auto& values = (*decoded)->column_data(i)->buffers[1];
      EXPECT_EQ(values->address() % (i == 0 ? 64 : 8), 0U);  // the writer aligns buffers to each other by eight
      EXPECT_GE(values->address(), parsed->rows->address()) << "no copy was made";
      EXPECT_LE(values->address() + static_cast<uintptr_t>(values->size()),
                parsed->rows->address() + static_cast<uintptr_t>(parsed->rows->size()));
    }
  }
}

}  // namespace
}  // namespace headrace::bigquery
