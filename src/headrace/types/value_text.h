// The text forms of single values: what stands in CSV fields, in the strings of JSON rows and in REST answers.
//
// Append* add the text to a buffer that the caller keeps; they take any bits and never fail, so a value outside BigQuery's range is checked
// by the caller (the bounds are below). Parse* take the whole text or fail with a text that quotes it; nothing is trimmed, nothing passes
// through binary floating point on its way to a decimal or a time, and neither locale nor time zone of the process matter. Free functions,
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <arrow/util/decimal.h>

#include "headrace/base/error.h"

namespace headrace {

/// BigQuery's bounds of DATE, DATETIME and TIMESTAMP: 0001-01-01 to 9999-12-31T23:59:59.999999
/// (https://cloud.google.com/bigquery/docs/reference/standard-sql/data-types).
inline constexpr int64_t kMicrosPerSecond = 1'000'000;
inline constexpr int64_t kSecondsPerDay = 86'400;
inline constexpr int64_t kMicrosPerDay = kSecondsPerDay * kMicrosPerSecond;
inline constexpr int32_t kMinDate = -719'162;
inline constexpr int32_t kMaxDate = 2'932'896;
inline constexpr int64_t kMinTimestamp = kMinDate * kMicrosPerDay;
inline constexpr int64_t kMaxTimestamp = (kMaxDate + int64_t{1}) * kMicrosPerDay - 1;

/// INT64: digits with a sign when negative. A plus sign and leading zeros are read.
void AppendInt64(int64_t value, std::string* out);
arrow::Result<int64_t> ParseInt64(std::string_view text);
/// Also a decimal whose value is whole: "12.0", "1.5e1".
arrow::Result<int64_t> ParseWholeNumber(std::string_view text);

/// true or false in any case.
arrow::Result<bool> ParseBool(std::string_view text);

/// FLOAT64: the shortest text that reads back as the same bits, with a point or an exponent so that it never looks like an INT64; NaN,
/// Infinity, -Infinity. Read are decimals with or without exponent, nan, inf and infinity in any case; what is beyond the range is an
/// error, what is nearer to zero than the smallest subnormal is zero.
void AppendDouble(double value, std::string* out);
arrow::Result<double> ParseDouble(std::string_view text);
/// True for a decimal that has digits which the double nearest to it has not: printed with as many digits, it reads otherwise.
/// 0.10000000000000001 and 0.1 are the same double and either is good; 123456789012345678.12 is not, nor 1e-400, which would be zero.
bool LosesDigitsAsDouble(std::string_view decimal);

/// What becomes of digits after the point that the column's scale has no place for.
enum class DecimalRounding { kError, kHalfAwayFromZero, kHalfEven };

/// NUMERIC and BIGNUMERIC: plain text without exponent; zeros at the end of the fraction are left out. Read is also an exponent. A
/// precision of 76 or more stands for BIGNUMERIC's own range, which is all of the 256 bits.
void AppendDecimal(const arrow::Decimal256& value, int scale, std::string* out);
void AppendDecimal(const arrow::Decimal128& value, int scale, std::string* out);
arrow::Result<arrow::Decimal256> ParseDecimal(std::string_view text, int precision, int scale,
                                              DecimalRounding rounding = DecimalRounding::kError);

/// Dates: YYYY-MM-DD, days since 1970-01-01. One-digit months and days are read as well.
void AppendDate(int32_t days, std::string* out);
arrow::Result<int32_t> ParseDate(std::string_view text);

/// Times: HH:MM:SS[.ffffff], microseconds since midnight; no fraction when it is zero, else six digits. One to six digits are read.
void AppendTime(int64_t micros, std::string* out);
arrow::Result<int64_t> ParseTime(std::string_view text);

/// Datetimes: a date, T (a space is read as well) and a time.
void AppendDatetime(int64_t micros, std::string* out);
arrow::Result<int64_t> ParseDatetime(std::string_view text);

/// Timestamps: a datetime and Z; any offset (+05:45, -8, +0530, Z, UTC) is read, a missing one is an error.
void AppendTimestamp(int64_t micros, std::string* out);
arrow::Result<int64_t> ParseTimestamp(std::string_view text);

/// TIMESTAMP(12): seconds since 1970 (floor) and picoseconds after them. Always twelve digits; up to twelve are read.
struct PicosTimestamp {
  int64_t seconds = 0;
  int64_t picoseconds = 0;

  bool operator==(const PicosTimestamp&) const = default;
};
void AppendPicosTimestamp(const PicosTimestamp& value, std::string* out);
arrow::Result<PicosTimestamp> ParsePicosTimestamp(std::string_view text);

/// The TIMESTAMP of REST answers: seconds since 1970 as a plain decimal, "-0.5".
void AppendEpochSeconds(int64_t micros, std::string* out);

/// INTERVAL in BigQuery's canonical form, Y-M D H:M:S[.ffffff], each of the three parts with its own sign.
struct IntervalValue {
  int32_t months = 0;
  int32_t days = 0;
  int64_t microseconds = 0;

  bool operator==(const IntervalValue&) const = default;
};
/// The range of each part: 10,000 years, 3,660,000 days, 87,840,000 hours.
inline constexpr int32_t kMaxIntervalMonths = 120'000;
inline constexpr int32_t kMaxIntervalDays = 3'660'000;
inline constexpr int64_t kMaxIntervalMicros = int64_t{87'840'000} * 3'600 * kMicrosPerSecond;
bool IntervalInRange(const IntervalValue& value);
void AppendInterval(const IntervalValue& value, std::string* out);
arrow::Result<IntervalValue> ParseInterval(std::string_view text);

/// Standard base64 with padding (RFC 4648, section 4). ParseBase64 appends to `bytes`; after an error it holds what it held.
void AppendBase64(std::string_view bytes, std::string* out);
arrow::Status ParseBase64(std::string_view text, std::string* bytes);

/// A value as error texts show it: in quotes, cut after 60 bytes (at a character), control characters and broken UTF-8 as \xNN.
std::string Quoted(std::string_view value);

}  // namespace headrace
