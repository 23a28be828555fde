// An Arrow memory pool that hands blocks out again, for buffers of megabytes that come and go with every message.
//
// A general allocator gives such blocks back to the system after a moment, and every page of the next one is faulted in again: measured
// with messages of 1 MiB, an eighth of all CPU time of a read. Here up to `kept_bytes` of freed blocks stay.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <arrow/memory_pool.h>

namespace headrace {

/// Any thread. Buffers may outlive every owner of the pool, so a pool lives as long as the process.
class BlockPool final : public arrow::MemoryPool {
 public:
  /// Blocks of these sizes are kept: smaller ones the other pool is quick with, larger ones are rare.
  static constexpr int64_t kLeastKept = int64_t{16} << 10;
  static constexpr int64_t kMostKept = int64_t{16} << 20;

  /// Memory comes from `pool`. Programs of the sanitizers keep nothing, whatever `kept_bytes` says: who uses freed memory is to be seen.
  BlockPool(arrow::MemoryPool* pool, int64_t kept_bytes);

  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;
  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override;
  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** pointer) override;
  void Free(uint8_t* buffer, int64_t size, int64_t alignment) override;
  /// Gives every kept block back.
  void ReleaseUnused() override;
  /// The other pool's counts: what is kept is in them.
  int64_t bytes_allocated() const override { return pool_->bytes_allocated(); }
  int64_t total_bytes_allocated() const override { return pool_->total_bytes_allocated(); }
  int64_t num_allocations() const override { return pool_->num_allocations(); }
  int64_t max_memory() const override { return pool_->max_memory(); }
  std::string backend_name() const override { return pool_->backend_name(); }

  int64_t kept() const;

 private:
  arrow::MemoryPool* const pool_;
  const int64_t most_;
  mutable std::mutex mutex_;
  std::map<int64_t, std::vector<uint8_t*>> kept_;  // by size
  int64_t kept_bytes_ = 0;
};

}  // namespace headrace
