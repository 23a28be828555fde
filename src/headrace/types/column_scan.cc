#include "headrace/types/column_scan.h"

namespace headrace {
namespace {

/// The signs of `value - least` and `most - value` say it, in arithmetic that wraps around: where one of the differences leaves the range
/// of T, the value lies outside as well, and the sign of the other is right, since least is not above zero and most not below.
template <typename T, typename Word>
bool Within(std::span<const T> values, T least, T most) {
  constexpr Word kSign = Word{1} << (8 * sizeof(Word) - 1);
  const auto low = static_cast<Word>(least);
  const auto high = static_cast<Word>(most);
  Word outside = 0;
  for (const T value : values) outside |= (static_cast<Word>(value) - low) | (high - static_cast<Word>(value));
  return (outside & kSign) == 0;
}

/// Of two numbers that are not negative the difference does not wrap around.
template <typename T, typename Word>
bool Ordered(std::span<const T> offsets) {
  if (offsets.empty()) return true;
  constexpr Word kSign = Word{1} << (8 * sizeof(Word) - 1);
  const T* at = offsets.data();
  const size_t steps = offsets.size() - 1;
  auto wrong = static_cast<Word>(at[0]);
  for (size_t i = 0; i < steps; ++i) wrong |= static_cast<Word>(at[i + 1]) | (static_cast<Word>(at[i + 1]) - static_cast<Word>(at[i]));
  return (wrong & kSign) == 0;
}

}  // namespace

bool AreWithin(std::span<const int32_t> values, int32_t least, int32_t most) { return Within<int32_t, uint32_t>(values, least, most); }
bool AreWithin(std::span<const int64_t> values, int64_t least, int64_t most) { return Within<int64_t, uint64_t>(values, least, most); }
bool AreOrdered(std::span<const int32_t> offsets) { return Ordered<int32_t, uint32_t>(offsets); }
bool AreOrdered(std::span<const int64_t> offsets) { return Ordered<int64_t, uint64_t>(offsets); }

}  // namespace headrace
