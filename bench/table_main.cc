// headrace_bench_table TABLE ROWS FILE: writes a table of the benchmarks as an Arrow IPC file.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>

#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>

#include "bench/table.h"

namespace headrace::bench {
namespace {

constexpr int64_t kRowsOfABatch = 65'536;

arrow::Status Write(std::string_view table, int64_t rows, const std::string& path) {
  const auto schema = TableSchemaOf(table);
  if (schema == nullptr) return arrow::Status::Invalid("there is no table ", table, ": usa_names, narrow8 and wide are there");
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::FileOutputStream::Open(path));
  ARROW_ASSIGN_OR_RAISE(auto writer, arrow::ipc::MakeFileWriter(file, schema));
  for (int64_t first = 0; first < rows; first += kRowsOfABatch) {
    ARROW_ASSIGN_OR_RAISE(const auto batch, MakeRows(table, first, std::min(kRowsOfABatch, rows - first)));
    ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(*batch));
  }
  ARROW_RETURN_NOT_OK(writer->Close());
  return file->Close();
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
  int64_t rows = 0;
  const std::string text = argc == 4 ? argv[2] : "";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rows);
  if (argc != 4 || error != std::errc() || end != text.data() + text.size() || rows < 1) {
    std::fputs("usage: headrace_bench_table usa_names|narrow8|wide ROWS FILE\n", stderr);
    return 2;
  }
  const auto status = headrace::bench::Write(argv[1], rows, argv[3]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
