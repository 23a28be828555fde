#include "headrace/types/value_text.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/types/utf8.h"

namespace headrace {
namespace {

using testing::HasSubstr;

constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();

template <typename Value, typename Append>
std::string Text(Append append, const Value& value) {
  std::string out;
  append(value, &out);
  return out;
}

template <typename Value>
struct Case {
  Value value;
  const char* text;
};

template <typename Value, typename Append, typename Parse, size_t n>
void ExpectBothWays(const Case<Value> (&cases)[n], Append append, Parse parse) {
  for (const auto& item : cases) {
    EXPECT_EQ(Text(append, item.value), item.text);
    auto back = parse(item.text);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, item.value) << item.text;
  }
}

template <typename Value, typename Parse, size_t n>
void ExpectRead(const Case<Value> (&cases)[n], Parse parse) {
  for (const auto& item : cases) {
    auto value = parse(item.text);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, item.value) << item.text;
  }
}

template <typename Parse>
void ExpectRefused(std::initializer_list<std::string_view> texts, Parse parse) {
  for (auto text : texts) {
    auto value = parse(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_THAT(value.status().message(), HasSubstr(Quoted(text)));
  }
}

TEST(ValueTextTest, Int64) {
  const Case<int64_t> cases[] = {{0, "0"}, {-1, "-1"}, {kMax64, "9223372036854775807"}, {kMin64, "-9223372036854775808"}};
  ExpectBothWays(cases, AppendInt64, ParseInt64);
  const Case<int64_t> read[] = {{5, "+5"}, {7, "007"}, {0, "-0"}};
  ExpectRead(read, ParseInt64);
  ExpectRefused(
      {"", " 1", "1 ", "1.0", "1e3", "+-1", "--1", "+", "-", "0x10", "9223372036854775808", "-9223372036854775809", "1_000", "\xD9\xA1"},
      ParseInt64);
  const Case<int64_t> whole[] = {{12, "12.0"},
                                 {1500, "1.5e3"},
                                 {kMax64, "9223372036854775807.000"},
                                 {kMin64, "-9223372036854775808.0"},
                                 {kMin64, "-922337203685477580.8e1"},
                                 {0, "0e999999999999"},
                                 {-3, "-30E-1"}};
  ExpectRead(whole, ParseWholeNumber);
  ExpectRefused(
      {"1.5", "9223372036854775808.0", "-9223372036854775809.0", "1e19", "1e999999999999999999999", "", ".", "e1", "1e", "1e+", "NaN"},
      ParseWholeNumber);
}

TEST(ValueTextTest, Bool) {
  for (const char* text : {"true", "TRUE", "True", "tRuE"}) EXPECT_EQ(ParseBool(text).ValueOrDie(), true);
  for (const char* text : {"false", "FALSE", "False"}) EXPECT_EQ(ParseBool(text).ValueOrDie(), false);
  ExpectRefused({"", "t", "1", "0", "yes", "no", " true", "truely", "nul"}, ParseBool);
}

TEST(ValueTextTest, Double) {
  const double inf = std::numeric_limits<double>::infinity();
  const Case<double> cases[] = {{0.0, "0.0"},
                                {1.0, "1.0"},
                                {-1.5, "-1.5"},
                                {0.1, "0.1"},
                                {1e21, "1e+21"},
                                {100.0, "100.0"},
                                {1.7976931348623157e308, "1.7976931348623157e+308"},
                                {2.2250738585072014e-308, "2.2250738585072014e-308"},
                                {5e-324, "5e-324"},
                                {9007199254740993.0, "9007199254740992.0"},
                                {inf, "Infinity"},
                                {-inf, "-Infinity"}};
  ExpectBothWays(cases, AppendDouble, ParseDouble);
  EXPECT_EQ(Text(AppendDouble, -0.0), "-0.0");
  EXPECT_TRUE(std::signbit(ParseDouble("-0.0").ValueOrDie()));
  EXPECT_EQ(Text(AppendDouble, std::numeric_limits<double>::quiet_NaN()), "NaN");
  for (const char* text : {"NaN", "nan", "NAN", "-NaN"}) EXPECT_TRUE(std::isnan(ParseDouble(text).ValueOrDie()));
  const Case<double> read[] = {{inf, "inf"},      {inf, "+INFINITY"}, {-inf, "-inf"}, {1, "1"},      {1, "+1"},
                               {0.5, ".5"},       {5, "5."},          {1e5, "1E5"},   {0, "1e-400"}, {0, "0e999"},
                               {0, "0.0e999999"}, {1e308, "1e+308"},  {0, "-1e-9999"}};
  ExpectRead(read, ParseDouble);
  ExpectRefused({"", " 1", "1 ", "1e", "1e400", "-1e400", "nan(1)", "infi", "0x1p3", "1,5", "--1", "+-1", "-", ".", "1.5f"}, ParseDouble);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isnan(value)) continue;
    double back = ParseDouble(Text(AppendDouble, value)).ValueOrDie();
    ASSERT_EQ(std::bit_cast<uint64_t>(back), bits) << Text(AppendDouble, value);
  }
}

