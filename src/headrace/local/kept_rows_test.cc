#include "headrace/local/kept_rows.h"

#include <algorithm>

#include <arrow/array/builder_primitive.h>
#include <gtest/gtest.h>

namespace headrace::local {
namespace {

// Masks of these lengths, in which row i of the whole is kept, left out or null by i.
KeptRows Make(const std::vector<int64_t>& lengths, int64_t every, std::vector<int64_t>* rows) {
  std::vector<std::shared_ptr<arrow::BooleanArray>> masks;
  int64_t row = 0;
  for (int64_t length : lengths) {
    arrow::BooleanBuilder builder;
    for (int64_t i = 0; i < length; ++i, ++row) {
      bool keep = every > 0 && row % every == 1 % every;
      if (keep) rows->push_back(row);
      EXPECT_TRUE((!keep && row % 2 == 0 ? builder.AppendNull() : builder.Append(keep)).ok());
    }
    masks.push_back(std::static_pointer_cast<arrow::BooleanArray>(*builder.Finish()));
  }
  return KeptRows(std::move(masks));
}

TEST(KeptRowsTest, BeforeAndRowOfAgreeWithCounting) {
  const std::vector<int64_t> kLengths[] = {{}, {1}, {4096}, {4097, 3}, {10, 0, 9000, 1}};
  for (const auto& lengths : kLengths) {
    int64_t table_rows = 0;
    for (int64_t length : lengths) table_rows += length;
    for (int64_t every : {0, 1, 2, 7, 5000}) {
      std::vector<int64_t> rows;
      KeptRows kept = Make(lengths, every, &rows);
      // Every row near an edge of the blocks, and some of the others.
      for (int64_t row = 0; row <= table_rows; row += row % 4096 < 12 || row % 4096 > 4083 ? 1 : 11) {
        int64_t before = std::lower_bound(rows.begin(), rows.end(), row) - rows.begin();
        ASSERT_EQ(kept.Before(row), before) << row << " every " << every;
      }
      for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(kept.RowOf(static_cast<int64_t>(i)), rows[i]) << "every " << every;
    }
  }
}

TEST(KeptRowsTest, AllRows) {
  KeptRows kept;
  EXPECT_EQ(kept.Before(7), 7);
  EXPECT_EQ(kept.RowOf(7), 7);
}

}  // namespace
}  // namespace headrace::local
