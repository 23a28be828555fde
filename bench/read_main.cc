// headrace_bench_read CLIENT ENDPOINT TABLE FORMAT COMPRESSION STREAMS TIMES: reads a table TIMES times, one after the other, with one
// client and prints what it cost, as JSON. CLIENT: bytes, stub, stub-defaults (plain_clients.h), or headrace (the library's Read, with its
// defaults).
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include <arrow/util/byte_size.h>
#include <fmt/format.h>

#include "bench/meter.h"
#include "bench/plain_clients.h"
#include "headrace/bigquery/read/source.h"
#include "headrace/rpc/process.h"
#include "headrace/runtime/read.h"

namespace headrace::bench {
namespace {

arrow::Result<Work> ReadWithHeadrace(const ReadPlan& plan) {
  bigquery::SourceOptions options{.table = plan.table, .billing_project = "bench"};
  options.source_format = plan.avro ? bigquery::SourceFormat::kAvro : bigquery::SourceFormat::kArrow;
  if (plan.compression == "lz4") options.compression = bigquery::Compression::kLz4;
  if (plan.compression == "zstd") options.compression = bigquery::Compression::kZstd;
  if (plan.compression == "none") options.compression = bigquery::Compression::kNone;
  options.max_stream_count = plan.streams;
  options.bigquery_storage_endpoint = "http://" + plan.endpoint;
  ARROW_ASSIGN_OR_RAISE(auto source, bigquery::Source::Make(options));
  ARROW_ASSIGN_OR_RAISE(auto reader, Read(std::move(source), {.readers = plan.streams}));
  Work work;
  while (true) {
    std::shared_ptr<arrow::RecordBatch> batch;
    ARROW_RETURN_NOT_OK(reader->ReadNext(&batch));
    if (batch == nullptr) return work;
    work.rows += batch->num_rows();
    work.bytes += arrow::util::TotalBufferSize(*batch);
  }
}

arrow::Result<Work> ReadWith(const std::string& client, const ReadPlan& plan) {
  if (client == "bytes") return ReadBytes(plan);
  if (client == "stub") return ReadWithStub(plan, /*tuned=*/true);
  if (client == "stub-defaults") return ReadWithStub(plan, /*tuned=*/false);
  if (client == "headrace") return ReadWithHeadrace(plan);
  return arrow::Status::Invalid("there is no client ", client);
}

bool ParseCount(const std::string& word, int* count) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *count);
  return error == std::errc() && end == word.data() + word.size() && *count >= 1;
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
  using namespace headrace::bench;
  const std::vector<std::string> words(argv + 1, argv + argc);
  ReadPlan plan;
  int times = 0;
  bool good = words.size() == 7 && (words[3] == "arrow" || words[3] == "avro");
  if (good) {
    plan = {.endpoint = words[1], .table = words[2], .compression = words[4], .avro = words[3] == "avro"};
    good = ParseCount(words[5], &plan.streams) && ParseCount(words[6], &times);
  }
  if (!good) {
    std::fputs(
        "usage: headrace_bench_read bytes|stub|stub-defaults|headrace HOST:PORT projects/P/datasets/D/tables/T arrow|avro none|lz4|zstd "
        "STREAMS TIMES\n",
        stderr);
    return 2;
  }
  // What the program headrace does for itself and a tuned client would do as well.
  if (words[0] != "stub-defaults") headrace::rpc::TuneProcess();
  const Meter meter;
  Work all;
  for (int i = 0; i < times; ++i) {
    const auto work = ReadWith(words[0], plan);
    if (!work.ok()) {
      std::fprintf(stderr, "%s\n", work.status().ToString().c_str());
      return 1;
    }
    all.rows += work->rows;
    all.bytes += work->bytes;
  }
  std::printf("%s\n", meter.Json(all).c_str());
  return 0;
}
