#include "headrace/base/batch_size.h"

#include <set>
#include <string>
#include <vector>

#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <arrow/util/byte_size.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

struct Case {
  std::shared_ptr<arrow::DataType> type;
  std::string rows;        // four of them
  bool is_struct = false;  // Arrow does not count its own null marks
};

std::vector<Case> Cases() {
  const auto point = arrow::struct_({arrow::field("x", arrow::int32()), arrow::field("t", arrow::utf8())});
  return {
      {arrow::int64(), "[1, null, 3, 4]"},
      {arrow::int64(), "[1, 2, 3, 4]"},
      {arrow::boolean(), "[true, null, false, true]"},
      {arrow::null(), "[null, null, null, null]"},
      {arrow::utf8(), R"(["a", null, "größe", ""])"},
      {arrow::large_binary(), R"(["a", null, "bb", ""])"},
      {arrow::decimal128(38, 9), R"(["1.000000000", null, "2.000000000", "3.000000000"])"},
      {arrow::decimal256(76, 38), R"([null, null, null, null])"},
      {arrow::date32(), "[1, 2, null, 4]"},
      {arrow::list(arrow::utf8()), R"([["a", "bb"], null, [], ["ccc", null]])"},
      {arrow::large_list(arrow::int16()), "[[1, 2], null, [], [3]]"},
      {arrow::fixed_size_list(arrow::int16(), 2), "[[1, 2], null, [3, 4], [5, 6]]"},
      {point, R"([{"x": 1, "t": "a"}, null, {"x": null, "t": "bb"}, {"x": 4, "t": null}])", true},
      {arrow::list(point), R"([[{"x": 1, "t": "a"}], null, [], [{"x": null, "t": "bb"}, {"x": 4, "t": null}]])"},
      {arrow::dictionary(arrow::int8(), arrow::utf8()), R"(["a", null, "b", "a"])"},
  };
}

// The oracle is Arrow's own function, which counts the buffers of an array made for it.
TEST(BatchSizeTest, TheSameAsArrow) {
  for (const Case& one : Cases()) {
    const auto made = arrow::json::ArrayFromJSONString(one.type, one.rows);
    ASSERT_TRUE(made.ok()) << made.status();
    for (int64_t first = 0; first <= 4; ++first) {
      for (int64_t length = 0; first + length <= 4; ++length) {
        const auto batch = arrow::RecordBatch::Make(arrow::schema({arrow::field("c", one.type)}), 4, {*made})->Slice(first, length);
        const int64_t marks = one.is_struct && first + length > 0 ? 1 : 0;
        EXPECT_EQ(ReferencedBytes(*batch), *arrow::util::ReferencedBufferSize(*batch) + marks)
            << one.type->ToString() << " from " << first << ", " << length << " rows";
      }
    }
  }
}

TEST(BatchSizeTest, ColumnsAddUp) {
  const auto numbers = *arrow::json::ArrayFromJSONString(arrow::int64(), "[1, 2, 3, 4]");
  const auto texts = *arrow::json::ArrayFromJSONString(arrow::utf8(), R"(["a", "b", "c", "d"])");
  const auto schema =
      arrow::schema({arrow::field("n", arrow::int64()), arrow::field("t", arrow::utf8()), arrow::field("u", arrow::utf8())});
  EXPECT_EQ(ReferencedBytes(*arrow::RecordBatch::Make(schema, 4, {numbers, texts, texts})), 32 + 2 * (4 * 4 + 4));
}

// Who follows offsets, and who checks them, treats these by other ways.
TEST(BatchSizeTest, TheUnusualTypes) {
  using arrow::Type;
  const std::set<int> unusual = {Type::SPARSE_UNION, Type::DENSE_UNION, Type::RUN_END_ENCODED, Type::STRING_VIEW,
                                 Type::BINARY_VIEW,  Type::LIST_VIEW,   Type::LARGE_LIST_VIEW};
  for (int id = 0; id < Type::MAX_ID; ++id) EXPECT_EQ(IsUnusual(static_cast<Type::type>(id)), unusual.contains(id)) << id;
}

TEST(BatchSizeTest, OfAnUnusualColumnAllOfIt) {
  const auto views = *arrow::json::ArrayFromJSONString(arrow::utf8_view(), R"(["a", "b", "c", "a text that does not fit in a view"])");
  const auto batch = arrow::RecordBatch::Make(arrow::schema({arrow::field("v", arrow::utf8_view())}), 4, {views});
  EXPECT_GE(ReferencedBytes(*batch), *arrow::util::ReferencedBufferSize(*batch));
}

}  // namespace
}  // namespace headrace
