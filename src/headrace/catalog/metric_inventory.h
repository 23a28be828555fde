// Every metric that Headrace counts, and who counts it: docs/metrics.md and what real runs count are compared with it by tests.
//
// Free functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "headrace/base/metrics.h"

namespace headrace::catalog {

struct InventoryRow {
  const MetricInfo* info = nullptr;
  std::string counted_by{};  // "every job", "BigQuery source" ...; several with commas
};

/// In the order of the manual: a metric that several count is listed where it comes first.
std::vector<InventoryRow> MetricInventory();

/// The table of docs/metrics.md, one line a metric.
std::vector<std::string> MetricManual();

}  // namespace headrace::catalog
