#include "headrace/runtime/fake_sink_testing.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/fail_point.h"
#include "headrace/runtime/fake_source_testing.h"

namespace headrace::testing {
namespace {

arrow::Status Dead() { return arrow::Status::IOError("the process is dead"); }

class TargetWriter final : public SinkWriter {
 public:
  TargetWriter(std::shared_ptr<Target> target, std::string prefix) : target_(std::move(target)), prefix_(std::move(prefix)) {}

  arrow::Status Write(const Batch& batch) override {
    std::unique_lock<std::mutex> lock(target_->mutex);
    if (target_->block_writes) {
      ++target_->waiting;
      target_->changed.notify_all();
      target_->changed.wait_for(lock, std::chrono::seconds{20}, [&] { return !target_->block_writes || cancelled_; });
      --target_->waiting;
    }
    if (cancelled_) return arrow::Status::Cancelled("the writer was cancelled");
    for (auto row : RowsOf(*batch.rows)) {
      if (auto error = target_->write_errors.find(row); error != target_->write_errors.end() && !error->second.empty()) {
        auto status = error->second.front();
        error->second.pop_front();
        return status;
      }
      if (target_->rejected_rows.contains(row)) {
        ++rejected_;
      } else {
        rows_.push_back(row);
        ++written_;
      }
    }
    return arrow::Status::OK();
  }
  arrow::Status Flush() override { return arrow::Status::OK(); }
  arrow::Result<std::vector<Committable>> PrepareCommit() override {
    if (rows_.empty()) return std::vector<Committable>{};
    // Two committables, so that a process can die between them.
    std::lock_guard<std::mutex> guard(target_->mutex);
    if (target_->dead) return Dead();
    std::vector<Committable> names;
    auto middle = rows_.begin() + static_cast<std::ptrdiff_t>((rows_.size() + 1) / 2);
    for (auto part : {std::vector<int64_t>(rows_.begin(), middle), std::vector<int64_t>(middle, rows_.end())}) {
      if (part.empty()) continue;
      names.push_back(fmt::format("{}-{:03}", prefix_, next_++));
      target_->staged[names.back()] = std::move(part);
    }
    rows_.clear();
    return names;
  }
  arrow::Result<std::string> Snapshot(uint64_t checkpoint) override { return fmt::format("{}@{}", prefix_, checkpoint); }
  int64_t rejected() const override { return rejected_; }
  int64_t written() const override { return written_ - target_->lose_count; }
  int64_t bytes_written() const override { return written_ * 8; }
  void Abort() override {
    std::lock_guard<std::mutex> guard(target_->mutex);
    ++target_->aborts;
    target_->changed.notify_all();
  }
  void Cancel() override {
    std::lock_guard<std::mutex> guard(target_->mutex);
    cancelled_ = !target_->ignore_cancel;
    target_->changed.notify_all();
  }

 private:
  std::shared_ptr<Target> target_;
  std::string prefix_;
  std::vector<int64_t> rows_;
  int next_ = 0;
  int64_t written_ = 0;
  int64_t rejected_ = 0;
  bool cancelled_ = false;  // under the target's mutex
};

class TargetCommitter final : public Committer {
 public:
  explicit TargetCommitter(std::shared_ptr<Target> target) : target_(std::move(target)) {}
  std::vector<CommitResult> Commit(const std::vector<Committable>& committables) override {
    std::vector<CommitResult> results;
    for (const auto& name : committables) {
      results.push_back(CommitOne(name));
      if (results.back().outcome == CommitOutcome::kCommitted) FailPoint("commit.item");
    }
    return results;
  }

