// Work sharing: readers without work get half of a busy one's split (runtime.md, "Work sharing").
#include "headrace/runtime/internal/work_sharing.h"

#include <chrono>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "headrace/runtime/internal/job_options.h"
#include "headrace/runtime/job_fixture_testing.h"

namespace headrace {
namespace {

ReaderLoop::State Reading(double fraction, double bytes, bool can_cut = true) {
  return {.open = true, .progress = {.fraction = fraction, .can_cut = can_cut}, .estimated_bytes = bytes};
}

TEST(WorkSharingTest, TheReaderWithTheMostWorkLeftIsAsked) {
  constexpr double kMiB = 1 << 20;
  struct Case {
    const char* what;
    std::vector<ReaderLoop::State> readers;
    std::optional<size_t> want;
  };
  for (const auto& test : std::vector<Case>{
           {"none", {}, {}},
           {"nobody reads", {{}, {}}, {}},
           {"sizes decide, not fractions", {Reading(0.1, 10 * kMiB), Reading(0.5, 100 * kMiB)}, 1},
           {"fractions, where a size is unknown", {Reading(0.1, -1), Reading(0.5, 100 * kMiB)}, 0},
           {"a reader that cannot be cut now", {Reading(0.1, 100 * kMiB, false), Reading(0.5, 100 * kMiB)}, 1},
           {"too little left", {Reading(0.9, 10 * kMiB)}, {}},
           {"just enough left", {Reading(0.5, 2 * kLeastSharedBytes)}, 0},
           {"a size of nothing is not unknown", {Reading(0, 0)}, {}},
           {"too little left of an unknown size", {Reading(0.99, -1)}, {}},
           {"a closed reader's size does not count", {{}, Reading(0.2, 90 * kMiB), Reading(0.1, 50 * kMiB)}, 1},
       }) {
    EXPECT_EQ(ChooseBusiest(test.readers), test.want) << test.what;
  }
}

class WorkSharingJobTest : public testing::JobFixture {
 protected:
  WorkSharingJobTest() { script_->cuttable = true; }
  /// Sharing waits between two requests; here that takes no time.
  void LetTimeFly() { clock_.set_auto_advance(true); }

  bool WaitForRequests(int n) {
    std::unique_lock<std::mutex> lock(script_->mutex);
    return script_->changed.wait_for(lock, std::chrono::seconds{20}, [&] { return script_->cut_requests >= n; });
  }
};

TEST_F(WorkSharingJobTest, OneSplitIsReadByAllReaders) {
  script_->splits = {{0, 600}};
  script_->blocked = {0};
  auto job = Make({.readers = 4, .writers = 2});
  ASSERT_TRUE(job.ok()) << job.status();
  arrow::Result<JobResult> result = arrow::Status::UnknownError("not run");
  std::thread runner([&] { result = (*job)->Run(); });
  // The only reader with work stands before its first row while the others have none: it is asked, and answers when it goes on.
  EXPECT_TRUE(WaitForRequests(1));
  LetTimeFly();
  script_->Unblock(0);
  runner.join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(target_->SortedRows(), Rows(600));
  EXPECT_GE(result->report.cuts, 1);
  EXPECT_EQ(result->report.splits, 1 + result->report.cuts);
  EXPECT_TRUE(result->report.warnings.empty()) << result->report.warnings[0];
  std::set<std::string> ids;
  for (const auto& [id, row] : script_->opened) EXPECT_TRUE(ids.insert(id).second) << id << " names two splits";
}

TEST_F(WorkSharingJobTest, ARefusedRequestChangesNothing) {
  script_->splits = {{0, 60}};
  script_->blocked = {0};
  script_->refuse_cuts = true;
  auto job = Make({.readers = 3, .writers = 1});
  ASSERT_TRUE(job.ok());
  arrow::Result<JobResult> result = arrow::Status::UnknownError("not run");
  std::thread runner([&] { result = (*job)->Run(); });
  EXPECT_TRUE(WaitForRequests(1));
  LetTimeFly();
  script_->Unblock(0);
  runner.join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(target_->SortedRows(), Rows(60));
  EXPECT_EQ(result->report.cuts, 0);
  EXPECT_EQ(script_->cut_requests, 1) << "a reader that has refused is not asked again";
}

TEST_F(WorkSharingJobTest, NobodyIsAskedWhereWorkIsNotShared) {
  script_->splits = {{0, 60}};
  LetTimeFly();
  struct Case {
    const char* what;
    JobOptions options;
    bool cuttable;
  };
  for (const auto& test : std::vector<Case>{
           {"switched off", {.readers = 3, .work_sharing = false}, true},
           {"an ordered job", {.ordered = true}, true},
           {"a source that cannot", {.readers = 3}, false},
       }) {
    script_->cuttable = test.cuttable;
    EXPECT_FALSE(SharesWork(test.options, testing::ScriptedSource(script_))) << test.what;
    auto target = std::make_shared<testing::Target>();
    target_ = target;
    auto result = Run(test.options);
    ASSERT_TRUE(result.ok()) << test.what << result.status();
    EXPECT_EQ(target->SortedRows(), Rows(60)) << test.what;
    EXPECT_EQ(script_->cut_requests, 0) << test.what;
  }
}

TEST_F(WorkSharingJobTest, AFailureOfAReaderThatWasAskedLosesAndDoublesNothing) {
  // The request is void with the reader: the split is handed back and read by another one.
  script_->splits = {{0, 300}};
  script_->blocked = {30};
  script_->errors[30] = {Passing(), Passing()};
  auto job = Make([] {
    auto options = Checkpointed();
    options.readers = 3;
    options.restart_attempts = 5;
    options.restart_delay = std::chrono::milliseconds{0};
    return options;
  }());
  ASSERT_TRUE(job.ok()) << job.status();
  arrow::Result<JobResult> result = arrow::Status::UnknownError("not run");
  std::thread runner([&] { result = (*job)->Run(); });
  EXPECT_TRUE(script_->WaitForBlocked(1));
  clock_.Advance(std::chrono::seconds{1});
  EXPECT_TRUE(WaitForRequests(1));
  script_->Unblock(30);
  for (int i = 0; i < 50; ++i) clock_.Advance(std::chrono::milliseconds{100});
  runner.join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(target_->SortedRows(), Rows(300));
}

}  // namespace
}  // namespace headrace
