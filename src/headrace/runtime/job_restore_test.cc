// What a job does about the death of its process, full disks, stops and its restart policy. The process dies in play: at a named step
// nothing outside of it changes any more (files, target), the job is thrown away, and another one is restored from what is there. The same
// with a real SIGKILL is tested on the command line.
#include <atomic>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/fail_point.h"
#include "headrace/runtime/checkpoint_store.h"
#include "headrace/runtime/job_fixture_testing.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr int64_t kRows = 60;

class JobRestoreTest : public JobFixture {
 protected:
  ~JobRestoreTest() override { SetFailPointHandler(nullptr); }

  void Fresh() {
    script_ = std::make_shared<SourceScript>();
    script_->splits = {{0, 20}, {20, 40}, {40, kRows}};
    target_ = std::make_shared<Target>();
    clock_.set_auto_advance(true);
  }
  /// Slowed by the clock so that several checkpoints fall between the rows.
  static JobOptions Slow(std::string directory, int readers, int writers) {
    return {.job_name = "test",
            .readers = readers,
            .writers = writers,
            .checkpoint = std::move(directory),
            .checkpoint_interval = 4s,
            .max_rows_per_second = 3};
  }
  void DieAt(std::string_view step, int pass) {
    auto left = std::make_shared<std::atomic<int>>(pass);
    SetFailPointHandler([this, step, left](std::string_view name) {
      if (name != step || left->fetch_sub(1) != 1) return;
      files_.Die();
      std::lock_guard<std::mutex> guard(target_->mutex);
      target_->dead = true;
    });
  }
  void Revive(bool power_lost) {
    SetFailPointHandler(nullptr);
    files_.Revive(power_lost);
    std::lock_guard<std::mutex> guard(target_->mutex);
    target_->dead = false;
  }
  /// What a user does after a crash: resume, or start again when nothing was persisted yet.
  arrow::Result<JobResult> ResumeOrStart(const JobOptions& options) {
    auto resumed = Resume(options);
    if (!resumed.ok() && CodeOf(resumed.status()) == Code::kNotFound) return Run(options);
    return resumed;
  }
};

TEST_F(JobRestoreTest, DeadAtAnyStepNoRowIsLostOrDoubled) {
  int deaths = 0;
  int directory = 0;
  for (std::string_view step : kFailPoints) {
    if (step.starts_with("file.") || step == "finish.manifest_written") continue;  // steps of the files sink
    bool once = step.starts_with("job.") || step.starts_with("finish.");
    bool reached = false;
    for (int pass = 1; pass <= (once ? 1 : 4); ++pass) {
      for (bool power_lost : {false, true}) {
        SCOPED_TRACE(::testing::Message() << step << " pass " << pass << (power_lost ? ", power lost" : ""));
        Fresh();
        auto options = Slow("/c" + std::to_string(++directory), 3, 2);
        DieAt(step, pass);
        auto first = Run(options);
        bool died = target_->dead;
        Revive(power_lost);
        if (!died) {
          ASSERT_TRUE(first.ok()) << first.status();
          continue;
        }
        reached = true;
        ++deaths;
        auto again = Slow(options.checkpoint, 1 + pass % 2, 1 + pass % 3);
        auto result = ResumeOrStart(again);
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_EQ(result->end, JobEnd::kDone);
        EXPECT_EQ(target_->SortedRows(), Rows(kRows));
        EXPECT_TRUE(target_->staged.empty()) << "orphans";
        EXPECT_GE(target_->finishes, 1);
        EXPECT_EQ(result->report.rows_read, kRows);
        EXPECT_EQ(result->report.rows_written, kRows);
        // A plan that no checkpoint holds yet is made again.
        bool planned_twice = step.starts_with("job.") || (step.starts_with("checkpoint.") && pass <= 2);
        EXPECT_LE(script_->plans, planned_twice ? 2 : 1);
        ASSERT_TRUE(ReadPersistedJob(&files_, options.checkpoint).ok());
        EXPECT_TRUE(ReadPersistedJob(&files_, options.checkpoint)->finished);
      }
    }
    EXPECT_TRUE(reached) << step;
  }
  EXPECT_GT(deaths, 40);
}

