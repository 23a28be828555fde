// What an engine needs to write to: a Sink prepares once, writes through SinkWriters, makes rows visible through a Committer, finishes
// once.
//
// Exactly once is made of three things: committables are persisted before they are committed, Commit of the same committable twice is one
// effect, and whatever no checkpoint names is removed on restore.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/runtime/report.h"
#include "headrace/runtime/source.h"

namespace headrace {

struct SinkContext : JobContext {
  std::string run_id{};                // eight lower-case hexadecimal digits, drawn once per job and persisted: the TAG of files
  int writers = 0;                     // that write side by side in this process; 0 = the engine does not say
  int writer_index = 0;                // of CreateWriter / RestoreWriter: 0 .. writers-1
  int64_t writer_memory = 0;           // bytes a writer may hold on top of the batch it is given
  std::string checkpoint_directory{};  // as the job was given it; empty without checkpoints. No place for a result
  bool checkpointed = false;           // the job takes checkpoints: a writer will be asked to prepare more than once
  uint64_t first_checkpoint = 1;       // number of the first checkpoint this run of the job will take (names of new files follow from it)
};

/// What must be committed to make rows visible: sink-owned, versioned bytes.
using Committable = std::string;

enum class CommitOutcome { kCommitted, kAlready, kRetryLater, kFailed };

struct CommitResult {
  CommitOutcome outcome = CommitOutcome::kCommitted;
  arrow::Status error{};  // for kRetryLater and kFailed
};

/// One thread at a time.
class SinkWriter {
 public:
  virtual ~SinkWriter() = default;
  /// May buffer. Rows are valid until the batch's buffers are released by everyone; the caller releases batch.memory when Write returns.
  virtual arrow::Status Write(const Batch& batch) = 0;
  /// Sends what is buffered and waits for every acknowledgement.
  virtual arrow::Status Flush() = 0;
  /// After Flush: what must be committed to make the rows since the last call visible; empty when nothing must.
  virtual arrow::Result<std::vector<Committable>> PrepareCommit() = 0;
  /// After PrepareCommit: what a restored writer needs to go on from here.
  virtual arrow::Result<std::string> Snapshot(uint64_t checkpoint) = 0;
  /// Rows put into the sink but rejected by it, so far in this run.
  virtual int64_t rejected() const { return 0; }
  /// Rows acknowledged by the sink so far in this run; after Flush, written + rejected must be every row given to Write, or the job fails.
  /// Negative = this writer does not count them.
  virtual int64_t written() const { return -1; }
  /// Bytes sent or written so far in this run, for the report.
  virtual int64_t bytes_written() const { return 0; }
  /// Gives up: releases resources quickly, leaves what a checkpoint names.
  virtual void Abort() = 0;
  /// Any thread, also while another call runs: the job ends at once. A wait for somebody else (whoever reads a pipe, a service) ends soon
  /// with Cancelled; what does not wait needs nothing.
  virtual void Cancel() {}
};

/// Idempotent: the same committable twice is one effect, also in another process.
class Committer {
 public:
  virtual ~Committer() = default;
  /// One result per committable, in order. Passes the fail point "commit.item" after each one that it committed.
  virtual std::vector<CommitResult> Commit(const std::vector<Committable>& committables) = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual Lineage lineage() const = 0;
  /// As Source::metrics.
  virtual std::span<const MetricInfo> metrics() const { return {}; }
  /// The most writers that may work side by side; 0 = any number.
  virtual int max_writers() const { return 0; }
  /// False when the sink cannot take part in checkpoints; the text says what to use instead.
  virtual arrow::Status SupportsCheckpoints() const { return arrow::Status::OK(); }
  /// Cheap checks before anything long starts: target exists, no permission. Changes nothing.
  virtual arrow::Status Check(const SinkContext& context) const = 0;
  /// Once, before any row: checks, creates, names. Answers the job state, which is persisted. Called again with the same run id when a
  /// process died before the state was persisted.
  virtual arrow::Result<std::string> Prepare(const SinkContext& context, const std::shared_ptr<arrow::Schema>& schema) const = 0;
  virtual arrow::Result<std::unique_ptr<SinkWriter>> CreateWriter(const SinkContext& context, std::string_view job_state,
                                                                  const std::shared_ptr<arrow::Schema>& schema) const = 0;
  /// A writer that takes over any number (also zero) of states of the writers of a checkpoint, of which there may have been more or fewer.
  virtual arrow::Result<std::unique_ptr<SinkWriter>> RestoreWriter(const SinkContext& context, std::string_view job_state,
                                                                   const std::shared_ptr<arrow::Schema>& schema,
                                                                   const std::vector<std::string>& states) const = 0;
  virtual arrow::Result<std::unique_ptr<Committer>> CreateCommitter(const SinkContext& context, std::string_view job_state) const = 0;
  /// Once per restore, after the checkpoint's committables were committed again and before any writer is made: removes everything of this
  /// job that the checkpoint does not name. `writer_states` are all of the checkpoint's.
  virtual arrow::Status RemoveOrphans(const SinkContext& context, std::string_view job_state,
                                      const std::vector<std::string>& writer_states) const = 0;
  /// What the report should say of the sink: where the data are, when they become visible.
  virtual std::map<std::string, std::string> facts(std::string_view /*job_state*/) const { return {}; }
  /// Once, after the last commit: manifest, clean-up of the old target. Idempotent. `writer_states` are those of the last checkpoint.
  virtual arrow::Status Finish(const SinkContext& context, std::string_view job_state, const std::shared_ptr<arrow::Schema>& schema,
                               const std::vector<std::string>& writer_states, const Report& report) const = 0;
  /// The job failed for good without a checkpoint to resume from: removes what it left.
  virtual arrow::Status Abandon(const SinkContext& context, std::string_view job_state) const = 0;
};

}  // namespace headrace
