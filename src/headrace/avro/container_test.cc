// Container files both ways. tests/avro reads and writes them with another implementation.
#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/memory.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/avro/container_reader.h"
#include "headrace/avro/container_writer.h"
#include "headrace/avro/decoder.h"

namespace headrace::avro {
namespace {

using testing::HasSubstr;

constexpr BlockCompression kAll[] = {BlockCompression::kNull, BlockCompression::kDeflate, BlockCompression::kSnappy,
                                     BlockCompression::kZstandard};

std::shared_ptr<const Schema> RowSchema() {
  return Schema::Parse(R"({"type":"record","name":"r","fields":[{"name":"n","type":"long"},{"name":"s","type":"string"}]})").ValueOrDie();
}

std::shared_ptr<arrow::RecordBatch> Rows(int64_t count) {
  arrow::Int64Builder numbers;
  arrow::StringBuilder texts;
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_TRUE(numbers.Append(i).ok());
    EXPECT_TRUE(texts.Append(std::string(static_cast<size_t>(i % 97), static_cast<char>('a' + i % 26))).ok());
  }
  auto schema = arrow::schema({arrow::field("n", arrow::int64(), false), arrow::field("s", arrow::utf8(), false)});
  return arrow::RecordBatch::Make(schema, count, {numbers.Finish().ValueOrDie(), texts.Finish().ValueOrDie()});
}

std::string FileOf(const arrow::RecordBatch& rows, const ContainerOptions& options) {
  SeededRandom random(7);
  auto writer = ContainerWriter::Make(RowSchema(), rows.schema(), options, &random).ValueOrDie();
  std::string out;
  EXPECT_TRUE(writer->Append(rows, 0, rows.num_rows() / 2, &out).ok());
  EXPECT_TRUE(writer->Append(rows, rows.num_rows() / 2, rows.num_rows() - rows.num_rows() / 2, &out).ok());
  EXPECT_TRUE(writer->Finish(&out).ok());
  EXPECT_EQ(writer->waiting_bytes(), 0);
  return out;
}

arrow::Result<std::unique_ptr<ContainerReader>> Opened(const std::string& bytes, ContainerLimits limits = {}) {
  return ContainerReader::Open(arrow::io::BufferReader::FromString(bytes), limits);
}

// The first columns of all rows of a split.
arrow::Result<std::vector<int64_t>> Numbers(const std::string& bytes, int64_t begin = 0, int64_t end = INT64_MAX,
                                            ContainerLimits limits = {}) {
  ARROW_ASSIGN_OR_RAISE(auto reader, Opened(bytes, limits));
  ARROW_RETURN_NOT_OK(reader->SetSplit(begin, end));
  ARROW_ASSIGN_OR_RAISE(auto decoder,
                        Decoder::Make(reader->schema(), arrow::schema({arrow::field("n", arrow::int64())}), arrow::default_memory_pool()));
  std::vector<int64_t> numbers;
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto block, reader->Next());
    if (!block) return numbers;
    int64_t used = 0;
    ARROW_ASSIGN_OR_RAISE(auto batch, decoder->Decode(block->rows, block->row_count, &used));
    EXPECT_EQ(used, static_cast<int64_t>(block->rows.size()));
    const auto& column = static_cast<const arrow::Int64Array&>(*batch->column(0));
    for (int64_t i = 0; i < column.length(); ++i) numbers.push_back(column.Value(i));
  }
}

std::vector<int64_t> Counting(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = i;
  return numbers;
}

