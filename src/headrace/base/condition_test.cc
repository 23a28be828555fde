#include "headrace/base/condition.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(ConditionTest, WhatIsReadyIsNotWaitedFor) {
  Condition changed;
  std::mutex mutex;
  std::unique_lock<std::mutex> lock(mutex);
  EXPECT_TRUE(changed.Wait(lock, {}, [] { return true; }));
  EXPECT_TRUE(lock.owns_lock());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(changed.Wait(lock, stop.get_token(), [] { return true; }));
  EXPECT_FALSE(changed.Wait(lock, stop.get_token(), [] { return false; }));
  EXPECT_TRUE(lock.owns_lock());
}

TEST(ConditionTest, AStopEndsEveryWait) {
  Condition changed;
  std::mutex mutex;
  std::stop_source stop;
  std::atomic<int> stopped = 0;
  {
    std::vector<std::jthread> waiting;
    for (int i = 0; i < 4; ++i) {
      waiting.emplace_back([&] {
        std::unique_lock<std::mutex> lock(mutex);
        if (!changed.Wait(lock, stop.get_token(), [] { return false; })) ++stopped;
      });
    }
    std::this_thread::yield();
    stop.request_stop();
  }
  EXPECT_EQ(stopped, 4);
}

// Producers, consumers that take one thing each, and a stop at any moment: nothing is lost, nobody sleeps on.
TEST(ConditionTest, NoNoticeIsLost) {
  for (int round = 0; round < 200; ++round) {
    constexpr int kThings = 50;
    Condition changed;
    std::mutex mutex;
    std::stop_source stop;
    int things = 0;
    int taken = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
          std::unique_lock<std::mutex> lock(mutex);
          while (changed.Wait(lock, stop.get_token(), [&] { return things > 0; })) {
            --things;
            if (++taken < 2 * kThings) continue;
            lock.unlock();
            stop.request_stop();
            lock.lock();
          }
        });
      }
      for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
          for (int made = 0; made < kThings; ++made) {
            {
              std::lock_guard<std::mutex> guard(mutex);
              ++things;
            }
            changed.NotifyAll();
          }
        });
      }
    }
    EXPECT_EQ(taken, 2 * kThings);
    EXPECT_EQ(things, 0);
  }
}

// The stop and the thing at once: one of the two ends the wait, also when it comes just before it.
TEST(ConditionTest, AStopJustBeforeTheWaitIsHeard) {
  for (int round = 0; round < 2'000; ++round) {
    Condition changed;
    std::mutex mutex;
    std::stop_source stop;
    std::jthread stopper([&] { stop.request_stop(); });
    std::unique_lock<std::mutex> lock(mutex);
    EXPECT_FALSE(changed.Wait(lock, stop.get_token(), [] { return false; }));
  }
}

}  // namespace
}  // namespace headrace
