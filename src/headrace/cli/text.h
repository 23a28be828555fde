// Numbers as people read them. Free functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::cli {

/// 1,234,567
std::string WithCommas(int64_t number);
/// "1 row", "1,200 rows".
std::string Counted(int64_t number, std::string_view noun);
/// 512 B, 1.5 KiB, 20.3 MiB ...
std::string HumanBytes(double bytes);
/// 4.2 s, 3 min 20 s, 2 h 5 min
std::string HumanSeconds(double seconds);
/// The argument as a POSIX shell takes it back as one word: quoted only where needed.
std::string ShellQuoted(std::string_view argument);
/// "key    value" lines with the values under each other, without a last line feed.
std::string Aligned(const std::vector<std::pair<std::string, std::string>>& rows);

}  // namespace headrace::cli
