#include "headrace/bigquery/read/internal/decoder.h"

#include <cstring>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/builder.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/compression.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/types/untrusted.h"

namespace headrace::bigquery {
namespace {

using testing::HasSubstr;

std::shared_ptr<arrow::RecordBatch> Nested() {
  auto strings = std::make_shared<arrow::StringBuilder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), strings);
  arrow::StringBuilder names;
  arrow::Int64Builder ids;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(lists.Append().ok() && strings->Append("element").ok() && strings->Append("e").ok() &&
                names.Append("n" + std::to_string(i)).ok() && ids.Append(i).ok());
  }
  auto ids_array = *ids.Finish();
  auto place = *arrow::StructArray::Make({ids_array}, {arrow::field("x", arrow::int64())});
  auto schema = arrow::schema({arrow::field("id", arrow::int64()), arrow::field("name", arrow::utf8()),
                               arrow::field("tags", arrow::list(arrow::utf8())), arrow::field("place", place->type())});
  return arrow::RecordBatch::Make(schema, 20, {ids_array, *names.Finish(), *lists.Finish(), place});
}

std::shared_ptr<arrow::Buffer> Bytes(const arrow::RecordBatch& rows) {
  return *arrow::ipc::SerializeRecordBatch(rows, arrow::ipc::IpcWriteOptions::Defaults());
}

TEST(ArrowDecoder, DecodesIntoTheResultsOrder) {
  const auto rows = Nested();
  auto straight = *ArrowDecoder::Make(rows->schema(), {});
  EXPECT_TRUE((*straight->Decode(Bytes(*rows)))->Equals(*rows));
  EXPECT_TRUE((*straight->Decode(Bytes(*rows)))->Equals(*rows)) << "the second message of a stream";
  // Wire order id, name, tags, place; result order place, id, tags, name.
  auto result = arrow::schema({rows->schema()->field(3), rows->schema()->field(0), rows->schema()->field(2), rows->schema()->field(1)});
  auto turned = (*ArrowDecoder::Make(result, {1, 3, 2, 0}).ValueOrDie()).Decode(Bytes(*rows));
  ASSERT_TRUE(turned.ok()) << turned.status();
  EXPECT_TRUE((*turned)->schema()->Equals(*result));
  for (const char* name : {"id", "name", "tags", "place"})
    EXPECT_TRUE((*turned)->GetColumnByName(name)->Equals(rows->GetColumnByName(name)));
  EXPECT_FALSE(ArrowDecoder::Make(result, {0, 1}).ok());
  EXPECT_FALSE(ArrowDecoder::Make(result, {0, 1, 1, 2}).ok());
}

TEST(ArrowDecoder, ASchemaThatIsNotTheSessionsIsRefused) {
  const auto rows = Nested();
  auto decoder = *ArrowDecoder::Make(rows->schema(), {});
  EXPECT_TRUE(decoder->SetWireSchema((*arrow::ipc::SerializeSchema(*rows->schema()))->ToString()).ok());
  EXPECT_TRUE(decoder->Decode(Bytes(*rows)).ok());
  const auto other = arrow::schema({arrow::field("id", arrow::int32())});
  EXPECT_THAT(decoder->SetWireSchema((*arrow::ipc::SerializeSchema(*other))->ToString()).message(), HasSubstr("not the session's"));
}

TEST(ArrowDecoder, ASchemaThatEndsLikeAStreamIsASchema) {
  // bqemulator 1.4.0 sends each message with the schema as a stream without rows: schema, then ff ff ff ff 00 00 00 00.
  const auto rows = Nested();
  auto decoder = *ArrowDecoder::Make(rows->schema(), {});
  const std::string schema = (*arrow::ipc::SerializeSchema(*rows->schema()))->ToString() + std::string("\xff\xff\xff\xff\0\0\0\0", 8);
  for (int message = 0; message < 2; ++message) {
    ASSERT_TRUE(decoder->SetWireSchema(schema).ok());
    const auto decoded = decoder->Decode(Bytes(*rows));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE((*decoded)->Equals(*rows));
  }
}

TEST(ArrowDecoder, DamagedBytesAreErrorsOrHarmless) {
  const auto rows = Nested();
  const auto good = Bytes(*rows);
  int refused = 0;
  for (int64_t i = 0; i < good->size(); ++i) {
    for (const int value : {0x00, 0x7F, 0xFF}) {
      std::string bytes = good->ToString();
      bytes[static_cast<size_t>(i)] = static_cast<char>(value);
      auto decoded = (*ArrowDecoder::Make(rows->schema(), {}))->Decode(arrow::Buffer::FromString(std::move(bytes)));
      if (!decoded.ok()) {
        ++refused;
        continue;
      }
      // What is let through can be followed: every offset and length.
      EXPECT_FALSE((*decoded)->ToString().empty());
      (void)(*decoded)->Equals(*rows);
    }
  }
  EXPECT_GT(refused, 100);
  for (int64_t cut = 0; cut < good->size(); cut += 3) {
    EXPECT_FALSE((*ArrowDecoder::Make(rows->schema(), {}))->Decode(arrow::SliceBuffer(good, 0, cut)).ok()) << cut;
  }
}

