#include "headrace/runtime/internal/local_job.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/fail_point.h"
#include "headrace/runtime/job_metrics.h"

namespace headrace {
namespace {

/// The most memory that the process ever had resident (VmHWM of /proc/self/status), 0 where the kernel does not say.
int64_t PeakResidentBytes() {
  constexpr int64_t kMostBytes = 1 << 20;
  auto text = LocalFileSystem()->ReadAll("/proc/self/status", kMostBytes);
  if (!text.ok()) return 0;
  constexpr std::string_view kField = "VmHWM:";
  auto at = text->find(kField);
  if (at == std::string::npos) return 0;
  at = text->find_first_of("0123456789", at);
  if (at == std::string::npos) return 0;
  int64_t kibibytes = 0;
  std::from_chars(text->data() + at, text->data() + text->size(), kibibytes);
  return kibibytes * 1024;
}

}  // namespace

LocalJob::LocalJob(std::shared_ptr<const Source> source, std::shared_ptr<const Sink> sink, JobOptions options, JobEnvironment environment,
                   std::unique_ptr<CheckpointStore> store, StoredCheckpoint start, bool restored)
    : source_(std::move(source)),
      sink_(std::move(sink)),
      store_(std::move(store)),
      metrics_(environment.metrics != nullptr ? environment.metrics : &own_metrics_),
      memory_(options.memory_limit - options.memory_limit / 4,
              environment.clock),  // the other quarter is the writers': see JobRun::OpenWriters
      rate_(environment.clock, options.max_rows_per_second, options.max_bytes_per_second),
      restarts_(options.restart_attempts),
      current_(std::move(start)),
      restored_(restored),
      resumed_(restored) {
  parts_ = {.source = source_.get(),
            .sink = sink_.get(),
            .options = std::move(options),
            .environment = environment,
            .store = store_.get(),
            .metrics = metrics_,
            .memory = &memory_,
            .rate = &rate_,
            .restarts = &restarts_,
            .restarts_before = current_.state.report.restarts,
            .stop_at_checkpoint = stop_at_checkpoint_.get_token(),
            .stop_now = stop_now_.get_token()};
  metrics_->Register(JobMetrics());
  metrics_->Register(source_->metrics());
  metrics_->Register(sink_->metrics());
  // What earlier runs of the job have done is there from the start.
  SetCounts(current_.state.ledger.counts, &last_progress_);
  last_progress_.queued_splits = static_cast<int64_t>(current_.state.ledger.assigned.size());
  last_progress_.checkpoint = CompleteCheckpoint(current_);
  last_progress_.fraction = source_->boundedness() == Boundedness::kBounded ? current_.state.report.fraction : -1;
  SetGauges(last_progress_);
}

class LocalJob::Telling {
 public:
  explicit Telling(const LocalJob* job) : job_(job) {
    const JobEnvironment& environment = job->parts_.environment;
    if (environment.listener == nullptr) return;
    try {
      thread_ = std::jthread([job, clock = environment.clock, interval = environment.metrics_interval](const std::stop_token& stop) {
        while (clock->SleepFor(interval, stop)) job->Tell(false);
      });
    } catch (const std::system_error& error) {
      environment.logger->Log(LogLevel::kWarning,
                              fmt::format("no thread is left to tell metrics: {}. They are told at the end", error.what()));
    }
  }
  ~Telling() {
    if (thread_.joinable()) {
      thread_.request_stop();
      thread_.join();
    }
    if (job_->parts_.environment.listener != nullptr) job_->Tell(true);
  }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

