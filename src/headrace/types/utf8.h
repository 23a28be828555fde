// UTF-8, character by character and as a whole. Free functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace headrace {

/// The code point at the start of `text` and its length in bytes; nothing when the text is empty or does not begin with valid UTF-8 (no
/// overlong forms, no surrogates, at most U+10FFFF).
std::optional<std::pair<uint32_t, size_t>> FirstCharacter(std::string_view text);
/// The bytes of the first character, 0 where FirstCharacter has nothing.
size_t CharacterLength(std::string_view text);
/// Whether all of it is UTF-8; fast for ASCII.
bool IsUtf8(std::string_view text);
/// Whether each of the texts between two neighbours of `offsets` in `data` is UTF-8, as a column of Arrow has them: one look at all of them
/// together. The offsets are in order and within `data`. Bytes between the first and the last offset that belong to no text count too.
bool AreUtf8(const char* data, std::span<const int32_t> offsets);

}  // namespace headrace
