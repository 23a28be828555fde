#include "headrace/files/internal/part_name.h"

#include <algorithm>

#include <fmt/format.h>

namespace headrace {
namespace {

constexpr std::string_view kPrefix = "part-";
constexpr std::string_view kSuffix = ".parquet";
constexpr std::string_view kTempSuffix = ".tmp";

}  // namespace

std::string PartName(std::string_view tag, int writer, uint64_t checkpoint, uint64_t sequence) {
  auto name = fmt::format("{}{}-{:05}-{:04}", kPrefix, tag, writer, checkpoint);
  if (sequence > 0) name += fmt::format("-{:04}", sequence);
  return name + std::string(kSuffix);
}

std::string TempPartName(std::string_view part_name) { return fmt::format(".{}{}", part_name, kTempSuffix); }

std::string TempSingleName(std::string_view name, std::string_view tag) { return fmt::format(".{}.{}{}", name, tag, kTempSuffix); }

bool IsPartName(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() < kPrefix.size() + kSuffix.size()) return false;
  auto middle = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  return std::count(middle.begin(), middle.end(), '-') >= 2 &&
         std::all_of(middle.begin(), middle.end(), [](char c) { return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); });
}

bool IsPartNameOf(std::string_view name, std::string_view tag) {
  return IsPartName(name) && name.substr(kPrefix.size()).starts_with(fmt::format("{}-", tag));
}

std::string_view PartNameOfTemp(std::string_view name, std::string_view tag) {
  if (!name.starts_with('.') || !name.ends_with(kTempSuffix) || name.size() <= kTempSuffix.size()) return {};
  auto part = name.substr(1, name.size() - 1 - kTempSuffix.size());
  return IsPartNameOf(part, tag) ? part : std::string_view();
}

}  // namespace headrace