TEST_F(JobRestoreTest, DeadAgainAndAgainDuringRestores) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Fresh();
    SeededRandom dice(seed);
    auto directory = "/again" + std::to_string(seed);
    bool done = false;
    for (int life = 0; life < 50 && !done; ++life) {
      auto left = std::make_shared<std::atomic<int>>(static_cast<int>(dice.Next() % 12) + 1);
      if (life < 8) {
        SetFailPointHandler([this, left](std::string_view) {
          if (left->fetch_sub(1) != 1) return;
          files_.Die();
          std::lock_guard<std::mutex> guard(target_->mutex);
          target_->dead = true;
        });
      }
      auto result = ResumeOrStart(Slow(directory, 1 + static_cast<int>(dice.Next() % 3), 1 + static_cast<int>(dice.Next() % 3)));
      bool died = target_->dead;
      Revive(dice.Next() % 2 == 0);
      ASSERT_TRUE(died || result.ok()) << result.status();
      done = !died;
    }
    ASSERT_TRUE(done);
    EXPECT_EQ(target_->SortedRows(), Rows(kRows));
    EXPECT_TRUE(target_->staged.empty());
  }
}

TEST_F(JobRestoreTest, AFullDiskIsAnErrorAndTheJobCanBeResumed) {
  bool full = true;
  for (int write = 1; full; ++write) {
    ASSERT_LT(write, 100);
    SCOPED_TRACE(write);
    Fresh();
    auto options = Slow("/full" + std::to_string(write), 2, 2);
    files_.FillDiskAtWrite(write);
    auto first = Run(options);
    full = !first.ok();
    files_.FillDiskAtWrite(0);
    if (full) {
      EXPECT_EQ(GetErrorInfo(first.status())->reason, "DISK_FULL") << first.status();
      auto result = ResumeOrStart(options);
      ASSERT_TRUE(result.ok()) << result.status();
    }
    EXPECT_EQ(target_->SortedRows(), Rows(kRows));
    EXPECT_TRUE(target_->staged.empty());
  }
}

TEST_F(JobRestoreTest, AStopAtACheckpointIsResumedNotRestarted) {
  script_->splits = {{0, 10}, {10, 20}};
  script_->blocked = {6, 13};
  auto job = Make({.readers = 2, .writers = 2, .checkpoint = kDirectory}).ValueOrDie();
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  ASSERT_TRUE(script_->WaitForBlocked(2));
  job->StopAtCheckpoint();
  auto stopped = running.get();
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(stopped->end, JobEnd::kStoppedAtCheckpoint);
  EXPECT_EQ(stopped->report.rows_written, 9);
  EXPECT_EQ(target_->SortedRows().size(), 9U) << "the last checkpoint is committed before the job ends";
  EXPECT_FALSE(ReadPersistedJob(&files_, kDirectory)->finished);
  job.reset();
  script_->blocked.clear();
  auto result = Resume({.readers = 1, .writers = 1, .checkpoint = kDirectory});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(target_->SortedRows(), Rows(20));
  EXPECT_EQ(script_->plans, 1);
  EXPECT_EQ(script_->rows_sent, 20) << "a row before the checkpoint was sent again";
  EXPECT_TRUE(result->report.resumed);
  EXPECT_EQ(result->report.rows_read, 20);
  EXPECT_EQ(result->report.bytes_written, 160);
  EXPECT_THAT(target_->restored_states, ElementsAre(2U));  // two writers' states for one
  EXPECT_EQ(target_->orphan_sweeps, 1);
}

