#include "headrace/base/short_name.h"

#include <vector>

#include <fmt/format.h>

namespace headrace {
namespace {

constexpr size_t kLongest = 64;       // of a name that stays as it is
constexpr size_t kLongestShort = 48;  // of another: half a line of a terminal
constexpr std::string_view kDots = ".../";
constexpr size_t kLongestPart = 28;
// Streams of one session differ somewhere; both ends make it likely that it shows.
constexpr size_t kHead = 8;
constexpr size_t kTail = 12;

std::string ShortPart(std::string_view part) {
  if (part.size() <= kLongestPart) return std::string(part);
  return fmt::format("{}...{}", part.substr(0, kHead), part.substr(part.size() - kTail));
}

}  // namespace

std::string ShortName(std::string_view name) {
  if (name.size() <= kLongest) return std::string(name);
  std::string text;
  while (true) {
    const size_t slash = name.rfind('/');
    const std::string part = ShortPart(slash == std::string_view::npos ? name : name.substr(slash + 1));
    if (!text.empty() && text.size() + part.size() + 1 + kDots.size() > kLongestShort) return std::string(kDots) + text;
    text = text.empty() ? part : fmt::format("{}/{}", part, text);
    if (slash == std::string_view::npos) return text;
    name = name.substr(0, slash);
  }
}

}  // namespace headrace
