#include "headrace/files/internal/parse_options.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace headrace {
namespace {

// The first is the default. Words of BigQuery's own roundingMode.
constexpr std::pair<std::string_view, DecimalRounding> kRoundings[] = {{"error", DecimalRounding::kError},
                                                                       {"half_away_from_zero", DecimalRounding::kHalfAwayFromZero},
                                                                       {"half_even", DecimalRounding::kHalfEven}};
constexpr std::pair<std::string_view, EpochUnit> kUnits[] = {
    {"none", EpochUnit::kNone}, {"seconds", EpochUnit::kSeconds}, {"millis", EpochUnit::kMillis}, {"micros", EpochUnit::kMicros}};

template <typename Value>
arrow::Result<Value> ValueOf(const char* option, const std::string& text, std::span<const std::pair<std::string_view, Value>> values) {
  if (text.empty()) return values.front().second;
  std::vector<std::string_view> words;
  for (const auto& [word, value] : values) {
    if (word == text) return value;
    words.push_back(word);
  }
  return InvalidOption(option, fmt::format("{} is '{}': it is one of {}", option, text, fmt::join(words, ", ")));
}

}  // namespace

arrow::Result<ParseOptions> ParseOptionsOf(const FileSourceOptions& options) {
  ParseOptions parse{.strict = options.strict.value_or(false), .ignore_unknown_keys = options.ignore_unknown_values.value_or(false)};
  ARROW_ASSIGN_OR_RAISE(parse.rounding, ValueOf<DecimalRounding>("rounding", options.rounding, kRoundings));
  ARROW_ASSIGN_OR_RAISE(parse.epoch_unit, ValueOf<EpochUnit>("epoch_unit", options.epoch_unit, kUnits));
  return parse;
}

}  // namespace headrace