struct DecimalCase {
  const char* text;
  int precision;
  int scale;
  const char* written;  // null: refused
};

// 2^255 - 1 and 2^255 with 38 digits after the point: BIGNUMERIC's ends.
constexpr const char* kLargest = "578960446186580977117854925043439539266.34992332820282019728792003956564819967";
constexpr const char* kSmallest = "-578960446186580977117854925043439539266.34992332820282019728792003956564819968";

TEST(ValueTextTest, Decimals) {
  const DecimalCase cases[] = {
      {"0", 38, 9, "0"},
      {"-0", 38, 9, "0"},
      {"0.000", 38, 9, "0"},
      {"1.5", 38, 9, "1.5"},
      {"+1.50", 38, 9, "1.5"},
      {"-0.000000001", 38, 9, "-0.000000001"},
      {".5", 38, 9, "0.5"},
      {"5.", 38, 9, "5"},
      {"00012", 38, 9, "12"},
      {"100", 38, 9, "100"},
      {"1e3", 38, 9, "1000"},
      {"1.5E-3", 38, 9, "0.0015"},
      {"123456789e-9", 38, 9, "0.123456789"},
      {"0e999999999999999999999", 38, 9, "0"},
      {"2.3", 38, 9, "2.3"},  // 2.29999... when it has been a double
      {"99999999999999999999999999999.999999999", 38, 9, "99999999999999999999999999999.999999999"},
      {"-99999999999999999999999999999.999999999", 38, 9, "-99999999999999999999999999999.999999999"},
      {"100000000000000000000000000000", 38, 9, nullptr},
      {"1.0000000000", 38, 9, "1"},
      {"1.0000000001", 38, 9, nullptr},
      {"999.99", 5, 2, "999.99"},
      {"1000", 5, 2, nullptr},
      {"9", 1, 0, "9"},
      {"10", 1, 0, nullptr},
      {"1e-39", 76, 38, nullptr},
      {"1e-38", 76, 38, "0.00000000000000000000000000000000000001"},
      {kLargest, 76, 38, kLargest},
      {kSmallest, 76, 38, kSmallest},
      {"578960446186580977117854925043439539266.34992332820282019728792003956564819968", 76, 38, nullptr},
      {"-578960446186580977117854925043439539266.34992332820282019728792003956564819969", 76, 38, nullptr},
      {"999999999999999999999999999999999999999", 76, 38, nullptr},
      {"1e39", 76, 38, nullptr},
      {"1e999999999999999999999", 76, 38, nullptr},
      {"", 38, 9, nullptr},
      {".", 38, 9, nullptr},
      {"-", 38, 9, nullptr},
      {"1.2.3", 38, 9, nullptr},
      {"1,5", 38, 9, nullptr},
      {" 1", 38, 9, nullptr},
      {"1e", 38, 9, nullptr},
      {"1e1.5", 38, 9, nullptr},
      {"NaN", 38, 9, nullptr},
      {"Infinity", 38, 9, nullptr},
      {"0x1", 38, 9, nullptr},
  };
  for (const auto& item : cases) {
    auto value = ParseDecimal(item.text, item.precision, item.scale);
    ASSERT_EQ(value.ok(), item.written != nullptr) << item.text << " " << value.status();
    if (!value.ok()) {
      EXPECT_THAT(value.status().message(), HasSubstr(Quoted(item.text)));
      continue;
    }
    std::string out;
    AppendDecimal(*value, item.scale, &out);
    EXPECT_EQ(out, item.written);
    EXPECT_EQ(ParseDecimal(out, item.precision, item.scale).ValueOrDie(), *value);
  }
  std::string out;
  AppendDecimal(arrow::Decimal128(std::string("-1234500000")), 9, &out);
  EXPECT_EQ(out, "-1.2345");
}

