// The one form of a DATETIME as text that services write, read without a loop; types/value_text.h reads every form.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "headrace/types/value_text.h"

namespace headrace::avro {

/// YYYY-MM-DDTHH:MM:SS[.FFFFFF], T or a space, as microseconds since 1970. False for any other text, which may be right still.
inline bool ParseUsualDatetime(std::string_view text, int64_t* micros) {
  constexpr size_t kWithoutFraction = 19;
  constexpr size_t kWithFraction = 26;
  if (text.size() != kWithoutFraction && text.size() != kWithFraction) return false;
  bool digits = true;
  const auto two = [&](size_t at) {
    const unsigned tens = static_cast<unsigned char>(text[at]) - unsigned{'0'};
    const unsigned ones = static_cast<unsigned char>(text[at + 1]) - unsigned{'0'};
    digits = digits && tens <= 9 && ones <= 9;
    return static_cast<int>(tens * 10 + ones);
  };
  const int year = two(0) * 100 + two(2);
  const int month = two(5);
  const int day = two(8);
  const int hour = two(11);
  const int minute = two(14);
  const int second = two(17);
  bool marks = text[4] == '-' && text[7] == '-' && (text[10] == 'T' || text[10] == ' ') && text[13] == ':' && text[16] == ':';
  int64_t fraction = 0;
  if (text.size() == kWithFraction) {
    marks = marks && text[19] == '.';
    fraction = two(20) * 10'000 + two(22) * 100 + two(24);
  }
  if (!digits || !marks || year < 1 || hour > 23 || minute > 59 || second > 59) return false;
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok()) return false;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  *micros = days * kMicrosPerDay + ((hour * 60 + minute) * 60 + second) * kMicrosPerSecond + fraction;
  return true;
}

}  // namespace headrace::avro
