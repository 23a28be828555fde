#include "headrace/runtime/job_metrics.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/fail_point.h"
#include "headrace/runtime/job_fixture_testing.h"
#include "headrace/runtime/read.h"

namespace headrace::testing {
namespace {

/// Keeps what it was told.
class Seen final : public MetricListener {
 public:
  void OnMetrics(const std::vector<MetricValue>& values, bool last) override {
    std::lock_guard<std::mutex> guard(mutex_);
    EXPECT_FALSE(last_) << "told again after the end";
    ++calls_;
    last_ = last;
    values_ = values;
    for (const MetricValue& value : values) {
      if (value.value > 0) ever_.insert(value.name);
    }
    changed_.notify_all();
  }
  /// Waits (bounded) until each of the names has been told with a value above 0.
  bool WaitFor(const std::set<std::string>& names) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return std::ranges::includes(ever_, names); });
  }
  int64_t Now(const std::string& name) const {
    std::lock_guard<std::mutex> guard(mutex_);
    for (const MetricValue& value : values_) {
      if (value.name == name && value.part.empty()) return value.value;
    }
    return -1;
  }
  std::vector<MetricValue> values() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return values_;
  }
  std::set<std::string> ever() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return ever_;
  }
  bool last() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return last_;
  }
  int calls() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return calls_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<MetricValue> values_;
  std::set<std::string> ever_;  // with a value above 0
  int calls_ = 0;
  bool last_ = false;
};

class JobMetricsTest : public JobFixture {
 protected:
  /// Runs a job that tells `seen_`, with `meanwhile` beside it.
  JobResult RunBeside(JobOptions options, const std::function<void(Job&)>& meanwhile) {
    auto told = environment();
    told.listener = &seen_;
    auto job =
        Job::Make(std::make_shared<ScriptedSource>(script_), std::make_shared<TargetSink>(target_), std::move(options), told).ValueOrDie();
    arrow::Result<JobResult> result = arrow::Status::UnknownError("not run");
    std::thread runner([&] { result = job->Run(); });
    meanwhile(*job);
    runner.join();
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : JobResult{};
  }
  Seen seen_;
};

TEST_F(JobMetricsTest, EachMetricOfAJobIsCountedByOneAndNoOtherIs) {
  clock_.set_auto_advance(true);
  script_->splits = {{0, 600}, {600, 610}, {610, 620}, {620, 630}};
  script_->blocked = {3, 600};
  script_->errors[605] = {Passing()};
  script_->cuttable = true;
  script_->throttled = true;
  script_->batch_bytes = 1000;
  auto options = Checkpointed();
  options.readers = 2;
  options.restart_attempts = 1;
  RunBeside(options, [&](Job&) {
    EXPECT_TRUE(seen_.WaitFor({"unassignedSplits", "stalledSplits", "throttledSplits", "openSplits", "budgetBytes"}));
    script_->Unblock(600);
    EXPECT_TRUE(seen_.WaitFor({"cutsRequested", "splitsReturned", "finishedSplits"}));
    script_->Unblock(3);
  });
  EXPECT_TRUE(seen_.last());
  std::set<std::string> inventory;
  for (const MetricInfo& info : JobMetrics()) inventory.insert(std::string(info.name));
  EXPECT_EQ(seen_.ever(), inventory);
  for (const MetricValue& value : seen_.values()) EXPECT_NE(value.info, nullptr) << value.name << " is in no inventory";
  EXPECT_EQ(target_->SortedRows(), Rows(630));
}