/// The batch with one offset of a column overwritten.
std::shared_ptr<arrow::RecordBatch> WithOffset(const std::shared_ptr<arrow::RecordBatch>& rows, int column, int index, int32_t value) {
  auto data = rows->column_data(column)->Copy();
  auto offsets = *data->buffers[1]->CopySlice(0, data->buffers[1]->size(), arrow::default_memory_pool());
  std::memcpy(offsets->mutable_data() + int64_t{4} * index, &value, 4);
  data->buffers[1] = std::move(offsets);
  auto columns = rows->columns();
  columns[static_cast<size_t>(column)] = arrow::MakeArray(data);
  return arrow::RecordBatch::Make(rows->schema(), rows->num_rows(), columns);
}

TEST(CheckUntrusted, OffsetsOutOfOrderOrBeyondTheData) {
  const auto rows = Nested();
  EXPECT_TRUE(CheckUntrusted(*rows).ok());
  EXPECT_TRUE(CheckUntrusted(*rows->Slice(3, 5)).ok());
  EXPECT_TRUE(CheckUntrusted(*rows->Slice(0, 0)).ok());
  for (const int column : {1, 2}) {
    for (const int32_t value : {-1, 0x7FFFFFFF, 1'000'000}) {
      for (const int index : {0, 10, 20}) {
        const auto status = CheckUntrusted(*WithOffset(rows, column, index, value));
        EXPECT_FALSE(status.ok()) << column << " " << value << " " << index;
      }
    }
    EXPECT_FALSE(CheckUntrusted(*WithOffset(rows, column, 10, 0)).ok()) << "goes back";
  }
}

// A few bytes that decompress into many: the sum of a response is bounded, not only each buffer.
TEST(ArrowDecoder, AllBuffersOfAResponseTogetherAreBounded) {
  constexpr int64_t kColumns = 8;
  constexpr int64_t kColumnBytes = int64_t{1} << 20;
  auto zeros = std::make_shared<arrow::Int64Array>(kColumnBytes / 8, *arrow::AllocateBuffer(kColumnBytes));
  std::memset(zeros->data()->buffers[1]->mutable_data(), 0, kColumnBytes);
  std::vector<std::shared_ptr<arrow::Field>> fields;
  fields.reserve(kColumns);
  for (int64_t i = 0; i < kColumns; ++i) fields.push_back(arrow::field("c" + std::to_string(i), arrow::int64()));
  auto rows = arrow::RecordBatch::Make(arrow::schema(fields), zeros->length(), arrow::ArrayVector(kColumns, zeros));
  for (const auto codec : {arrow::Compression::LZ4_FRAME, arrow::Compression::ZSTD}) {
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    options.codec = *arrow::util::Codec::Create(codec);
    const auto bytes = *arrow::ipc::SerializeRecordBatch(*rows, options);
    ASSERT_LT(bytes->size(), kColumnBytes / 8);
    auto small = *ArrowDecoder::Make(rows->schema(), {}, {}, kColumns * kColumnBytes / 2);
    const auto refused = small->Decode(bytes);
    EXPECT_THAT(refused.status().message(), HasSubstr("more bytes of rows"));
    // What was spent on one response is no debt of the next, nor of another decoder on this thread.
    auto large = *ArrowDecoder::Make(rows->schema(), {}, {}, kColumns * kColumnBytes + 4096);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(large->Decode(bytes).ok());
    // Nor of what else this thread allocates there, such as the response's own decompressed bytes.
    EXPECT_TRUE(arrow::AllocateBuffer(2 * kColumns * kColumnBytes, ArrowDecoder::Pool()).ok());
  }
}

TEST(ArrowDecoder, SeveralBatchesAndDictionariesInOneResponse) {
  const auto rows = Nested();
  const auto one = Bytes(*rows)->ToString();
  const std::string three = one + one + one;
  auto decoder = *ArrowDecoder::Make(rows->schema(), {});
  for (int i = 0; i < 2; ++i) {
    auto decoded = decoder->Decode(arrow::Buffer::FromString(three));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ((*decoded)->num_rows(), 60);
    EXPECT_TRUE((*decoded)->Slice(20, 20)->Equals(*rows));
    EXPECT_FALSE(decoder->Decode(arrow::Buffer::FromString(one + one.substr(0, one.size() - 8))).ok()) << "the second is cut";
  }
}

// The number of nulls that a message claims decides nothing: with the real one a required column is refused.
TEST(ArrowDecoder, ClaimedNullCountsAreNotBelieved) {
  arrow::Int64Builder builder;
  ASSERT_TRUE(builder.Append(1).ok() && builder.AppendNull().ok());
  const auto honest = (*builder.Finish())->data();
  for (const bool nullable : {true, false}) {
    const auto schema = arrow::schema({arrow::field("c", arrow::int64(), nullable)});
    auto lying = honest->Copy();
    lying->null_count = 2;
    const auto bytes = Bytes(*arrow::RecordBatch::Make(schema, 2, {arrow::MakeArray(lying)}));
    const auto wire = *arrow::ipc::SerializeSchema(*schema);
    const auto rows = (*ArrowDecoder::Make(schema, {}, std::string_view(*wire)))->Decode(bytes);
    ASSERT_EQ(rows.ok(), nullable) << rows.status();
    if (nullable) {
      EXPECT_EQ((*rows)->column(0)->null_count(), 1);
      EXPECT_TRUE((*rows)->ValidateFull().ok());
    }
  }
}

TEST(ArrowDecoder, NoSingleBufferAboveTwoGigabytes) {
  uint8_t* data = nullptr;
  EXPECT_FALSE(ArrowDecoder::Pool()->Allocate((int64_t{1} << 31) + 1, 64, &data).ok());
  EXPECT_FALSE(ArrowDecoder::Pool()->Allocate(-1, 64, &data).ok());
}

}  // namespace
}  // namespace headrace::bigquery
