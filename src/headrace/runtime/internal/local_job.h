// The local engine's Job: owns what all its runs share, and restarts them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "headrace/runtime/internal/job_run.h"

namespace headrace {

class LocalJob final : public Job {
 public:
  /// `store` is null without a checkpoint directory. `start` is what the job goes on from; checkpoint 0 for a new one.
  LocalJob(std::shared_ptr<const Source> source, std::shared_ptr<const Sink> sink, JobOptions options, JobEnvironment environment,
           std::unique_ptr<CheckpointStore> store, StoredCheckpoint start, bool restored);

  arrow::Status CheckTarget() const;
  /// Before Run; a job whose options name a checkpoint directory needs its store by then.
  void UseStore(std::unique_ptr<CheckpointStore> store);
  arrow::Result<JobResult> Run() override;
  void StopAtCheckpoint() override;
  void StopNow() override;
  Progress progress() const override;

 private:
  /// Tells the listener while it lives, and a last time when it goes.
  class Telling;
  void Tell(bool last) const;
  arrow::Result<JobResult> RunUntilDone();
  arrow::Result<JobEnd> RunOnce();
  arrow::Status Fail(const JobRun& run, arrow::Status error);
  enum class AfterFailure { kFail, kAgain, kStop };
  arrow::Result<AfterFailure> PrepareRestart(const arrow::Status& error);
  void WaitToRestart();
  JobResult MakeResult(JobEnd end) const;
  void SetGauges(const Progress& progress) const;
  bool stopping() const { return stop_now_.stop_requested() || stop_at_checkpoint_.stop_requested(); }

  const std::shared_ptr<const Source> source_;
  const std::shared_ptr<const Sink> sink_;
  std::unique_ptr<CheckpointStore> store_;
  MetricRegistry own_metrics_;
  MetricRegistry* const metrics_;  // the caller's, or our own
  MemoryBudget memory_;
  RateLimiter rate_;
  RestartBudget restarts_;
  std::stop_source stop_at_checkpoint_;
  std::stop_source stop_now_;
  JobParts parts_;
  StoredCheckpoint current_;  // what the next run starts from; after the last one, the job's last checkpoint
  bool restored_;
  const bool resumed_;
  bool ran_ = false;
  MonotonicTime started_{0};

  mutable std::mutex mutex_;  // guards all below
  JobRun* active_ = nullptr;
  bool waits_to_restart_ = false;
  mutable Progress last_progress_;
};

}  // namespace headrace
