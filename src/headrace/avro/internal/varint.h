// Avro's variable-length integers: zig-zag, seven bits a byte, low bits first.
#pragma once

#include <cstdint>
#include <cstring>

namespace headrace::avro {

inline int64_t UnZigZag(uint64_t coded) { return static_cast<int64_t>(coded >> 1) ^ -static_cast<int64_t>(coded & 1); }

/// The long form of ReadLong: two to ten bytes, every one of them checked.
inline const uint8_t* ReadLongSlow(const uint8_t* at, const uint8_t* end, int64_t* value) {
  uint64_t coded = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at == end) return nullptr;
    const uint64_t byte = *at++;
    // The tenth byte has room for the 64th bit only.
    if (shift == 63 && byte > 1) return nullptr;
    coded |= (byte & 0x7F) << shift;
    if (byte < 0x80) {
      *value = UnZigZag(coded);
      return at;
    }
  }
  return nullptr;
}

/// Eight groups of seven bits, moved together pairwise. The upper one of a pair is taken off where it was and put where it belongs in one
/// subtraction: x - (x >> 1) is x >> 1 when x's lowest bit is zero, x - 3 * (x >> 2) is x >> 2 when its two lowest are.
inline uint64_t JoinGroups(uint64_t word) {
  word &= 0x7f7f7f7f7f7f7f7f;
  word -= (word & 0x7f007f007f007f00) >> 1;
  word -= 3 * ((word & 0x3fff00003fff0000) >> 2);
  return (word & 0x0fffffff) | (word >> 32) << 28;
}

/// Two to ten bytes at once, without a branch on their number but for more than eight (hashes and fingerprints are full of those): the
/// continuation bits say where the integer ends. Ten bytes must be there; null when it has more than 64 bits.
inline const uint8_t* ReadLongWide(const uint8_t* at, int64_t* value) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  const uint64_t last = ~word & 0x8080808080808080;
  if (last == 0) {
    const uint64_t ninth = at[8];
    const uint64_t more = ninth >> 7;
    const uint64_t tenth = at[9] & (uint64_t{0} - more);  // zero where there is none
    // The tenth byte has room for the 64th bit only.
    if (tenth > 1) return nullptr;
    *value = UnZigZag(JoinGroups(word) | (ninth & 0x7F) << 56 | tenth << 63);
    return at + 9 + more;
  }
  *value = UnZigZag(JoinGroups(word & (last ^ (last - 1))));
  return at + (__builtin_ctzll(last) >> 3) + 1;
}

/// No integer has more bytes.
inline constexpr int64_t kLongestLong = 10;

/// ReadLong where at least kLongestLong bytes are left. One and two bytes are told apart by branches, since columns of small numbers have
/// mostly the one or the other, and a branch that is foretold does not wait for the byte.
__attribute__((always_inline)) inline const uint8_t* ReadLongUnchecked(const uint8_t* at, int64_t* value) {
  if (at[0] < 0x80) {
    *value = UnZigZag(at[0]);
    return at + 1;
  }
  if (at[1] < 0x80) {
    *value = UnZigZag((at[0] & 0x7FU) | uint64_t{at[1]} << 7);
    return at + 2;
  }
  return ReadLongWide(at, value);
}

/// Reads one integer at `at`; answers the byte after it, or null when the bytes end before it or it has more than 64 bits.
/// Always inlined: most integers have one byte, and a call costs more than they do.
__attribute__((always_inline)) inline const uint8_t* ReadLong(const uint8_t* at, const uint8_t* end, int64_t* value) {
  if (at != end && *at < 0x80) {
    *value = UnZigZag(*at);
    return at + 1;
  }
  if (end - at >= kLongestLong) return ReadLongWide(at, value);
  return ReadLongSlow(at, end, value);
}

}  // namespace headrace::avro
