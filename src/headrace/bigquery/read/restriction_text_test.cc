#include "headrace/bigquery/read/restriction_text.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

using testing::HasSubstr;

TEST(RestrictionText, NamesAreQuotedPartByPart) {
  EXPECT_EQ(*SqlColumn("id"), "`id`");
  EXPECT_EQ(*SqlColumn("place.city"), "`place`.`city`");
  EXPECT_EQ(*SqlColumn("a`b"), "`a\\`b`");
  EXPECT_EQ(*SqlColumn("Straße 1"), "`Straße 1`");
  for (const char* wrong : {"", ".", "a.", ".a", "a..b", "a. .b", "\xff"}) {
    const auto status = SqlColumn(wrong).status();
    EXPECT_EQ(GetErrorInfo(status)->resource, "row_restriction") << status;
  }
}

TEST(RestrictionText, TextsCannotLeaveTheirQuotes) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "''"},
      {"it's", R"('it\'s')"},
      {R"(a\)", R"('a\\')"},
      {"' OR TRUE --", R"('\' OR TRUE --')"},
      {R"("`)", R"('\"\`')"},
      {"a\nb\r\t", R"('a\x0ab\x0d\x09')"},
      {std::string("\0\x7f", 2), R"('\x00\x7f')"},
      {"ü€😀", "'ü€😀'"},
  };
  for (const auto& [text, sql] : cases) EXPECT_EQ(*SqlString(text), sql);
  EXPECT_THAT(SqlString("\xc3").status().message(), HasSubstr("not UTF-8"));
  EXPECT_EQ(SqlBytes(std::string("a'\0\xff", 4)), R"(b'a\x27\x00\xff')");
}

TEST(RestrictionText, NumbersKeepTypeAndValue) {
  EXPECT_EQ(SqlInt64(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(SqlFloat64(3), "3.0");
  EXPECT_EQ(SqlFloat64(-0.0), "-0.0");
  EXPECT_EQ(SqlFloat64(0.1), "0.1");
  EXPECT_EQ(SqlFloat64(1e300), "1e+300");
  EXPECT_EQ(SqlFloat64(std::numeric_limits<double>::infinity()), "CAST('inf' AS FLOAT64)");
  EXPECT_EQ(SqlBool(true), "TRUE");
  EXPECT_EQ(*SqlNumeric("-12.50"), "NUMERIC '-12.50'");
  EXPECT_EQ(*SqlBignumeric("+1"), "BIGNUMERIC '+1'");
  for (const char* wrong : {"", "-", ".", "1.2.3", "1e5", "1' OR '1", " 1", "0x1", "--1"}) {
    EXPECT_THAT(SqlNumeric(wrong).status().message(), HasSubstr("no decimal number")) << wrong;
  }
}

TEST(RestrictionText, DaysAndMoments) {
  using namespace std::chrono;
  EXPECT_EQ(*SqlDate(year{2024} / 2 / 29), "DATE '2024-02-29'");
  EXPECT_EQ(*SqlDate(year{1} / 1 / 1), "DATE '0001-01-01'");
  for (auto wrong : {year{2023} / 2 / 29, year{0} / 1 / 1, year{10000} / 1 / 1}) EXPECT_FALSE(SqlDate(wrong).ok());
  EXPECT_EQ(*SqlTimestamp(0), "TIMESTAMP '1970-01-01 00:00:00.000000+00:00'");
  EXPECT_EQ(*SqlTimestamp(-1), "TIMESTAMP '1969-12-31 23:59:59.999999+00:00'");
  EXPECT_EQ(*SqlTimestamp(253'402'300'799'999'999), "TIMESTAMP '9999-12-31 23:59:59.999999+00:00'");
  EXPECT_EQ(*SqlTimestamp(-62'135'596'800'000'000), "TIMESTAMP '0001-01-01 00:00:00.000000+00:00'");
  for (int64_t wrong : {int64_t{253'402'300'800'000'000}, int64_t{-62'135'596'800'000'001}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_THAT(SqlTimestamp(wrong).status().message(), HasSubstr("1 to 9999"));
  }
}

}  // namespace
}  // namespace headrace::bigquery
