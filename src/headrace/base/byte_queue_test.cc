#include "headrace/base/byte_queue.h"

#include <future>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace headrace {
namespace {

using std::chrono::seconds;

TEST(ByteQueueTest, ItemsComeOutInOrderAndFreeTheirRoom) {
  ByteQueue<std::string> queue(10);
  ASSERT_TRUE(queue.Push("a", 6, {}).ok());
  queue.PushMarker("m");
  ASSERT_TRUE(queue.Push("b", 4, {}).ok());
  EXPECT_EQ(queue.bytes(), 10);
  EXPECT_EQ(**queue.Pop({}), "a");
  EXPECT_EQ(queue.bytes(), 4);
  EXPECT_EQ(queue.TryPop(), "m");
  EXPECT_EQ(**queue.Pop({}), "b");
  EXPECT_EQ(queue.TryPop(), std::nullopt);
  queue.Close();
  EXPECT_FALSE(queue.Pop({})->has_value());
}

TEST(ByteQueueTest, ReserveWaitsForRoomAndTheRoomKeptCounts) {
  ByteQueue<int> queue(10);
  ASSERT_TRUE(queue.Reserve(8, {}).ok());  // kept, not filled yet
  auto waiting = std::async(std::launch::async, [&] { return queue.Reserve(3, {}); });
  queue.CancelReservation(1);
  ASSERT_EQ(waiting.wait_for(seconds{10}), std::future_status::ready);
  EXPECT_TRUE(waiting.get().ok());
  EXPECT_EQ(queue.bytes(), 10);
}

TEST(ByteQueueTest, AnItemLargerThanTheQueueIsLetInWhenItIsEmpty) {
  ByteQueue<int> queue(10);
  ASSERT_TRUE(queue.Push(1, 1000, {}).ok());
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return queue.Reserve(1, stop.get_token()); });
  stop.request_stop();
  EXPECT_EQ(CodeOf(waiting.get()), Code::kCancelled);
  EXPECT_EQ(**queue.Pop({}), 1);
  EXPECT_TRUE(queue.Reserve(1, {}).ok());
}

TEST(ByteQueueTest, CloseLetsTheRestOut) {
  ByteQueue<int> queue(10);
  ASSERT_TRUE(queue.Push(1, 1, {}).ok());
  queue.Close();
  EXPECT_EQ(**queue.Pop({}), 1);
  EXPECT_FALSE(queue.Pop({})->has_value());
}

TEST(ByteQueueTest, FailEndsEveryWaitWithTheFirstFailure) {
  ByteQueue<int> queue(1);
  auto popping = std::async(std::launch::async, [&] { return queue.Pop({}).status(); });
  queue.Fail(arrow::Status::IOError("first"));
  queue.Fail(arrow::Status::IOError("second"));
  ASSERT_EQ(popping.wait_for(seconds{10}), std::future_status::ready);
  EXPECT_EQ(popping.get().message(), "first");
  EXPECT_EQ(queue.Reserve(1, {}).message(), "first");
}

TEST(ByteQueueTest, AStopEndsPop) {
  ByteQueue<int> queue(1);
  std::stop_source stop;
  auto popping = std::async(std::launch::async, [&] { return queue.Pop(stop.get_token()).status(); });
  stop.request_stop();
  ASSERT_EQ(popping.wait_for(seconds{10}), std::future_status::ready);
  EXPECT_EQ(CodeOf(popping.get()), Code::kCancelled);
}

TEST(ByteQueueTest, ManyThreadsLoseNothing) {
  ByteQueue<int> queue(50);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) (void)queue.Push(1, 7, {});
    });
  }
  std::atomic<int> sum{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      while (auto item = queue.Pop({}).ValueOrDie()) sum += *item;
    });
  }
  for (auto& thread : threads) thread.join();
  queue.Close();
  for (auto& thread : readers) thread.join();
  EXPECT_EQ(sum, 3000);
  EXPECT_EQ(queue.bytes(), 0);
}

}  // namespace
}  // namespace headrace
