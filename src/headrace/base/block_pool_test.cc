#include "headrace/base/block_pool.h"

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <arrow/buffer.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

/// Whether blocks are kept at all: not in programs of the sanitizers.
bool Keeps() {
  BlockPool pool(arrow::system_memory_pool(), kMiB);
  uint8_t* block = nullptr;
  EXPECT_TRUE(pool.Allocate(kMiB, 64, &block).ok());
  pool.Free(block, kMiB, 64);
  const bool keeps = pool.kept() > 0;
  pool.ReleaseUnused();
  return keeps;
}

TEST(BlockPoolTest, AFreedBlockComesAgain) {
  if (!Keeps()) GTEST_SKIP() << "programs of the sanitizers keep nothing";
  BlockPool pool(arrow::system_memory_pool(), 4 * kMiB);
  uint8_t* first = nullptr;
  uint8_t* second = nullptr;
  ASSERT_TRUE(pool.Allocate(kMiB + 5, 64, &first).ok());
  pool.Free(first, kMiB + 5, 64);
  EXPECT_EQ(pool.kept(), kMiB + kMiB / 8);
  ASSERT_TRUE(pool.Allocate(kMiB + 100, 64, &second).ok());  // about as large
  EXPECT_EQ(second, first);
  EXPECT_EQ(pool.kept(), 0);
  pool.Free(second, kMiB + 100, 64);
  ASSERT_TRUE(pool.Allocate(2 * kMiB, 64, &first).ok());  // of another size
  EXPECT_NE(first, second);
  pool.Free(first, 2 * kMiB, 64);
  pool.ReleaseUnused();
  EXPECT_EQ(pool.kept(), 0);
}

TEST(BlockPoolTest, WhatIsKeptIsBounded) {
  BlockPool pool(arrow::system_memory_pool(), 3 * kMiB);
  const int64_t before = pool.bytes_allocated();
  std::vector<uint8_t*> blocks(8);
  for (auto& block : blocks) ASSERT_TRUE(pool.Allocate(kMiB, 64, &block).ok());
  for (auto* block : blocks) pool.Free(block, kMiB, 64);
  EXPECT_LE(pool.kept(), 3 * kMiB);
  EXPECT_EQ(pool.bytes_allocated() - before, pool.kept());
  // None of these is kept.
  for (const int64_t size : {int64_t{0}, int64_t{1}, BlockPool::kLeastKept - 1, BlockPool::kMostKept + 1}) {
    const int64_t kept = pool.kept();
    uint8_t* block = nullptr;
    ASSERT_TRUE(pool.Allocate(size, 64, &block).ok());
    pool.Free(block, size, 64);
    EXPECT_EQ(pool.kept(), kept) << size;
  }
  pool.ReleaseUnused();
  EXPECT_EQ(pool.bytes_allocated(), before);
}

// Sizes around every border, grown and shrunk at random, from several threads: bytes stay what they were.
TEST(BlockPoolTest, BytesOfRandomSizesStay) {
  BlockPool pool(arrow::system_memory_pool(), 8 * kMiB);
  const int64_t before = pool.bytes_allocated();
  {
    std::vector<std::jthread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) {
      threads.emplace_back([&pool, seed] {
        std::mt19937 random(seed);
        for (int round = 0; round < 300; ++round) {
          int64_t size = static_cast<int64_t>(random() % (BlockPool::kLeastKept * 40));
          auto buffer = arrow::AllocateResizableBuffer(size, &pool);
          ASSERT_TRUE(buffer.ok());
          std::memset((*buffer)->mutable_data(), static_cast<int>(round), static_cast<size_t>(size));
          for (int step = 0; step < 3; ++step) {
            const int64_t next = static_cast<int64_t>(random() % (BlockPool::kLeastKept * 40));
            ASSERT_TRUE((*buffer)->Resize(next).ok());
            const int64_t same = std::min(size, next);
            for (int64_t i = 0; i < same; i += 997) ASSERT_EQ((*buffer)->data()[i], static_cast<uint8_t>(round));
            std::memset((*buffer)->mutable_data(), static_cast<int>(round), static_cast<size_t>(next));
            size = next;
          }
        }
      });
    }
  }
  pool.ReleaseUnused();
  EXPECT_EQ(pool.bytes_allocated(), before);
}

}  // namespace
}  // namespace headrace
