#include "headrace/cli/job_run.h"

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/fail_point.h"
#include "headrace/catalog/option_value.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/progress.h"
#include "headrace/cli/report_text.h"
#include "headrace/cli/text.h"
#include "headrace/runtime/job_metrics.h"
#include "headrace/runtime/read.h"

namespace headrace::cli {
namespace {

std::string GivenEndpoint(const catalog::OptionValues& values) {
  auto found = values.find("bigquery_storage_endpoint");
  return found == values.end() ? "" : found->second;
}

/// The command that goes on from `directory`, with what the checkpoint does not hold: an endpoint that came from the environment.
std::string ResumeCommand(const std::string& directory, const catalog::Address& source, const catalog::OptionValues& values) {
  if (directory.empty()) return "";
  std::string command = fmt::format("headrace resume {}", ShellQuoted(directory));
  if (source.kind != catalog::AddressKind::kBigQuery) return command;
  auto endpoint = rpc::ResolveStorageEndpoint(GivenEndpoint(values));
  if (GivenEndpoint(values).empty() && endpoint.ok() && !endpoint->given_by.empty()) {
    command += fmt::format(" --bigquery-storage-endpoint {}{}", endpoint->plaintext ? "http://" : "https://", endpoint->target());
  }
  return command;
}

/// `headrace copy SRC - | head`: the reader has enough. That is no fault to explain, but not all rows were written.
bool IsClosedOutput(const arrow::Status& status) {
  const ErrorInfo* info = GetErrorInfo(status);
  return info != nullptr && info->reason == "OUTPUT_CLOSED";
}

/// Says what a signal asked for, on a thread of its own: where nobody reads standard error this waits, and the next signal must count.
class Announcer {
 public:
  explicit Announcer(Console& console) : thread_([this, &console](const std::stop_token& stop) { Run(console, stop); }) {}
  void Say(std::string text) {
    std::lock_guard<std::mutex> guard(mutex_);
    texts_.push_back(std::move(text));
    changed_.notify_all();
  }

 private:
  /// Until it is stopped and has said everything.
  void Run(Console& console, const std::stop_token& stop) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !texts_.empty(); })) {
      const std::string text = std::move(texts_.front());
      texts_.pop_front();
      lock.unlock();
      console.Say(text);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::string> texts_;
  std::jthread thread_;  // last: it uses all of the above
};

/// The job that signals act on, while it runs.
class RunningJob {
 public:
  explicit RunningJob(Job* job) : job_(job) {}
  void Ended() {
    std::lock_guard<std::mutex> guard(mutex_);
    job_ = nullptr;
  }
  /// Calls `act` unless it has ended.
  bool With(const std::function<void(Job&)>& act) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (job_ != nullptr) act(*job_);
    return job_ != nullptr;
  }

 private:
  std::mutex mutex_;
  Job* job_;
};

int ReportEnd(Console& console, const JobResult& result, const JobParts& parts) {
  bool stopped = result.end == JobEnd::kStoppedAtCheckpoint;
  std::string_view resume = stopped ? std::string_view(parts.resume_command) : std::string_view();
  if (console.json()) {
    console.Result(ReportJson(result, parts.source->lineage(), parts.sink->lineage(), resume));
  } else {
    if (!console.quiet()) console.Result(ReportText(result));
    if (stopped) console.Log(LogLevel::kWarning, fmt::format("stopped at a checkpoint; to go on: {}", resume));
  }
  if (!console.result_written()) return kExitFailed;
  if (stopped) return kExitResumable;
  return result.report.rows_rejected > 0 ? kExitRejects : kExitDone;
}

int TellEnd(Console& console, const arrow::Result<JobResult>& result, const JobParts& parts) {
  if (result.ok()) return ReportEnd(console, *result, parts);
  if (!console.json() && IsClosedOutput(result.status())) {
    console.Say("standard output was closed by its reader: the copy ends here");
    return kExitFailed;
  }
  // A job that ended before it had planned keeps nothing.
  const std::string& checkpoint = parts.options.checkpoint;
  const bool kept = !checkpoint.empty() && ReadPersistedJob(LocalFileSystem(), checkpoint).ok();
  return Fail(console, result.status(), kept ? std::string_view(parts.resume_command) : std::string_view());
}

}  // namespace

JobEnvironment ProgramEnvironment(Console& console, MetricsServer& metrics) {
  JobEnvironment environment;
  environment.logger = &console;
  environment.metrics = metrics.registry();
  return environment;
}

arrow::Result<Request> CheckRequest(const Arguments& arguments) {
  Request request{.values = arguments.options};
  const bool has_destination = arguments.verb == Verb::kCopy || (arguments.verb == Verb::kPlan && arguments.positionals.size() > 1);
  auto end = arguments.positionals.end() - (has_destination ? 1 : 0);
  ARROW_ASSIGN_OR_RAISE(request.source, catalog::ParseSources({arguments.positionals.begin(), end}));
  if (has_destination) {
    ARROW_ASSIGN_OR_RAISE(request.destination, catalog::ParseAddress(*end, catalog::AddressRole::kDestination));
  }
  auto verb = static_cast<catalog::OptionVerb>(VerbBit(*arguments.verb));
  ARROW_RETURN_NOT_OK(catalog::CheckOptions(verb, request.source, request.destination, request.values));
  if (request.values.contains("arrow") && request.values.contains("json")) {
    return InvalidOption("arrow", "give --arrow or --json, not both");
  }
  return request;
}

