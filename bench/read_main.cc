// headrace_bench_read CLIENT ENDPOINT TABLE FORMAT COMPRESSION STREAMS TIMES [PATH]: reads a table TIMES times, one after the other, with
// one client and prints what it cost, as JSON. CLIENT: tcp (raw_tcp.h); bytes, stub, stub-defaults (plain_clients.h); or headrace: the
// library's Read with its defaults, or with PATH its Job, again with its defaults but for the number of streams. PATH is written anew as
// Parquet: a file, or for headrace also a directory, whose name ends in '/'.
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/util/byte_size.h>
#include <fmt/format.h>

#include "bench/meter.h"
#include "bench/plain_clients.h"
#include "bench/raw_tcp.h"
#include "headrace/bigquery/process.h"
#include "headrace/bigquery/read/source.h"
#include "headrace/files/file_sink.h"
#include "headrace/runtime/job.h"
#include "headrace/runtime/read.h"

namespace headrace::bench {
namespace {

arrow::Result<std::shared_ptr<const Source>> SourceOf(const ReadPlan& plan) {
  bigquery::SourceOptions options{.table = plan.table, .billing_project = "bench"};
  options.source_format = plan.avro ? bigquery::SourceFormat::kAvro : bigquery::SourceFormat::kArrow;
  if (plan.compression == "lz4") options.compression = bigquery::Compression::kLz4;
  if (plan.compression == "zstd") options.compression = bigquery::Compression::kZstd;
  if (plan.compression == "none") options.compression = bigquery::Compression::kNone;
  options.max_stream_count = plan.streams;
  options.bigquery_storage_endpoint = "http://" + plan.endpoint;
  return bigquery::Source::Make(options);
}

arrow::Result<Work> CopyWithHeadrace(const ReadPlan& plan) {
  ARROW_ASSIGN_OR_RAISE(auto source, SourceOf(plan));
  ARROW_ASSIGN_OR_RAISE(auto sink, FileSink::Make({.path = plan.file, .overwrite = true}));
  ARROW_ASSIGN_OR_RAISE(auto job, Job::Make(source, sink, {}));
  ARROW_ASSIGN_OR_RAISE(const auto result, job->Run());
  return Work{.rows = result.report.rows_written, .bytes = result.report.bytes_in_memory};
}

arrow::Result<Work> ReadWithHeadrace(const ReadPlan& plan) {
  if (!plan.file.empty()) return CopyWithHeadrace(plan);
  ARROW_ASSIGN_OR_RAISE(auto source, SourceOf(plan));
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

arrow::Result<Work> ReadWith(const std::string& client, const ReadPlan& plan, const std::optional<TcpSender>& tcp) {
  if (tcp.has_value()) return ReadRawTcp(plan, *tcp);
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
  bool good = (words.size() == 7 || words.size() == 8) && (words[3] == "arrow" || words[3] == "avro");
  if (good) {
    plan = {.endpoint = words[1], .table = words[2], .compression = words[4], .avro = words[3] == "avro"};
    good = ParseCount(words[5], &plan.streams) && ParseCount(words[6], &times);
    if (words.size() == 8) plan.file = words[7];
  }
  if (!good) {
    std::fputs(
        "usage: headrace_bench_read tcp|bytes|stub|stub-defaults|headrace HOST:PORT projects/P/datasets/D/tables/T arrow|avro "
        "none|lz4|zstd STREAMS TIMES [PATH]\n",
        stderr);
    return 2;
  }
  const auto fail = [](const arrow::Status& status) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  };
  // What the program headrace does for itself and a tuned client would do as well.
  if (words[0] != "stub-defaults") headrace::bigquery::TuneProcess();
  std::optional<TcpSender> tcp;
  if (words[0] == "tcp") {
    auto started = TcpSender::Start();
    if (!started.ok()) return fail(started.status());
    tcp.emplace(*std::move(started));
  }
  const Meter meter;
  Work all;
  for (int i = 0; i < times; ++i) {
    const auto work = ReadWith(words[0], plan, tcp);
    if (!work.ok()) return fail(work.status());
    all.rows += work->rows;
    all.bytes += work->bytes;
  }
  std::printf("%s\n", meter.Json(all).c_str());
  return 0;
}