TEST_F(JobRestoreTest, AnOrderedJobKeepsItsOrderThroughAStop) {
  script_->splits = {{0, 10}, {10, 20}};
  script_->blocked = {6};
  auto job = Make({.checkpoint = kDirectory, .ordered = true}).ValueOrDie();
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  ASSERT_TRUE(script_->WaitForBlocked(1));
  job->StopAtCheckpoint();
  ASSERT_TRUE(running.get().ok());
  job.reset();
  script_->blocked.clear();
  ASSERT_TRUE(Resume({.checkpoint = kDirectory, .ordered = true}).ok());
  std::vector<int64_t> rows;
  for (const auto& [name, part] : target_->visible) rows.insert(rows.end(), part.begin(), part.end());
  EXPECT_EQ(rows, Rows(20));
}

TEST_F(JobRestoreTest, AStopDuringPlanningKeepsCheckpointZero) {
  script_->splits = {{0, 10}};
  script_->block_start = true;
  auto job = Make(Checkpointed()).ValueOrDie();
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  {
    std::unique_lock<std::mutex> lock(script_->mutex);
    ASSERT_TRUE(script_->changed.wait_for(lock, 10s, [&] { return script_->starting == 1; }));
  }
  job->StopAtCheckpoint();
  auto stopped = running.get();
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(stopped->end, JobEnd::kStoppedAtCheckpoint);
  job.reset();
  script_->block_start = false;
  ASSERT_TRUE(Resume(Checkpointed()).ok());
  EXPECT_EQ(target_->SortedRows(), Rows(10));
}

TEST_F(JobRestoreTest, AJobThatFailedBeforeItPlannedLeavesTheDirectoryFree) {
  script_->splits = {{0, 10}};
  script_->start_error = Lasting("no such table");
  EXPECT_THAT(Run(Checkpointed()).status().message(), HasSubstr("planning: no such table"));
  script_->start_error = Passing();
  EXPECT_FALSE(Run(Checkpointed()).ok()) << "a second new job in the same directory starts, and fails of what the source says";
  script_->start_error = arrow::Status::OK();
  EXPECT_EQ(CodeOf(Run(Checkpointed()).status()), Code::kAlreadyExists) << "what may pass is resumed";
  EXPECT_TRUE(Resume(Checkpointed()).ok());
}

// Its name may be wrong, and the corrected command is to use the same directory.
TEST_F(JobRestoreTest, AServiceThatWasNeverReachedLeavesTheDirectoryFree) {
  script_->splits = {{0, 10}};
  script_->start_error = MakeError({.code = Code::kUnavailable, .reason = "UNREACHABLE", .retryable = true}, "nobody there");
  EXPECT_FALSE(Run(Checkpointed()).ok());
  EXPECT_EQ(GetErrorInfo(Restore(Checkpointed()).status())->reason, "NO_CHECKPOINT");
  script_->start_error = arrow::Status::OK();
  EXPECT_TRUE(Run(Checkpointed()).ok());
}

// The directory would be in the way of the corrected command when it lies in or beside what the target was meant to be.
TEST_F(JobRestoreTest, AJobWhoseTargetIsRefusedMakesNoCheckpointDirectory) {
  target_->check_error = Lasting("the target is taken");
  EXPECT_THAT(Make(Checkpointed()).status().message(), HasSubstr("the target is taken"));
  EXPECT_FALSE(files_.Stat(Checkpointed().checkpoint).ValueOrDie().has_value());
  // But who has a job there already is told of that first: its target is taken by itself.
  target_->check_error = arrow::Status::OK();
  script_->splits = {{0, 10}};
  ASSERT_TRUE(Run(Checkpointed()).ok());
  target_->check_error = Lasting("the target is taken");
  EXPECT_EQ(GetErrorInfo(Make(Checkpointed()).status())->reason, "CHECKPOINT_EXISTS");
}

