// The local engine without failures of its process: rows, options, limits, stops, the report. What survives a crash is in
// job_restore_test.cc.
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/runtime/internal/job_options.h"
#include "headrace/runtime/job_fixture_testing.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;

class JobTest : public JobFixture {};

TEST_F(JobTest, EveryNumberOfReadersAndWritersMovesEachRowOnce) {
  struct Case {
    int readers, writers;
    bool checkpointed;
  };
  for (auto test : {Case{1, 1, false}, {1, 3, false}, {4, 1, true}, {3, 2, true}, {8, 8, false}, {0, 0, true}}) {
    SCOPED_TRACE(::testing::Message() << test.readers << " x " << test.writers);
    script_ = std::make_shared<SourceScript>();
    target_ = std::make_shared<Target>();
    for (int64_t i = 0; i < 8; ++i) script_->splits.push_back({i * 25, (i + 1) * 25});
    JobOptions options{.readers = test.readers, .writers = test.writers};
    if (test.checkpointed) options.checkpoint = "/c" + std::to_string(test.readers);
    auto result = Run(options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->end, JobEnd::kDone);
    EXPECT_EQ(target_->SortedRows(), Rows(200));
    EXPECT_EQ(target_->finishes, 1);
    const auto& report = result->report;
    EXPECT_EQ(report.rows_read, 200);
    EXPECT_EQ(report.records_in, 200);
    EXPECT_EQ(report.rows_written, 200);
    EXPECT_EQ(report.bytes_read, 2000);
    EXPECT_EQ(report.bytes_written, 1600);
    EXPECT_EQ(report.splits, 8);
    EXPECT_EQ(report.checkpoints > 0, test.checkpointed);
    EXPECT_EQ(report.counters.at("splitsAssigned"), 8);
    EXPECT_EQ(report.facts.at("session"), "fake");
    EXPECT_EQ(report.facts.at("target"), "memory");
    EXPECT_GT(report.peak_resident_bytes, 1 << 20);
    EXPECT_EQ(script_->most_open_readers <= (test.readers == 0 ? 16 : test.readers), true);
  }
}

TEST_F(JobTest, ASplitsBatchesKeepTheirOrderInOneWriter) {
  script_->splits = {{0, 100}, {100, 200}};
  ASSERT_TRUE(Run({.readers = 2, .writers = 2}).ok());
  for (const auto& [name, rows] : target_->visible) EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end())) << name;
}

TEST_F(JobTest, OrderedKeepsTheOrderOfAllRowsThroughFailuresAndCuts) {
  script_->splits = {{0, 10}, {10, 20}, {20, 30}};
  script_->errors[13] = {Passing()};
  script_->cuts[14] = 17;
  clock_.set_auto_advance(true);
  auto options = Checkpointed();
  options.ordered = true;
  options.restart_attempts = 1;
  auto result = Run(options);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<int64_t> rows;
  for (const auto& [name, part] : target_->visible) rows.insert(rows.end(), part.begin(), part.end());
  EXPECT_EQ(rows, Rows(30));
  EXPECT_EQ(result->report.restarts, 1);
  EXPECT_EQ(result->report.cuts, 1);
}

TEST_F(JobTest, OptionsThatDoNotApplyAreRefusedByName) {
  struct Case {
    const char* option;
    JobOptions options;
  };
  for (const auto& test : std::vector<Case>{
           {"readers", {.readers = -1}},
           {"readers", {.readers = 1001}},
           {"writers", {.writers = -1}},
           {"writers", {.writers = 5}},  // more than the sink takes
           {"memory_limit", {.memory_limit = 1000}},
           {"checkpoint_interval", {.checkpoint = "/c", .checkpoint_interval = std::chrono::milliseconds{0}}},
           {"restart_attempts", {.restart_attempts = -1}},
           {"restart_attempts", {.restart_attempts = 1}},  // without a checkpoint directory
           {"restart_delay", {.checkpoint = "/c", .restart_delay = std::chrono::milliseconds{-1}}},
           {"max_rows_per_second", {.max_rows_per_second = -1}},
           {"max_bytes_per_second", {.max_bytes_per_second = std::nan("")}},
           {"readers", {.readers = 2, .ordered = true}},
           {"writers", {.writers = 2, .ordered = true}},
       }) {
    target_->max_writers = 4;
    auto job = Make(test.options);
    ASSERT_FALSE(job.ok()) << test.option;
    ASSERT_NE(GetErrorInfo(job.status()), nullptr);
    EXPECT_EQ(GetErrorInfo(job.status())->resource, test.option) << job.status();
    EXPECT_EQ(CodeOf(job.status()), Code::kInvalidArgument);
  }
}

