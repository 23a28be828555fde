// The inverse of varint.h's ReadLong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::avro {

inline void AppendLong(int64_t value, std::string* out) {
  auto coded = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  char bytes[10];
  size_t size = 0;
  for (; coded >= 0x80; coded >>= 7) bytes[size++] = static_cast<char>(coded | 0x80);
  bytes[size++] = static_cast<char>(coded);
  out->append(bytes, size);
}

inline void AppendSized(std::string_view bytes, std::string* out) {
  AppendLong(static_cast<int64_t>(bytes.size()), out);
  out->append(bytes);
}

}  // namespace headrace::avro