TEST(ContainerTest, EveryCodecBothWays) {
  for (BlockCompression compression : kAll) {
    SCOPED_TRACE(std::string(CodecName(compression)));
    auto file = FileOf(*Rows(5'000), {.compression = compression, .block_bytes = 10'000, .metadata = {{"who", "me"}}});
    auto reader = Opened(file);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->compression(), compression);
    EXPECT_EQ((*reader)->metadata().at("who"), "me");
    auto numbers = Numbers(file);
    ASSERT_TRUE(numbers.ok()) << numbers.status();
    EXPECT_EQ(*numbers, Counting(5'000));
    auto empty = Numbers(FileOf(*Rows(0), {.compression = compression}));
    ASSERT_TRUE(empty.ok()) << empty.status();
    EXPECT_TRUE(empty->empty());
  }
}

TEST(ContainerTest, BlocksAreAboutAsLargeAsAsked) {
  auto file = FileOf(*Rows(5'000), {.block_bytes = 10'000});
  auto reader = Opened(file).ValueOrDie();
  int blocks = 0;
  for (auto block = reader->Next().ValueOrDie(); block; block = reader->Next().ValueOrDie(), ++blocks) {
    EXPECT_LE(block->rows.size(), 11'000U);
  }
  EXPECT_GE(blocks, 24);
  // A row larger than a block is a block of its own.
  reader = Opened(FileOf(*Rows(100), {.block_bytes = 1})).ValueOrDie();
  for (blocks = 0; reader->Next().ValueOrDie();) ++blocks;
  EXPECT_EQ(blocks, 100);
}

TEST(ContainerTest, SplitsGiveEachBlockOnce) {
  auto file = FileOf(*Rows(500), {.compression = BlockCompression::kDeflate, .block_bytes = 600});
  const auto size = static_cast<int64_t>(file.size());
  for (int64_t width : {int64_t{1}, int64_t{17}, int64_t{100}, int64_t{1'000}, size - 1, size}) {
    std::vector<int64_t> all;
    for (int64_t begin = 0; begin < size; begin += width) {
      auto part = Numbers(file, begin, begin + width);
      ASSERT_TRUE(part.ok()) << part.status();
      all.insert(all.end(), part->begin(), part->end());
    }
    EXPECT_EQ(all, Counting(500)) << width;
  }
}

TEST(ContainerTest, DamageIsFoundAndItsPlaceTold) {
  for (BlockCompression compression : kAll) {
    SCOPED_TRACE(std::string(CodecName(compression)));
    const auto file = FileOf(*Rows(300), {.compression = compression, .block_bytes = 2'000});
    // Cut anywhere after the first block: an error or, between blocks, fewer rows; never more, never a crash.
    for (size_t size = 0; size < file.size(); size += compression == BlockCompression::kNull ? 3 : 17) {
      auto numbers = Numbers(file.substr(0, size));
      if (numbers.ok()) {
        EXPECT_LT(numbers->size(), 300U);
      } else {
        EXPECT_EQ(CodeOf(numbers.status()), Code::kDataLoss) << numbers.status();
        EXPECT_THAT(numbers.status().ToString(), HasSubstr("Avro file, byte "));
      }
    }
    auto other = file;
    other[other.size() - 3] ^= 1;
    EXPECT_THAT(Numbers(other).status().ToString(), HasSubstr("no sync marker after the block"));
  }
  auto snappy = FileOf(*Rows(10), {.compression = BlockCompression::kSnappy});
  snappy[snappy.size() - 17] ^= 1;
  EXPECT_THAT(Numbers(snappy).status().ToString(), HasSubstr("a snappy block: the checksum is"));
  EXPECT_THAT(Numbers("Obk\x01").status().ToString(), HasSubstr("Avro file, byte 0: no Avro container file"));
  EXPECT_THAT(Numbers("").status().ToString(), HasSubstr("no Avro container file"));
}

TEST(ContainerTest, LimitsHold) {
  arrow::StringBuilder texts;
  arrow::Int64Builder numbers;
  ASSERT_TRUE(texts.Append(std::string(1 << 20, 'a')).ok());
  ASSERT_TRUE(numbers.Append(0).ok());
  auto rows = arrow::RecordBatch::Make(Rows(0)->schema(), 1, {numbers.Finish().ValueOrDie(), texts.Finish().ValueOrDie()});
  for (BlockCompression compression : kAll) {
    const auto file = FileOf(*rows, {.compression = compression});
    EXPECT_TRUE(Numbers(file, 0, INT64_MAX, {.max_block_bytes = 2 << 20}).ok());
    auto status = Numbers(file, 0, INT64_MAX, {.max_block_bytes = 500'000}).status();
    EXPECT_EQ(CodeOf(status), Code::kResourceExhausted) << status;
    EXPECT_THAT(status.ToString(), HasSubstr("Avro file, byte "));
  }
  std::string endless("Obj\x01\x02", 5);
  endless += std::string(300'000, '\x02');
  EXPECT_THAT(Opened(endless, {.max_header_bytes = 65'536}).status().ToString(), HasSubstr("the header is longer than 65536 bytes"));
  EXPECT_THAT(Opened(endless).status().ToString(), HasSubstr("Avro file, byte"));
}

TEST(ContainerTest, OtherCodecsAreRefusedByName) {
  for (const char* name : {"bzip2", "xz", "lz4"}) {
    auto file = FileOf(*Rows(1), {});
    const auto at = file.find("null", file.find("avro.codec"));
    ASSERT_NE(at, std::string::npos);
    file.replace(at - 1, 5, std::string(1, static_cast<char>(2 * std::string(name).size())) + name);
    auto status = Opened(file).status();
    EXPECT_EQ(CodeOf(status), Code::kUnimplemented);
    EXPECT_THAT(status.ToString(), HasSubstr(fmt::format("the Avro codec '{}' is not read", name)));
  }
}

TEST(ContainerTest, OptionsAreChecked) {
  SeededRandom random(1);
  auto make = [&](const ContainerOptions& options) {
    return ContainerWriter::Make(RowSchema(), Rows(0)->schema(), options, &random).status().ToString();
  };
  EXPECT_THAT(make({.block_bytes = 0}), HasSubstr("block_bytes must be greater than zero"));
  EXPECT_THAT(make({.compression = BlockCompression::kSnappy, .compression_level = 3}), HasSubstr("snappy has no levels"));
  EXPECT_THAT(make({.compression_level = 3}), HasSubstr("without compression there are no levels"));
  EXPECT_THAT(make({.metadata = {{"avro.codec", "x"}}}), HasSubstr("the key 'avro.codec' belongs to the format"));
}

}  // namespace
}  // namespace headrace::avro