arrow::Result<Request> ReadRequest(const Arguments& arguments) {
  ARROW_ASSIGN_OR_RAISE(Request request, CheckRequest(arguments));
  ARROW_RETURN_NOT_OK(catalog::ReadNamedFiles(LocalFileSystem(), &request.values));
  return request;
}

arrow::Result<JobParts> MakeParts(const catalog::Address& source, const catalog::Address& destination,
                                  const catalog::OptionValues& values) {
  JobParts parts;
  ARROW_ASSIGN_OR_RAISE(parts.source, catalog::MakeSource(source, values));
  ARROW_ASSIGN_OR_RAISE(parts.sink, catalog::MakeSink(destination, values));
  ARROW_ASSIGN_OR_RAISE(parts.options, catalog::MakeJobOptions(source, destination, values));
  parts.resume_command = ResumeCommand(parts.options.checkpoint, source, values);
  if (auto point = values.find("fail_point"); point != values.end()) ARROW_RETURN_NOT_OK(ArmFailPoint(point->second));
  return parts;
}

arrow::Status CheckAsRun(const Arguments& arguments) {
  ARROW_ASSIGN_OR_RAISE(const Request request, ReadRequest(arguments));
  ARROW_RETURN_NOT_OK(MetricsPort(request.values).status());
  if (arguments.verb == Verb::kCopy) {
    ARROW_ASSIGN_OR_RAISE(const JobParts parts, MakeParts(request.source, *request.destination, request.values));
    return CheckJobOptions(parts.options, *parts.source, *parts.sink);
  }
  ARROW_ASSIGN_OR_RAISE(const auto source, catalog::MakeSource(request.source, request.values));
  if (request.destination) ARROW_RETURN_NOT_OK(catalog::MakeSink(*request.destination, request.values).status());
  if (arguments.verb != Verb::kBench) return arrow::Status::OK();
  ARROW_ASSIGN_OR_RAISE(const auto measured, catalog::MakeMeasureOptions(request.values));
  return CheckReadOptions(*source, {.readers = measured.readers, .memory_limit = measured.memory_limit, .ordered = measured.ordered});
}

arrow::Result<std::optional<int>> MetricsPort(const catalog::OptionValues& values) {
  auto given = values.find("metrics_port");
  if (given == values.end()) return std::nullopt;
  constexpr int64_t kMostPort = 65535;
  ARROW_ASSIGN_OR_RAISE(const int64_t port, catalog::ParseInteger("metrics_port", given->second));
  if (port < 0 || port > kMostPort) {
    return InvalidOption("metrics_port", fmt::format("--metrics-port is {}; give 0 (any free port) to {}", port, kMostPort));
  }
  return static_cast<int>(port);
}

arrow::Status AnnounceEndpoint(Console& console, const catalog::Address& source, const catalog::OptionValues& values) {
  if (source.kind != catalog::AddressKind::kBigQuery) return arrow::Status::OK();
  ARROW_ASSIGN_OR_RAISE(rpc::Endpoint endpoint, rpc::ResolveStorageEndpoint(GivenEndpoint(values)));
  if (endpoint.given_by.empty()) return arrow::Status::OK();
  console.Say(fmt::format("using {}{} ({}{})", endpoint.plaintext ? "http://" : "https://", endpoint.target(), endpoint.given_by,
                          endpoint.plaintext ? ", no credentials" : ""));
  return arrow::Status::OK();
}

arrow::Status StartMetrics(Console& console, const catalog::OptionValues& values, const JobParts& parts, MetricsServer& metrics) {
  ARROW_ASSIGN_OR_RAISE(const auto port, MetricsPort(values));
  if (!port) return arrow::Status::OK();
  // The job would do it as well, but a scrape may come before the job is made, and what did not happen must be there.
  metrics.registry()->Register(JobMetrics());
  metrics.registry()->Register(parts.source->metrics());
  metrics.registry()->Register(parts.sink->metrics());
  ARROW_ASSIGN_OR_RAISE(const std::string url, metrics.Start(*port));
  console.Say(fmt::format("metrics at {}", url));
  return arrow::Status::OK();
}

int RunJob(Session session, std::unique_ptr<Job> job, const JobParts& parts, MetricsServer& metrics) {
  Console& console = session.console;
  const bool resumable = !parts.options.checkpoint.empty();
  RunningJob running(job.get());
  std::optional<Announcer> announcer(std::in_place, console);
  SignalScope on_signal(session.signals, [&](int count) {
    const bool first = count == 1;
    const bool runs = running.With([&](Job& it) {
      first ? it.StopAtCheckpoint() : it.StopNow();
      announcer->Say(!first      ? "stopping at once"
                     : resumable ? "stopping at a checkpoint (again: stop at once)"
                                 : "stopping; without --checkpoint nothing is kept");
    });
    // The end is there and being told. Whoever does not read it asks twice.
    if (!runs && !first) std::_Exit(kExitFailed);
  });
  arrow::Result<JobResult> result = [&] {
    ProgressReporter reporter(&console, [&job] { return job->progress(); });
    metrics.Follow([&job] { job->progress(); });
    return job->Run();
  }();
  running.Ended();
  announcer.reset();
  job->progress();  // the last scrape shows the end
  metrics.Follow(nullptr);
  // Before it is told: who reads that it can be resumed resumes it.
  job.reset();
  return on_signal.EndsWith(TellEnd(console, result, parts));
}

}  // namespace headrace::cli
