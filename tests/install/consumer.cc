// Uses the public interface of what is installed, without a service; prints what test_install.py expects.
#include <fstream>
#include <iostream>

#include "headrace/base/error.h"
#include "headrace/bigquery/process.h"
#include "headrace/bigquery/read/source.h"
#include "headrace/bigquery/table_name.h"
#include "headrace/files/file_sink.h"
#include "headrace/files/file_source.h"
#include "headrace/runtime/job.h"
#include "headrace/runtime/read_rows.h"

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

  std::ofstream("rows.ndjson") << "{\"n\":\"1\"}\n{\"n\":\"2\"}\n{\"n\":\"3\"}\n";
  ARROW_ASSIGN_OR_RAISE(auto files, headrace::FileSource::Make({.paths = {"rows.ndjson"}, .schema = R"([{"name":"n","type":"INT64"}])"}));
  auto mapper = [](const headrace::RowView& row, const headrace::Collector<int64_t>& out) -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(int64_t n, row["N"].Int64());
    return n == 2 ? arrow::Status::OK() : out.Emit(n);
  };
  ARROW_ASSIGN_OR_RAISE(auto reader, headrace::ReadRows<int64_t>(files, mapper));
  int64_t sum = 0;
  ARROW_RETURN_NOT_OK(reader->ForEach([&](int64_t n) {
    sum += n;
    return arrow::Status::OK();
  }));
  std::cout << sum << " of " << reader->counts().rows << " rows\n";
  return arrow::Status::OK();
}

}  // namespace

int main() {
  headrace::bigquery::TuneProcess();
  auto status = Run();
  std::cout << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}
