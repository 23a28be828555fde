#include "headrace/avro/internal/civil_text.h"

#include <chrono>

#include <fmt/format.h>

namespace headrace::avro {
namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000;
constexpr int64_t kSecondsPerDay = 86'400;

// Takes `least` to `most` digits off the front.
bool TakeNumber(std::string_view* text, size_t least, size_t most, int64_t* number) {
  *number = 0;
  size_t digits = 0;
  while (digits < text->size() && digits < most && (*text)[digits] >= '0' && (*text)[digits] <= '9') {
    *number = *number * 10 + ((*text)[digits++] - '0');
  }
  text->remove_prefix(digits);
  return digits >= least;
}

bool Take(std::string_view* text, char c) {
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

bool TakeDate(std::string_view* text, int64_t* days) {
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
  if (!TakeNumber(text, 4, 4, &year) || !Take(text, '-') || !TakeNumber(text, 1, 2, &month) || !Take(text, '-') ||
      !TakeNumber(text, 1, 2, &day)) {
    return false;
  }
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(year)), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (year < 1 || !date.ok()) return false;
  *days = std::chrono::sys_days(date).time_since_epoch().count();
  return true;
}

// The fraction is answered in units of 10^-digits.
bool TakeTime(std::string_view* text, int digits, int64_t* seconds, int64_t* fraction) {
  int64_t hour = 0;
  int64_t minute = 0;
  int64_t second = 0;
  if (!TakeNumber(text, 1, 2, &hour) || !Take(text, ':') || !TakeNumber(text, 1, 2, &minute) || !Take(text, ':') ||
      !TakeNumber(text, 1, 2, &second)) {
    return false;
  }
  if (hour > 23 || minute > 59 || second > 59) return false;
  *seconds = (hour * 60 + minute) * 60 + second;
  *fraction = 0;
  if (!Take(text, '.')) return true;
  const size_t before = text->size();
  if (!TakeNumber(text, 1, static_cast<size_t>(digits), fraction)) return false;
  for (size_t taken = before - text->size(); taken < static_cast<size_t>(digits); ++taken) *fraction *= 10;
  return true;
}

// The form that the service writes, without a loop: YYYY-MM-DDTHH:MM:SS[.FFFFFF]. Answers false for any other, which may be right still.
bool ParseUsualDatetime(const char* text, size_t size, int64_t* micros) {
  if (size != 19 && size != 26) return false;
  auto two = [text](int at, int* number) {
    const unsigned tens = static_cast<unsigned char>(text[at]) - '0';
    const unsigned ones = static_cast<unsigned char>(text[at + 1]) - '0';
    *number = static_cast<int>(tens * 10 + ones);
    return tens <= 9 && ones <= 9;
  };
  int parts[10] = {};
  bool digits = two(0, &parts[0]) & two(2, &parts[1]) & two(5, &parts[2]) & two(8, &parts[3]) & two(11, &parts[4]) & two(14, &parts[5]) &
                two(17, &parts[6]);
  bool marks = text[4] == '-' && text[7] == '-' && (text[10] == 'T' || text[10] == ' ') && text[13] == ':' && text[16] == ':';
  if (size == 26) {
    digits = digits & two(20, &parts[7]) & two(22, &parts[8]) & two(24, &parts[9]);
    marks = marks && text[19] == '.';
  }
  if (!digits || !marks || parts[4] > 23 || parts[5] > 59 || parts[6] > 59) return false;
  const int year = parts[0] * 100 + parts[1];
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(parts[2])),
                                         std::chrono::day(static_cast<unsigned>(parts[3])));
  if (year < 1 || !date.ok()) return false;
  const int64_t seconds =
      std::chrono::sys_days(date).time_since_epoch().count() * kSecondsPerDay + parts[4] * 3600 + parts[5] * 60 + parts[6];
  *micros = seconds * kMicrosPerSecond + parts[7] * 10'000 + parts[8] * 100 + parts[9];
  return true;
}

void AppendPicos(int64_t seconds, int64_t picos, std::string* out) {
  const int64_t day = (seconds >= 0 ? seconds : seconds - (kSecondsPerDay - 1)) / kSecondsPerDay;
  const int64_t second = seconds - day * kSecondsPerDay;
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  *out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:012}Z", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), second / 3600, second / 60 % 60, second % 60, picos);
}

}  // namespace

bool ParseCivilDate(std::string_view text, int64_t* days) { return TakeDate(&text, days) && text.empty(); }

bool ParseCivilTime(std::string_view text, int64_t* micros) {
  int64_t seconds = 0;
  int64_t fraction = 0;
  if (!TakeTime(&text, 6, &seconds, &fraction) || !text.empty()) return false;
  *micros = seconds * kMicrosPerSecond + fraction;
  return true;
}

bool ParseCivilDatetime(std::string_view text, int64_t* micros) {
  if (ParseUsualDatetime(text.data(), text.size(), micros)) return true;
  int64_t days = 0;
  int64_t time = 0;
  if (!TakeDate(&text, &days)) return false;
  if (!text.empty() && ((!Take(&text, 'T') && !Take(&text, ' ')) || !ParseCivilTime(text, &time))) return false;
  *micros = days * kSecondsPerDay * kMicrosPerSecond + time;
  return true;
}

bool NormalizePicos(std::string_view text, std::string* normal) {
  int64_t days = 0;
  int64_t seconds = 0;
  int64_t picos = 0;
  if (!TakeDate(&text, &days) || (!Take(&text, 'T') && !Take(&text, ' ')) || !TakeTime(&text, 12, &seconds, &picos)) return false;
  int64_t offset = 0;
  if (!Take(&text, 'Z')) {
    const bool west = Take(&text, '-');
    int64_t hours = 0;
    int64_t minutes = 0;
    if ((!west && !Take(&text, '+')) || !TakeNumber(&text, 2, 2, &hours)) return false;
    if (Take(&text, ':') && !TakeNumber(&text, 2, 2, &minutes)) return false;
    if (hours > 23 || minutes > 59) return false;
    offset = (hours * 60 + minutes) * 60 * (west ? -1 : 1);
  }
  if (!text.empty()) return false;
  AppendPicos(days * kSecondsPerDay + seconds - offset, picos, normal);
  return normal->size() == sizeof("YYYY-MM-DDTHH:MM:SS.FFFFFFFFFFFFZ") - 1 && normal->front() != '-' && !normal->starts_with("0000");
}

void FormatPicos(int64_t value, int64_t per_second, std::string* normal) {
  constexpr int64_t kPicosPerSecond = 1'000'000'000'000;
  int64_t seconds = value / per_second;
  int64_t rest = value % per_second;
  if (rest < 0) {
    rest += per_second;
    --seconds;
  }
  AppendPicos(seconds, rest * (kPicosPerSecond / per_second), normal);
}

}  // namespace headrace::avro
