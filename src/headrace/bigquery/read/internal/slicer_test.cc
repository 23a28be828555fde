#include "headrace/bigquery/read/internal/slicer.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <gtest/gtest.h>

#include "headrace/base/batch_size.h"

namespace headrace::bigquery {
namespace {

std::shared_ptr<arrow::RecordBatch> Texts(const std::vector<size_t>& lengths) {
  arrow::StringBuilder builder;
  for (const size_t length : lengths) EXPECT_TRUE(builder.Append(std::string(length, 'x')).ok());
  return arrow::RecordBatch::Make(arrow::schema({arrow::field("t", arrow::utf8())}), static_cast<int64_t>(lengths.size()),
                                  {*builder.Finish()});
}

/// Rows of each batch, made one after the other.
std::vector<int64_t> Cut(const arrow::RecordBatch& rows, int64_t max_rows, int64_t max_bytes) {
  std::vector<int64_t> counts;
  for (int64_t first = 0; first < rows.num_rows();) {
    const int64_t count = NextBatchRows(rows, first, max_rows, max_bytes, false);
    if (count <= 0) return {};
    counts.push_back(count);
    first += count;
  }
  return counts;
}

using Counts = std::vector<int64_t>;

// runtime.md "Batches are bounded".
TEST(Slicer, TheRowThatWouldExceedTheTargetWaits) {
  const auto rows = Texts({100, 100, 100, 100, 100, 100});
  const int64_t three = ReferencedBytes(*rows->Slice(0, 3));  // an offset a row and 300 bytes
  EXPECT_EQ(three, 3 * 4 + 300);
  EXPECT_EQ(Cut(*rows, 1000, three - 1), (Counts{2, 2, 2}));
  EXPECT_EQ(Cut(*rows, 1000, three), (Counts{3, 3}));
  EXPECT_EQ(Cut(*rows, 1000, three + 1), (Counts{3, 3}));
}

TEST(Slicer, AGiantRowGoesAlone) {
  constexpr int64_t kTarget = 3 * 4 + 30;  // three rows of ten bytes
  EXPECT_EQ(Cut(*Texts({500, 10, 10, 10}), 1000, kTarget), (Counts{1, 3}));
  EXPECT_EQ(Cut(*Texts({10, 10, 500, 10, 10}), 1000, kTarget), (Counts{2, 1, 2}));
  EXPECT_EQ(Cut(*Texts({10, 10, 10, 500}), 1000, kTarget), (Counts{3, 1}));
  EXPECT_EQ(Cut(*Texts({500, 500}), 1000, 1), (Counts{1, 1}));
}

TEST(Slicer, RowsAndBytesAreLimitsOfTheirOwn) {
  const auto rows = Texts(std::vector<size_t>(10, 10));
  EXPECT_EQ(Cut(*rows, 4, 1'000'000), (Counts{4, 4, 2}));
  EXPECT_EQ(Cut(*rows, 4, ReferencedBytes(*rows->Slice(0, 3))), (Counts{3, 3, 3, 1}));
  EXPECT_EQ(NextBatchRows(*rows, 2, 100, 1, true), 8) << "known to fit: no sizes are asked for";
}

// Spec 25.
TEST(Slicer, TwentyFiveThousandRowsInTens) {
  EXPECT_EQ(Cut(*Texts(std::vector<size_t>(25'000, 3)), 10'000, 1 << 20), (Counts{10'000, 10'000, 5'000}));
}

// Spec: "the row that would take a non-empty batch over it waits, a larger one goes alone".
TEST(NextBatchRows, SerializedBytesOfRows) {
  const std::vector<uint32_t> ends = {10, 20, 120, 121, 121, 130};
  struct Case {
    int64_t first, max_rows, max_bytes, rows;
  };
  for (const Case& c : {Case{0, 100, 1000, 6}, Case{0, 4, 1000, 4}, Case{0, 100, 130, 6}, Case{0, 100, 129, 5}, Case{0, 100, 119, 2},
                        Case{0, 100, 20, 2}, Case{0, 100, 19, 1}, Case{0, 100, 1, 1}, Case{2, 100, 50, 1}, Case{3, 100, 1, 2},
                        Case{3, 100, 10, 3}, Case{5, 100, 1, 1}, Case{0, 100, INT64_MAX, 6}}) {
    EXPECT_EQ(NextBatchRows(std::span<const uint32_t>(ends), c.first, c.max_rows, c.max_bytes), c.rows)
        << c.first << " " << c.max_rows << " " << c.max_bytes;
  }
}

}  // namespace
}  // namespace headrace::bigquery
