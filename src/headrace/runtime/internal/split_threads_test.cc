#include "headrace/runtime/internal/split_threads.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/runtime/fake_source_testing.h"

namespace headrace::testing {
namespace {

class SplitThreadsTest : public ::testing::Test {
 protected:
  /// Starts reading; every batch is dropped.
  void Start(const ReadOptions& options) {
    threads_ = std::make_unique<SplitThreads>(std::make_shared<ScriptedSource>(script_), options);
    threads_->parts().deliver = [this](const AssignedSplit& split, SplitReader*, Batch batch, const LedgerCounts& counts,
                                       const std::stop_token&) {
      return threads_->ledger().Advance(split.attempt, std::move(batch.position), counts, [] {});
    };
    ASSERT_TRUE(threads_->Plan(nullptr).ok());
    ASSERT_TRUE(threads_->Start([this](const arrow::Status&) { ++failures_; }, [this] { ++ends_; }).ok());
  }

  std::shared_ptr<SourceScript> script_ = std::make_shared<SourceScript>();
  std::atomic<int> failures_{0};
  std::atomic<int> ends_{0};
  std::unique_ptr<SplitThreads> threads_;
};

TEST_F(SplitThreadsTest, TheEndIsToldOnceWhenEveryRowWasRead) {
  script_->splits = {{0, 10}, {10, 20}, {20, 30}};
  Start({.readers = 2});
  for (int i = 0; i < 1000 && ends_ == 0; ++i) RealClock()->SleepFor(std::chrono::milliseconds{10}, {});
  threads_->Stop();
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(failures_, 0);
}

// Taken for the end, it would make a read that was stopped look whole.
TEST_F(SplitThreadsTest, AStopIsNotTheEnd) {
  script_->splits = {{0, 10}, {10, 20}};
  script_->blocked = {6, 13};
  Start({.readers = 2});
  ASSERT_TRUE(script_->WaitForBlocked(2));
  threads_->RequestStop();
  threads_->Stop();
  EXPECT_EQ(ends_, 0);
  EXPECT_EQ(failures_, 0);
}

TEST_F(SplitThreadsTest, AFailureIsNotTheEnd) {
  script_->splits = {{0, 10}, {10, 20}};
  script_->blocked = {13};
  script_->errors[6] = {MakeError({.code = Code::kDataLoss}, "gone")};
  Start({.readers = 2});
  for (int i = 0; i < 1000 && failures_ == 0; ++i) RealClock()->SleepFor(std::chrono::milliseconds{10}, {});
  threads_->Stop();
  EXPECT_EQ(ends_, 0);
  EXPECT_EQ(failures_, 1);
}

}  // namespace
}  // namespace headrace::testing
