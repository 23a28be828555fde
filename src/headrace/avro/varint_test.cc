#include "headrace/avro/internal/varint.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace headrace::avro {
namespace {

std::vector<uint8_t> Coded(uint64_t coded) {
  std::vector<uint8_t> bytes;
  while (coded >= 0x80) {
    bytes.push_back(static_cast<uint8_t>(coded | 0x80));
    coded >>= 7;
  }
  bytes.push_back(static_cast<uint8_t>(coded));
  return bytes;
}

/// With nothing behind it, and with so much that the wide form is taken; both agree with the byte-wise form.
void CheckBoth(const std::vector<uint8_t>& bytes) {
  for (const size_t behind : {size_t{0}, size_t{1}, size_t{16}}) {
    for (const uint8_t filler : {0x00, 0xFF, 0x7F, 0x80}) {
      std::vector<uint8_t> all = bytes;
      all.insert(all.end(), behind, filler);
      const uint8_t* end = all.data() + all.size();
      int64_t slow = 0;
      int64_t quick = 0;
      const uint8_t* slow_at = ReadLongSlow(all.data(), end, &slow);
      const uint8_t* quick_at = ReadLong(all.data(), end, &quick);
      ASSERT_EQ(quick_at, slow_at) << bytes.size() << " bytes, " << behind << " behind";
      if (slow_at != nullptr) {
        ASSERT_EQ(quick, slow);
      }
      if (end - all.data() < kLongestLong) continue;
      int64_t unchecked = 0;
      ASSERT_EQ(ReadLongUnchecked(all.data(), &unchecked), slow_at);
      if (slow_at != nullptr) {
        ASSERT_EQ(unchecked, slow);
      }
    }
  }
}

TEST(VarintTest, EveryLengthAndItsBorders) {
  for (int bits = 0; bits < 64; ++bits) {
    for (const int64_t step : {-1, 0, 1}) {
      const uint64_t coded = (uint64_t{1} << bits) + static_cast<uint64_t>(step);
      const auto bytes = Coded(coded);
      CheckBoth(bytes);
      int64_t value = 0;
      const uint8_t* end = bytes.data() + bytes.size();
      ASSERT_EQ(ReadLong(bytes.data(), end, &value), end);
      EXPECT_EQ(value, UnZigZag(coded));
    }
  }
}

TEST(VarintTest, RandomBytes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    // Many continuation bits, so that all lengths come, and more bytes than there may be.
    std::vector<uint8_t> bytes(random() % 13);
    for (auto& byte : bytes) byte = static_cast<uint8_t>(random() % 8 == 0 ? random() & 0x7F : random() | 0x80);
    CheckBoth(bytes);
  }
}

TEST(VarintTest, MoreThan64BitsAreRefused) {
  std::vector<uint8_t> bytes(9, 0xFF);
  for (const auto& [tenth, right] :
       {std::pair<uint8_t, bool>{0x00, true}, {0x01, true}, {0x02, false}, {0x7F, false}, {0x80, false}, {0x81, false}}) {
    auto ten = bytes;
    ten.push_back(tenth);
    CheckBoth(ten);
    ten.insert(ten.end(), 8, 0);
    int64_t value = 0;
    EXPECT_EQ(ReadLong(ten.data(), ten.data() + ten.size(), &value) != nullptr, right) << int{tenth};
  }
}

}  // namespace
}  // namespace headrace::avro
