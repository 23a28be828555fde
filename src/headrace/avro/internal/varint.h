// Avro's variable-length integers: zig-zag, seven bits a byte, low bits first.
#pragma once

#include <cstdint>

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

/// Reads one integer at `at`; answers the byte after it, or null when the bytes end before it or it has more than 64 bits.
inline const uint8_t* ReadLong(const uint8_t* at, const uint8_t* end, int64_t* value) {
  if (at != end && *at < 0x80) {
    *value = UnZigZag(*at);
    return at + 1;
  }
  return ReadLongSlow(at, end, value);
}

}  // namespace headrace::avro
