// The C++ example of README.md, word for word (test_docs.py compares), with a main around it.
#include <iostream>

#include "headrace/bigquery/read/source.h"
#include "headrace/files/file_sink.h"
#include "headrace/runtime/job.h"

// clang-format off
// README.md
arrow::Result<int64_t> CopyOrders() {
  ARROW_ASSIGN_OR_RAISE(auto source, headrace::bigquery::Source::Make({.table = "my-project.sales.orders", .selected_fields = {"id", "amount"}}));
  ARROW_ASSIGN_OR_RAISE(auto sink, headrace::FileSink::Make({.path = "./orders/"}));
  ARROW_ASSIGN_OR_RAISE(auto job, headrace::Job::Make(source, sink, {.checkpoint = "./orders.job"}));
  ARROW_ASSIGN_OR_RAISE(auto result, job->Run());
  return result.report.rows_written;
}
// README.md ends
// clang-format on

int main() {
  auto rows = CopyOrders();
  if (!rows.ok()) {
    std::cerr << rows.status().ToString() << "\n";
    return 1;
  }
  std::cout << *rows << "\n";
  return 0;
}