TEST(ValueTextTest, DecimalsAsArrowReadsThem) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 5'000; ++i) {
    std::string digits(1 + random() % 76, '0');
    for (char& digit : digits) digit = static_cast<char>('0' + random() % 10);
    const int scale = static_cast<int>(random() % 39);
    const arrow::Decimal256 value(std::string((random() % 2 == 0 ? "-" : "") + digits));
    std::string text;
    AppendDecimal(value, scale, &text);
    ASSERT_EQ(ParseDecimal(text, 76, scale).ValueOrDie(), value) << text;
    // The plain form with all its zeros is Arrow's own.
    ASSERT_EQ(ParseDecimal(value.ToString(scale), 76, scale).ValueOrDie(), value) << value.ToString(scale);
  }
}

TEST(ValueTextTest, DecimalsAreRoundedOnlyWhenAsked) {
  struct Rounded {
    const char* text;
    const char* away;
    const char* even;
  };
  const Rounded cases[] = {{"1.005", "1.01", "1"},         {"1.015", "1.02", "1.02"}, {"-1.005", "-1.01", "-1"}, {"1.0049999", "1", "1"},
                           {"1.0050001", "1.01", "1.01"},  {"0.005", "0.01", "0"},    {"0.0049", "0", "0"},      {"0.0009", "0", "0"},
                           {"0.015e-1", "0", "0"},         {"9.995", "10", "10"},     {"1e-99", "0", "0"},       {"0.0051", "0.01", "0.01"},
                           {"-0.00000000000005", "0", "0"}};
  for (const auto& item : cases) {
    for (auto rounding : {DecimalRounding::kHalfAwayFromZero, DecimalRounding::kHalfEven}) {
      std::string out;
      AppendDecimal(ParseDecimal(item.text, 10, 2, rounding).ValueOrDie(), 2, &out);
      EXPECT_EQ(out, rounding == DecimalRounding::kHalfEven ? item.even : item.away) << item.text;
    }
    EXPECT_FALSE(ParseDecimal(item.text, 10, 2).ok()) << item.text;
  }
  // What rounds up to one digit too many does not fit.
  EXPECT_FALSE(ParseDecimal("9.99", 2, 1, DecimalRounding::kHalfEven).ok());
}

TEST(ValueTextTest, Dates) {
  const Case<int32_t> cases[] = {{0, "1970-01-01"},       {-1, "1969-12-31"},      {kMinDate, "0001-01-01"}, {kMaxDate, "9999-12-31"},
                                 {11016, "2000-02-29"},   {-25509, "1900-02-28"},  {-25508, "1900-03-01"},   {-135081, "1600-02-29"},
                                 {-141428, "1582-10-14"}, {-141427, "1582-10-15"}, {19782, "2024-02-29"}};
  ExpectBothWays(cases, AppendDate, ParseDate);
  EXPECT_EQ(ParseDate("2024-2-9").ValueOrDie(), ParseDate("2024-02-09").ValueOrDie());
  ExpectRefused(
      {"", "2024-02-30", "2023-02-29", "1900-02-29", "2024-04-31", "2024-13-01", "2024-00-01", "2024-01-00", "0000-01-01", "10000-01-01",
       "24-01-01", "2024-01-01 ", " 2024-01-01", "2024/01/01", "2024-01-01T00:00:00", "-001-01-01", "2024-001-1", "20240101"},
      ParseDate);
  // Through the whole range, there and back.
  std::string text;
  for (int32_t day = kMinDate; day <= kMaxDate; day += 11) {
    text.clear();
    AppendDate(day, &text);
    ASSERT_EQ(text.size(), 10U);
    ASSERT_EQ(ParseDate(text).ValueOrDie(), day) << text;
  }
  EXPECT_EQ(Text(AppendDate, kMinDate - 1), "0000-12-31");
  EXPECT_EQ(Text(AppendDate, kMaxDate + 1), "10000-01-01");
  EXPECT_EQ(Text(AppendDate, std::numeric_limits<int32_t>::min()), "-5877641-06-23");
}

