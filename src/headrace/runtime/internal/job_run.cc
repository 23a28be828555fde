#include "headrace/runtime/internal/job_run.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/fail_point.h"
#include "headrace/runtime/internal/commit.h"
#include "headrace/runtime/internal/job_options.h"
#include "headrace/runtime/internal/work_sharing.h"
#include "headrace/runtime/internal/writer_loop.h"

namespace headrace {

void SetCounts(const LedgerCounts& counts, Progress* progress) {
  progress->rows = counts.rows;
  progress->bytes = counts.memory_bytes;
  progress->finished_splits = counts.finished;
}

uint64_t CompleteCheckpoint(const StoredCheckpoint& stored) {
  const bool complete = stored.committed || stored.state.committables.empty();
  return complete ? stored.state.checkpoint : stored.state.checkpoint - 1;  // checkpoint 0 has no committables
}

SinkContext MakeSinkContext(const JobParts& parts, const CheckpointState& state) {
  SinkContext context;
  context.job_name = state.job_name;
  context.clock = parts.environment.clock;
  context.random = parts.environment.random;
  context.files = parts.environment.files;
  context.logger = parts.environment.logger;
  context.metrics = parts.metrics;
  context.memory = parts.memory;
  context.run_id = state.run_id;
  context.checkpointed = !parts.options.checkpoint.empty();
  context.checkpoint_directory = parts.options.checkpoint;
  // Without a store there is one barrier, at the end. With one, checkpoint 1 holds the plan and barriers follow it.
  context.first_checkpoint = parts.store == nullptr ? 1 : std::max<uint64_t>(state.checkpoint + 1, 2);
  return context;
}

Report ReportOf(const CheckpointState& state) {
  Report report;
  report.job_name = state.job_name;
  report.run_id = state.run_id;
  report.rows_read = state.ledger.counts.rows;
  report.records_in = state.report.records_in;
  report.rows_written = state.report.rows_written;
  report.rows_rejected = state.report.rows_rejected;
  report.rows_skipped = state.report.rows_skipped;
  report.bytes_read = state.ledger.counts.wire_bytes;
  report.bytes_in_memory = state.ledger.counts.memory_bytes;
  report.bytes_written = state.report.bytes_written;
  report.splits = state.ledger.counts.finished + static_cast<int64_t>(state.ledger.assigned.size());
  report.cuts = state.ledger.counts.cuts;
  report.checkpoints = state.checkpoint;
  report.restarts = state.report.restarts;
  report.facts = state.report.facts;
  report.warnings = state.report.warnings;
  return report;
}

JobRun::JobRun(const JobParts& parts, StoredCheckpoint start, bool restored)
    : parts_(parts),
      last_checkpoint_(CompleteCheckpoint(start)),
      state_(std::move(start.state)),
      committed_(start.committed),
      restored_(restored),
      base_(state_.report),
      base_counts_(state_.ledger.counts),
      best_fraction_(state_.report.fraction) {}

JobRun::~JobRun() { StopThreads(); }

void JobRun::StopThreads() {
  if (events_ == nullptr) return;
  events_->Halt();
  for (auto& queue : queues_) queue->Fail(arrow::Status::Cancelled("the job is ending"));
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void JobRun::Warn(std::string text) {
  auto& warnings = state_.report.warnings;
  parts_.environment.logger->Log(LogLevel::kWarning, text);
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(std::move(text));
}

arrow::Result<JobEnd> JobRun::Execute() {
  if (state_.prepared) {
    ARROW_RETURN_NOT_OK(Reopen());
    if (state_.final) {
      ARROW_RETURN_NOT_OK(Finish());
      return JobEnd::kDone;
    }
  }
  auto enumerator = StartEnumerator();
  if (!enumerator.ok()) {
    // Nothing runs yet, so the newest checkpoint already is the one to stop at.
    bool stopped = parts_.stop_at_checkpoint.stop_requested() && !parts_.stop_now.stop_requested();
    if (stopped && CodeOf(enumerator.status()) == Code::kCancelled) return JobEnd::kStoppedAtCheckpoint;
    return WithContext(enumerator.status(), "planning");
  }
  ARROW_RETURN_NOT_OK(OpenLedger(std::move(*enumerator)));
  auto end = Coordinate();
  StopThreads();
  ARROW_RETURN_NOT_OK(end.status());
  if (*end == JobEnd::kDone) ARROW_RETURN_NOT_OK(Finish());
  return end;
}

arrow::Status JobRun::Reopen() {
  reopened_ = true;
  auto context = MakeSinkContext(parts_, state_);
  ARROW_ASSIGN_OR_RAISE(committer_, parts_.sink->CreateCommitter(context, state_.sink_state));
  if (!committed_) ARROW_RETURN_NOT_OK(Commit(state_));
  {
    std::lock_guard<std::mutex> guard(look_mutex_);
    last_checkpoint_ = state_.checkpoint;
  }
  return WithContext(parts_.sink->RemoveOrphans(context, state_.sink_state, state_.writer_states), "going back to the last checkpoint");
}

arrow::Result<std::unique_ptr<SplitEnumerator>> JobRun::StartEnumerator() {
  JobContext context = MakeSinkContext(parts_, state_);
  std::unique_ptr<SplitEnumerator> enumerator;
  if (state_.planned) {
    ARROW_ASSIGN_OR_RAISE(enumerator, parts_.source->RestoreEnumerator(context, state_.ledger.enumerator));
  } else {
    ARROW_ASSIGN_OR_RAISE(enumerator, parts_.source->CreateEnumerator(context));
  }
  {
    std::stop_callback on_checkpoint(parts_.stop_at_checkpoint, [&] { enumerator->Cancel(); });
    std::stop_callback on_now(parts_.stop_now, [&] { enumerator->Cancel(); });
    ARROW_RETURN_NOT_OK(enumerator->Start());
  }
  if (enumerator->schema() == nullptr)
    return MakeError({.code = Code::kInternal, .resource = "source"}, "the source has planned but has no schema");
  if (state_.planned && !enumerator->schema()->Equals(*state_.schema)) {
    return MakeError({.code = Code::kFailedPrecondition, .resource = "source", .reason = "SCHEMA_CHANGED"},
                     "the source has another schema than the checkpoint. Start the job anew, with another checkpoint directory");
  }
  if (!state_.planned) {
    FailPoint("job.planned");
    state_.schema = enumerator->schema();
    state_.ledger.enumerator = enumerator->Snapshot();
    state_.report.facts = enumerator->facts();
    if (enumerator->queued() == 0 && enumerator->estimated_rows() > 0) {
      Warn(fmt::format(
          "the source gave no split to read although it estimated {} rows: check the restriction, or that the table is complete",
          enumerator->estimated_rows()));
    }
  }
  std::lock_guard<std::mutex> guard(look_mutex_);
  estimated_rows_ = enumerator->estimated_rows();
  return enumerator;
}

arrow::Status JobRun::PrepareNew() {
  auto context = MakeSinkContext(parts_, state_);
  prepare_called_ = true;
  ARROW_ASSIGN_OR_RAISE(state_.sink_state, parts_.sink->Prepare(context, state_.schema));
  FailPoint("job.prepared");
  state_.report.facts.merge(parts_.sink->facts(state_.sink_state));
  state_.planned = true;
  state_.prepared = true;
  ARROW_ASSIGN_OR_RAISE(committer_, parts_.sink->CreateCommitter(context, state_.sink_state));
  if (parts_.store == nullptr) return arrow::Status::OK();
  state_.checkpoint = 1;
  ARROW_RETURN_NOT_OK(parts_.store->Write(state_));
  std::lock_guard<std::mutex> guard(look_mutex_);
  last_checkpoint_ = 1;
  return arrow::Status::OK();
}

arrow::Status JobRun::OpenLedger(std::unique_ptr<SplitEnumerator> enumerator) {
  int64_t splits = enumerator->queued() + static_cast<int64_t>(state_.ledger.assigned.size());
  auto cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  auto chosen = ChooseParallelism(parts_.options, splits, parts_.source->boundedness(), SharesWork(parts_.options, *parts_.source),
                                  parts_.sink->max_writers(), cores);
  if (!chosen.warning.empty()) Warn(chosen.warning);
  bool fresh = !state_.prepared;
  if (fresh) ARROW_RETURN_NOT_OK(PrepareNew());

  LedgerOptions options{
      .writers = chosen.writers, .bounded = parts_.source->boundedness() == Boundedness::kBounded, .ordered = parts_.options.ordered};
  auto ledger = std::make_unique<Ledger>(std::move(enumerator), options);
  if (!fresh) ledger->Restore(state_.ledger);
  {
    std::lock_guard<std::mutex> guard(look_mutex_);
    ledger_ = std::move(ledger);
  }
  ARROW_ASSIGN_OR_RAISE(auto writers, OpenWriters(chosen.writers));
  return StartThreads(std::move(writers), chosen.readers);
}

arrow::Result<std::vector<std::unique_ptr<SinkWriter>>> JobRun::OpenWriters(int writers) {
  std::vector<std::vector<std::string>> states(static_cast<size_t>(writers));
  for (size_t i = 0; i < state_.writer_states.size(); ++i) states[i % states.size()].push_back(state_.writer_states[i]);
  std::vector<std::unique_ptr<SinkWriter>> opened;
  auto context = MakeSinkContext(parts_, state_);
  // A quarter of the memory limit is the writers' own (row groups being built, requests in flight) and never taken from the budget of what
  // is on the way. Were it one budget, open row groups, which only shrink when more rows come, could hold what the readers need to send
  // those rows.
  context.writer_memory = std::max<int64_t>(1, parts_.options.memory_limit / 4 / writers);
  context.writers = writers;
  for (int i = 0; i < writers; ++i) {
    context.writer_index = i;
    auto writer = reopened_ ? parts_.sink->RestoreWriter(context, state_.sink_state, state_.schema, states[static_cast<size_t>(i)])
                            : parts_.sink->CreateWriter(context, state_.sink_state, state_.schema);
    ARROW_RETURN_NOT_OK(WithContext(writer.status(), fmt::format("opening writer {}", i)));
    opened.push_back(std::move(*writer));
  }
  return opened;
}

arrow::Status JobRun::StartThreads(std::vector<std::unique_ptr<SinkWriter>> writers, int readers) {
  started_ = parts_.environment.clock->Monotonic();  // before any reader can be seen to work, so that the first interval has a sure start
  int64_t room = std::max<int64_t>(1, std::min(parts_.memory->limit(), kMostQueuedBytes) / static_cast<int64_t>(writers.size()));
  for (size_t i = 0; i < writers.size(); ++i) queues_.push_back(std::make_unique<WriterQueue>(room));
  events_ = std::make_unique<RunEvents>(parts_.environment.clock, parts_.stop_at_checkpoint, parts_.stop_now, readers,
                                        static_cast<int>(writers.size()));
  reader_parts_ = {.source = parts_.source,
                   .context = MakeSinkContext(parts_, state_),
                   .schema = state_.schema,
                   .ledger = ledger_.get(),
                   .rate = parts_.rate,
                   .restarts = parts_.restarts,
                   .restart_delay = parts_.options.restart_delay};
  for (auto& queue : queues_) reader_parts_.queues.push_back(queue.get());
  std::vector<std::unique_ptr<ReaderLoop>> loops;
  reader_parts_.context.readers = readers;
  loops.reserve(static_cast<size_t>(readers));
  for (int i = 0; i < readers; ++i) loops.push_back(std::make_unique<ReaderLoop>(reader_parts_));
  {
    std::lock_guard<std::mutex> guard(look_mutex_);
    readers_ = std::move(loops);
  }
  try {
    for (size_t i = 0; i < writers.size(); ++i) {
      auto loop = std::make_shared<WriterLoop>(static_cast<int>(i), std::move(writers[i]), queues_[i].get(), events_.get());
      threads_.emplace_back([loop] { loop->Run(); });
    }
    for (auto& loop : readers_) threads_.emplace_back([this, reader = loop.get()] { RunReader(reader); });
    if (readers > 1 && SharesWork(parts_.options, *parts_.source)) threads_.emplace_back([this] { ShareWork(); });
  } catch (const std::system_error& error) {
    StopThreads();
    return MakeError({.code = Code::kResourceExhausted, .resource = "threads", .reason = "TOO_MANY_THREADS"},
                     fmt::format("cannot start {} reader and {} writer threads: {}. Give fewer readers or writers", readers, writers.size(),
                                 error.what()));
  }
  return arrow::Status::OK();
}

void JobRun::ShareWork() {
  std::vector<ReaderLoop*> readers;
  readers.reserve(readers_.size());
  for (const auto& reader : readers_) readers.push_back(reader.get());
  WorkSharing(parts_.environment.clock, ledger_.get(), std::move(readers), parts_.metrics).Run(events_->readers());
}

void JobRun::RunReader(ReaderLoop* loop) {
  auto status = loop->Run(events_->readers());
  if (status.ok()) {
    // A reader that was asked to stop has not read all that there is.
    if (!events_->readers().stop_requested()) events_->ReaderDone();
    return;
  }
  bool stopping = events_->readers().stop_requested() && !events_->writers().stop_requested();
  if (!stopping) {
    events_->Fail(status);
  } else {
    parts_.environment.logger->Log(LogLevel::kInfo, fmt::format("after the last barrier: {}", status.message()));
  }
}

arrow::Result<JobEnd> JobRun::Coordinate() {
  auto* clock = parts_.environment.clock;
  auto next_after = [&](MonotonicTime start) {
    return parts_.store == nullptr ? MonotonicTime::max() : start + parts_.options.checkpoint_interval;
  };
  auto deadline = next_after(started_);
  while (true) {
    switch (events_->Wait(deadline)) {
      case RunEvents::Wake::kFailed:
      case RunEvents::Wake::kStopNow:
        return events_->status();
      case RunEvents::Wake::kReadersDone:
        ARROW_RETURN_NOT_OK(TakeCheckpoint(true, true));
        return JobEnd::kDone;
      case RunEvents::Wake::kStopAtCheckpoint:
        ARROW_RETURN_NOT_OK(TakeCheckpoint(true, false));
        return JobEnd::kStoppedAtCheckpoint;
      case RunEvents::Wake::kTime:
        deadline = next_after(clock->Monotonic());
        ARROW_RETURN_NOT_OK(TakeCheckpoint(false, false));
        break;
    }
  }
}

arrow::Status JobRun::TakeCheckpoint(bool last, bool final) {
  CheckpointState next = state_;
  next.checkpoint = state_.checkpoint + 1;
  next.final = final;
  Barrier barrier{.checkpoint = next.checkpoint, .last = last};
  // Of the rows that the checkpoint has, not of those that are read while it is taken.
  Progress progress;
  Look(&progress);
  next.report.fraction = final ? 1 : std::max(0.0, progress.fraction);
  next.ledger = ledger_->Snapshot([&] {
    for (auto& queue : queues_) queue->PushMarker(barrier);
  });
  FailPoint("checkpoint.barrier");
  if (last) events_->StopReaders();
  ARROW_ASSIGN_OR_RAISE(auto answers, events_->WaitForAnswers(next.checkpoint));
  ARROW_RETURN_NOT_OK(AddUp(answers, &next));
  if (parts_.store != nullptr) ARROW_RETURN_NOT_OK(OrFirstCause(parts_.store->Write(next)));
  state_ = std::move(next);
  ARROW_RETURN_NOT_OK(OrFirstCause(Commit(state_)));
  std::lock_guard<std::mutex> guard(look_mutex_);
  last_checkpoint_ = state_.checkpoint;
  return arrow::Status::OK();
}

arrow::Status JobRun::OrFirstCause(arrow::Status status) {
  // A thread may have failed meanwhile: then this is a later error, attached to the first.
  if (status.ok() || events_->status().ok() || CodeOf(status) == Code::kCancelled) return status;
  events_->Fail(status);
  return events_->status();
}

arrow::Status JobRun::AddUp(const std::vector<WriterAnswer>& answers, CheckpointState* next) const {
  next->writer_states.clear();
  next->committables.clear();
  auto& report = next->report;
  report.records_in = base_.records_in;
  report.rows_written = base_.rows_written;
  report.rows_rejected = base_.rows_rejected;
  report.bytes_written = base_.bytes_written;
  for (const auto& answer : answers) {
    next->writer_states.push_back(answer.state);
    next->committables.insert(next->committables.end(), answer.committables.begin(), answer.committables.end());
    report.records_in += answer.counts.records_in;
    report.rows_written += answer.counts.written;
    report.rows_rejected += answer.counts.rejected;
    report.bytes_written += answer.counts.bytes_written;
  }
  report.restarts = parts_.restarts_before + parts_.restarts->used();
  // Counted by the readers under the ledger's lock and by the writers behind their queues: two counts of the same rows.
  int64_t read = next->ledger.counts.rows;
  if (report.records_in + report.rows_skipped == read && report.records_in == report.rows_written + report.rows_rejected)
    return arrow::Status::OK();
  return MakeError(
      {.code = Code::kInternal, .resource = "job", .reason = "ROWS_UNACCOUNTED"},
      fmt::format("{} rows were read, but {} entered the sink and {} were skipped; {} are written and {} rejected. This is a defect: "
                  "please report it",
                  read, report.records_in, report.rows_skipped, report.rows_written, report.rows_rejected));
}

arrow::Status JobRun::Commit(const CheckpointState& state) {
  FailPoint("commit.before");
  commit_begun_ = commit_begun_ || !state.committables.empty();
  const auto* environment = &parts_.environment;
  // A stop at once and a failure elsewhere end a wait between two attempts: what is not committed then is committed by a resume.
  std::stop_source stop;
  auto request_stop = [&stop] { stop.request_stop(); };
  std::stop_callback on_now(parts_.stop_now, request_stop);
  std::optional<std::stop_callback<decltype(request_stop)>> on_failure;
  if (events_ != nullptr) on_failure.emplace(events_->writers(), request_stop);
  auto status = CommitAll(committer_.get(), state.committables, environment->clock, environment->logger, stop.get_token());
  if (!status.ok() && events_ != nullptr && CodeOf(status) == Code::kCancelled) ARROW_RETURN_NOT_OK(events_->status());
  ARROW_RETURN_NOT_OK(status);
  FailPoint("commit.after");
  if (parts_.store == nullptr) return arrow::Status::OK();
  ARROW_RETURN_NOT_OK(parts_.store->RecordCommitted(state.checkpoint));
  environment->logger->Log(LogLevel::kInfo, fmt::format("checkpoint {} is complete: {} rows", state.checkpoint, state.ledger.counts.rows));
  return arrow::Status::OK();
}

arrow::Status JobRun::Finish() {
  FailPoint("finish.before");
  auto report = ReportOf(state_);
  report.resumed = restored_;
  if (parts_.store == nullptr) report.checkpoints = 0;  // the barrier at the end is not one
  ARROW_RETURN_NOT_OK(WithContext(
      parts_.sink->Finish(MakeSinkContext(parts_, state_), state_.sink_state, state_.schema, state_.writer_states, report), "finishing"));
  FailPoint("finish.after");
  return parts_.store == nullptr ? arrow::Status::OK() : parts_.store->RecordFinished(state_.checkpoint);
}

double JobRun::FractionLocked(Progress* progress) const {
  double done = static_cast<double>(progress->finished_splits);
  for (const auto& reader : readers_) {
    auto state = reader->Look();
    if (!state.open) continue;
    ++progress->open_splits;
    progress->stalled_splits += state.stalled ? 1 : 0;
    progress->throttled_splits += state.progress.throttled ? 1 : 0;
    done += std::clamp(state.progress.fraction, 0.0, 1.0);
  }
  return done;
}

void JobRun::Look(Progress* progress) const {
  std::lock_guard<std::mutex> guard(look_mutex_);
  progress->checkpoint = last_checkpoint_;
  progress->estimated_rows = estimated_rows_;
  bool bounded = parts_.source->boundedness() == Boundedness::kBounded;
  if (ledger_ != nullptr) {
    const auto state = ledger_->state();
    SetCounts(state.counts, progress);
    progress->queued_splits = state.queued;
    const double done = FractionLocked(progress);
    const auto all = static_cast<double>(state.queued + state.assigned + state.counts.finished);
    // What ended or was cut between the two looks would count twice: then the next look tells.
    const auto after = ledger_->state();
    const bool same = after.counts.finished == state.counts.finished && after.counts.cuts == state.counts.cuts;
    // Cuts and returned splits would let it go down.
    if (same && all > 0) best_fraction_ = std::max(best_fraction_, std::min(1.0, done / all));
  } else {
    SetCounts(base_counts_, progress);
  }
  progress->fraction = bounded ? best_fraction_ : -1;
}

}  // namespace headrace
