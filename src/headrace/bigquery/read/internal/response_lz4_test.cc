#include "headrace/bigquery/read/internal/response_lz4.h"

#include <string>

#include <arrow/util/compression.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

using testing::HasSubstr;

std::string Compress(const std::string& text) {
  const auto codec = *arrow::util::Codec::Create(arrow::Compression::LZ4);
  const auto* data = reinterpret_cast<const uint8_t*>(text.data());
  const auto size = static_cast<int64_t>(text.size());
  std::string block(static_cast<size_t>(codec->MaxCompressedLen(size, data)), '\0');
  block.resize(
      static_cast<size_t>(*codec->Compress(size, data, static_cast<int64_t>(block.size()), reinterpret_cast<uint8_t*>(block.data()))));
  return block;
}

arrow::Result<std::string> Decompress(const std::string& block, int64_t size) {
  ARROW_ASSIGN_OR_RAISE(const auto bytes, DecompressResponse(*arrow::Buffer::FromString(block), size, arrow::default_memory_pool()));
  return bytes->ToString();
}

/// Refuses whatever is asked of it.
class NoMemory final : public arrow::ProxyMemoryPool {
 public:
  NoMemory() : arrow::ProxyMemoryPool(arrow::default_memory_pool()) {}
  using arrow::ProxyMemoryPool::Allocate;
  arrow::Status Allocate(int64_t size, int64_t, uint8_t**) override {
    ADD_FAILURE() << size << " bytes were asked for";
    return arrow::Status::OutOfMemory("no");
  }
};

// The example of a raw block in lz4_Block_format.md's terms, made by hand: a token, three literals, a match of offset 3 that overlaps
// itself, the last five literals.
TEST(DecompressResponse, ABlockMadeByHand) {
  const std::string block = std::string("\x35", 1) + "abc" + std::string("\x03\x00", 2) + std::string("\x50", 1) + "vwxyz";
  EXPECT_EQ(*Decompress(block, 17), "abcabcabcabcvwxyz");
}

TEST(DecompressResponse, WhatWasCompressed) {
  for (const size_t size : {size_t{1}, size_t{13}, size_t{1000}, size_t{300'000}}) {
    std::string text;
    for (size_t i = 0; text.size() < size; ++i) text += "row " + std::to_string(i * i);
    text.resize(size);
    EXPECT_EQ(*Decompress(Compress(text), static_cast<int64_t>(size)), text);
  }
  const std::string zeros(1 << 24, '\0');
  EXPECT_EQ(*Decompress(Compress(zeros), int64_t{1} << 24), zeros) << "near the highest ratio";
}

TEST(DecompressResponse, WhatDoesNotAddUpIsDataLoss) {
  const std::string block = Compress(std::string(1000, 'x').append("tail of it"));
  struct Case {
    std::string block;
    int64_t size;
    std::string says;
  };
  for (const Case& c : {Case{block, 1009, "decompress"}, Case{block, 1011, "not the 1011"},
                        Case{block.substr(0, block.size() - 1), 1010, "LZ4"}, Case{block + "x", 1010, "LZ4"}, Case{"", 1, "cannot become"},
                        Case{"x", 256, "cannot become"}, Case{std::string(100, '\xff'), 1000, "LZ4"}}) {
    const auto status = Decompress(c.block, c.size).status();
    EXPECT_EQ(CodeOf(status), Code::kDataLoss) << status;
    EXPECT_THAT(status.message(), HasSubstr(c.says));
  }
}

TEST(DecompressResponse, ClaimsAreLimitedBeforeMemoryIsReserved) {
  NoMemory none;
  for (const int64_t claim : {kLargestUncompressedResponse + 1, INT64_MAX, int64_t{0}, int64_t{-1}, INT64_MIN, int64_t{255} * 100 + 1}) {
    const auto status = DecompressResponse(*arrow::Buffer::FromString(std::string(100, 'x')), claim, &none).status();
    EXPECT_EQ(CodeOf(status), Code::kDataLoss) << claim;
  }
}

TEST(DecompressResponse, DamagedBytesAreErrorsOrOtherBytes) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "row " + std::to_string(i % 7);
  const std::string block = Compress(text);
  for (size_t i = 0; i < block.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = block;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const auto bytes = Decompress(bad, static_cast<int64_t>(text.size()));
      EXPECT_TRUE(!bytes.ok() || bytes->size() == text.size());
    }
  }
}

}  // namespace
}  // namespace headrace::bigquery