TEST_F(JobTest, ARefusedNumberOfThreadsSaysWhatZeroIs) {
  EXPECT_THAT(Make({.readers = -1}).status().message(), HasSubstr("give 0 (2 per core, at most 16) to 1000"));  // as job.h says
  EXPECT_THAT(Make({.writers = -1}).status().message(), HasSubstr("give 0 (one per core, no more than readers) to 1000"));
}

TEST_F(JobTest, AContinuousJobNeedsACheckpointDirectory) {
  script_->boundedness = Boundedness::kContinuous;
  auto job = Make({});
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(GetErrorInfo(job.status())->resource, "checkpoint");
}

TEST_F(JobTest, ASinkWithoutCheckpointsAndAFailedCheckAreAnsweredByMake) {
  target_->supports_checkpoints = Unsupported("single file", "a single file cannot be continued");
  EXPECT_THAT(Make(Checkpointed()).status().message(), HasSubstr("cannot be continued"));
  EXPECT_TRUE(Make({}).ok());
  target_->check_error = Lasting("the target may not be written");
  EXPECT_THAT(Make({}).status().message(), HasSubstr("may not be written"));
  EXPECT_EQ(script_->plans, 0);
}

TEST_F(JobTest, DefaultsOfReadersAndWriters) {
  struct Case {
    JobOptions options;
    int64_t splits;
    int max_writers, cores, readers, writers;
    bool warns;
    bool shared = false;
  };
  for (const auto& test : std::vector<Case>{
           {{}, 100, 0, 2, 4, 2, false},
           {{}, 100, 0, 32, 16, 16, false},
           {{}, 3, 0, 8, 3, 3, false},
           {{}, 100, 1, 8, 16, 1, false},
           {{}, 0, 0, 8, 0, 1, false},
           {{.readers = 8}, 3, 0, 8, 3, 3, true},
           {{.readers = 8, .writers = 5}, 100, 0, 2, 8, 5, false},
           {{.ordered = true}, 100, 0, 8, 1, 1, false},
           {{.readers = 8}, 3, 0, 2, 8, 2, false, true},  // splits that may be cut are work for all
           {{}, 1, 0, 2, 4, 2, false, true},
           {{.readers = 8}, 0, 0, 2, 0, 1, false, true},
       }) {
    auto chosen = ChooseParallelism(test.options, test.splits, Boundedness::kBounded, test.shared, test.max_writers, test.cores);
    EXPECT_EQ(chosen.readers, test.readers);
    EXPECT_EQ(chosen.writers, test.writers);
    EXPECT_EQ(!chosen.warning.empty(), test.warns);
  }
  EXPECT_EQ(ChooseParallelism({.readers = 8}, 1, Boundedness::kContinuous, false, 0, 8).readers, 8) << "more splits may come";
}

TEST_F(JobTest, FewerSplitsThanReadersIsAWarningOfTheReport) {
  script_->splits = {{0, 3}};
  auto result = Run({.readers = 4});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->report.warnings.size(), 1U);
  EXPECT_THAT(result->report.warnings[0], HasSubstr("only 1 splits"));
}

TEST_F(JobTest, NoSplitAtAllStillPreparesAndFinishesAndWarnsWhenRowsWereEstimated) {
  for (int64_t estimated : {-1, 0, 500}) {
    script_->estimated_rows = estimated;
    target_ = std::make_shared<Target>();
    auto result = Run({});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(target_->prepares, 1);
    EXPECT_EQ(target_->finishes, 1);
    EXPECT_EQ(result->report.warnings.size(), estimated > 0 ? 1U : 0U);
  }
}

TEST_F(JobTest, TheWritersShareAQuarterOfTheMemoryAndTheRestIsOneBudget) {
  script_->splits = {{0, 30}, {30, 60}};
  script_->batch_bytes = 600'000;
  ASSERT_TRUE(Run({.readers = 2, .writers = 2, .memory_limit = 1 << 20}).ok());
  EXPECT_EQ(target_->writer_memory, (std::vector<int64_t>{1 << 17, 1 << 17}));
}

TEST_F(JobTest, ABatchLeavesTheBudgetWhenItIsWritten) {
  // Twenty batches of more than half of the budget each: the job ends only if each is given back.
  script_->splits = {{0, 60}};
  script_->batch_bytes = 500'000;
  auto result = Run({.memory_limit = 1 << 20});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->report.peak_budget_bytes, 500'000);
  EXPECT_LE(result->report.peak_budget_bytes, 1'000'000);
}

