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

/// 01234 and +4930123: codes, not numbers. As numbers they would not come back as they were.
bool IsCode(std::string_view text) {
  if (text.starts_with('+')) return true;
  text.remove_prefix(text.starts_with('-') ? 1 : 0);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

}  // namespace

bool TypeGuess::Is(TypeKind kind, std::string_view text) {
  switch (kind) {
    case TypeKind::kInt64:
      return !IsCode(text) && text != "-0" && ParseInt64(text).ok();  // only FLOAT64 has a zero with a sign
    case TypeKind::kFloat64:
      return !IsCode(text) && ParseDouble(text).ok();
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
  if ((possible_ & (uint32_t{1} << kFloatIndex)) == 0 || !lost_path_.empty() || !LosesDigitsAsDouble(text)) return;
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
    return MakeError({.code = Code::kInvalidArgument,
                      .service = "local files",
                      .resource = lost_path_,
                      .reason = "VALUE_DOES_NOT_FIT",
                      .row = lost_row_,
                      .column = column},
                     fmt::format("{}, line {}: column {}, row {}: {} is no INT64, and as FLOAT64 it would lose digits; give a schema "
                                 "with a NUMERIC, BIGNUMERIC or STRING column, or FLOAT64 if that is meant",
                                 lost_path_, lost_line_, column, lost_row_, lost_text_));
  }
  return TypeKind::kString;
}

}  // namespace headrace
