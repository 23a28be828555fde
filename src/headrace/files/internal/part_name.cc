#include "headrace/files/internal/part_name.h"

#include <algorithm>

#include <fmt/format.h>

#include "headrace/files/file_format.h"

namespace headrace {
namespace {

constexpr std::string_view kPrefix = "part-";
constexpr std::string_view kTempSuffix = ".tmp";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Takes the digits at the front of `text`, without their leading zeros.
std::string_view TakeNumber(std::string_view* text) {
  size_t end = 0;
  while (end < text->size() && IsDigit((*text)[end])) ++end;
  auto number = text->substr(0, end);
  text->remove_prefix(end);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

bool PartOrder::operator()(std::string_view a, std::string_view b) const {
  auto left = a;
  auto right = b;
  while (!left.empty() && !right.empty()) {
    if (IsDigit(left.front()) && IsDigit(right.front())) {
      auto x = TakeNumber(&left);
      auto y = TakeNumber(&right);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
      continue;
    }
    if (left.front() != right.front()) return left.front() < right.front();
    left.remove_prefix(1);
    right.remove_prefix(1);
  }
  if (left.empty() != right.empty()) return left.empty();
  return a < b;  // 01 and 1 are the same number and two names
}

std::string PartName(std::string_view tag, int writer, uint64_t checkpoint, uint64_t sequence, std::string_view extension) {
  auto name = fmt::format("{}{}-{:05}-{:04}", kPrefix, tag, writer, checkpoint);
  if (sequence > 0) name += fmt::format("_{:04}", sequence);
  return name + std::string(extension);
}

std::string TempPartName(std::string_view part_name) { return fmt::format(".{}{}", part_name, kTempSuffix); }

std::string TempSingleName(std::string_view name, std::string_view tag) { return fmt::format(".{}.{}{}", name, tag, kTempSuffix); }

bool IsPartName(std::string_view name) {
  const size_t dot = name.find('.');
  if (!name.starts_with(kPrefix) || dot == std::string_view::npos || !IsExtensionOfOurs(name.substr(dot))) return false;
  auto middle = name.substr(kPrefix.size(), dot - kPrefix.size());
  return std::count(middle.begin(), middle.end(), '-') >= 2 && std::all_of(middle.begin(), middle.end(), [](char c) {
           return c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
         });
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
