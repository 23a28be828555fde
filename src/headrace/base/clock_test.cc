#include "headrace/base/clock.h"

#include <future>

#include <gtest/gtest.h>

namespace headrace {
namespace {

using namespace std::chrono_literals;

TEST(ClockTest, AManualClockMovesOnlyWhenTold) {
  ManualClock clock;
  auto start = clock.Monotonic();
  auto wall = clock.Now();
  EXPECT_EQ(clock.Monotonic(), start);
  clock.Advance(5s);
  EXPECT_EQ(clock.Monotonic() - start, 5s);
  EXPECT_EQ(clock.Now() - wall, 5s);
}

TEST(ClockTest, ASleepEndsWithTheAdvanceOrTheStop) {
  ManualClock clock;
  auto sleeping = std::async(std::launch::async, [&] { return clock.SleepFor(1h, {}); });
  while (sleeping.wait_for(0s) != std::future_status::ready) clock.Advance(10min);
  EXPECT_TRUE(sleeping.get());

  std::stop_source stop;
  sleeping = std::async(std::launch::async, [&] { return clock.SleepFor(1h, stop.get_token()); });
  stop.request_stop();
  ASSERT_EQ(sleeping.wait_for(10s), std::future_status::ready);
  EXPECT_FALSE(sleeping.get());
  EXPECT_FALSE(clock.SleepFor(1h, stop.get_token())) << "stopped before";
}

TEST(ClockTest, AutoAdvanceMakesSleepsTakeNoTime) {
  ManualClock clock;
  clock.set_auto_advance(true);
  auto start = clock.Monotonic();
  EXPECT_TRUE(clock.SleepFor(24h, {}));
  EXPECT_GE(clock.Monotonic() - start, 24h);
}

TEST(ClockTest, TheRealClockGoesForwardAndIsStoppedAtOnce) {
  auto* clock = RealClock();
  auto before = clock->Monotonic();
  EXPECT_TRUE(clock->SleepFor(1ms, {}));
  EXPECT_GE(clock->Monotonic() - before, 1ms);
  std::stop_source stop;
  auto sleeping = std::async(std::launch::async, [&] { return clock->SleepFor(1h, stop.get_token()); });
  stop.request_stop();
  ASSERT_EQ(sleeping.wait_for(10s), std::future_status::ready);
  EXPECT_FALSE(sleeping.get());
}

}  // namespace
}  // namespace headrace
