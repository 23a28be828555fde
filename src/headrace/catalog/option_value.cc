#include "headrace/catalog/option_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "headrace/bigquery/read/options.h"
#include "headrace/catalog/nearest_word.h"

namespace headrace::catalog {
namespace {

arrow::Status Wrong(std::string_view option, std::string_view text, std::string_view wanted) {
  return InvalidOption(std::string(option), fmt::format("{} is '{}': {}", option, text, wanted));
}

struct Unit {
  std::string_view name;
  double factor;
};

// IEC prefixes are binary; a bare letter is binary too, as in every tool that takes memory sizes; "MB" says decimal.
constexpr Unit kByteUnits[] = {{"", 1},        {"B", 1},         {"K", 1024}, {"KiB", 1024}, {"M", 1 << 20}, {"MiB", 1 << 20},
                               {"G", 1 << 30}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6},   {"GB", 1e9}};
constexpr Unit kDurationUnits[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if ((a[i] | 0x20) != (b[i] | 0x20)) return false;
  }
  return true;
}

/// "1.5GiB" -> 1.5 * 2^30; nothing for anything that is not digits, an optional fraction and a known unit.
std::optional<double> WithUnit(std::string_view text, std::span<const Unit> units, bool ignore_case) {
  size_t digits = text.find_first_not_of("0123456789.");
  std::string_view number = text.substr(0, digits);
  std::string_view unit = digits == std::string_view::npos ? "" : text.substr(digits);
  double value = 0;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  for (const Unit& known : units) {
    if (known.name == unit || (ignore_case && EqualIgnoringCase(known.name, unit))) return value * known.factor;
  }
  return std::nullopt;
}

/// "none, lz4 or zstd"
std::string Alternatives(const std::vector<std::string_view>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

arrow::Status CheckWord(const Option& option, std::string_view text) {
  auto words = SplitWords(option.words);
  if (std::ranges::find(words, text) != words.end()) return arrow::Status::OK();
  return Wrong(option.name, text, fmt::format("give {}{}", Alternatives(words), DidYouMean(text, words)));
}

}  // namespace

arrow::Result<int64_t> ParseInteger(std::string_view option, std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return Wrong(option, text, "give a whole number, like 4");
  return value;
}

arrow::Result<int64_t> ParseBytes(std::string_view option, std::string_view text) {
  auto value = WithUnit(text, kByteUnits, /*ignore_case=*/true);
  if (!value || *value >= 9.2e18)
    return Wrong(option, text, "give a number of bytes, like 8388608, 512KiB, 8MiB or 1.5GiB (K, M and G are 2^10, 2^20, 2^30)");
  return static_cast<int64_t>(std::llround(*value));
}

arrow::Result<std::chrono::milliseconds> ParseDuration(std::string_view option, std::string_view text) {
  auto value = WithUnit(text, kDurationUnits, /*ignore_case=*/false);
  // A hundred years: beyond it is a mistake, and the sum of two stays in range of every clock.
  if (!value || *value > 3.2e12) return Wrong(option, text, "give a duration, like 500ms, 30s, 5m or 1h");
  return std::chrono::milliseconds{std::llround(*value)};
}

arrow::Result<double> ParseNumber(std::string_view option, std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return Wrong(option, text, "give a number, like 2500 or 0.5");
  }
  return value;
}

arrow::Result<bool> ParseFlag(std::string_view option, std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return Wrong(option, text, "give true or false");
}

std::vector<std::string> ParseList(std::string_view text) {
  std::vector<std::string> items;
  if (text.empty()) return items;
  while (true) {
    size_t comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

arrow::Status CheckValue(const Option& option, std::string_view text) {
  switch (option.kind) {
    case OptionKind::kText:
    case OptionKind::kList:
    case OptionKind::kEach:
      if (text.empty()) return Wrong(option.name, text, "it needs a value; leave the option out for its default");
      return option.takes_only_words() ? CheckWord(option, text) : arrow::Status::OK();
    case OptionKind::kInteger:
      return ParseInteger(option.name, text).status();
    case OptionKind::kBytes:
      return ParseBytes(option.name, text).status();
    case OptionKind::kDuration:
      return ParseDuration(option.name, text).status();
    case OptionKind::kNumber:
      return ParseNumber(option.name, text).status();
    case OptionKind::kFlag:
    case OptionKind::kBool:
      return ParseFlag(option.name, text).status();
    case OptionKind::kTime:
      return bigquery::ParseSnapshotTime(text).status();
  }
  return arrow::Status::OK();
}

}  // namespace headrace::catalog
