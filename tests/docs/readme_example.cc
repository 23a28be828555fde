// The C++ examples of README.md and docs/metrics.md, word for word (test_docs.py compares), with a main around them.
// clang-format off
// README.md
#include <headrace/bigquery/read/source.h>
#include <headrace/files/file_sink.h>
#include <headrace/runtime/job.h>

arrow::Result<int64_t> CopyOrders() {
  ARROW_ASSIGN_OR_RAISE(auto source, headrace::bigquery::Source::Make({.table = "my-project.sales.orders", .selected_fields = {"id", "amount"}}));
  ARROW_ASSIGN_OR_RAISE(auto sink, headrace::FileSink::Make({.path = "./orders/"}));
  ARROW_ASSIGN_OR_RAISE(auto job, headrace::Job::Make(source, sink, {.checkpoint = "./orders.job"}));
  ARROW_ASSIGN_OR_RAISE(auto result, job->Run());
  return result.report.rows_written;
}
// README.md ends

#include <chrono>
#include <iostream>

#include "headrace/base/prometheus.h"

// docs/metrics.md
class Printing final : public headrace::MetricListener {
 public:
  void OnMetrics(const std::vector<headrace::MetricValue>& values, bool last) override {
    if (last) std::cout << headrace::PrometheusText(values);
  }
};

arrow::Result<headrace::JobResult> CopyAndTell() {
  ARROW_ASSIGN_OR_RAISE(auto source, headrace::bigquery::Source::Make({.table = "my-project.sales.orders"}));
  ARROW_ASSIGN_OR_RAISE(auto sink, headrace::FileSink::Make({.path = "./copied/"}));
  Printing printing;
  ARROW_ASSIGN_OR_RAISE(auto job, headrace::Job::Make(source, sink, {}, {.listener = &printing, .metrics_interval = std::chrono::seconds{10}}));
  return job->Run();
}
// docs/metrics.md ends
// clang-format on

int main() {
  auto rows = CopyOrders();
  if (!rows.ok()) {
    std::cerr << rows.status().ToString() << "\n";
    return 1;
  }
  std::cout << *rows << "\n";
  auto told = CopyAndTell();
  if (!told.ok()) {
    std::cerr << told.status().ToString() << "\n";
    return 1;
  }
  return 0;
}
