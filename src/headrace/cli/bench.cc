#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/base/batch_size.h"
#include "headrace/base/clock.h"
#include "headrace/catalog/make.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/job_run.h"
#include "headrace/cli/text.h"
#include "headrace/runtime/read.h"

namespace headrace::cli {
namespace {

using Json = nlohmann::ordered_json;
using Seconds = std::chrono::duration<double>;

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

double Now() { return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Measurement {
  std::string source{};
  double planning = 0;  // seconds
  double seconds = 0;   // from the end of planning
  double cpu = 0;       // seconds, of the whole process in that time
  int cores = 1;
  int64_t rows = 0;
  int64_t column_bytes = 0;  // in memory
  int64_t received_bytes = 0;
  int64_t responses = 0;  // of a service; 0 for files
  int64_t retries = 0;
  int64_t peak_bytes = 0;  // of the process
  bool whole = false;      // the source ended; else the time was over, or a signal came

  double PerSecond(int64_t count) const { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }
  double busy_cores() const { return seconds > 0 ? cpu / seconds : 0; }
};

/// Not known from one measurement for sure, so it says what it goes by.
std::string Limit(const Measurement& seen) {
  constexpr double kBusy = 0.8;
  if (seen.rows == 0) return "no row was read";
  const auto busy = fmt::format("{:.1f} of {} cores were busy", seen.busy_cores(), seen.cores);
  if (seen.busy_cores() >= kBusy * seen.cores) {
    return fmt::format("this machine's processor ({}): read fewer columns, or the same on more cores", busy);
  }
  if (seen.responses == 0) return fmt::format("the disk, or too few readers ({}): try more --readers", busy);
  return fmt::format("the service or the network ({}): try more --readers; over a slow link also --compression zstd", busy);
}

std::string Text(const Measurement& seen) {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"source", seen.source},
      {"planning", fmt::format("{:.2f} s", seen.planning)},
      {"read", fmt::format("{} in {:.2f} s ({})", Counted(seen.rows, "row"), seen.seconds, seen.whole ? "all of them" : "not all")},
      {"rate", fmt::format("{} rows a second", WithCommas(static_cast<int64_t>(seen.PerSecond(seen.rows))))},
  };
  std::string received =
      fmt::format("{}, {} a second", HumanBytes(static_cast<double>(seen.received_bytes)), HumanBytes(seen.PerSecond(seen.received_bytes)));
  if (seen.responses > 0) {
    received += fmt::format(", {} of {} on average", Counted(seen.responses, "response"),
                            HumanBytes(static_cast<double>(seen.received_bytes) / static_cast<double>(seen.responses)));
  }
  if (seen.received_bytes > 0) rows.emplace_back(seen.responses > 0 ? "received" : "from files", std::move(received));
  rows.emplace_back("columns", fmt::format("{} in memory, {} a second", HumanBytes(static_cast<double>(seen.column_bytes)),
                                           HumanBytes(seen.PerSecond(seen.column_bytes))));
  rows.emplace_back("processor", fmt::format("{:.2f} s, {:.1f} of {} cores, {:.0f} ns a row", seen.cpu, seen.busy_cores(), seen.cores,
                                             seen.rows > 0 ? seen.cpu * 1e9 / static_cast<double>(seen.rows) : 0));
  rows.emplace_back("memory", fmt::format("{} at most", HumanBytes(static_cast<double>(seen.peak_bytes))));
  if (seen.responses > 0) rows.emplace_back("retries", WithCommas(seen.retries));
  rows.emplace_back("limit", Limit(seen));
  return Aligned(rows);
}

std::string ToJson(const Measurement& seen) {
  const Json json = {{"source", seen.source},
                     {"planning_seconds", seen.planning},
                     {"seconds", seen.seconds},
                     {"whole", seen.whole},
                     {"rows", seen.rows},
                     {"rows_per_second", seen.PerSecond(seen.rows)},
                     {"received_bytes", seen.received_bytes},
                     {"responses", seen.responses > 0 ? Json(seen.responses) : Json()},
                     {"column_bytes", seen.column_bytes},
                     {"column_bytes_per_second", seen.PerSecond(seen.column_bytes)},
                     {"cpu_seconds", seen.cpu},
                     {"cores", seen.cores},
                     {"retries", seen.retries},
                     {"peak_bytes", seen.peak_bytes},
                     {"limit", Limit(seen)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Reads and drops. The time, and a first signal, end it with what was measured so far, also while it waits for a service that is silent.
arrow::Result<Measurement> Measure(Session session, std::shared_ptr<const Source> source, const catalog::MeasureOptions& options,
                                   std::stop_source over) {
  MetricRegistry metrics;
  ReadOptions read{
      .job_name = "headrace-bench", .readers = options.readers, .memory_limit = options.memory_limit, .ordered = options.ordered};
  read.context.logger = &session.console;
  read.context.metrics = &metrics;
  Measurement seen{.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))};
  read.stop = over.get_token();
  const double begin = Now();
  ARROW_ASSIGN_OR_RAISE(const auto reader, Read(std::move(source), read));
  const double start = Now();
  const double cpu = CpuSeconds();
  seen.planning = start - begin;
  std::jthread timer;
  if (options.duration.count() > 0) {
    timer = std::jthread([&over, duration = options.duration](const std::stop_token& stop) {
      if (RealClock()->SleepFor(duration, stop)) over.request_stop();
    });
  }
  arrow::Status status;
  while (!over.stop_requested()) {
    std::shared_ptr<arrow::RecordBatch> rows;
    status = reader->ReadNext(&rows);
    seen.whole = status.ok() && rows == nullptr;
    if (!status.ok() || seen.whole) break;
    seen.rows += rows->num_rows();
    seen.column_bytes += ReferencedBytes(*rows);
  }
  const bool ended_by_us = over.stop_requested() && CodeOf(status) == Code::kCancelled;
  if (!ended_by_us) ARROW_RETURN_NOT_OK(status);
  seen.seconds = Now() - start;
  seen.cpu = CpuSeconds() - cpu;
  seen.peak_bytes = PeakBytes();
  const auto counts = metrics.Snapshot();
  const auto count = [&](const char* name) {
    const auto found = counts.find(name);
    return found == counts.end() ? int64_t{0} : found->second;
  };
  seen.responses = count("responses");
  seen.received_bytes = count("bytesRead");
  seen.retries = count("readRetries");
  return seen;
}

}  // namespace

int Bench(Session session) {
  std::string name;
  catalog::MeasureOptions options;
  auto source = [&]() -> arrow::Result<std::shared_ptr<const Source>> {
    ARROW_ASSIGN_OR_RAISE(Request request, ReadRequest(session.arguments));
    ARROW_ASSIGN_OR_RAISE(options, catalog::MakeMeasureOptions(request.values));
    ARROW_RETURN_NOT_OK(AnnounceEndpoint(session.console, request.source, request.values));
    name = request.source.text;
    return catalog::MakeSource(request.source, request.values);
  }();
  if (!source.ok()) return Fail(session.console, source.status());
  std::stop_source over;
  // Until the figures are told: a signal after the last row does not take them away.
  SignalScope on_signal(session.signals, [&over](int) { over.request_stop(); });
  auto seen = Measure(session, *std::move(source), options, over);
  if (!seen.ok()) return on_signal.EndsWith(Fail(session.console, seen.status()));  // Read checks its options too
  seen->source = name;
  session.console.Result(session.console.json() ? ToJson(*seen) : Text(*seen));
  return on_signal.EndsWith(session.console.result_written() ? kExitDone : kExitFailed);
}

}  // namespace headrace::cli
