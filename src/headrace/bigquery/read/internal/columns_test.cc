#include "headrace/bigquery/read/internal/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<arrow::Schema> Schema(const std::vector<std::string>& names) {
  arrow::FieldVector fields;
  for (const auto& name : names) fields.push_back(arrow::field(name, arrow::int64()));
  return arrow::schema(fields);
}

TEST(ResultColumns, OrderAskedAnyCaseFirstMentionCounts) {
  const auto schema = Schema({"a", "B", "c"});
  EXPECT_THAT(*ResultColumns(*schema, {}), ElementsAre(0, 1, 2));
  EXPECT_THAT(*ResultColumns(*schema, {"C", "a", "b"}), ElementsAre(2, 0, 1));
  EXPECT_THAT(*ResultColumns(*schema, {"c.x", "a", "C.y", "b"}), ElementsAre(2, 0, 1));
  EXPECT_THAT(*ResultColumns(*schema, {"`c`.x", "a", "b"}), ElementsAre(2, 0, 1));
  EXPECT_THAT(*ResultColumns(*Schema({"x", "X"}), {"X", "x"}), ElementsAre(1, 0)) << "an exact match wins";
  EXPECT_THAT(ResultColumns(*schema, {"a", "d"}).status().message(), HasSubstr("\"d\""));
  EXPECT_THAT(ResultColumns(*schema, {"a"}).status().message(), HasSubstr("ignored selected_fields"));
}

TEST(ResultColumns, SpellingTypesAndMetadataAreTheServices) {
  const auto metadata = arrow::key_value_metadata({"ARROW:extension:name"}, {"google:sqlType:json"});
  const auto wire = arrow::schema({arrow::field("a", arrow::int64()), arrow::field("J", arrow::utf8())->WithMetadata(metadata)});
  const auto result = *SelectFields(wire, *ResultColumns(*wire, {"j", "A"}));
  EXPECT_TRUE(result->Equals(*arrow::schema({wire->field(1), wire->field(0)}), /*check_metadata=*/true));
  EXPECT_FALSE(SelectFields(wire, {0, 2}).ok());
}

TEST(InvertColumns, OnlyPermutations) {
  EXPECT_THAT(*InvertColumns({2, 0, 1}), ElementsAre(1, 2, 0));
  EXPECT_FALSE(InvertColumns({0, 0}).ok());
  EXPECT_FALSE(InvertColumns({0, 2}).ok());
  EXPECT_TRUE(IsIdentity({0, 1, 2}));
  EXPECT_FALSE(IsIdentity({1, 0}));
}

TEST(ReadSchemaBytes, GarbageIsAnError) {
  EXPECT_FALSE(ReadSchemaBytes("").ok());
  EXPECT_FALSE(ReadSchemaBytes("garbage that is no schema").ok());
}

}  // namespace
}  // namespace headrace::bigquery
