#include "headrace/types/utf8.h"

#include <simdjson.h>

#include <array>
#include <cstring>

namespace headrace {
namespace {

/// The length of the ASCII that `text` begins with, in whole blocks and words but for a text that is all ASCII.
size_t AsciiLength(std::string_view text) {
  if (text.empty()) return 0;  // which may have no address, and memcpy wants one
  constexpr uint64_t kHighBits = 0x8080808080808080;
  constexpr size_t kWord = sizeof(uint64_t);
  std::array<uint64_t, 8> words{};
  size_t at = 0;
  for (; text.size() - at >= sizeof(words); at += sizeof(words)) {
    std::memcpy(words.data(), text.data() + at, sizeof(words));
    uint64_t all = 0;
    for (const uint64_t word : words) all |= word;
    if ((all & kHighBits) != 0) break;
  }
  for (; text.size() - at >= kWord; at += kWord) {
    std::memcpy(words.data(), text.data() + at, kWord);
    if ((words[0] & kHighBits) != 0) return at;
  }
  words[0] = 0;
  std::memcpy(words.data(), text.data() + at, text.size() - at);
  return (words[0] & kHighBits) != 0 ? at : text.size();
}

}  // namespace

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
  text.remove_prefix(AsciiLength(text));
  return text.empty() || simdjson::validate_utf8(text.data(), text.size());
}

bool AreUtf8(const char* data, std::span<const int32_t> offsets) {
  if (offsets.size() < 2) return true;
  const std::string_view all(data + offsets.front(), static_cast<size_t>(offsets.back() - offsets.front()));
  const size_t plain = AsciiLength(all);
  if (plain == all.size()) return true;
  if (!simdjson::validate_utf8(all.data() + plain, all.size() - plain)) return false;
  // The whole is right; so is each text unless it begins inside a character.
  bool inside = false;
  for (const int32_t offset : offsets.first(offsets.size() - 1)) inside |= offset < offsets.back() && (data[offset] & 0xC0) == 0x80;
  return !inside;
}

}  // namespace headrace
