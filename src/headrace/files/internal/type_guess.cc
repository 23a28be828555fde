#include "headrace/files/internal/type_guess.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "headrace/types/value_text.h"

namespace headrace {
namespace {

// In the order in which they are preferred.
constexpr std::array kCandidates = {TypeKind::kInt64, TypeKind::kFloat64,  TypeKind::kBool,     TypeKind::kDate,
                                    TypeKind::kTime,  TypeKind::kDatetime, TypeKind::kTimestamp};
constexpr size_t kFloatIndex = 1;

/// True for a whole number whose digits are not those of the double nearest to it.
bool LosesDigits(std::string_view text) {
  constexpr double kExactBelow = 9007199254740992.0;  // 2^53: every whole number below is a double
  std::string_view digits = text.substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.size() < 16 || digits.find_first_not_of("0123456789") != std::string_view::npos) return false;
  auto value = ParseDouble(digits);
  return value.ok() && *value >= kExactBelow && digits != fmt::format("{:.0f}", *value);
}

}  // namespace

bool TypeGuess::Is(TypeKind kind, std::string_view text) {
  switch (kind) {
    case TypeKind::kInt64:
      return ParseInt64(text).ok();
    case TypeKind::kFloat64:
      return ParseDouble(text).ok();
    case TypeKind::kBool:
      return ParseBool(text).ok();
    case TypeKind::kDate:
      return ParseDate(text).ok();
    case TypeKind::kTime:
      return ParseTime(text).ok();
    case TypeKind::kDatetime:
      return ParseDatetime(text).ok() || ParseDate(text).ok();
    case TypeKind::kTimestamp:
      return ParseTimestamp(text).ok();
    default:
      return false;
  }
}

void TypeGuess::Add(std::string_view text, int64_t row, const std::string& path, int64_t line) {
  any_ = true;
  for (size_t i = 0; i < kCandidates.size(); ++i) {
    const uint32_t bit = uint32_t{1} << i;
    if ((possible_ & bit) != 0 && !Is(kCandidates[i], text)) possible_ &= ~bit;
  }
  if ((possible_ & (uint32_t{1} << kFloatIndex)) == 0 || !lost_path_.empty() || !LosesDigits(text)) return;
  lost_text_ = std::string(text);
  lost_row_ = row;
  lost_path_ = path;
  lost_line_ = line;
}

arrow::Result<TypeKind> TypeGuess::Finish(const std::string& column) const {
  if (!any_) return TypeKind::kString;
  for (size_t i = 0; i < kCandidates.size(); ++i) {
    if ((possible_ & (uint32_t{1} << i)) == 0) continue;
    if (kCandidates[i] != TypeKind::kFloat64 || lost_path_.empty()) return kCandidates[i];
    return MakeError({.code = Code::kInvalidArgument, .service = "local files", .resource = lost_path_, .row = lost_row_, .column = column},
                     fmt::format("{}, line {}: column {}, row {}: {} does not fit into INT64, and as FLOAT64 it would lose digits; give a "
                                 "schema with a NUMERIC or STRING column",
                                 lost_path_, lost_line_, column, lost_row_, lost_text_));
  }
  return TypeKind::kString;
}

}  // namespace headrace
