#include "headrace/bigquery/read/internal/schema_drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

using arrow::field;
using arrow::int64;
using arrow::list;
using arrow::schema;
using arrow::struct_;
using arrow::utf8;
using testing::HasSubstr;

TEST(CheckSameColumns, WhatIsDecodedAlikeIsTheSame) {
  const auto session = schema({field("a", int64()), field("s", struct_({field("x", int64()), field("y", list(utf8()))}))});
  const auto metadata = arrow::key_value_metadata({"k"}, {"v"});
  const auto response = schema({field("a", int64(), false)->WithMetadata(metadata),
                                field("s", struct_({field("x", int64(), false), field("y", list(field("element", utf8(), false)))}))});
  EXPECT_TRUE(CheckSameColumns(*session, *response).ok());
}

TEST(CheckSameColumns, EveryDifferenceIsListedWithWantAndHave) {
  const auto session = schema({field("a", int64()), field("b", utf8()), field("s", struct_({field("x", int64()), field("y", int64())})),
                               field("l", list(struct_({field("z", int64())})))});
  struct Case {
    std::shared_ptr<arrow::Schema> response;
    std::vector<std::string> says;
    std::string column;
  };
  for (const Case& c : {
           Case{
               schema({field("a", utf8()), field("b", utf8()), session->field(2), session->field(3)}), {"a: want int64, have string"}, "a"},
           Case{schema({field("b", utf8()), session->field(2), session->field(3)}), {"a: want int64, have nothing"}, "a"},
           Case{schema({field("a", int64()), field("b", utf8()), session->field(2), session->field(3), field("new", utf8())}),
                {"new: want nothing, have string"},
                "new"},
           Case{schema({field("A", int64()), field("b", arrow::binary()), session->field(2), session->field(3)}),
                {"a: want int64, have nothing", "b: want string, have binary", "A: want nothing, have int64"},
                "a"},
           Case{schema({field("a", int64()), field("b", utf8()), field("s", struct_({field("x", utf8())})), session->field(3)}),
                {"s.x: want int64, have string", "s.y: want int64, have nothing"},
                "s.x"},
           Case{schema({field("a", int64()), field("b", utf8()), session->field(2), field("l", list(struct_({field("z", utf8())})))}),
                {"l.z: want int64, have string"},
                "l.z"},
           Case{schema({field("b", utf8()), field("a", int64()), session->field(2), session->field(3)}),
                {"a: want place 0, have place 1"},
                "a"},
       }) {
    const auto status = CheckSameColumns(*session, *c.response);
    for (const auto& says : c.says) EXPECT_THAT(status.message(), HasSubstr(says));
    EXPECT_EQ(CodeOf(status), Code::kDataLoss);
    EXPECT_EQ(GetErrorInfo(status)->reason, "SCHEMA_DRIFT");
    EXPECT_EQ(GetErrorInfo(status)->column, c.column);
  }
}

}  // namespace
}  // namespace headrace::bigquery
