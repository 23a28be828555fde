#include "headrace/catalog/option_value.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(OptionValue, Integers) {
  EXPECT_EQ(*ParseInteger("n", "0"), 0);
  EXPECT_EQ(*ParseInteger("n", "-4"), -4);
  EXPECT_EQ(*ParseInteger("n", "9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (std::string_view wrong : {"", " 1", "1 ", "+1", "1.5", "0x10", "9223372036854775808", "four", "1e3"}) {
    auto status = ParseInteger("readers", wrong).status();
    EXPECT_THAT(status.message(), HasSubstr("readers is '" + std::string(wrong) + "'"));
    EXPECT_EQ(GetErrorInfo(status)->resource, "readers");
  }
}

TEST(OptionValue, Bytes) {
  struct Case {
    std::string_view text;
    int64_t bytes;
  };
  constexpr int64_t kMi = 1 << 20;
  for (const Case& one : {Case{"0", 0},
                          {"17", 17},
                          {"17B", 17},
                          {"1K", 1024},
                          {"512KiB", int64_t{512} * 1024},
                          {"8M", 8 * kMi},
                          {"8MiB", 8 * kMi},
                          {"8mib", 8 * kMi},
                          {"1.5GiB", 1536 * kMi},
                          {"2MB", 2'000'000},
                          {"1GB", 1'000'000'000}}) {
    EXPECT_EQ(ParseBytes("memory_limit", one.text).ValueOr(-1), one.bytes) << one.text;
  }
  for (std::string_view wrong : {"", "-1", "M", "1 MiB", "1TiBs", "1.2.3M", "99999999999G", "1e5", "nan", "."}) {
    EXPECT_FALSE(ParseBytes("memory_limit", wrong).ok()) << wrong;
  }
}

TEST(OptionValue, Durations) {
  using std::chrono::milliseconds;
  struct Case {
    std::string_view text;
    int64_t ms;
  };
  for (const Case& one : {Case{"0", 0}, {"60", 60'000}, {"500ms", 500}, {"1.5s", 1500}, {"5m", 300'000}, {"1h", 3'600'000}}) {
    EXPECT_EQ(ParseDuration("idle_limit", one.text).ValueOr(milliseconds{-1}), milliseconds{one.ms}) << one.text;
  }
  for (std::string_view wrong : {"", "-1s", "1 s", "1d", "s", "5M", "9999999999h"})
    EXPECT_FALSE(ParseDuration("idle_limit", wrong).ok()) << wrong;
}

TEST(OptionValue, NumbersFlagsAndLists) {
  EXPECT_DOUBLE_EQ(*ParseNumber("n", "0.5"), 0.5);
  for (std::string_view wrong : {"", "x", "1,5", "inf", "nan", "1 "}) EXPECT_FALSE(ParseNumber("n", wrong).ok()) << wrong;
  EXPECT_TRUE(*ParseFlag("f", "true"));
  EXPECT_FALSE(*ParseFlag("f", "false"));
  EXPECT_FALSE(ParseFlag("f", "yes").ok());
  EXPECT_THAT(ParseList(""), IsEmpty());
  EXPECT_THAT(ParseList("a"), ElementsAre("a"));
  EXPECT_THAT(ParseList("b.c, a"), ElementsAre("b.c", " a")) << "nothing is trimmed: the option refuses what it does not take";
  EXPECT_THAT(ParseList(",NA,"), ElementsAre("", "NA", ""));
}

TEST(OptionValue, AWordThatIsNoneOfAnOptionsIsAnsweredWithTheNearest) {
  struct Case {
    std::string_view option;
    std::string_view text;
    std::string_view says;
  };
  for (const Case& one : {
           Case{"format", "parqet", "format is 'parqet': give parquet, arrow, arrows, csv, ndjson or avro, did you mean parquet?"},
           {"compression", "zst", "compression is 'zst': give none, lz4 or zstd, did you mean zstd?"},
           {"csv_nested", "text", "csv_nested is 'text': give json"},
           {"rounding", "half_evne", "did you mean half_even?"},
           {"source_format", "Avro", "did you mean avro?"},
       }) {
    auto status = CheckValue(*FindOption(one.option), one.text);
    ASSERT_FALSE(status.ok()) << one.option << " " << one.text;
    EXPECT_THAT(status.message(), ::testing::HasSubstr(one.says));
    EXPECT_EQ(GetErrorInfo(status)->reason, "INVALID_OPTION");
  }
  EXPECT_THAT(CheckValue(*FindOption("format"), "xml").message(), ::testing::Not(::testing::HasSubstr("did you mean")));
  EXPECT_EQ(CheckValue(*FindOption("credentials"), "nome"), arrow::Status::OK()) << "may be a file";
}

}  // namespace
}  // namespace headrace::catalog