TEST_F(JobRestoreTest, ADirectoryIsUsedByOneJobAtATime) {
  script_->splits = {{0, 10}};
  auto job = Make(Checkpointed()).ValueOrDie();
  auto second = Make(Checkpointed());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(GetErrorInfo(second.status())->reason, "LOCKED");
  EXPECT_EQ(GetErrorInfo(Restore(Checkpointed()).status())->reason, "LOCKED");
  ASSERT_TRUE(job->Run().ok());
  job.reset();
  auto third = Make(Checkpointed());
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(CodeOf(third.status()), Code::kAlreadyExists);
  auto other = Checkpointed();
  other.job_name = "another";
  EXPECT_EQ(GetErrorInfo(Restore(other).status())->resource, "job_name");
  EXPECT_EQ(CodeOf(Restore({.checkpoint = "/nothing"}).status()), Code::kNotFound);
}

TEST_F(JobRestoreTest, AFinishedJobIsDoneAtOnce) {
  script_->splits = {{0, 10}};
  auto options = Checkpointed();
  options.configuration = {{"from", "bq:a.b.c"}};
  ASSERT_TRUE(Run(options).ok());
  auto persisted = ReadPersistedJob(&files_, kDirectory);
  ASSERT_TRUE(persisted.ok());
  EXPECT_TRUE(persisted->finished);
  EXPECT_EQ(persisted->job_name, "test");
  EXPECT_EQ(persisted->configuration.at("from"), "bq:a.b.c");
  auto result = Resume(Checkpointed());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end, JobEnd::kDone);
  EXPECT_EQ(result->report.rows_written, 10);
  ASSERT_FALSE(result->report.warnings.empty());
  EXPECT_THAT(result->report.warnings.back(), HasSubstr("finished already"));
  EXPECT_EQ(target_->finishes, 1);
  EXPECT_EQ(script_->opened.size(), 1U);
}

TEST_F(JobRestoreTest, ADamagedNewestCheckpointIsAnErrorNotAFallback) {
  script_->splits = {{0, 10}};
  script_->errors[6] = {Lasting()};
  ASSERT_FALSE(Run(Checkpointed()).ok());
  EXPECT_THAT(files_.Names(kDirectory), ElementsAre("chk-0000000000", "chk-0000000001"));
  files_.Damage("/checkpoints/chk-0000000001", 40);
  auto resumed = Restore(Checkpointed());
  ASSERT_FALSE(resumed.ok());
  EXPECT_EQ(CodeOf(resumed.status()), Code::kDataLoss);
  EXPECT_THAT(resumed.status().message(), HasSubstr("/checkpoints/chk-0000000001"));
  EXPECT_EQ(CodeOf(Make(Checkpointed()).status()), Code::kDataLoss);
}

TEST_F(JobRestoreTest, AFailingReaderIsReopenedAtItsEnqueuedPositionWhileTheOthersGoOn) {
  script_->splits = {{0, 10}};
  script_->errors[6] = {Passing(), Passing()};
  clock_.set_auto_advance(true);
  auto options = Checkpointed();
  options.restart_attempts = 2;
  auto result = Run(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(target_->SortedRows(), Rows(10));
  EXPECT_EQ(result->report.restarts, 2);
  EXPECT_EQ(result->report.counters.at("splitsReturned"), 2);
  EXPECT_GE(result->report.seconds, 2);  // restart_delay, twice
  EXPECT_THAT(script_->opened, ElementsAre(std::pair("s0", 0), std::pair("s0", 6), std::pair("s0", 6)));
  EXPECT_EQ(script_->rows_sent, 10);
  EXPECT_TRUE(target_->restored_states.empty()) << "writers went on";
}

TEST_F(JobRestoreTest, RestartsAreLimited) {
  script_->splits = {{0, 10}};
  script_->errors[6] = {Passing(), Passing("second")};
  clock_.set_auto_advance(true);
  auto options = Checkpointed();
  options.restart_attempts = 1;
  auto result = Run(options);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("second"));
}

