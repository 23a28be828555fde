#include "headrace/bigquery/read/internal/position.h"

#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

TEST(StreamPosition, Texts) {
  EXPECT_EQ(*ParseStreamPosition(""), StreamPosition{});
  EXPECT_EQ((StreamPosition{.rows = 0}).ToString(), "0");
  EXPECT_EQ((StreamPosition{.rows = 12345}).ToString(), "12345");
  EXPECT_EQ((StreamPosition{.rows = 12345, .fraction = 0.25}).ToString(), "12345@0.25");
  EXPECT_EQ((StreamPosition{.rows = INT64_MAX, .fraction = 1}).ToString(), "9223372036854775807@1");
  for (const StreamPosition& position :
       {StreamPosition{1, 0.5}, StreamPosition{INT64_MAX, 1}, StreamPosition{0, 0}, StreamPosition{9, 1e-9}}) {
    EXPECT_EQ(*ParseStreamPosition(position.ToString()), position);
  }
}

TEST(StreamPosition, AnythingElseIsCorrupt) {
  for (const char* text : {"-1", "+1", " 1", "1 ", "x", "1x", "1@", "@0.5", "1@x", "1@-0.5", "1@1.5", "1@nan", "1@inf", "1@0.5x",
                           "9223372036854775808", "1.5"}) {
    EXPECT_EQ(CodeOf(ParseStreamPosition(text).status()), Code::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace headrace::bigquery
