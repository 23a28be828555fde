#include "headrace/catalog/metric_inventory.h"

#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::catalog {
namespace {

TEST(MetricInventory, EachIsWellFormed) {
  std::set<std::string_view> names;
  for (const InventoryRow& row : MetricInventory()) {
    const MetricInfo& info = *row.info;
    SCOPED_TRACE(info.name);
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_EQ(info.name.find('.'), std::string_view::npos) << "a point parts a name from its part";
    EXPECT_FALSE(info.unit.empty());
    EXPECT_TRUE(info.meaning.ends_with('.'));
    EXPECT_TRUE(info.flink.empty() || info.flink == info.name) << "names are Flink's where Flink has the metric";
  }
}

TEST(MetricInventory, TheManualHasEveryMetricAndNoOther) {
  std::ifstream file(HEADRACE_SOURCE_DIR "/docs/metrics.md");
  ASSERT_TRUE(file) << "docs/metrics.md is missing";
  std::set<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `") && line.find("` | `headrace_") != std::string::npos) rows.insert(line);
  }
  std::string missing;
  for (const std::string& line : MetricManual()) {
    if (rows.erase(line) == 0) missing += line + "\n";
  }
  EXPECT_EQ(missing, "") << "docs/metrics.md lacks these rows";
  EXPECT_THAT(rows, ::testing::IsEmpty()) << "docs/metrics.md has rows that no metric has";
}

}  // namespace
}  // namespace headrace::catalog
