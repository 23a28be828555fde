#include "headrace/local/read_view.h"

#include <arrow/array/builder_primitive.h>
#include <gtest/gtest.h>

namespace headrace::local {
namespace {

std::shared_ptr<const StoredTable> Stored(int64_t rows) {
  arrow::Int64Builder ids;
  for (int64_t i = 0; i < rows; ++i) EXPECT_TRUE(ids.Append(i).ok());
  auto schema = arrow::schema({arrow::field("id", arrow::int64())});
  TableStore store(RealClock());
  EXPECT_TRUE(store.Add("p.d.t", arrow::Table::Make(schema, {*ids.Finish()})).ok());
  return store.Find({"p", "d", "t"});
}

SessionState Wanting(const std::string& restriction) {
  SessionState state;
  state.set_table("p.d.t");
  state.set_row_restriction(restriction);
  state.set_sample_percentage(100);
  return state;
}

TEST(ReadViewCacheTest, KeepsViewsUpToItsLimit) {
  auto table = Stored(1000);
  ReadViewCache roomy(1 << 20);
  auto a = *roomy.Get(table, Wanting("id < 500"));
  auto b = *roomy.Get(table, Wanting("id >= 500"));
  EXPECT_EQ(*roomy.Get(table, Wanting("id < 500")), a);
  EXPECT_EQ(*roomy.Get(table, Wanting("id >= 500")), b);
  EXPECT_EQ(a->rows().rows, 500);

  ReadViewCache tight(5000);  // one of the two
  std::weak_ptr<const ReadView> first = *tight.Get(table, Wanting("id < 500"));
  EXPECT_FALSE(first.expired());
  ASSERT_TRUE(tight.Get(table, Wanting("id >= 500")).ok());
  EXPECT_TRUE(first.expired());
  // The newest stays even when it is larger than the limit.
  ReadViewCache none(0);
  auto kept = *none.Get(table, Wanting("id < 500"));
  EXPECT_EQ(*none.Get(table, Wanting("id < 500")), kept);
}

TEST(ReadViewCacheTest, AFailureIsNotKept) {
  auto table = Stored(10);
  ReadViewCache cache(1 << 20);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(CodeOf(cache.Get(table, Wanting("nope = 1")).status()), Code::kInvalidArgument);
  EXPECT_TRUE(cache.Get(table, Wanting("id = 1")).ok());
}

TEST(TableNameTest, Forms) {
  auto dotted = ParseDottedTableName("example.com:p.d.t");
  ASSERT_TRUE(dotted.ok());
  EXPECT_EQ(dotted->project, "example.com:p");
  EXPECT_EQ(ParseResourceTableName("projects/p/datasets/d/tables/t")->Dotted(), "p.d.t");
  for (const char* wrong : {"", "t", "d.t", ".d.t", "p..t", "p.d.", "p/x.d.t"}) EXPECT_FALSE(ParseDottedTableName(wrong).ok()) << wrong;
  for (const char* wrong : {"", "projects/p/datasets/d/tables/", "projects//datasets/d/tables/t", "projects/p/datasets/tables/t",
                            "projects/p/datasets/d/tables/t/x", "projects/tables/t/datasets/d", "x/p/datasets/d/tables/t",
                            "projects/p/datasets/d.e/tables/t", "projects/p/datasets/d/tables/e.t"}) {
    EXPECT_FALSE(ParseResourceTableName(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace headrace::local
