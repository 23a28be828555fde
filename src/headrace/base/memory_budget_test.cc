#include "headrace/base/memory_budget.h"

#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace headrace {
namespace {

using std::chrono::seconds;

TEST(MemoryBudgetTest, WhatIsReservedIsGivenBack) {
  MemoryBudget budget(100);
  {
    auto a = budget.Reserve(60, {}).ValueOrDie();
    EXPECT_EQ(budget.used(), 60);
    auto part = a.Split(20);
    EXPECT_EQ(a.bytes(), 40);
    EXPECT_EQ(part.bytes(), 20);
    part.Release();
    EXPECT_EQ(budget.used(), 40);
    a.Resize(90);  // what is held may be finished
    EXPECT_EQ(budget.used(), 90);
    MemoryReservation moved = std::move(a);
    EXPECT_EQ(a.bytes(), 0);  // NOLINT: moved from on purpose
    EXPECT_EQ(moved.bytes(), 90);
  }
  EXPECT_EQ(budget.used(), 0);
  EXPECT_EQ(budget.peak(), 90);
}

TEST(MemoryBudgetTest, WaitersAreServedInOrderAndALargeOneIsNotPassed) {
  MemoryBudget budget(100);
  auto held = budget.Reserve(50, {}).ValueOrDie();
  std::promise<void> started;
  auto large = std::async(std::launch::async, [&] {
    started.set_value();
    return budget.Reserve(80, {}).ok();
  });
  started.get_future().wait();
  std::stop_source stop;
  // Either order of arrival is right; a small one behind the large one must not starve it for ever.
  auto small = std::async(std::launch::async, [&] { return budget.Reserve(20, stop.get_token()).ok(); });
  held.Release();
  ASSERT_EQ(large.wait_for(seconds{10}), std::future_status::ready);
  EXPECT_TRUE(large.get());
  ASSERT_EQ(small.wait_for(seconds{10}), std::future_status::ready);
}

TEST(MemoryBudgetTest, ItTellsWhenSomebodyLastWaited) {
  ManualClock clock;
  MemoryBudget budget(100, &clock);
  auto held = budget.Reserve(100, {}).ValueOrDie();
  EXPECT_EQ(budget.last_wait(), std::nullopt);
  auto waiter = std::async(std::launch::async, [&] { return budget.Reserve(1, {}).ok(); });
  const auto deadline = std::chrono::steady_clock::now() + seconds{10};
  while (!budget.last_wait() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  clock.Advance(seconds{5});
  EXPECT_EQ(budget.last_wait(), clock.Monotonic());
  held.Release();
  EXPECT_TRUE(waiter.get());
  const auto end = clock.Monotonic();
  clock.Advance(seconds{5});
  EXPECT_EQ(budget.last_wait(), end);
}

TEST(MemoryBudgetTest, MoreThanTheWholeBudgetIsLetThroughAlone) {
  MemoryBudget budget(100);
  auto huge = budget.Reserve(1000, {});
  ASSERT_TRUE(huge.ok());
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return budget.Reserve(1, stop.get_token()).status(); });
  stop.request_stop();
  EXPECT_EQ(waiting.get().code(), arrow::StatusCode::Cancelled);
}

TEST(MemoryBudgetTest, AnAbandonedTurnIsSkipped) {
  MemoryBudget budget(10);
  auto held = budget.Reserve(10, {}).ValueOrDie();
  std::vector<std::future<bool>> waiters;
  std::stop_source stop;
  for (int i = 0; i < 6; ++i) {
    auto token = i % 2 == 0 ? stop.get_token() : std::stop_token();
    waiters.push_back(std::async(std::launch::async, [&budget, token] { return budget.Reserve(3, token).ok(); }));
  }
  stop.request_stop();
  for (size_t i = 0; i < 6; i += 2) EXPECT_FALSE(waiters[i].get());
  held.Release();
  for (size_t i = 1; i < 6; i += 2) {
    ASSERT_EQ(waiters[i].wait_for(seconds{10}), std::future_status::ready);
    EXPECT_TRUE(waiters[i].get());
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST(MemoryBudgetTest, TheLimitHoldsUnderManyThreads) {
  MemoryBudget budget(100);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) (void)budget.Reserve(10 + (t * 7 + i) % 50, {});
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(budget.peak(), 100);
  EXPECT_EQ(budget.used(), 0);
}

TEST(MemoryBudgetTest, WithoutWaiting) {
  MemoryBudget budget(100);
  auto first = budget.TryReserve(60);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->bytes(), 60);
  EXPECT_FALSE(budget.TryReserve(41).has_value());
  auto second = budget.TryReserve(40);
  EXPECT_TRUE(second.has_value());
  EXPECT_EQ(budget.used(), 100);
  EXPECT_EQ(budget.peak(), 100);
  first.reset();
  second.reset();
  // One that is larger than all of it, when nothing else is held.
  EXPECT_TRUE(budget.TryReserve(1000).has_value());
  EXPECT_EQ(budget.used(), 0);
  EXPECT_FALSE(budget.last_wait().has_value());
}

// Who waits comes first, even where a smaller one would fit.
TEST(MemoryBudgetTest, WithoutWaitingNobodyIsOvertaken) {
  MemoryBudget budget(100);
  auto held = budget.TryReserve(60);
  std::stop_source stop;
  std::jthread waiting([&] {
    const auto large = budget.Reserve(50, stop.get_token());
    EXPECT_TRUE(large.ok());
  });
  for (int i = 0; i < 10'000 && !budget.last_wait().has_value(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  EXPECT_FALSE(budget.TryReserve(10).has_value());
  held.reset();
  waiting.join();
  EXPECT_TRUE(budget.TryReserve(10).has_value());
}

}  // namespace
}  // namespace headrace
