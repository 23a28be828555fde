#include "headrace/bigquery/read/internal/open_streams.h"

#include <deque>
#include <thread>

#include <gtest/gtest.h>

#include "headrace/rpc/channel.h"

namespace headrace::bigquery {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(OpenStreamsTest, WhatTheTransportHoldsStaysWithinHalfOfTheBudget) {
  struct Case {
    int64_t budget;
    int64_t message;
    int64_t most;
  };
  for (const Case& c :
       {Case{384 * kMiB, kMiB, 21}, Case{384 * kMiB, 32 * kMiB, 4}, Case{384 * kMiB, 128 * kMiB, 1}, Case{48 * kMiB, kMiB, 2},
        Case{kMiB, kMiB, 1}, Case{384 * kMiB, 0, 4}, Case{48 * kMiB, 0, 2}, Case{int64_t{1} << 40, 100, 58254}}) {
    EXPECT_EQ(OpenStreams::Most(c.budget, rpc::Window::kFixed, c.message), c.most) << c.budget << " " << c.message;
    if (c.most > 1) {
      EXPECT_LE(c.most * (rpc::WindowBytes(rpc::Window::kFixed) + c.message), c.budget / 2);
    }
  }
}

// The wide windows are taken where all readers fit with them: never at the price of streams.
TEST(OpenStreamsTest, TheKindOfWindowFollowsFromTheBudget) {
  struct Case {
    int64_t budget;
    int readers;
    bool probed;
  };
  for (const Case& c : {Case{512 * kMiB, 1, true}, Case{512 * kMiB, 6, true}, Case{512 * kMiB, 7, false}, Case{512 * kMiB, 0, false},
                        Case{82 * kMiB, 1, true}, Case{64 * kMiB, 2, false}, Case{81 * kMiB, 1, false}, Case{kMiB, 1, false}}) {
    const MemoryBudget budget(c.budget);
    const auto room = OpenStreams::RoomOf(&budget, c.readers);
    EXPECT_EQ(room.window == rpc::Window::kProbed, c.probed) << c.budget << " " << c.readers;
    EXPECT_EQ(room.budget, &budget);
    if (c.probed) {
      EXPECT_LE(c.readers * (rpc::WindowBytes(rpc::Window::kProbed) + kMiB), c.budget / 2);
    }
  }
  EXPECT_EQ(OpenStreams::RoomOf(nullptr, 0).window, rpc::Window::kProbed);
}

// One source may be read twice at a time: the first reader's streams stay open while the caller takes rows of the second.
TEST(OpenStreamsTest, JobsDoNotWaitForEachOther) {
  const MemoryBudget first(kMiB);
  const MemoryBudget second(kMiB);
  OpenStreams streams;
  const auto held = streams.Acquire({&first}, {});
  EXPECT_FALSE(streams.has_room({&first}));
  EXPECT_TRUE(streams.has_room({&second}));
  {
    const auto other = streams.Acquire({&second}, {});
    EXPECT_FALSE(streams.has_room({&second}));
  }
  EXPECT_TRUE(streams.has_room({&second}));
  EXPECT_FALSE(streams.has_room({&first}));
}

TEST(OpenStreamsTest, OneMoreWaitsForAnotherToEnd) {
  const MemoryBudget budget(48 * kMiB);
  OpenStreams streams;
  std::deque<OpenStreams::Permit> held;
  for (int i = 0; i < 2; ++i) held.push_back(*streams.Acquire({&budget}, {}));
  EXPECT_FALSE(streams.has_room({&budget}));
  EXPECT_FALSE(streams.TryAcquire({&budget}).has_value());
  std::atomic<bool> opened{false};
  std::jthread third([&](const std::stop_token& stop) {
    auto permit = streams.Acquire({&budget}, stop);
    opened = permit.has_value();
  });
  held.pop_back();
  third.join();
  EXPECT_TRUE(opened);
  EXPECT_TRUE(streams.has_room({&budget}));
}

TEST(OpenStreamsTest, AStopEndsTheWait) {
  const MemoryBudget budget(kMiB);
  OpenStreams streams;
  auto held = streams.Acquire({&budget}, {});
  std::stop_source stop;
  std::jthread asker([&] { stop.request_stop(); });
  EXPECT_FALSE(streams.Acquire({&budget}, stop.get_token()).has_value());
}

TEST(OpenStreamsTest, TheFirstMessageTellsHowManyMore) {
  const MemoryBudget budget(384 * kMiB);
  OpenStreams streams;
  std::deque<OpenStreams::Permit> held;
  for (int i = 0; i < OpenStreams::kBeforeTheFirst; ++i) held.push_back(*streams.Acquire({&budget}, {}));
  EXPECT_FALSE(streams.has_room({&budget}));
  streams.Note(100);
  EXPECT_TRUE(streams.has_room({&budget}));
  streams.Note(32 * kMiB);
  EXPECT_FALSE(streams.has_room({&budget})) << "of large messages fewer are open; those that are go on";
}

TEST(OpenStreamsTest, SilentStreamsDoNotHoldUpTheOthers) {
  const MemoryBudget budget(384 * kMiB);
  OpenStreams streams;
  std::deque<OpenStreams::Permit> held;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 21; ++i) held.push_back(*streams.Acquire({&budget}, {}));
  EXPECT_GE(std::chrono::steady_clock::now() - start, OpenStreams::kFirstLimit);
  EXPECT_FALSE(streams.has_room({&budget}));
}

TEST(OpenStreamsTest, WithoutABudgetThereIsNoBound) {
  OpenStreams streams;
  std::deque<OpenStreams::Permit> held;
  for (int i = 0; i < 1000; ++i) held.push_back(*streams.TryAcquire({}));
  EXPECT_TRUE(streams.has_room({}));
}

}  // namespace
}  // namespace headrace::bigquery