TEST(ValueTextTest, Times) {
  const Case<int64_t> cases[] = {{0, "00:00:00"},
                                 {86'399'999'999, "23:59:59.999999"},
                                 {1, "00:00:00.000001"},
                                 {500'000, "00:00:00.500000"},
                                 {49'551'000'000, "13:45:51"}};
  ExpectBothWays(cases, AppendTime, ParseTime);
  const Case<int64_t> read[] = {{500'000, "0:0:0.5"}, {1'230'000, "00:00:01.23"}};
  ExpectRead(read, ParseTime);
  ExpectRefused(
      {"", "24:00:00", "23:60:00", "23:59:60", "1:2", "00:00:00.", "00:00:00.0000001", "00:00:00Z", "-1:00:00", "000:00:00", "00:00:00,5"},
      ParseTime);
}

TEST(ValueTextTest, Datetimes) {
  const Case<int64_t> cases[] = {{0, "1970-01-01T00:00:00"},
                                 {-1, "1969-12-31T23:59:59.999999"},
                                 {kMinTimestamp, "0001-01-01T00:00:00"},
                                 {kMaxTimestamp, "9999-12-31T23:59:59.999999"},
                                 {-62'135'596'799'999'999, "0001-01-01T00:00:00.000001"}};
  ExpectBothWays(cases, AppendDatetime, ParseDatetime);
  const Case<int64_t> read[] = {{500'000, "1970-01-01 00:00:00.5"}, {3'600'000'000, "1970-1-1t1:0:0"}};
  ExpectRead(read, ParseDatetime);
  ExpectRefused({"", "1970-01-01", "1970-01-01T", "1970-01-01T24:00:00", "1970-02-30T00:00:00", "1970-01-01T00:00:00Z",
                 "1970-01-01  00:00:00", "1970-01-01T00:00", "1970-01-01T00:00:00.1234567", "0000-12-31T23:59:59"},
                ParseDatetime);
  EXPECT_EQ(Text(AppendDatetime, kMin64), "-290308-12-21T19:59:05.224192");
}

TEST(ValueTextTest, Timestamps) {
  const Case<int64_t> cases[] = {{0, "1970-01-01T00:00:00Z"},
                                 {-1, "1969-12-31T23:59:59.999999Z"},
                                 {kMinTimestamp, "0001-01-01T00:00:00Z"},
                                 {kMaxTimestamp, "9999-12-31T23:59:59.999999Z"}};
  ExpectBothWays(cases, AppendTimestamp, ParseTimestamp);
  const Case<int64_t> read[] = {{0, "1970-01-01 00:00:00 UTC"},
                                {0, "1970-01-01T00:00:00utc"},
                                {0, "1970-01-01t00:00:00z"},
                                {0, "1970-01-01T05:45:00+05:45"},
                                {0, "1970-01-01T05:45:00+0545"},
                                {0, "1969-12-31T16:00:00-8"},
                                {0, "1969-12-31 16:00:00 -08"},
                                {-500'000, "1969-12-31T23:59:59.5Z"},
                                {kMinTimestamp, "0001-01-01T05:45:00+05:45"},
                                {kMaxTimestamp, "9999-12-31T18:59:59.999999-05:00"}};
  ExpectRead(read, ParseTimestamp);
  ExpectRefused({"", "1970-01-01T00:00:00", "1970-01-01", "1970-01-01T00:00:00+", "1970-01-01T00:00:00+24:00", "1970-01-01T00:00:00+01:60",
                 "1970-01-01T00:00:00+1:5", "1970-01-01T00:00:00+015", "1970-01-01T00:00:00ZZ", "1970-01-01T00:00:00 Europe/Berlin",
                 "1970-01-01T00:00:00  Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "1970-01-01T00:00:00.1234567Z"},
                ParseTimestamp);
}

TEST(ValueTextTest, Picoseconds) {
  const Case<PicosTimestamp> cases[] = {
      {{0, 0}, "1970-01-01T00:00:00.000000000000Z"},
      {{-1, 999'999'999'999}, "1969-12-31T23:59:59.999999999999Z"},
      {{kMinTimestamp / kMicrosPerSecond, 1}, "0001-01-01T00:00:00.000000000001Z"},
      {{253'402'300'799, 999'999'999'999}, "9999-12-31T23:59:59.999999999999Z"},
  };
  ExpectBothWays(cases, AppendPicosTimestamp, ParsePicosTimestamp);
  EXPECT_EQ(ParsePicosTimestamp("1970-01-01 01:00:00.5+01").ValueOrDie(), (PicosTimestamp{0, 500'000'000'000}));
  ExpectRefused({"", "1970-01-01T00:00:00.0000000000001Z", "1970-01-01T00:00:00", "9999-12-31T23:59:59-00:01"}, ParsePicosTimestamp);
}

TEST(ValueTextTest, EpochSeconds) {
  const Case<int64_t> cases[] = {{0, "0.0"},
                                 {1'609'459'200'000'000, "1609459200.0"},
                                 {1'500'000, "1.5"},
                                 {-1, "-0.000001"},
                                 {-500'000, "-0.5"},
                                 {kMinTimestamp, "-62135596800.0"},
                                 {kMaxTimestamp, "253402300799.999999"},
                                 {kMin64, "-9223372036854.775808"}};
  for (const auto& item : cases) EXPECT_EQ(Text(AppendEpochSeconds, item.value), item.text);
}

TEST(ValueTextTest, Intervals) {
  const Case<IntervalValue> cases[] = {
      {{0, 0, 0}, "0-0 0 0:0:0"},
      {{14, 3, 14'706'789'999}, "1-2 3 4:5:6.789999"},
      {{-14, -3, -14'706'789'999}, "-1-2 -3 -4:5:6.789999"},
      {{-1, 1, -1}, "-0-1 1 -0:0:0.000001"},
      {{kMaxIntervalMonths, kMaxIntervalDays, kMaxIntervalMicros}, "10000-0 3660000 87840000:0:0"},
      {{-kMaxIntervalMonths, -kMaxIntervalDays, -kMaxIntervalMicros}, "-10000-0 -3660000 -87840000:0:0"},
  };
  ExpectBothWays(cases, AppendInterval, ParseInterval);
  EXPECT_EQ(ParseInterval("+1-02 +3 +04:05:06.5").ValueOrDie(), (IntervalValue{14, 3, 14'706'500'000}));
  ExpectRefused(
      {"", "1-2", "1-2 3", "1-12 0 0:0:0", "0-0 0 0:60:0", "0-0 0 0:0:60", "0-0 0 0:0:0.", "0-0 0 0:0:0.1234567", "10000-1 0 0:0:0",
       "0-0 3660001 0:0:0", "0-0 0 87840000:0:0.000001", "0-0  0 0:0:0", "0-0 0 0:0:0 ", "P1Y", "--1-0 0 0:0:0", "0-0 0 0:0"},
      ParseInterval);
  EXPECT_EQ(Text(AppendInterval, IntervalValue{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::min(), kMin64}),
            "-178956970-8 -2147483648 -2562047788:0:54.775808");
}

TEST(ValueTextTest, Base64) {
  const std::pair<std::string, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"},
                                                       {std::string("\0\xFF\xFE", 3), "AP/+"}};
  for (const auto& [bytes, text] : cases) {
    std::string out;
    AppendBase64(bytes, &out);
    EXPECT_EQ(out, text);
    std::string back = "kept";
    ASSERT_TRUE(ParseBase64(text, &back).ok());
    EXPECT_EQ(back, "kept" + bytes);
  }
  for (const char* text : {"Z", "Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zm9v\n", "Zm 9", "_-__", "Zm=v"}) {
    std::string back = "kept";
    EXPECT_FALSE(ParseBase64(text, &back).ok()) << text;
    EXPECT_EQ(back, "kept");
  }
}

TEST(ValueTextTest, QuotedForErrors) {
  EXPECT_EQ(Quoted("größe"), "'größe'");
  EXPECT_EQ(Quoted(std::string("a\n\0\xFF", 4)), "'a\\x0A\\x00\\xFF'");
  EXPECT_EQ(Quoted(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(Quoted(std::string(61, 'x')), "'" + std::string(60, 'x') + "'...");
  EXPECT_EQ(Quoted(std::string(59, 'x') + "ä"), "'" + std::string(59, 'x') + "'...");
}

TEST(Utf8Test, WholeTexts) {
  for (const char* text :
       {"", "a", "abcdefgh", "abcdefghi", "größe", "abcdefgä", "\xF0\x9F\x98\x80", "日本語日本語日本語", "\xEF\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  for (const char* text : {"\xFF", "a\xC3", "abcdefg\x80", "\xC0\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                           "\xF8\x88\x80\x80\x80", "abcdefghabcdefgh\xE2\x82"}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

TEST(Utf8Test, ColumnsOfTexts) {
  struct Case {
    std::string data;
    std::vector<int32_t> offsets;
    bool right;
  };
  const std::string plain(200, 'a');
  for (const auto& [data, offsets, right] : {
           Case{"", {}, true},
           Case{"", {0}, true},
           Case{"", {0, 0, 0}, true},
           Case{"\xFF", {0, 0}, true},           // no text has it
           Case{"\xFFok\xFF", {1, 2, 3}, true},  // before the first, behind the last
           Case{"größe", {0, 7}, true},
           Case{"größe", {0, 2, 4, 4, 6, 7}, true},  // between characters
           Case{"größe", {0, 3, 7}, false},          // the whole is right, its parts are not
           Case{"ä", {0, 1, 2}, false},
           Case{"ä", {0, 1}, false},
           Case{"ä", {0, 2, 2, 2}, true},  // empty ones at the end
           Case{"ä", {1, 2}, false},
           Case{fmt::format("{0}ä{0}", plain), {0, 200, 202, 402}, true},
           Case{fmt::format("{0}ä{0}", plain), {0, 201, 402}, false},
           Case{fmt::format("{0}\xFF{0}", plain), {0, 200, 401}, false},
           Case{plain + "\xFF", {0, 201}, false},
           Case{plain + "\xFF", {0, 100, 200}, true},
       }) {
    EXPECT_EQ(AreUtf8(data.data(), offsets), right) << Quoted(data) << " of " << offsets.size() << " offsets";
  }
}

TEST(Utf8Test, NothingWithoutAnAddress) {
  EXPECT_TRUE(IsUtf8(std::string_view()));
  EXPECT_TRUE(AreUtf8(nullptr, std::vector<int32_t>{0, 0}));
}

// Each place in a block and behind it, by its own.
TEST(Utf8Test, AByteOfNoTextIsSeenAnywhere) {
  for (size_t size = 1; size < 150; ++size) {
    for (size_t at = 0; at < size; ++at) {
      std::string text(size, 'x');
      EXPECT_TRUE(IsUtf8(text));
      text[at] = '\x80';
      EXPECT_FALSE(IsUtf8(text)) << at << " of " << size;
      EXPECT_FALSE(AreUtf8(text.data(), std::vector<int32_t>{0, static_cast<int32_t>(size)})) << at << " of " << size;
    }
  }
}

// Found by a user: 123456789012345678.12 in a CSV became 123456789012345680.0 without a word.
TEST(ValueText, DigitsThatADoubleDoesNotHold) {
  const struct {
    const char* text;
    bool loses;
  } cases[] = {{"0.1", false},
               {"0.10000000000000001", false},  // %.17g
               {"0.100000000000000005551115123125782702", false},
               {"0.10000000000000000000", false},
               {"0.1000000000000000055511", false},
               {"0.1000000000000000000001", true},
               {"3.141592653589793116", false},  // %.18f
               {"3.141592653589793238", true},   // more of pi
               {"123456789012345678.12", true},
               {"-123456789012345678.12", true},
               {"9007199254740993", true},
               {"9007199254740993.0", true},
               {"9007199254740992", false},
               {"18446744073709551616", false},
               {"000000000000000000001.5", false},
               {"1e300", false},
               {"1.2345678901234567891e-5", true},
               {"5e-324", false},
               {"1e-400", true},  // too small for a double, or for all of its bits
               {"-12.345E-321", true},
               {"1e-320", false},
               {"0.00e-400", false},
               {"2.2250738585072014e-308", false},
               {"1.5e-300", false},
               {"nan", false},
               {"-Infinity", false},
               {"1234567890123456789012345678901234567890e999", false}};  // no double at all
  for (const auto& c : cases) EXPECT_EQ(LosesDigitsAsDouble(c.text), c.loses) << c.text;
  EXPECT_TRUE(LosesDigitsAsDouble("0." + std::string(3000, '3')));
}

}  // namespace
}  // namespace headrace
