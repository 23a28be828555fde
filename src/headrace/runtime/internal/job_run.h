// One run of a job from a checkpoint (or from nothing): opens source and sink, runs the threads, takes checkpoints, finishes. A job whose
// restart policy re-opens it makes another JobRun from the newest checkpoint.
//
// Execute belongs to one thread, the coordinator; Look may be called from any.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "headrace/runtime/checkpoint_store.h"
#include "headrace/runtime/internal/reader_loop.h"
#include "headrace/runtime/internal/run_events.h"
#include "headrace/runtime/job.h"

namespace headrace {

/// What all runs of a job share; lent by the job.
struct JobParts {
  const Source* source = nullptr;
  const Sink* sink = nullptr;
  JobOptions options{};
  JobEnvironment environment{};
  CheckpointStore* store = nullptr;  // null = without checkpoints
  MetricRegistry* metrics = nullptr;
  MemoryBudget* memory = nullptr;
  RateLimiter* rate = nullptr;
  RestartBudget* restarts = nullptr;
  int64_t restarts_before = 0;  // by earlier processes
  std::stop_token stop_at_checkpoint{};
  std::stop_token stop_now{};
};

/// A sink's context without the fields that belong to one writer.
SinkContext MakeSinkContext(const JobParts& parts, const CheckpointState& state);
/// What a ledger has counted, as progress.
void SetCounts(const LedgerCounts& counts, Progress* progress);
/// The number of the newest checkpoint that is complete: what it holds is visible.
uint64_t CompleteCheckpoint(const StoredCheckpoint& stored);
/// The report's part that a checkpoint keeps.
Report ReportOf(const CheckpointState& state);

class JobRun {
 public:
  /// `start` is the checkpoint to go on from; `restored` is false only for the first run of a new job.
  JobRun(const JobParts& parts, StoredCheckpoint start, bool restored);
  ~JobRun();
  JobRun(const JobRun&) = delete;
  JobRun& operator=(const JobRun&) = delete;

  arrow::Result<JobEnd> Execute();

  /// As of the last checkpoint; after Execute only.
  const CheckpointState& state() const { return state_; }
  /// True when Sink::Prepare was called and nothing that a later run could go on from was persisted of it.
  bool must_abandon() const { return parts_.store == nullptr && prepare_called_; }
  bool commit_begun() const { return commit_begun_; }
  bool prepare_called() const { return prepare_called_; }
  void Look(Progress* progress) const;

 private:
  arrow::Status PrepareNew();
  arrow::Status Reopen();
  arrow::Result<std::unique_ptr<SplitEnumerator>> StartEnumerator();
  arrow::Status OpenLedger(std::unique_ptr<SplitEnumerator> enumerator);
  arrow::Result<std::vector<std::unique_ptr<SinkWriter>>> OpenWriters(int writers);
  arrow::Status StartThreads(std::vector<std::unique_ptr<SinkWriter>> writers, int readers);
  void RunReader(ReaderLoop* loop);
  void ShareWork();
  arrow::Result<JobEnd> Coordinate();
  arrow::Status TakeCheckpoint(bool last, bool final);
  /// `status`, an error of the coordinator: attached to that of a thread which failed before it.
  arrow::Status OrFirstCause(arrow::Status status);
  arrow::Status AddUp(const std::vector<WriterAnswer>& answers, CheckpointState* next) const;
  arrow::Status Commit(const CheckpointState& state);
  arrow::Status Finish();
  void StopThreads();
  void Warn(std::string text);
  double FractionLocked(Progress* progress) const;

  const JobParts& parts_;
  uint64_t last_checkpoint_;  // guarded by look_mutex_
  CheckpointState state_;
  bool committed_;
  const bool restored_;
  ReportCounts base_;  // of the checkpoint that the run started from
  const LedgerCounts base_counts_;
  bool prepare_called_ = false;
  bool reopened_ = false;  // there were writers before: the new ones take over their states
  bool commit_begun_ = false;
  MonotonicTime started_{0};  // of the threads

  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Committer> committer_;
  std::vector<std::unique_ptr<WriterQueue>> queues_;
  ReaderParts reader_parts_;
  std::vector<std::unique_ptr<ReaderLoop>> readers_;
  std::unique_ptr<RunEvents> events_;
  std::vector<std::thread> threads_;

  mutable std::mutex look_mutex_;  // guards what Look reads of the above while it is being set up, and:
  int64_t estimated_rows_ = -1;
  mutable double best_fraction_ = 0;
};

}  // namespace headrace