TEST_F(JobTest, ARateIsKeptByTheClockAndAStopEndsALongWait) {
  script_->splits = {{0, 30}};
  clock_.set_auto_advance(true);
  auto result = Run({.max_rows_per_second = 3});
  ASSERT_TRUE(result.ok());
  EXPECT_GE(result->report.seconds, 9.0);  // the last batch is not waited for
  result = Run({.max_bytes_per_second = 24});
  ASSERT_TRUE(result.ok());
  EXPECT_GE(result->report.seconds, 9.0);

  clock_.set_auto_advance(false);
  auto job = Make({.max_rows_per_second = 0.001}).ValueOrDie();
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  while (job->progress().rows == 0) std::this_thread::yield();
  job->StopNow();
  ASSERT_EQ(running.wait_for(std::chrono::seconds{10}), std::future_status::ready);
  EXPECT_EQ(CodeOf(running.get().status()), Code::kCancelled);
}

TEST_F(JobTest, RejectedRowsAreCountedAndRowsThatNobodyCountsFailTheJob) {
  script_->splits = {{0, 20}};
  target_->rejected_rows = {3, 7};
  auto result = Run({});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->report.rows_rejected, 2);
  EXPECT_EQ(result->report.rows_written, 18);
  target_->lose_count = 1;
  auto failed = Run({});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(CodeOf(failed.status()), Code::kInternal);
  EXPECT_EQ(GetErrorInfo(failed.status())->reason, "ROWS_UNACCOUNTED");
}

TEST_F(JobTest, WithoutCheckpointsNothingIsVisibleBeforeTheEndAndAnErrorAbandons) {
  script_->splits = {{0, 10}, {10, 20}};
  script_->errors[13] = {Lasting("no permission")};
  auto result = Run({.readers = 1});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("split s1: no permission"));
  EXPECT_EQ(CodeOf(result.status()), Code::kPermissionDenied);
  EXPECT_TRUE(target_->abandoned);
  EXPECT_EQ(target_->commit_calls, 0);
}

TEST_F(JobTest, AFailedCommitWithoutCheckpointsSaysThatARerunMayDouble) {
  script_->splits = {{0, 10}};
  target_->commit_answers = {{CommitOutcome::kCommitted, {}}, {CommitOutcome::kFailed, Lasting("quota")}};
  target_->abandon_error = arrow::Status::IOError("cannot clean");
  auto result = Run({});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("may double"));
  EXPECT_THAT(result.status().message(), HasSubstr("quota"));
  EXPECT_THAT(result.status().message(), HasSubstr("cannot clean"));
}

TEST_F(JobTest, CommitsAreTriedAgainWithinALimit) {
  script_->splits = {{0, 10}};
  clock_.set_auto_advance(true);
  target_->commit_answers = {
      {CommitOutcome::kRetryLater, Passing()}, {CommitOutcome::kCommitted, {}}, {CommitOutcome::kRetryLater, Passing()}};
  auto result = Run({});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(target_->SortedRows(), Rows(10));
  EXPECT_EQ(target_->commit_calls, 4);
  EXPECT_GE(result->report.seconds, 1.5);  // half a second, then one

  target_->commit_answers.assign(100, {CommitOutcome::kRetryLater, Passing("busy")});
  auto failed = Run({});
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.status().message(), HasSubstr("given up after 8 attempts"));
  EXPECT_THAT(failed.status().message(), HasSubstr("busy"));
}

TEST_F(JobTest, TheFirstErrorStopsReadersThatWait) {
  script_->splits = {{0, 10}, {10, 20}, {20, 30}};
  script_->blocked = {10, 25};
  script_->errors[6] = {Lasting()};
  auto running = std::async(std::launch::async, [&] { return Run({.readers = 3}); });
  ASSERT_EQ(running.wait_for(std::chrono::seconds{10}), std::future_status::ready);
  EXPECT_EQ(CodeOf(running.get().status()), Code::kPermissionDenied);
  EXPECT_EQ(script_->open_readers, 0);
}

TEST_F(JobTest, AFailingWriterStopsReadersAndIsAborted) {
  script_->splits = {{0, 3000}};
  script_->batch_bytes = 300'000;
  target_->write_errors[30] = {Lasting("full")};
  auto result = Run({.memory_limit = 1 << 20});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("writer 0: full"));
  EXPECT_EQ(target_->aborts, 1);
}

