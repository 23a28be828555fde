#include "headrace/local/table_store.h"

#include <arrow/array/builder_primitive.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headrace::local {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const TableName kName{"p", "d", "t"};

// id, from `first` on.
std::shared_ptr<arrow::Table> Plain(int64_t rows, int64_t first = 0) {
  arrow::Int64Builder ids;
  for (int64_t i = 0; i < rows; ++i) EXPECT_TRUE(ids.Append(first + i).ok());
  return arrow::Table::Make(arrow::schema({arrow::field("id", arrow::int64(), false)}), {*ids.Finish()});
}

class TableStoreTest : public ::testing::Test {
 protected:
  static Properties With(Json json) { return std::make_shared<const Json>(std::move(json)); }
  arrow::Result<TableInfo> AddColumn(const std::string& name, Mode mode = Mode::kNullable) {
    return store_.UpdateTable(kName, "", [&](TableInfo* table) {
      table->schema.fields.push_back({.name = name, .kind = TypeKind::kString, .mode = mode});
      return arrow::Status::OK();
    });
  }

  ManualClock clock_;
  TableStore store_{&clock_};
};

// Whoever looked before may have seen a table there.
TEST_F(TableStoreTest, AViewHasNoSnapshots) {
  ASSERT_TRUE(store_.AddView("p.d.t").ok());
  EXPECT_EQ(CodeOf(store_.FindAt(kName, clock_.Now()).status()), Code::kNotFound);
}

TEST_F(TableStoreTest, ASnapshotIsWhatWasThere) {
  SystemTime loaded = clock_.Now();
  ASSERT_TRUE(store_.Add("p.d.t", Plain(5)).ok());
  clock_.Advance(std::chrono::hours(1));
  SystemTime changed = clock_.Now();
  ASSERT_TRUE(AddColumn("a").ok());
  clock_.Advance(std::chrono::hours(1));
  ASSERT_TRUE(AddColumn("b", Mode::kRepeated).ok());

  EXPECT_EQ((*store_.FindAt(kName, loaded))->rows.schema->num_fields(), 1);
  EXPECT_EQ((*store_.FindAt(kName, changed - std::chrono::microseconds(1)))->rows.schema->num_fields(), 1);
  EXPECT_EQ((*store_.FindAt(kName, changed))->rows.schema->num_fields(), 2);
  auto now = *store_.FindAt(kName, clock_.Now());
  ASSERT_EQ(now->rows.schema->num_fields(), 3);
  EXPECT_TRUE(now->rows.batches[0]->ValidateFull().ok());
  EXPECT_EQ(now->rows.batches[0]->column(1)->null_count(), 5);
  EXPECT_EQ(now->rows.batches[0]->column(2)->null_count(), 0);  // an empty array, which is never null
  auto before = store_.FindAt(kName, loaded - std::chrono::microseconds(1));
  EXPECT_EQ(CodeOf(before.status()), Code::kInvalidArgument);
  EXPECT_THAT(before.status().message(), HasSubstr("Cannot read before"));
  // A session's version is found also when the table is gone, until the time travel window has passed.
  auto old = *store_.FindAt(kName, loaded);
  ASSERT_TRUE(store_.DeleteTable(kName, "").ok());
  EXPECT_EQ(store_.Find(kName), nullptr);
  EXPECT_EQ(store_.FindVersion(kName, old->schema_checksum, old->content_checksum, 5), old);
  EXPECT_EQ(store_.FindVersion(kName, old->schema_checksum, old->content_checksum + 1, 5), nullptr);
  EXPECT_EQ(CodeOf(store_.FindAt(kName, loaded).status()), Code::kNotFound);
}

TEST_F(TableStoreTest, OldVersionsGo) {
  ASSERT_TRUE(store_.Add("p.d.t", Plain(5)).ok());
  auto first = store_.Find(kName);
  ASSERT_TRUE(AddColumn("a").ok());
  clock_.Advance(kTimeTravel + std::chrono::hours(1));
  ASSERT_TRUE(AddColumn("b").ok());
  EXPECT_EQ(store_.FindVersion(kName, first->schema_checksum, first->content_checksum, 5), nullptr);
  auto second = store_.Find(kName);
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(AddColumn("c" + std::to_string(i)).ok());
  EXPECT_EQ(store_.FindVersion(kName, second->schema_checksum, second->content_checksum, 5), nullptr);
}

TEST_F(TableStoreTest, AnExpiredTableIsGone) {
  ASSERT_TRUE(store_.InsertDataset({"p", "d"}, With(Json::object())).ok());
  auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Now().time_since_epoch()).count();
  TableInfo table{.name = kName, .properties = With({{"expirationTime", std::to_string(millis + 1000)}})};
  ASSERT_TRUE(store_.InsertTable(table).ok());
  clock_.Advance(std::chrono::milliseconds(999));
  EXPECT_TRUE(store_.GetTable(kName).ok());
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(CodeOf(store_.GetTable(kName).status()), Code::kNotFound);
  EXPECT_TRUE(store_.ListTables({"p", "d"})->empty());
  EXPECT_TRUE(store_.DeleteDataset({"p", "d"}, "", false).ok());
}

