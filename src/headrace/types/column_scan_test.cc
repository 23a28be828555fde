#include "headrace/types/column_scan.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "headrace/types/value_text.h"

namespace headrace {
namespace {

template <typename T>
std::vector<T> Probes(T least, T most) {
  constexpr T kLow = std::numeric_limits<T>::min();
  constexpr T kHigh = std::numeric_limits<T>::max();
  std::vector<T> probes = {kLow, static_cast<T>(kLow + 1),  static_cast<T>(kLow / 2),  -1,   0,
                           1,    static_cast<T>(kHigh / 2), static_cast<T>(kHigh - 1), kHigh};
  for (const T at : {least, most}) {
    for (int step = -1; step <= 1; ++step) probes.push_back(static_cast<T>(at + step));
    probes.push_back(static_cast<T>(kLow - std::min<T>(at, 0)));
    probes.push_back(static_cast<T>(kHigh - std::max<T>(at, 0)));
  }
  return probes;
}

template <typename T>
void CheckWithin(T least, T most) {
  for (const T probe : Probes(least, most)) {
    const bool right = probe >= least && probe <= most;
    // Each place of a vector instruction, and behind the last whole one.
    for (size_t size = 1; size <= 9; ++size) {
      for (size_t at = 0; at < size; ++at) {
        std::vector<T> values(size, most);
        values[at] = probe;
        EXPECT_EQ(AreWithin(std::span<const T>(values), least, most), right) << probe << " at " << at << " of " << size;
      }
    }
  }
}

TEST(ColumnScanTest, EveryKindOfValueAgainstTheBounds) {
  CheckWithin<int32_t>(kMinDate, kMaxDate);
  CheckWithin<int64_t>(kMinTimestamp, kMaxTimestamp);
  CheckWithin<int64_t>(0, kMicrosPerDay - 1);
  EXPECT_TRUE(AreWithin(std::span<const int64_t>(), 0, 0));
}

template <typename T>
void CheckOrder() {
  constexpr T kHigh = std::numeric_limits<T>::max();
  struct Case {
    std::vector<T> offsets;
    bool right;
  };
  for (const auto& [offsets, right] : {
           Case{{}, true},
           Case{{0}, true},
           Case{{-1}, false},
           Case{{0, 0, 0, 1, kHigh}, true},
           Case{{kHigh, kHigh}, true},
           Case{{0, kHigh, 0}, false},
           Case{{kHigh, std::numeric_limits<T>::min()}, false},
           Case{{0, -1}, false},
           Case{{std::numeric_limits<T>::min(), kHigh}, false},
           Case{{-2, -1, 0}, false},
       }) {
    EXPECT_EQ(AreOrdered(std::span<const T>(offsets)), right) << offsets.size();
  }
  for (size_t wrong = 1; wrong < 12; ++wrong) {
    std::vector<T> offsets;
    for (size_t i = 0; i < 12; ++i) offsets.push_back(static_cast<T>(10 * i));
    EXPECT_TRUE(AreOrdered(std::span<const T>(offsets)));
    offsets[wrong] = offsets[wrong - 1] - 1;
    EXPECT_FALSE(AreOrdered(std::span<const T>(offsets))) << wrong;
  }
}

TEST(ColumnScanTest, Order) {
  CheckOrder<int32_t>();
  CheckOrder<int64_t>();
}

}  // namespace
}  // namespace headrace