// Whoever reads a pipe may never go on.
TEST_F(JobTest, AStopAtOnceAndAFailureEndAWriteThatWaits) {
  for (const bool fails : {false, true}) {
    script_->splits = {{0, 10}};
    target_->block_writes = true;
    if (fails) script_->blocked = {6}, script_->errors[6] = {Lasting()};
    auto job = Make({.readers = 1}).ValueOrDie();
    auto running = std::async(std::launch::async, [&] { return job->Run(); });
    ASSERT_TRUE(target_->WaitForWaiting(1));
    fails ? script_->Unblock(6) : job->StopNow();
    ASSERT_EQ(running.wait_for(std::chrono::seconds{10}), std::future_status::ready);
    EXPECT_EQ(CodeOf(running.get().status()), fails ? Code::kPermissionDenied : Code::kCancelled);
  }
}

TEST_F(JobTest, AFailureStaysTheResultThoughAStopComesAfterIt) {
  script_->splits = {{0, 10}, {10, 20}};
  script_->blocked = {6, 13};
  script_->errors[6] = {Lasting()};
  target_->block_writes = target_->ignore_cancel = true;
  auto job = Make({.readers = 2, .writers = 1}).ValueOrDie();
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  ASSERT_TRUE(target_->WaitForWaiting(1));
  ASSERT_TRUE(script_->WaitForBlocked(2));
  script_->Unblock(6);
  {
    std::unique_lock<std::mutex> lock(script_->mutex);
    ASSERT_TRUE(script_->changed.wait_for(lock, std::chrono::seconds{10}, [&] { return script_->open_readers == 0; }))
        << "the failure of one stops the other";
  }
  job->StopNow();
  target_->Release();
  EXPECT_EQ(CodeOf(running.get().status()), Code::kPermissionDenied);
}

TEST_F(JobTest, AStopAtOnceEndsPlanningReadingAndCommitting) {
  script_->splits = {{0, 10}};
  script_->block_start = true;
  auto job = Make({}).ValueOrDie();
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  {
    std::unique_lock<std::mutex> lock(script_->mutex);
    ASSERT_TRUE(script_->changed.wait_for(lock, std::chrono::seconds{10}, [&] { return script_->starting == 1; }));
  }
  job->StopAtCheckpoint();  // without a checkpoint directory: at once
  auto result = running.get();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(GetErrorInfo(result.status())->reason, "STOPPED");
  EXPECT_EQ(target_->prepares, 0);

  script_->block_start = false;
  target_->commit_answers.assign(100, {CommitOutcome::kRetryLater, Passing()});
  job = Make({}).ValueOrDie();
  running = std::async(std::launch::async, [&] { return job->Run(); });
  while (true) {
    std::lock_guard<std::mutex> guard(target_->mutex);
    if (target_->commit_calls > 0) break;
  }
  job->StopNow();
  EXPECT_EQ(CodeOf(running.get().status()), Code::kCancelled);
}

TEST_F(JobTest, ProgressNeverGoesBackAndShowsStalledAndThrottledSplits) {
  script_->splits = {{0, 10}, {10, 20}};
  script_->blocked = {5, 15};
  script_->batch_rows = 1;
  script_->throttled = true;
  script_->estimated_rows = 20;
  auto job = Make({.readers = 2}).ValueOrDie();
  EXPECT_EQ(job->progress().rows, 0);
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  ASSERT_TRUE(script_->WaitForBlocked(2));
  auto progress = job->progress();
  EXPECT_EQ(progress.rows, 10);
  EXPECT_EQ(progress.open_splits, 2);
  EXPECT_EQ(progress.throttled_splits, 2);
  EXPECT_EQ(progress.stalled_splits, 0);
  EXPECT_EQ(progress.estimated_rows, 20);
  EXPECT_DOUBLE_EQ(progress.fraction, 0.5);
  clock_.Advance(std::chrono::seconds{10});
  EXPECT_EQ(job->progress().stalled_splits, 2);
  EXPECT_DOUBLE_EQ(job->progress().seconds, 10);
  script_->Unblock(5);
  script_->Unblock(15);
  ASSERT_TRUE(running.get().ok());
  EXPECT_DOUBLE_EQ(job->progress().fraction, 1);
  EXPECT_EQ(job->progress().finished_splits, 2);
}

TEST_F(JobTest, ACutIsAppliedAndItsFarPartIsReadByAnIdleReader) {
  script_->splits = {{0, 40}, {40, 41}};
  script_->cuts[10] = 20;
  auto result = Run({.readers = 2});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(target_->SortedRows(), Rows(41));
  EXPECT_EQ(result->report.cuts, 1);
  EXPECT_EQ(result->report.splits, 3);
  EXPECT_EQ(result->report.counters.at("splitsCut"), 1);
}

TEST_F(JobTest, AJobRunsOnce) {
  auto job = Make({}).ValueOrDie();
  ASSERT_TRUE(job->Run().ok());
  EXPECT_FALSE(job->Run().ok());
}

}  // namespace
}  // namespace headrace::testing