TEST_F(TableStoreTest, EtagsGuardChanges) {
  ASSERT_TRUE(store_.Add("p.d.t", Plain(1)).ok());
  std::string etag = store_.GetTable(kName)->etag;
  auto nothing = [](TableInfo*) { return arrow::Status::OK(); };
  EXPECT_TRUE(store_.UpdateTable(kName, etag, nothing).ok());
  auto stale = store_.UpdateTable(kName, etag, nothing);
  ASSERT_FALSE(stale.ok());
  EXPECT_EQ(GetErrorInfo(stale.status())->reason, "conditionNotMet");
  EXPECT_FALSE(store_.DeleteTable(kName, etag).ok());
  EXPECT_TRUE(store_.UpdateTable(kName, "*", nothing).ok());
  // A change that fails changes nothing.
  etag = store_.GetTable(kName)->etag;
  auto fails = [](TableInfo* table) {
    table->schema.fields.clear();
    return arrow::Status::Invalid("no");
  };
  EXPECT_FALSE(store_.UpdateTable(kName, "", fails).ok());
  EXPECT_EQ(store_.GetTable(kName)->etag, etag);
  EXPECT_EQ(store_.GetTable(kName)->schema.fields.size(), 1U);
}

// Every single value counts, and the cut into chunks does not.
TEST_F(TableStoreTest, TheContentChecksumSeesEveryValue) {
  auto schema =
      arrow::schema({arrow::field("b", arrow::boolean()), arrow::field("s", arrow::utf8()), arrow::field("n", arrow::decimal128(38, 9)),
                     arrow::field("l", arrow::list(arrow::int64())),
                     arrow::field("r", arrow::struct_({arrow::field("x", arrow::float64()), arrow::field("y", arrow::binary())}))});
  auto sum = [&](const std::vector<std::string>& columns) {
    arrow::ArrayVector arrays;
    for (size_t i = 0; i < columns.size(); ++i) {
      arrays.push_back(arrow::json::ArrayFromJSONString(schema->field(static_cast<int>(i))->type(), columns[i]).ValueOrDie());
    }
    return ContentChecksum(*RowBatches::Make(arrow::Table::Make(schema, arrays)));
  };
  const std::vector<std::string> base = {"[true, false, null]", R"(["", "a", null])", R"(["1.000000000", null, "0.000000000"])",
                                         "[[1], [], [2, 3]]", R"([{"x": 1.5, "y": ""}, null, {"x": null, "y": "q"}])"};
  uint64_t expected = sum(base);
  EXPECT_EQ(sum(base), expected);
  const std::pair<size_t, std::string> kChanges[] = {
      {0, "[true, true, null]"},
      {0, "[true, null, null]"},
      {1, R"(["a", "", null])"},
      {1, R"([null, "a", null])"},
      {2, R"(["1.000000001", null, "0.000000000"])"},
      {3, "[[1], [2], [3]]"},
      {3, "[[1], [], [3, 2]]"},
      {4, R"([{"x": 1.5, "y": ""}, null, {"x": 0.0, "y": "q"}])"},
      {4, R"([{"x": 1.5, "y": ""}, {"x": null, "y": null}, {"x": null, "y": "q"}])"},
      {4, R"([{"x": 1.5, "y": null}, null, {"x": null, "y": "q"}])"},
  };
  for (const auto& [column, json] : kChanges) {
    auto changed = base;
    changed[column] = json;
    EXPECT_NE(sum(changed), expected) << json;
  }
  auto rows = RowBatches::Make(Plain(100));
  auto slice = RowBatches::Make(Plain(200, -50)->Slice(50, 100));
  EXPECT_EQ(ContentChecksum(*rows), ContentChecksum(*slice));
}

TEST_F(TableStoreTest, SeedsNeedTheirNames) {
  EXPECT_FALSE(store_.Add("nope", Plain(1)).ok());
  ASSERT_TRUE(store_.Add("p.d.t", Plain(1)).ok());
  EXPECT_THAT(store_.Add("p.d.t", Plain(1)).message(), HasSubstr("given twice"));
  EXPECT_THAT(store_.AddView("p.d.t").message(), HasSubstr("given twice"));
  ASSERT_TRUE(store_.AddView("p.d.v").ok());
  EXPECT_TRUE(store_.IsView({"p", "d", "v"}));
  EXPECT_EQ(store_.Find({"p", "d", "v"}), nullptr);
  EXPECT_EQ(store_.GetTable(kName)->schema.fields[0].mode, Mode::kRequired);
  EXPECT_EQ(store_.ListDatasets("p").size(), 1U);
  EXPECT_TRUE(store_.ListDatasets("q").empty());
}

}  // namespace
}  // namespace headrace::local
