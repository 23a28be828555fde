// Uses the public interface of what is installed, without a service; prints what test_install.py expects.
#include <iostream>

#include "headrace/base/error.h"
#include "headrace/bigquery/read/source.h"
#include "headrace/bigquery/table_name.h"
#include "headrace/files/file_sink.h"
#include "headrace/runtime/job.h"

namespace {

arrow::Status Run() {
  ARROW_ASSIGN_OR_RAISE(auto table, headrace::bigquery::ParseTableName("my-project.sales.orders"));
  std::cout << table.ResourcePath() << "\n";

  auto refused = headrace::bigquery::Source::Make({.table = "my-project..orders"});
  std::cout << headrace::CodeName(headrace::CodeOf(refused.status())) << ": " << (headrace::GetErrorInfo(refused.status()) != nullptr)
            << "\n";

  // Making a job connects to nothing.
  ARROW_ASSIGN_OR_RAISE(auto source,
                        headrace::bigquery::Source::Make({.table = table.ToString(), .bigquery_storage_endpoint = "http://localhost:1"}));
  ARROW_ASSIGN_OR_RAISE(auto sink, headrace::FileSink::Make({.path = "./orders/"}));
  ARROW_RETURN_NOT_OK(headrace::Job::Make(source, sink, {.readers = 2}).status());
  std::cout << source->lineage().datasets.at(0).name << "\n";
  return arrow::Status::OK();
}

}  // namespace

int main() {
  auto status = Run();
  std::cout << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}