TEST_F(JobRestoreTest, AnyOtherFailureReopensEverythingFromTheLastCheckpoint) {
  Fresh();
  target_->write_errors[25] = {Lasting("writer broke")};
  auto options = Slow(kDirectory, 2, 2);
  options.restart_attempts = 1;
  auto result = Run(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(target_->SortedRows(), Rows(kRows));
  EXPECT_EQ(result->report.restarts, 1);
  EXPECT_EQ(result->report.rows_written, kRows);
  EXPECT_FALSE(result->report.resumed);
  EXPECT_EQ(target_->restored_states.size(), 2U);
  EXPECT_EQ(script_->plans, 1);
}

TEST_F(JobRestoreTest, AFullDiskIsSurvivedByTheRestartPolicy) {
  Fresh();
  auto options = Slow(kDirectory, 2, 2);
  options.restart_attempts = 3;
  files_.FillDiskAtWrite(3, 1);
  auto result = Run(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(target_->SortedRows(), Rows(kRows));
  EXPECT_EQ(result->report.restarts, 1);
}

TEST_F(JobRestoreTest, AContinuousJobRunsUntilItIsStoppedAndIsResumed) {
  script_->boundedness = Boundedness::kContinuous;
  script_->splits = {{0, 10}, {10, 20}};
  auto job = Make(Checkpointed()).ValueOrDie();
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  while (job->progress().rows < 20) std::this_thread::yield();
  EXPECT_LT(job->progress().fraction, 0);
  job->StopAtCheckpoint();
  auto stopped = running.get();
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(target_->SortedRows(), Rows(20));
  job = Restore(Checkpointed()).ValueOr(nullptr);
  EXPECT_EQ(job, nullptr) << "still locked by the first";
}

TEST_F(JobRestoreTest, CommitKEndsBeforeBarrierKPlusOne) {
  script_->splits = {{0, 30}};
  script_->blocked = {6, 12};
  target_->block_commits = true;
  auto job = Make({.readers = 1, .checkpoint = kDirectory, .checkpoint_interval = 1s}).ValueOrDie();
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  ASSERT_TRUE(script_->WaitForBlocked(1));
  clock_.Advance(1s);
  ASSERT_TRUE(target_->WaitForWaiting(1));  // commit 2 hangs
  script_->Unblock(6);
  ASSERT_TRUE(script_->WaitForBlocked(1));  // readers go on meanwhile
  clock_.Advance(10s);
  EXPECT_THAT(files_.Names(kDirectory), ElementsAre("chk-0000000000", "chk-0000000001", "chk-0000000002"));
  target_->Release();
  script_->Unblock(12);
  ASSERT_TRUE(running.get().ok());
  EXPECT_EQ(target_->SortedRows(), Rows(30));
}

TEST_F(JobRestoreTest, AFailedCommitIsAttachedToTheFailureBeforeIt) {
  script_->splits = {{0, 30}};
  script_->blocked = {6};
  script_->errors[6] = {Lasting("first")};
  target_->block_commits = true;
  target_->commit_answers = {{CommitOutcome::kFailed, Lasting("second")}};
  auto job = Make({.readers = 1, .checkpoint = kDirectory, .checkpoint_interval = 1s}).ValueOrDie();
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  ASSERT_TRUE(script_->WaitForBlocked(1));
  clock_.Advance(1s);
  ASSERT_TRUE(target_->WaitForWaiting(1));
  script_->Unblock(6);
  {
    std::unique_lock<std::mutex> lock(target_->mutex);
    ASSERT_TRUE(target_->changed.wait_for(lock, 10s, [&] { return target_->aborts > 0; })) << "the failure ends the writer";
  }
  target_->Release();
  const auto status = running.get().status();
  EXPECT_THAT(status.message(), ::testing::MatchesRegex(".*first; then: .*second.*"));
}

/// Tells when a line with `text` is logged.
class Awaited final : public Logger {
 public:
  explicit Awaited(std::string text) : text_(std::move(text)) {}
  void Log(LogLevel, std::string_view line) override {
    std::lock_guard<std::mutex> guard(mutex_);
    seen_ = seen_ || line.find(text_) != std::string_view::npos;
    changed_.notify_all();
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, 20s, [this] { return seen_; });
  }

 private:
  const std::string text_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool seen_ = false;
};

// While nothing runs, the newest checkpoint is the one to stop at; time goes on for who looks.
TEST_F(JobRestoreTest, AStopDuringTheRestartDelayIsObeyedAtOnce) {
  script_->splits = {{0, 10}};
  target_->write_errors[3] = {Passing()};
  auto options = Checkpointed();
  options.restart_attempts = 1;
  options.restart_delay = std::chrono::hours{1};
  Awaited logger("is opened again");
  auto logged = environment();
  logged.logger = &logger;
  auto job = Job::Make(std::make_shared<ScriptedSource>(script_), std::make_shared<TargetSink>(target_), options, logged).ValueOrDie();
  auto running = std::async(std::launch::async, [&] { return job->Run(); });
  ASSERT_TRUE(logger.Wait());
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  const double before = job->progress().seconds;
  while (job->progress().seconds < before + 60 && std::chrono::steady_clock::now() < deadline) {
    clock_.Advance(60s);  // the job may not have begun to wait at the first one
  }
  EXPECT_EQ(job->progress().open_splits, 0);
  job->StopAtCheckpoint();
  ASSERT_EQ(running.wait_for(20s), std::future_status::ready);
  const auto result = running.get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end, JobEnd::kStoppedAtCheckpoint);
  job.reset();
  clock_.set_auto_advance(true);
  auto resumed = Resume(Checkpointed());
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(target_->SortedRows(), Rows(10));
}

