#include "headrace/bigquery/read/restriction_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "headrace/types/utf8.h"
#include "headrace/types/value_text.h"

namespace headrace::bigquery {
namespace {

constexpr std::string_view kOption = "row_restriction";
constexpr int64_t kMicrosPerDay = int64_t{86'400} * 1'000'000;

bool IsPlain(unsigned char c) { return c >= 0x20 && c != 0x7F && c != '\\' && c != '\'' && c != '`' && c != '"'; }

/// What stands between the quotes. Escapes of control characters are of code points, which in a name and a text are the same as bytes.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (IsPlain(byte)) {
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

arrow::Result<std::string> Decimal(std::string_view type, std::string_view text) {
  std::string_view rest = text;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) rest.remove_prefix(1);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool well_made = std::ranges::all_of(rest, [&](char c) { return digit(c) || c == '.'; }) && std::ranges::count(rest, '.') <= 1 &&
                         std::ranges::any_of(rest, digit);
  if (!well_made) return InvalidOption(std::string(kOption), fmt::format("{} is no decimal number", Quoted(text)));
  return fmt::format("{} '{}'", type, text);
}

/// "YYYY-MM-DD".
arrow::Result<std::string> DateText(std::chrono::year_month_day date) {
  const int year = static_cast<int>(date.year());
  if (!date.ok() || year < 1 || year > 9999) {
    return InvalidOption(std::string(kOption), fmt::format("there is no day {}-{}-{} in the years 1 to 9999", year,
                                                           static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day())));
  }
  return fmt::format("{:04}-{:02}-{:02}", year, static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

}  // namespace

arrow::Result<std::string> SqlColumn(std::string_view path) {
  if (!IsUtf8(path)) return InvalidOption(std::string(kOption), fmt::format("the name {} is not UTF-8", Quoted(path)));
  std::string out;
  for (std::string_view rest = path;;) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    if (part.find_first_not_of(' ') == std::string_view::npos) {
      return InvalidOption(std::string(kOption), fmt::format("a part of the name {} is blank", Quoted(path)));
    }
    out += fmt::format("{}`{}`", out.empty() ? "" : ".", Escaped(part));
    if (dot == rest.size()) return out;
    rest.remove_prefix(dot + 1);
  }
}

arrow::Result<std::string> SqlString(std::string_view text) {
  if (!IsUtf8(text)) return InvalidOption(std::string(kOption), fmt::format("the text {} is not UTF-8", Quoted(text)));
  return fmt::format("'{}'", Escaped(text));
}

std::string SqlBytes(std::string_view bytes) {
  std::string out = "b'";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x7F && IsPlain(byte) ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return out + "'";
}

std::string SqlBool(bool value) { return value ? "TRUE" : "FALSE"; }

std::string SqlInt64(int64_t value) { return fmt::format("{}", value); }

std::string SqlFloat64(double value) {
  if (std::isnan(value)) return "CAST('NaN' AS FLOAT64)";
  if (std::isinf(value)) return value > 0 ? "CAST('inf' AS FLOAT64)" : "CAST('-inf' AS FLOAT64)";
  std::string text = fmt::format("{}", value);
  // Without point and exponent it would be an INT64.
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

arrow::Result<std::string> SqlNumeric(std::string_view decimal) { return Decimal("NUMERIC", decimal); }

arrow::Result<std::string> SqlBignumeric(std::string_view decimal) { return Decimal("BIGNUMERIC", decimal); }

arrow::Result<std::string> SqlDate(std::chrono::year_month_day date) {
  ARROW_ASSIGN_OR_RAISE(const std::string text, DateText(date));
  return fmt::format("DATE '{}'", text);
}

arrow::Result<std::string> SqlTimestamp(int64_t microseconds) {
  int64_t days = microseconds / kMicrosPerDay;
  int64_t of_day = microseconds % kMicrosPerDay;
  if (of_day < 0) {
    --days;
    of_day += kMicrosPerDay;
  }
  constexpr int64_t kFirstDay = -719'162;  // 0001-01-01
  constexpr int64_t kLastDay = 2'932'896;  // 9999-12-31
  if (days < kFirstDay || days > kLastDay) {
    return InvalidOption(std::string(kOption), fmt::format("{} microseconds since 1970 are not within the years 1 to 9999", microseconds));
  }
  ARROW_ASSIGN_OR_RAISE(const std::string date, DateText(std::chrono::sys_days{std::chrono::days{days}}));
  const int64_t seconds = of_day / 1'000'000;
  return fmt::format("TIMESTAMP '{} {:02}:{:02}:{:02}.{:06}+00:00'", date, seconds / 3600, seconds / 60 % 60, seconds % 60,
                     of_day % 1'000'000);
}

}  // namespace headrace::bigquery