// Back-pressure is no stall: the readers wait for memory that the batches in front of the sink hold.
TEST_F(JobMetricsTest, ASplitThatWaitsForTheSinkIsNotStalled) {
  constexpr int64_t kMiB = 1 << 20;
  script_->splits = {{0, 30}, {30, 60}};
  script_->batch_bytes = kMiB;
  target_->block_writes = true;
  RunBeside({.readers = 2, .writers = 1, .memory_limit = 4 * kMiB}, [&](Job& job) {
    EXPECT_TRUE(target_->WaitForWaiting(1));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    // One reader may have taken all of it before the other has begun.
    const auto ready = [&] { return seen_.Now("budgetBytes") >= 3 * kMiB && job.progress().open_splits == 2; };
    while (!ready() && std::chrono::steady_clock::now() < deadline) {
      clock_.Advance(std::chrono::seconds{1});
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    EXPECT_EQ(seen_.Now("budgetBytes"), 3 * kMiB);
    for (int minute = 0; minute < 5; ++minute) {
      clock_.Advance(std::chrono::minutes{1});
      EXPECT_EQ(job.progress().stalled_splits, 0);
      EXPECT_EQ(job.progress().open_splits, 2);
    }
    target_->Release();
  });
  EXPECT_EQ(target_->SortedRows(), Rows(60));
}

// A split is open or finished, never both, and its cut parts are no more than the whole: what is shown of all of it never runs ahead.
TEST_F(JobMetricsTest, TheFractionIsNeverMoreThanWhatIsDone) {
  script_->splits = {{0, 9}, {10, 19}};
  script_->blocked = {10};
  std::atomic<Job*> running{nullptr};
  std::vector<Progress> seen;
  SetFailPointHandler([&](std::string_view step) {
    if (step == "split.ended" && seen.empty()) seen.push_back(running.load()->progress());
  });
  RunBeside({.readers = 2}, [&](Job& job) {
    running = &job;
    EXPECT_TRUE(script_->WaitForBlocked(1));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (job.progress().finished_splits < 1 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_LE(job.progress().fraction, 0.5);
    script_->Unblock(10);
  });
  SetFailPointHandler(nullptr);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].finished_splits, 1);
  EXPECT_LE(seen[0].open_splits, 1);
  EXPECT_LE(seen[0].fraction, 0.5);
}

// The same wait in Next, but for the source.
TEST_F(JobMetricsTest, ASplitWhoseSourceDoesNotAnswerIsStalledAfterTenSeconds) {
  script_->splits = {{0, 9}, {9, 18}};
  script_->blocked = {6};
  RunBeside({.readers = 2}, [&](Job& job) {
    EXPECT_TRUE(script_->WaitForBlocked(1));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    // The second reader may not have begun yet.
    const auto one_left = [&] { return job.progress().finished_splits == 1 && job.progress().open_splits == 1; };
    while (!one_left() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    clock_.Advance(std::chrono::milliseconds{9'999});
    EXPECT_EQ(job.progress().stalled_splits, 0);
    clock_.Advance(std::chrono::milliseconds{1});
    EXPECT_EQ(job.progress().stalled_splits, 1);
    EXPECT_EQ(job.progress().open_splits, 1);
    script_->Unblock(6);
  });
}

TEST_F(JobMetricsTest, TheListenerIsToldAtEveryIntervalAndAtTheEnd) {
  script_->splits = {{0, 9}};
  script_->blocked = {6};
  auto result = RunBeside({}, [&](Job&) {
    EXPECT_TRUE(script_->WaitForBlocked(1));
    EXPECT_EQ(seen_.calls(), 0);
    for (int calls = 1; calls <= 3; ++calls) {
      // The thread that tells may not have begun to wait when the clock moves.
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
      while (seen_.calls() < calls && std::chrono::steady_clock::now() < deadline) {
        clock_.Advance(std::chrono::seconds{1});
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
      }
      EXPECT_GE(seen_.calls(), calls);
    }
    EXPECT_EQ(seen_.Now("rowsEnqueued"), 6);
    EXPECT_EQ(seen_.Now("openSplits"), 1);
    EXPECT_FALSE(seen_.last());
    script_->Unblock(6);
  });
  EXPECT_GE(seen_.calls(), 4);
  EXPECT_TRUE(seen_.last());
  EXPECT_EQ(seen_.Now("rowsEnqueued"), 9);
  EXPECT_EQ(seen_.Now("openSplits"), 0);
  EXPECT_EQ(seen_.Now("finishedSplits"), 1);
  EXPECT_EQ(result.report.counters.at("splitsAssigned"), 1);
  EXPECT_EQ(result.report.counters.at("cutsRequested"), 0) << "what never happened is reported too";
  EXPECT_FALSE(result.report.counters.contains("openSplits")) << "a report has no gauges";
}

TEST_F(JobMetricsTest, ARegistryOfTheCallersIsCountedInAndOutlivesTheJob) {
  script_->splits = {{0, 9}};
  MetricRegistry registry;
  auto lent = environment();
  lent.metrics = &registry;
  {
    auto job = Job::Make(std::make_shared<ScriptedSource>(script_), std::make_shared<TargetSink>(target_), {}, lent).ValueOrDie();
    EXPECT_EQ(registry.Snapshot().at("splitsAssigned"), 0);
    ASSERT_TRUE(job->Run().ok());
    job->progress();
  }
  EXPECT_EQ(registry.Snapshot().at("splitsAssigned"), 1);
  EXPECT_EQ(registry.Snapshot().at("rowsEnqueued"), 9);
  EXPECT_EQ(registry.Snapshot().at("budgetBytes"), 0);
}

}  // namespace
}  // namespace headrace::testing
