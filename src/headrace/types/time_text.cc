// Dates, times and intervals of value_text.h.
#include <cstddef>
#include <optional>

#include <fmt/format.h>

#include "headrace/types/value_text.h"

namespace headrace {
namespace {

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t FloorMod(int64_t a, int64_t b) { return a % b < 0 ? a % b + b : a % b; }

void AppendPadded(int64_t value, int width, std::string* out) {
  char digits[20];
  int i = 20;
  do {
    digits[--i] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value > 0);
  while (20 - i < width) digits[--i] = '0';
  out->append(digits + i, static_cast<size_t>(20 - i));
}

// Days since 1970-01-01 and the civil date, for every int64 that a day can come from: the era arithmetic of Howard Hinnant's
// "chrono-compatible low-level date algorithms" (400 years are 146,097 days; years begin in March).
struct CivilDate {
  int64_t year;
  int64_t month;
  int64_t day;
};

CivilDate CivilFromDays(int64_t days) {
  const int64_t shifted = days + 719'468;
  const int64_t era = FloorDiv(shifted, 146'097);
  const int64_t day_of_era = shifted - era * 146'097;
  const int64_t year_of_era = (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month = (5 * day_of_year + 2) / 153;
  const int64_t day = day_of_year - (153 * month + 2) / 5 + 1;
  return {year_of_era + era * 400 + (month >= 10 ? 1 : 0), month < 10 ? month + 3 : month - 9, day};
}

int64_t DaysFromCivil(const CivilDate& date) {
  const int64_t year = date.year - (date.month <= 2 ? 1 : 0);
  const int64_t era = FloorDiv(year, 400);
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (date.month > 2 ? date.month - 3 : date.month + 9) + 2) / 5 + date.day - 1;
  return era * 146'097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719'468;
}

int64_t DaysOfMonth(int64_t year, int64_t month) {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

void AppendDays(int64_t days, std::string* out) {
  CivilDate date = CivilFromDays(days);
  if (date.year < 0) {  // outside BigQuery's range; errors show it
    out->push_back('-');
    date.year = -date.year;
  }
  AppendPadded(date.year, 4, out);
  out->push_back('-');
  AppendPadded(date.month, 2, out);
  out->push_back('-');
  AppendPadded(date.day, 2, out);
}

void AppendClock(int64_t second_of_day, std::string* out) {
  AppendPadded(second_of_day / 3'600, 2, out);
  out->push_back(':');
  AppendPadded(second_of_day / 60 % 60, 2, out);
  out->push_back(':');
  AppendPadded(second_of_day % 60, 2, out);
}

void AppendMicros(int64_t micros, std::string* out) {
  if (micros == 0) return;
  out->push_back('.');
  AppendPadded(micros, 6, out);
}

// Reads from the front of a text; every method says whether it found what it looked for.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool AtEnd() const { return rest_.empty(); }
  char Peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  bool Take(char c) {
    if (Peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool TakeWord(std::string_view upper) {
    if (rest_.size() < upper.size()) return false;
    for (size_t i = 0; i < upper.size(); ++i) {
      if ((rest_[i] & ~0x20) != upper[i]) return false;
    }
    rest_.remove_prefix(upper.size());
    return true;
  }
  /// `least` to `most` digits, as many as there are.
  bool Digits(size_t least, size_t most, int64_t* value) {
    size_t count = 0;
    int64_t number = 0;
    for (; count < rest_.size() && count < most && rest_[count] >= '0' && rest_[count] <= '9'; ++count) {
      number = number * 10 + (rest_[count] - '0');
    }
    if (count < least) return false;
    rest_.remove_prefix(count);
    *value = number;
    return true;
  }
  /// Nothing, or a point and one to `places` digits, as a multiple of 10^-places.
  bool Fraction(size_t places, int64_t* value) {
    *value = 0;
    if (!Take('.')) return true;
    const size_t before = rest_.size();
    if (!Digits(1, places, value)) return false;
    for (size_t count = before - rest_.size(); count < places; ++count) *value *= 10;
    return true;
  }
  bool Date(int64_t* days) {
    CivilDate date{};
    if (!Digits(4, 4, &date.year) || !Take('-') || !Digits(1, 2, &date.month) || !Take('-') || !Digits(1, 2, &date.day)) return false;
    if (date.year < 1 || date.month < 1 || date.month > 12 || date.day < 1 || date.day > DaysOfMonth(date.year, date.month)) return false;
    *days = DaysFromCivil(date);
    return true;
  }
  bool Clock(int64_t* second_of_day) {
    int64_t hours = 0;
    int64_t minutes = 0;
    int64_t seconds = 0;
    if (!Digits(1, 2, &hours) || !Take(':') || !Digits(1, 2, &minutes) || !Take(':') || !Digits(1, 2, &seconds)) return false;
    if (hours > 23 || minutes > 59 || seconds > 59) return false;
    *second_of_day = (hours * 60 + minutes) * 60 + seconds;
    return true;
  }
  /// Z, UTC, or a sign and H[H][[:]MM], a space before each; seconds to take away.
  bool Zone(int64_t* offset) {
    *offset = 0;
    (void)Take(' ');
    if (TakeWord("Z") || TakeWord("UTC")) return true;
    const bool minus = Peek() == '-';
    if (!Take('-') && !Take('+')) return false;
    int64_t hours = 0;
    int64_t minutes = 0;
    if (!Digits(1, 2, &hours)) return false;
    if (Take(':') ? !Digits(2, 2, &minutes) : (!AtEnd() && !Digits(2, 2, &minutes))) return false;
    if (hours > 23 || minutes > 59) return false;
    *offset = (hours * 60 + minutes) * (minus ? -60 : 60);
    return true;
  }
  bool DateAndClock(int64_t* seconds) {
    int64_t days = 0;
    int64_t second_of_day = 0;
    if (!Date(&days)) return false;
    if (!Take('T') && !Take('t') && !Take(' ')) return false;
    if (!Clock(&second_of_day)) return false;
    *seconds = days * kSecondsPerDay + second_of_day;
    return true;
  }

 private:
  std::string_view rest_;
};

arrow::Status No(std::string_view text, std::string_view type, std::string_view form) {
  return arrow::Status::Invalid(fmt::format("{} is no {}: {}", Quoted(text), type, form));
}

constexpr int64_t kMinSeconds = kMinDate * kSecondsPerDay;
constexpr int64_t kMaxSeconds = (kMaxDate + int64_t{1}) * kSecondsPerDay - 1;

// The moment as seconds and a fraction of `places` digits; nothing when the text is none or it is outside the range.
std::optional<PicosTimestamp> Moment(std::string_view text, size_t places) {
  Scanner scanner(text);
  PicosTimestamp moment;
  int64_t offset = 0;
  if (!scanner.DateAndClock(&moment.seconds) || !scanner.Fraction(places, &moment.picoseconds) || !scanner.Zone(&offset))
    return std::nullopt;
  moment.seconds -= offset;
  if (!scanner.AtEnd() || moment.seconds < kMinSeconds || moment.seconds > kMaxSeconds) return std::nullopt;
  return moment;
}

void AppendPart(int64_t value, std::string* out) {
  if (value < 0) out->push_back('-');
  AppendPadded(value < 0 ? -value : value, 1, out);
}

// H:M:S[.ffffff] with a sign; hours may have any number of digits.
bool IntervalClock(Scanner* scanner, int64_t* micros) {
  const bool minus = scanner->Take('-');
  if (!minus) (void)scanner->Take('+');
  int64_t hours = 0;
  int64_t minutes = 0;
  int64_t seconds = 0;
  int64_t fraction = 0;
  if (!scanner->Digits(1, 8, &hours) || !scanner->Take(':') || !scanner->Digits(1, 2, &minutes) || !scanner->Take(':') ||
      !scanner->Digits(1, 2, &seconds) || !scanner->Fraction(6, &fraction) || minutes > 59 || seconds > 59) {
    return false;
  }
  *micros = ((hours * 60 + minutes) * 60 + seconds) * kMicrosPerSecond + fraction;
  if (minus) *micros = -*micros;
  return true;
}

bool IntervalMonths(Scanner* scanner, int64_t* months) {
  const bool minus = scanner->Take('-');
  if (!minus) (void)scanner->Take('+');
  int64_t years = 0;
  int64_t rest = 0;
  if (!scanner->Digits(1, 5, &years) || !scanner->Take('-') || !scanner->Digits(1, 2, &rest) || rest > 11) return false;
  *months = years * 12 + rest;
  if (minus) *months = -*months;
  return true;
}

bool SignedDigits(Scanner* scanner, size_t most, int64_t* value) {
  const bool minus = scanner->Take('-');
  if (!minus) (void)scanner->Take('+');
  if (!scanner->Digits(1, most, value)) return false;
  if (minus) *value = -*value;
  return true;
}

}  // namespace

void AppendDate(int32_t days, std::string* out) { AppendDays(days, out); }

arrow::Result<int32_t> ParseDate(std::string_view text) {
  Scanner scanner(text);
  int64_t days = 0;
  if (scanner.Date(&days) && scanner.AtEnd()) return static_cast<int32_t>(days);
  return No(text, "DATE", "YYYY-MM-DD from 0001-01-01 to 9999-12-31 is wanted");
}

void AppendTime(int64_t micros, std::string* out) {
  if (micros < 0) {  // outside BigQuery's range; errors show it
    out->push_back('-');
    micros = micros == INT64_MIN ? INT64_MAX : -micros;
  }
  AppendClock(micros / kMicrosPerSecond, out);
  AppendMicros(micros % kMicrosPerSecond, out);
}

arrow::Result<int64_t> ParseTime(std::string_view text) {
  Scanner scanner(text);
  int64_t seconds = 0;
  int64_t fraction = 0;
  if (scanner.Clock(&seconds) && scanner.Fraction(6, &fraction) && scanner.AtEnd()) return seconds * kMicrosPerSecond + fraction;
  return No(text, "TIME", "HH:MM:SS with up to six digits after a point is wanted");
}

void AppendDatetime(int64_t micros, std::string* out) {
  AppendDays(FloorDiv(micros, kMicrosPerDay), out);
  out->push_back('T');
  AppendTime(FloorMod(micros, kMicrosPerDay), out);
}

arrow::Result<int64_t> ParseDatetime(std::string_view text) {
  Scanner scanner(text);
  int64_t seconds = 0;
  int64_t fraction = 0;
  if (scanner.DateAndClock(&seconds) && scanner.Fraction(6, &fraction) && scanner.AtEnd()) return seconds * kMicrosPerSecond + fraction;
  return No(text, "DATETIME", "YYYY-MM-DDTHH:MM:SS with up to six digits after a point and without a time zone is wanted");
}

void AppendTimestamp(int64_t micros, std::string* out) {
  AppendDatetime(micros, out);
  out->push_back('Z');
}

arrow::Result<int64_t> ParseTimestamp(std::string_view text) {
  if (auto moment = Moment(text, 6)) return moment->seconds * kMicrosPerSecond + moment->picoseconds;
  return No(
      text, "TIMESTAMP",
      "YYYY-MM-DDTHH:MM:SS with up to six digits after a point and an offset (Z, +01:00 ...), from 0001-01-01 to 9999-12-31, is wanted");
}

void AppendPicosTimestamp(const PicosTimestamp& value, std::string* out) {
  AppendDays(FloorDiv(value.seconds, kSecondsPerDay), out);
  out->push_back('T');
  AppendClock(FloorMod(value.seconds, kSecondsPerDay), out);
  out->push_back('.');
  AppendPadded(value.picoseconds, 12, out);
  out->push_back('Z');
}

arrow::Result<PicosTimestamp> ParsePicosTimestamp(std::string_view text) {
  if (auto moment = Moment(text, 12)) return *moment;
  return No(
      text, "TIMESTAMP(12)",
      "YYYY-MM-DDTHH:MM:SS with up to twelve digits after a point and an offset (Z, +01:00 ...), from 0001-01-01 to 9999-12-31, is wanted");
}

void AppendEpochSeconds(int64_t micros, std::string* out) {
  if (micros < 0) out->push_back('-');
  // As unsigned, so that the smallest has a magnitude too.
  const uint64_t magnitude = micros < 0 ? uint64_t{0} - static_cast<uint64_t>(micros) : static_cast<uint64_t>(micros);
  AppendPadded(static_cast<int64_t>(magnitude / kMicrosPerSecond), 1, out);
  out->push_back('.');
  AppendPadded(static_cast<int64_t>(magnitude % kMicrosPerSecond), 6, out);
  while (out->ends_with('0') && !out->ends_with(".0")) out->pop_back();
}

bool IntervalInRange(const IntervalValue& value) {
  return value.months >= -kMaxIntervalMonths && value.months <= kMaxIntervalMonths && value.days >= -kMaxIntervalDays &&
         value.days <= kMaxIntervalDays && value.microseconds >= -kMaxIntervalMicros && value.microseconds <= kMaxIntervalMicros;
}

void AppendInterval(const IntervalValue& value, std::string* out) {
  const int64_t months = value.months < 0 ? -int64_t{value.months} : int64_t{value.months};
  if (value.months < 0) out->push_back('-');
  AppendPadded(months / 12, 1, out);
  out->push_back('-');
  AppendPadded(months % 12, 1, out);
  out->push_back(' ');
  AppendPart(value.days, out);
  out->push_back(' ');
  if (value.microseconds < 0) out->push_back('-');
  const uint64_t micros =
      value.microseconds < 0 ? uint64_t{0} - static_cast<uint64_t>(value.microseconds) : static_cast<uint64_t>(value.microseconds);
  const auto seconds = static_cast<int64_t>(micros / kMicrosPerSecond);
  AppendPadded(seconds / 3'600, 1, out);
  out->push_back(':');
  AppendPadded(seconds / 60 % 60, 1, out);
  out->push_back(':');
  AppendPadded(seconds % 60, 1, out);
  AppendMicros(static_cast<int64_t>(micros % kMicrosPerSecond), out);
}

arrow::Result<IntervalValue> ParseInterval(std::string_view text) {
  Scanner scanner(text);
  int64_t months = 0;
  int64_t days = 0;
  int64_t micros = 0;
  if (IntervalMonths(&scanner, &months) && scanner.Take(' ') && SignedDigits(&scanner, 7, &days) && scanner.Take(' ') &&
      IntervalClock(&scanner, &micros) && scanner.AtEnd()) {
    const IntervalValue value{static_cast<int32_t>(months), static_cast<int32_t>(days), micros};
    if (IntervalInRange(value)) return value;
  }
  return No(text, "INTERVAL",
            "Y-M D H:M:S with up to six digits after a point, at most 10000 years, 3660000 days and 87840000 hours, is wanted");
}

}  // namespace headrace
