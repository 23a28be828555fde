#include "headrace/base/block_pool.h"

#include <algorithm>
#include <bit>

namespace headrace {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeeps = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif
#else
constexpr bool kKeeps = true;
#endif

constexpr int64_t kAlignment = arrow::kDefaultBufferAlignment;

bool IsKept(int64_t size, int64_t alignment) {
  return kKeeps && size >= BlockPool::kLeastKept && size <= BlockPool::kMostKept && alignment <= kAlignment;
}

/// The size that is asked of the other pool: one of eight between two powers of two, so that blocks of about the same size are one kind.
int64_t BlockSize(int64_t size, int64_t alignment) {
  if (!IsKept(size, alignment)) return size;
  const int64_t step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size))) / 8;
  return (size + step - 1) / step * step;
}

}  // namespace

BlockPool::BlockPool(arrow::MemoryPool* pool, int64_t kept_bytes) : pool_(pool), most_(kKeeps ? kept_bytes : 0) {}

arrow::Status BlockPool::Allocate(int64_t size, int64_t alignment, uint8_t** out) {
  if (!IsKept(size, alignment)) return pool_->Allocate(size, alignment, out);
  const int64_t block = BlockSize(size, alignment);
  {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto found = kept_.find(block);
    if (found != kept_.end() && !found->second.empty()) {
      *out = found->second.back();
      found->second.pop_back();
      kept_bytes_ -= block;
      return arrow::Status::OK();
    }
  }
  return pool_->Allocate(block, kAlignment, out);
}

arrow::Status BlockPool::Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** pointer) {
  const int64_t old_block = BlockSize(old_size, alignment);
  const int64_t new_block = BlockSize(new_size, alignment);
  return old_block == new_block ? arrow::Status::OK() : pool_->Reallocate(old_block, new_block, std::max(alignment, kAlignment), pointer);
}

void BlockPool::Free(uint8_t* buffer, int64_t size, int64_t alignment) {
  if (!IsKept(size, alignment)) return pool_->Free(buffer, size, alignment);
  const int64_t block = BlockSize(size, alignment);
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (kept_bytes_ + block <= most_) {
      kept_[block].push_back(buffer);
      kept_bytes_ += block;
      return;
    }
  }
  pool_->Free(buffer, block, kAlignment);
}

void BlockPool::ReleaseUnused() {
  std::map<int64_t, std::vector<uint8_t*>> kept;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    kept.swap(kept_);
    kept_bytes_ = 0;
  }
  for (const auto& [block, buffers] : kept) {
    for (uint8_t* buffer : buffers) pool_->Free(buffer, block, kAlignment);
  }
  pool_->ReleaseUnused();
}

int64_t BlockPool::kept() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return kept_bytes_;
}

}  // namespace headrace
