#include "headrace/bigquery/read/internal/position.h"

#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

TEST(StreamPosition, Texts) {
  const StreamPosition start{.rows = 0, .low = 0, .high = 0};
  EXPECT_EQ(*ParseStreamPosition(""), start);
  EXPECT_EQ(*ParseStreamPosition("0"), start) << "where the first row lies is known";
  EXPECT_EQ((StreamPosition{.rows = 12345}).ToString(), "12345");
  EXPECT_EQ((StreamPosition{.rows = 12345, .low = 0.25}).ToString(), "12345@0.25");
  EXPECT_EQ((StreamPosition{.rows = 12345, .low = 0.25, .high = 0.25}).ToString(), "12345@0.25..0.25");
  EXPECT_EQ((StreamPosition{.rows = 1, .low = 0, .high = 0.5}).ToString(), "1@0..0.5");
  EXPECT_EQ((StreamPosition{.rows = INT64_MAX, .low = 1, .high = 1}).ToString(), "9223372036854775807@1..1");
  for (const StreamPosition& position : {start, StreamPosition{1, 0.5}, StreamPosition{INT64_MAX, 1, 1}, StreamPosition{9, 1e-9, 1e-9},
                                         StreamPosition{7, 1.0 / 3, 2.0 / 3}, StreamPosition{9}, StreamPosition{9, 5e-324, 0.1 + 0.2}}) {
    EXPECT_EQ(*ParseStreamPosition(position.ToString()), position) << position.ToString();
  }
}

TEST(StreamPosition, AnythingElseIsCorrupt) {
  for (const char* text :
       {"-1",       "+1",         " 1",      "1 ",         "x",          "1x",         "1@",        "@0.5",
        "1@x",      "1@-0.5",     "1@1.5",   "1@nan",      "1@inf",      "1@0.5x",     "1.5",       "9223372036854775808",
        "1@..",     "1@0.5..",    "1@..0.5", "1@0.5..0.4", "1@0.5..1.5", "1@0.5..nan", "1@0.5...6", "1@0.5..0.6..0.7",
        "1@0.5..x", "1@0.5.. 0.6"}) {
    EXPECT_EQ(CodeOf(ParseStreamPosition(text).status()), Code::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace headrace::bigquery
