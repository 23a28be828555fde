// Uses a little of the public interface; prints what test_install.py expects.
#include <iostream>

#include "headrace/base/error.h"
#include "headrace/bigquery/table_name.h"
#include "headrace/runtime/job.h"

int main() {
  auto table = headrace::bigquery::ParseTableName("my-project.sales.orders");
  if (!table.ok()) {
    std::cerr << table.status().ToString() << "\n";
    return 1;
  }
  std::cout << table->ResourcePath() << "\n";

  auto refused = headrace::bigquery::ParseTableName("my-project..orders");
  if (refused.ok() || headrace::GetErrorInfo(refused.status()) == nullptr) return 1;
  std::cout << headrace::CodeName(headrace::CodeOf(refused.status())) << " is reported as an error of Headrace\n";

  // A job without a source is refused, not run: this only has to link and to answer.
  return headrace::Job::Make(nullptr, nullptr, headrace::JobOptions{}).ok() ? 1 : 0;
}