 private:
  const LocalJob* const job_;
  std::jthread thread_;
};

void LocalJob::Tell(bool last) const {
  progress();  // sets the gauges
  parts_.environment.listener->OnMetrics(metrics_->Collect(), last);
}

arrow::Status LocalJob::CheckTarget() const { return sink_->Check(MakeSinkContext(parts_, current_.state)); }

void LocalJob::UseStore(std::unique_ptr<CheckpointStore> store) {
  store_ = std::move(store);
  parts_.store = store_.get();
}

void LocalJob::StopAtCheckpoint() {
  if (store_ == nullptr) {
    stop_now_.request_stop();
  } else {
    stop_at_checkpoint_.request_stop();
  }
}

void LocalJob::StopNow() { stop_now_.request_stop(); }

Progress LocalJob::progress() const {
  std::lock_guard<std::mutex> guard(mutex_);
  const auto seconds = [this] { return std::chrono::duration<double>(parts_.environment.clock->Monotonic() - started_).count(); };
  if (active_ == nullptr) {
    if (waits_to_restart_) last_progress_.seconds = seconds();
    SetGauges(last_progress_);
    return last_progress_;
  }
  Progress now;
  active_->Look(&now);
  // A restart goes back to the last checkpoint; what was shown does not.
  if (now.fraction >= 0) now.fraction = std::max(now.fraction, last_progress_.fraction);
  now.seconds = seconds();
  SetGauges(now);
  return last_progress_ = now;
}

void LocalJob::SetGauges(const Progress& progress) const {
  auto set = [this](std::string_view name, int64_t value) { metrics_->counter(name)->Set(value); };
  set("unassignedSplits", progress.queued_splits);
  set("openSplits", progress.open_splits);
  set("finishedSplits", progress.finished_splits);
  set("stalledSplits", progress.stalled_splits);
  set("throttledSplits", progress.throttled_splits);
  set("rowsEnqueued", progress.rows);
  set("budgetBytes", memory_.used());
  set("lastCheckpoint", static_cast<int64_t>(progress.checkpoint));
}

arrow::Result<JobResult> LocalJob::Run() {
  if (std::exchange(ran_, true)) return arrow::Status::Invalid("a job runs once; make another one");
  started_ = parts_.environment.clock->Monotonic();
  Telling telling(this);
  if (current_.finished) {
    // Also tells when what the job had made is gone.
    ARROW_RETURN_NOT_OK(
        sink_->RemoveOrphans(MakeSinkContext(parts_, current_.state), current_.state.sink_state, current_.state.writer_states));
    auto warning = fmt::format("this job was finished already, by checkpoint {}: there was nothing left to do", current_.state.checkpoint);
    parts_.environment.logger->Log(LogLevel::kWarning, warning);
    current_.state.report.warnings.push_back(std::move(warning));
    return MakeResult(JobEnd::kDone);
  }
  auto result = RunUntilDone();
  // A failure of its own stays one, though a stop came meanwhile.
  if (result.ok() || !stop_now_.stop_requested() || CodeOf(result.status()) != Code::kCancelled) return result;
  return MakeError({.code = Code::kCancelled, .resource = "job", .reason = "STOPPED"}, result.status().message());
}

arrow::Result<JobResult> LocalJob::RunUntilDone() {
  if (store_ != nullptr) {
    ARROW_RETURN_NOT_OK(store_->RemoveLeftovers());
    if (!restored_) ARROW_RETURN_NOT_OK(store_->Write(current_.state));
    FailPoint("job.created");
  }
  while (true) {
    auto end = RunOnce();
    if (end.ok()) return MakeResult(*end);
    ARROW_ASSIGN_OR_RAISE(const AfterFailure after, PrepareRestart(end.status()));
    if (after == AfterFailure::kFail) return end.status();
    if (after == AfterFailure::kStop) return MakeResult(JobEnd::kStoppedAtCheckpoint);
  }
}

arrow::Result<JobEnd> LocalJob::RunOnce() {
  JobRun run(parts_, current_, restored_);
  {
    std::lock_guard<std::mutex> guard(mutex_);
    active_ = &run;
  }
  auto end = run.Execute();
  {
    std::lock_guard<std::mutex> guard(mutex_);
    double shown = last_progress_.fraction;
    last_progress_ = {};
    run.Look(&last_progress_);
    bool done = end.ok() && *end == JobEnd::kDone;
    if (last_progress_.fraction >= 0) last_progress_.fraction = done ? 1 : std::max(shown, last_progress_.fraction);
    last_progress_.seconds = std::chrono::duration<double>(parts_.environment.clock->Monotonic() - started_).count();
    active_ = nullptr;
  }
  current_.state = run.state();
  if (!end.ok()) return Fail(run, end.status());
  return end;
}

arrow::Status LocalJob::Fail(const JobRun& run, arrow::Status error) {
  bool stopped = stopping() && CodeOf(error) == Code::kCancelled;
  if (run.must_abandon()) {
    if (run.commit_begun()) {
      error =
          WithContext(error,
                      "the rows were being made visible when the job failed, and it is not clear which of them are; without a checkpoint "
                      "directory a rerun may double them");
    }
    auto abandoned = sink_->Abandon(MakeSinkContext(parts_, current_.state), current_.state.sink_state);
    if (!abandoned.ok()) error = error.WithMessage(fmt::format("{}; then: {}", error.message(), abandoned.message()));
  }
  // A job that failed before it planned left nothing behind: the corrected command may use the same directory.
  const ErrorInfo* info = GetErrorInfo(error);
  // What was never reached may have a wrong name: that is corrected in the command.
  bool may_pass = info != nullptr && info->retryable && info->reason != "UNREACHABLE";
  if (store_ != nullptr && !stopped && !restored_ && !current_.state.planned && !run.prepare_called() && !may_pass &&
      restarts_.left() == 0) {
    auto removed = store_->RemoveUnplanned();
    if (!removed.ok()) error = error.WithMessage(fmt::format("{}; then: {}", error.message(), removed.message()));
  }
  return error;
}

void LocalJob::WaitToRestart() {
  const auto set_waiting = [this](bool waits) {
    std::lock_guard<std::mutex> guard(mutex_);
    waits_to_restart_ = waits;
  };
  std::stop_source stop;
  const auto request_stop = [&stop] { stop.request_stop(); };
  const std::stop_callback on_checkpoint(stop_at_checkpoint_.get_token(), request_stop);
  const std::stop_callback on_now(stop_now_.get_token(), request_stop);
  set_waiting(true);
  parts_.environment.clock->SleepFor(parts_.options.restart_delay, stop.get_token());
  set_waiting(false);
}

arrow::Result<LocalJob::AfterFailure> LocalJob::PrepareRestart(const arrow::Status& error) {
  if (store_ == nullptr || stopping() || !restarts_.Take()) return AfterFailure::kFail;
  auto* environment = &parts_.environment;
  environment->logger->Log(LogLevel::kWarning, fmt::format("the job is opened again from its last checkpoint in {} ms after: {}",
                                                           parts_.options.restart_delay.count(), error.message()));
  WaitToRestart();
  if (stop_now_.stop_requested()) return AfterFailure::kFail;
  // Read again from the disk: a write that failed may still have left its file, and then that file is the newest.
  auto newest = store_->Newest();
  if (newest.ok() && !*newest) newest = arrow::Status::IOError("the checkpoint is gone");
  if (!newest.ok()) return error.WithMessage(fmt::format("{}; then: {}", error.message(), newest.status().message()));
  current_ = std::move(**newest);
  restored_ = true;
  ARROW_RETURN_NOT_OK(store_->RemoveLeftovers());
  // Nothing runs, so the newest checkpoint is the one to stop at; what it holds must be visible.
  if (stop_at_checkpoint_.stop_requested() && CompleteCheckpoint(current_) == current_.state.checkpoint) return AfterFailure::kStop;
  return AfterFailure::kAgain;
}

JobResult LocalJob::MakeResult(JobEnd end) const {
  JobResult result{.end = end, .report = ReportOf(current_.state)};
  auto& report = result.report;
  report.restarts = parts_.restarts_before + restarts_.used();
  report.resumed = resumed_;
  if (store_ == nullptr) report.checkpoints = 0;  // the barrier at the end is not one
  report.seconds = std::chrono::duration<double>(parts_.environment.clock->Monotonic() - started_).count();
  report.peak_budget_bytes = memory_.peak();
  report.peak_resident_bytes = PeakResidentBytes();
  // A sink says before it starts where its result will be described; until it has finished that is not there.
  if (end == JobEnd::kStoppedAtCheckpoint) report.facts.erase("manifest");
  for (const MetricValue& value : metrics_->Collect()) {
    if (value.info != nullptr && value.info->kind == MetricKind::kGauge) continue;
    report.counters[value.part.empty() ? value.name : fmt::format("{}.{}", value.name, value.part)] = value.value;
  }
  return result;
}

}  // namespace headrace
