// A whole table through the public Read, over a real connection to a scripted server.
#include "headrace/bigquery/read/source.h"

#include <arrow/table.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/bigquery/read/internal/reader_bench_testing.h"
#include "headrace/runtime/read.h"

namespace headrace::bigquery {
namespace {

// A table of many times the limit, all of it kept by the caller: what was handed out holds nothing of the budget, so the read ends, and on
// the way it holds no more than the limit and what each reader has in its hands.
TEST(Source, ATableAboveTheMemoryLimitIsReadWhole) {
  constexpr int64_t kLimit = int64_t{1} << 20;
  constexpr int64_t kTableRows = 600'000;
  for (const auto format : {SourceFormat::kArrow, SourceFormat::kAvro}) {
    ServedTable served{.schema = MakeRows(0)->schema(), .format = format, .rows_per_message = 10'000};
    for (int64_t first = 0; first < kTableRows; first += kTableRows / 4) served.streams.push_back(MakeRows(kTableRows / 4, first));
    ScriptedServer server(served);
    Bench bench(server, {.source_format = format});
    bench.context.memory = nullptr;
    auto reader = Read(bench.source, {.readers = 4, .memory_limit = kLimit, .context = bench.context});
    ASSERT_TRUE(reader.ok()) << reader.status();
    auto table = (*reader)->ToTable();
    ASSERT_TRUE(table.ok()) << table.status();
    ASSERT_EQ((*table)->num_rows(), kTableRows);
    std::vector<bool> seen(kTableRows);
    int64_t bytes = 0;
    for (const auto& chunk : (*table)->column(0)->chunks()) {
      const auto& ids = static_cast<const arrow::Int64Array&>(*chunk);
      for (int64_t i = 0; i < ids.length(); ++i) seen.at(static_cast<size_t>(ids.Value(i))) = true;
      bytes += ids.length() * static_cast<int64_t>(sizeof(int64_t));
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kTableRows) << "as many rows as the table has, and each of them";
    EXPECT_GT(bytes, 4 * kLimit);
  }
}

}  // namespace
}  // namespace headrace::bigquery
