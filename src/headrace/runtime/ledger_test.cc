// Each transition of the ledger on its own; all of them together are in ledger_search_test.cc.
#include "headrace/runtime/ledger.h"

#include <algorithm>
#include <functional>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/runtime/fake_source_testing.h"

namespace headrace::testing {
namespace {

std::unique_ptr<Ledger> MakeLedger(std::vector<Range> ranges, LedgerOptions options = {}) {
  std::vector<Split> splits;
  for (size_t i = 0; i < ranges.size(); ++i) splits.push_back(MakeRangeSplit("s" + std::to_string(i), ranges[i]));
  return std::make_unique<Ledger>(std::make_unique<RangeEnumerator>(std::move(splits)), options);
}

/// Long enough for another thread to do what it must not do; a right ledger passes however slow the machine is.
constexpr std::chrono::milliseconds kMoment{20};

AssignedSplit Take(Ledger* ledger) {
  auto offer = ledger->TryAssign();
  EXPECT_TRUE(offer.ok() && offer->kind == NextSplit::Kind::kSplit);
  return offer->assigned;
}

TEST(LedgerTest, AssignedSplitsAreInTheSnapshotAndQueuedOnesInTheEnumerators) {
  auto ledger = MakeLedger({{0, 4}, {4, 8}});
  auto first = Take(ledger.get());
  EXPECT_EQ(first.split.id, "s0");
  auto snapshot = ledger->Snapshot([] {});
  ASSERT_EQ(snapshot.assigned.size(), 1U);
  EXPECT_EQ(snapshot.assigned[0], first);
  ASSERT_EQ(SplitsInSnapshot(snapshot.enumerator).size(), 1U);
  EXPECT_EQ(SplitsInSnapshot(snapshot.enumerator)[0].id, "s1");
}

TEST(LedgerTest, AdvanceMovesThePositionAndPushesUnderOneLock) {
  auto ledger = MakeLedger({{0, 4}});
  auto held = Take(ledger.get());
  bool pushed = false;
  LedgerCounts batch{.rows = 2, .wire_bytes = 20, .memory_bytes = 16};
  ASSERT_TRUE(ledger->Advance(held.attempt, "2", batch, [&] { pushed = true; }).ok());
  EXPECT_TRUE(pushed);
  auto snapshot = ledger->Snapshot([] {});
  EXPECT_EQ(snapshot.assigned[0].split.position, "2");
  EXPECT_EQ(snapshot.counts, batch);
}

TEST(LedgerTest, NothingMovesWhileABarrierIsPlacedOrABatchIsQueued) {
  auto ledger = MakeLedger({{0, 4}});
  auto held = Take(ledger.get());
  std::future<arrow::Status> advance;
  auto snapshot = ledger->Snapshot([&] {
    advance = std::async(std::launch::async, [&] { return ledger->Advance(held.attempt, "1", {.rows = 1}, [] {}); });
    EXPECT_EQ(advance.wait_for(kMoment), std::future_status::timeout);
  });
  EXPECT_EQ(snapshot.counts.rows, 0);
  EXPECT_EQ(snapshot.assigned[0].split.position, "");
  ASSERT_TRUE(advance.get().ok());

  std::future<LedgerSnapshot> later;
  ASSERT_TRUE(ledger
                  ->Advance(held.attempt, "2", {.rows = 1},
                            [&] {
                              later = std::async(std::launch::async, [&] { return ledger->Snapshot([] {}); });
                              EXPECT_EQ(later.wait_for(kMoment), std::future_status::timeout);
                            })
                  .ok());
  EXPECT_EQ(later.get().assigned[0].split.position, "2");
}

TEST(LedgerTest, HandBackQueuesAtTheEnqueuedPositionAtTheEndAndVoidsTheAttempt) {
  auto ledger = MakeLedger({{0, 4}, {4, 8}});
  auto held = Take(ledger.get());
  ASSERT_TRUE(ledger->Advance(held.attempt, "3", {}, [] {}).ok());
  ASSERT_TRUE(ledger->HandBack(held.attempt).ok());
  bool pushed = false;
  for (const auto& status : {ledger->Advance(held.attempt, "4", {}, [&] { pushed = true; }), ledger->Cut(held.attempt, "0-3", {}),
                             ledger->End(held.attempt, {}), ledger->HandBack(held.attempt)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(GetErrorInfo(status)->reason, "NOT_ASSIGNED");
  }
  EXPECT_FALSE(pushed);
  EXPECT_EQ(Take(ledger.get()).split.id, "s1");
  auto again = Take(ledger.get());
  EXPECT_EQ(again.split.id, "s0");
  EXPECT_EQ(again.split.position, "3");
  EXPECT_NE(again.attempt, held.attempt);
}

TEST(LedgerTest, AReturnedSplitKeepsItsWriterWhateverTheLoad) {
  auto ledger = MakeLedger({{0, 4}, {4, 8}, {8, 12}}, {.writers = 2});
  auto a = Take(ledger.get());
  auto b = Take(ledger.get());
  EXPECT_EQ(a.writer, 0);
  EXPECT_EQ(b.writer, 1);
  ASSERT_TRUE(ledger->HandBack(b.attempt).ok());
  EXPECT_EQ(Take(ledger.get()).writer, 1);
  auto again = Take(ledger.get());
  EXPECT_EQ(again.split.id, "s1");
  EXPECT_EQ(again.writer, 1) << "its earlier batches are still in that queue";
}

TEST(LedgerTest, ACutRenamesTheNearPartAndQueuesTheFarParts) {
  auto ledger = MakeLedger({{0, 8}});
  auto held = Take(ledger.get());
  ASSERT_TRUE(ledger->Cut(held.attempt, "0-4", {MakeRangeSplit("s0/1", {4, 6}), MakeRangeSplit("s0/2", {6, 8})}).ok());
  auto snapshot = ledger->Snapshot([] {});
  EXPECT_EQ(snapshot.assigned[0].split.descriptor, "0-4");
  EXPECT_EQ(snapshot.counts.cuts, 2);
  EXPECT_EQ(Take(ledger.get()).split.id, "s0/1");
}

TEST(LedgerTest, NoneEverOnlyOnceNobodyHoldsASplit) {
  auto ledger = MakeLedger({{0, 4}});
  auto held = Take(ledger.get());
  EXPECT_EQ(ledger->TryAssign()->kind, NextSplit::Kind::kNoneNow);
  ASSERT_TRUE(ledger->End(held.attempt, {MakeRangeSplit("child", {0, 1})}).ok());
  auto child = Take(ledger.get());
  EXPECT_EQ(child.split.id, "child");
  ASSERT_TRUE(ledger->End(child.attempt, {}).ok());
  EXPECT_EQ(ledger->TryAssign()->kind, NextSplit::Kind::kNoneEver);
  EXPECT_EQ(ledger->state().counts.finished, 2);
}

TEST(LedgerTest, AnIdleReaderIsWokenByHandBackCutAndEnd) {
  struct Case {
    const char* name;
    std::function<arrow::Status(Ledger*, uint64_t)> transition;
    bool gets_split;
  };
  for (const auto& test : std::vector<Case>{
           {"hand back", [](Ledger* ledger, uint64_t attempt) { return ledger->HandBack(attempt); }, true},
           {"cut", [](Ledger* ledger, uint64_t attempt) { return ledger->Cut(attempt, "0-2", {MakeRangeSplit("far", {2, 4})}); }, true},
           {"successor", [](Ledger* ledger, uint64_t attempt) { return ledger->End(attempt, {MakeRangeSplit("child", {4, 5})}); }, true},
           {"end", [](Ledger* ledger, uint64_t attempt) { return ledger->End(attempt, {}); }, false},
       }) {
    SCOPED_TRACE(test.name);
    auto ledger = MakeLedger({{0, 4}});
    auto held = Take(ledger.get());
    auto idle = std::async(std::launch::async, [&] { return ledger->Assign({}); });
    ASSERT_EQ(idle.wait_for(kMoment), std::future_status::timeout);
    ASSERT_TRUE(test.transition(ledger.get(), held.attempt).ok());
    ASSERT_EQ(idle.wait_for(std::chrono::seconds{10}), std::future_status::ready);
    auto assigned = idle.get();
    ASSERT_TRUE(assigned.ok());
    EXPECT_EQ(assigned->has_value(), test.gets_split);
  }
}

TEST(LedgerTest, AStopEndsTheWaitForASplit) {
  auto ledger = MakeLedger({{0, 4}});
  Take(ledger.get());
  std::stop_source stop;
  auto idle = std::async(std::launch::async, [&] { return ledger->Assign(stop.get_token()); });
  stop.request_stop();
  ASSERT_EQ(idle.wait_for(std::chrono::seconds{10}), std::future_status::ready);
  EXPECT_EQ(CodeOf(idle.get().status()), Code::kCancelled);
}

TEST(LedgerTest, ABoundedSourceThatWouldWaitForEverIsAnError) {
  class NoneNow final : public SplitEnumerator {
   public:
    arrow::Status Start() override { return arrow::Status::OK(); }
    std::shared_ptr<arrow::Schema> schema() const override { return nullptr; }
    arrow::Result<NextSplit> Next() override { return NextSplit{NextSplit::Kind::kNoneNow, {}}; }
    void AddSplitsBack(std::vector<Split>) override {}
    void AddSuccessors(std::vector<Split>) override {}
    int64_t queued() const override { return 0; }
    std::string Snapshot() const override { return ""; }
    void Cancel() override {}
  };
  Ledger bounded(std::make_unique<NoneNow>(), {.bounded = true});
  EXPECT_EQ(CodeOf(bounded.TryAssign().status()), Code::kInternal);
  Ledger continuous(std::make_unique<NoneNow>(), {.bounded = false});
  EXPECT_EQ(continuous.TryAssign()->kind, NextSplit::Kind::kNoneNow);
}

TEST(LedgerTest, AnOrderedLedgerKeepsWhatComesBackInFront) {
  auto ledger = MakeLedger({{0, 8}, {8, 12}}, {.ordered = true});
  auto held = Take(ledger.get());
  ASSERT_TRUE(ledger->Cut(held.attempt, "0-4", {MakeRangeSplit("s0/1", {4, 8})}).ok());
  ASSERT_TRUE(ledger->Advance(held.attempt, "2", {}, [] {}).ok());
  auto snapshot = ledger->Snapshot([] {});
  ASSERT_EQ(snapshot.assigned.size(), 2U) << "the far part is not in the enumerator's queue, but must not be lost";
  ASSERT_TRUE(ledger->HandBack(held.attempt).ok());
  for (const char* id : {"s0", "s0/1", "s1"}) EXPECT_EQ(Take(ledger.get()).split.id, id);

  std::vector<Split> queued = SplitsInSnapshot(snapshot.enumerator);
  Ledger restored(std::make_unique<RangeEnumerator>(queued), {.ordered = true});
  restored.Restore(snapshot);
  for (const char* id : {"s0", "s0/1", "s1"}) EXPECT_EQ(Take(&restored).split.id, id);
}

TEST(LedgerTest, RestoreQueuesTheAssignedSplitsAndGoesOnCounting) {
  auto ledger = MakeLedger({{0, 4}});
  auto held = Take(ledger.get());
  ASSERT_TRUE(ledger->Advance(held.attempt, "2", {.rows = 2}, [] {}).ok());
  auto snapshot = ledger->Snapshot([] {});
  Ledger restored(std::make_unique<RangeEnumerator>(SplitsInSnapshot(snapshot.enumerator)), {});
  restored.Restore(snapshot);
  auto again = Take(&restored);
  EXPECT_EQ(again.split.position, "2");
  EXPECT_GT(again.attempt, held.attempt);
  EXPECT_EQ(restored.state().counts.rows, 2);
}

// Threads as they come: for the thread sanitizer, and to see no row twice behind a barrier that is placed at any moment.
TEST(LedgerTest, ManyThreadsAndBarriersKeepEachRowOnce) {
  constexpr int64_t kRows = 20'000;
  auto ledger = MakeLedger({{0, 5'000}, {5'000, 10'000}, {10'000, 15'000}, {15'000, kRows}});
  std::mutex queue_mutex;
  std::vector<int64_t> queue;
  auto read = [&](uint64_t seed) {
    while (true) {
      auto assigned = ledger->Assign({});
      if (!assigned.ok() || !*assigned) return;
      auto& held = **assigned;
      bool handed_back = false;
      for (int64_t row = NextRowOf(held.split); row < RangeOf(held.split).end && !handed_back; ++row) {
        (void)ledger->Advance(held.attempt, std::to_string(row + 1), {.rows = 1}, [&] {
          std::lock_guard<std::mutex> guard(queue_mutex);
          queue.push_back(row);
        });
        seed = seed * 6'364'136'223'846'793'005ULL + 1'442'695'040'888'963'407ULL;
        if ((seed >> 33) % 1'000 == 0) {
          (void)ledger->HandBack(held.attempt);
          handed_back = true;
        }
      }
      if (!handed_back) (void)ledger->End(held.attempt, {});
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 3; ++i) threads.emplace_back(read, i);
  constexpr int kMostSnapshots = 2'000;
  for (int i = 0; i < kMostSnapshots && ledger->state().counts.finished < 4; ++i) {
    std::vector<int> count(kRows, 0);
    auto snapshot = ledger->Snapshot([&] {
      std::lock_guard<std::mutex> guard(queue_mutex);
      for (auto row : queue) ++count[static_cast<size_t>(row)];
    });
    auto owe = [&](const Split& split) {
      for (int64_t row = NextRowOf(split); row < RangeOf(split).end; ++row) ++count[static_cast<size_t>(row)];
    };
    for (const auto& split : SplitsInSnapshot(snapshot.enumerator)) owe(split);
    for (const auto& held : snapshot.assigned) owe(held.split);
    // Not ASSERT: the threads must be joined.
    EXPECT_EQ(std::count(count.begin(), count.end(), 1), kRows);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(queue.size(), static_cast<size_t>(kRows));
}

}  // namespace
}  // namespace headrace::testing