 private:
  CommitResult CommitOne(const std::string& name) {
    std::unique_lock<std::mutex> lock(target_->mutex);
    ++target_->commit_calls;
    if (target_->block_commits) {
      ++target_->waiting;
      target_->changed.notify_all();
      target_->changed.wait_for(lock, std::chrono::seconds{20}, [&] { return !target_->block_commits; });
      --target_->waiting;
    }
    if (target_->dead) return {CommitOutcome::kFailed, Dead()};
    if (!target_->commit_answers.empty()) {
      auto answer = target_->commit_answers.front();
      target_->commit_answers.pop_front();
      if (answer.outcome != CommitOutcome::kCommitted) return answer;
    }
    if (target_->visible.contains(name)) return {CommitOutcome::kAlready};
    auto staged = target_->staged.find(name);
    if (staged == target_->staged.end()) return {CommitOutcome::kFailed, arrow::Status::KeyError(name, " is not staged")};
    target_->visible[name] = std::move(staged->second);
    target_->staged.erase(staged);
    ++target_->commits;
    return {CommitOutcome::kCommitted};
  }

  std::shared_ptr<Target> target_;
};

}  // namespace

std::vector<int64_t> Target::SortedRows() {
  std::lock_guard<std::mutex> guard(mutex);
  std::vector<int64_t> rows;
  for (const auto& [name, part] : visible) rows.insert(rows.end(), part.begin(), part.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

bool Target::WaitForWaiting(int n) {
  std::unique_lock<std::mutex> lock(mutex);
  return changed.wait_for(lock, std::chrono::seconds{20}, [&] { return waiting >= n; });
}

void Target::Release() {
  std::lock_guard<std::mutex> guard(mutex);
  block_writes = block_commits = false;
  changed.notify_all();
}

arrow::Status TargetSink::Check(const SinkContext&) const { return target_->check_error; }

arrow::Result<std::string> TargetSink::Prepare(const SinkContext& context, const std::shared_ptr<arrow::Schema>&) const {
  std::lock_guard<std::mutex> guard(target_->mutex);
  if (target_->dead) return Dead();
  ++target_->prepares;
  target_->run_ids.insert(context.run_id);
  ARROW_RETURN_NOT_OK(target_->prepare_error);
  return std::string("prepared");
}

arrow::Result<std::unique_ptr<SinkWriter>> TargetSink::CreateWriter(const SinkContext& context, std::string_view,
                                                                    const std::shared_ptr<arrow::Schema>&) const {
  std::lock_guard<std::mutex> guard(target_->mutex);
  target_->writer_memory.push_back(context.writer_memory);
  target_->first_checkpoints.push_back(context.first_checkpoint);
  return std::make_unique<TargetWriter>(target_,
                                        fmt::format("{}-{}-{:03}", context.run_id, context.writer_index, context.first_checkpoint));
}

arrow::Result<std::unique_ptr<SinkWriter>> TargetSink::RestoreWriter(const SinkContext& context, std::string_view job_state,
                                                                     const std::shared_ptr<arrow::Schema>& schema,
                                                                     const std::vector<std::string>& states) const {
  {
    std::lock_guard<std::mutex> guard(target_->mutex);
    target_->restored_states.push_back(states.size());
  }
  return CreateWriter(context, job_state, schema);
}

arrow::Result<std::unique_ptr<Committer>> TargetSink::CreateCommitter(const SinkContext&, std::string_view) const {
  return std::make_unique<TargetCommitter>(target_);
}

arrow::Status TargetSink::RemoveOrphans(const SinkContext&, std::string_view, const std::vector<std::string>&) const {
  std::lock_guard<std::mutex> guard(target_->mutex);
  if (target_->dead) return Dead();
  ++target_->orphan_sweeps;
  target_->staged.clear();
  return arrow::Status::OK();
}

arrow::Status TargetSink::Finish(const SinkContext&, std::string_view, const std::shared_ptr<arrow::Schema>& schema,
                                 const std::vector<std::string>&, const Report& report) const {
  std::lock_guard<std::mutex> guard(target_->mutex);
  if (target_->dead) return Dead();
  ARROW_RETURN_NOT_OK(target_->finish_error);
  if (schema == nullptr) return arrow::Status::Invalid("no schema");
  ++target_->finishes;
  target_->finished_report = report;
  return arrow::Status::OK();
}

arrow::Status TargetSink::Abandon(const SinkContext&, std::string_view) const {
  std::lock_guard<std::mutex> guard(target_->mutex);
  target_->abandoned = true;
  target_->staged.clear();
  target_->visible.clear();
  return target_->abandon_error;
}

}  // namespace headrace::testing