// Before it runs, and while the source does not answer, a restored job shows what its checkpoint holds.
TEST_F(JobRestoreTest, ProgressBeginsAtTheCheckpoint) {
  script_->splits = {{0, 10}};
  script_->blocked = {6};
  auto options = Checkpointed();
  options.checkpoint_interval = 1s;
  {
    auto job = Make(options).ValueOrDie();
    auto running = std::async(std::launch::async, [&] { return job->Run(); });
    ASSERT_TRUE(script_->WaitForBlocked(1));
    job->StopAtCheckpoint();
    ASSERT_EQ(running.get()->end, JobEnd::kStoppedAtCheckpoint);
    EXPECT_EQ(job->progress().rows, 6);
  }
  MetricRegistry metrics;
  auto counted = environment();
  counted.metrics = &metrics;
  auto job = Job::Restore(std::make_shared<ScriptedSource>(script_), std::make_shared<TargetSink>(target_), options, counted).ValueOrDie();
  EXPECT_EQ(metrics.Snapshot().at("rowsEnqueued"), 6) << "before anybody has asked for the progress";
  EXPECT_EQ(job->progress().rows, 6);
  EXPECT_EQ(job->progress().checkpoint, 2U);
  EXPECT_EQ(metrics.Snapshot().at("lastCheckpoint"), 2);
}

TEST_F(JobRestoreTest, OneCheckpointIsKeptOnceItIsCommittedAndTwoBefore) {
  Fresh();
  size_t most = 0;
  SetFailPointHandler([&](std::string_view step) {
    if (step != "commit.recorded" && step != "checkpoint.renamed") return;
    size_t checkpoints = 0;
    for (const auto& name : files_.Names(kDirectory)) checkpoints += name.size() == 14 ? 1 : 0;
    most = std::max(most, checkpoints);
  });
  ASSERT_TRUE(Run(Slow(kDirectory, 1, 1)).ok());
  EXPECT_LE(most, 3U) << "checkpoints 0 and 1 have nothing to commit and stay until 2 is committed";
  auto names = files_.Names(kDirectory);
  EXPECT_EQ(names.size(), 3U) << "checkpoint, commit record, finished";
}

}  // namespace
}  // namespace headrace::testing
