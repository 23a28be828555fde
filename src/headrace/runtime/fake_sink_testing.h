// An exactly-once sink of whole numbers and the place that it writes to, which outlives the jobs as a service does. Rows are staged under a
// name, committed by it, and visible afterwards. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "headrace/runtime/sink.h"

namespace headrace::testing {

struct Target {
  std::mutex mutex;
  std::condition_variable changed;
  // Scripted:
  int max_writers = 0;
  arrow::Status check_error{};
  arrow::Status prepare_error{};
  arrow::Status finish_error{};
  arrow::Status supports_checkpoints{};
  arrow::Status abandon_error{};
  std::map<int64_t, std::deque<arrow::Status>> write_errors{};  // at this row; each once
  std::deque<CommitResult> commit_answers{};                    // instead of the true ones, one an item
  std::set<int64_t> rejected_rows{};
  int64_t lose_count = 0;  // rows that the writer forgets to count
  bool block_writes = false;
  bool block_commits = false;
  bool ignore_cancel = false;  // a blocked write waits on
  // Seen:
  int prepares = 0;
  std::set<std::string> run_ids{};
  std::map<std::string, std::vector<int64_t>> staged{};
  std::map<std::string, std::vector<int64_t>> visible{};  // by committable, in the order of writing
  int commits = 0;                                        // items committed for the first time
  int commit_calls = 0;
  int finishes = 0;
  std::optional<Report> finished_report{};
  bool abandoned = false;
  int orphan_sweeps = 0;
  int aborts = 0;
  std::vector<int64_t> writer_memory{};
  std::vector<size_t> restored_states{};  // per RestoreWriter: how many states
  std::vector<uint64_t> first_checkpoints{};
  int waiting = 0;
  bool dead = false;  // the process that works on it is: nothing changes

  std::vector<int64_t> SortedRows();
  bool WaitForWaiting(int n);
  void Release();
};

class TargetSink final : public Sink {
 public:
  explicit TargetSink(std::shared_ptr<Target> target) : target_(std::move(target)) {}
  Lineage lineage() const override { return {}; }
  int max_writers() const override { return target_->max_writers; }
  arrow::Status SupportsCheckpoints() const override { return target_->supports_checkpoints; }
  arrow::Status Check(const SinkContext& context) const override;
  arrow::Result<std::string> Prepare(const SinkContext& context, const std::shared_ptr<arrow::Schema>& schema) const override;
  arrow::Result<std::unique_ptr<SinkWriter>> CreateWriter(const SinkContext& context, std::string_view job_state,
                                                          const std::shared_ptr<arrow::Schema>& schema) const override;
  arrow::Result<std::unique_ptr<SinkWriter>> RestoreWriter(const SinkContext& context, std::string_view job_state,
                                                           const std::shared_ptr<arrow::Schema>& schema,
                                                           const std::vector<std::string>& states) const override;
  arrow::Result<std::unique_ptr<Committer>> CreateCommitter(const SinkContext& context, std::string_view job_state) const override;
  std::map<std::string, std::string> facts(std::string_view) const override { return {{"target", "memory"}}; }
  arrow::Status RemoveOrphans(const SinkContext& context, std::string_view job_state,
                              const std::vector<std::string>& writer_states) const override;
  arrow::Status Finish(const SinkContext& context, std::string_view job_state, const std::shared_ptr<arrow::Schema>& schema,
                       const std::vector<std::string>& writer_states, const Report& report) const override;
  arrow::Status Abandon(const SinkContext& context, std::string_view job_state) const override;

 private:
  std::shared_ptr<Target> target_;
};

}  // namespace headrace::testing
