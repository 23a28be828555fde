#include "headrace/catalog/metric_inventory.h"

#include <algorithm>

#include <fmt/format.h>

#include "headrace/base/prometheus.h"
#include "headrace/bigquery/read/source.h"
#include "headrace/files/file_source.h"
#include "headrace/runtime/job_metrics.h"

namespace headrace::catalog {

std::vector<InventoryRow> MetricInventory() {
  const std::pair<std::string_view, std::span<const MetricInfo>> all[] = {{"BigQuery source", bigquery::ReadMetrics()},
                                                                          {"file source", FileSourceMetrics()},
                                                                          {"every job", JobMetrics()},
                                                                          {"ReadRows", RowMetrics()}};
  std::vector<InventoryRow> rows;
  for (const auto& [owner, infos] : all) {
    for (const MetricInfo& info : infos) {
      auto found = std::ranges::find_if(rows, [&](const InventoryRow& row) { return row.info->name == info.name; });
      if (found == rows.end()) {
        rows.push_back({.info = &info, .counted_by = std::string(owner)});
      } else {
        found->counted_by += fmt::format(", {}", owner);
      }
    }
  }
  return rows;
}

std::vector<std::string> MetricManual() {
  std::vector<std::string> lines;
  for (const auto& [info, counted_by] : MetricInventory()) {
    const std::string part = info->label.empty() ? "" : fmt::format("{{{}}}", info->label);
    lines.push_back(fmt::format("| `{}` | `{}{}` | {} | {} | {} | {} | {} |", info->name, PrometheusName(info->name, info->kind), part,
                                info->kind == MetricKind::kCounter ? "counter" : "gauge", info->unit,
                                info->flink.empty() ? "-" : fmt::format("`{}`", info->flink), counted_by, info->meaning));
  }
  return lines;
}

}  // namespace headrace::catalog
