#include "headrace/bigquery/read/internal/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

using testing::ElementsAre;

TEST(SelectFields, SpellingTypesAndMetadataAreTheServices) {
  const auto metadata = arrow::key_value_metadata({"ARROW:extension:name"}, {"google:sqlType:json"});
  const auto wire = arrow::schema({arrow::field("a", arrow::int64()), arrow::field("J", arrow::utf8())->WithMetadata(metadata)});
  const auto result = *SelectFields(wire, {1, 0});
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
