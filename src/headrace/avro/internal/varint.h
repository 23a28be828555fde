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

/// Two to eight bytes at once, without a branch on their number: the continuation bits say where the integer ends, and the groups of seven
/// bits are moved together pairwise. Nine and ten bytes are left to ReadLongSlow. Eight bytes must be there.
inline const uint8_t* ReadLongWide(const uint8_t* at, const uint8_t* end, int64_t* value) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  const uint64_t last = ~word & 0x8080808080808080;
  if (last == 0) return ReadLongSlow(at, end, value);
  word &= last ^ (last - 1);
  word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
  word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
  word = (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
  *value = UnZigZag(word);
  return at + (__builtin_ctzll(last) >> 3) + 1;
}

/// Reads one integer at `at`; answers the byte after it, or null when the bytes end before it or it has more than 64 bits.
/// Always inlined: most integers have one byte, and a call costs more than they do.
__attribute__((always_inline)) inline const uint8_t* ReadLong(const uint8_t* at, const uint8_t* end, int64_t* value) {
  if (at != end && *at < 0x80) {
    *value = UnZigZag(*at);
    return at + 1;
  }
  if (end - at >= static_cast<int64_t>(sizeof(uint64_t))) return ReadLongWide(at, end, value);
  return ReadLongSlow(at, end, value);
}

}  // namespace headrace::avro
