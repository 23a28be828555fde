#include "headrace/types/utf8.h"

#include <array>
#include <cstring>

namespace headrace {

std::optional<std::pair<uint32_t, size_t>> FirstCharacter(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  if (byte(0) < 0x80) return std::pair(byte(0), size_t{1});
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return std::nullopt;
  uint32_t point = byte(0) & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    point = point << 6 | (byte(i) & 0x3F);
  }
  static constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[length] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return std::nullopt;
  return std::pair(point, length);
}

size_t CharacterLength(std::string_view text) {
  auto first = FirstCharacter(text);
  return first ? first->second : 0;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    uint64_t eight = 0;
    while (text.size() >= sizeof(eight)) {
      std::memcpy(&eight, text.data(), sizeof(eight));
      if ((eight & 0x8080808080808080) != 0) break;
      text.remove_prefix(sizeof(eight));
    }
    if (text.empty()) break;
    const size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace headrace
