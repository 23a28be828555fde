#include "headrace/bigquery/read/internal/open_streams.h"

#include "headrace/rpc/channel.h"

namespace headrace::bigquery {

int64_t OpenStreams::Most(int64_t budget_bytes, int64_t largest_message) {
  const int64_t most = std::max<int64_t>(budget_bytes / 2 / (rpc::kReceiveWindow + std::max(largest_message, kUsualMessage)), 1);
  return largest_message > 0 ? most : std::min<int64_t>(most, kBeforeTheFirst);
}

std::optional<OpenStreams::Permit> OpenStreams::Acquire(const MemoryBudget* budget, const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait(lock, stop, [&] { return FitsLocked(budget); })) return std::nullopt;
  ++open_;
  return Permit(this);
}

std::optional<OpenStreams::Permit> OpenStreams::TryAcquire(const MemoryBudget* budget) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!FitsLocked(budget)) return std::nullopt;
  ++open_;
  return Permit(this);
}

bool OpenStreams::has_room(const MemoryBudget* budget) const {
  std::lock_guard<std::mutex> guard(mutex_);
  return FitsLocked(budget);
}

void OpenStreams::Note(int64_t message_bytes) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (message_bytes <= largest_) return;
  largest_ = message_bytes;
  changed_.notify_all();
}

void OpenStreams::Release() {
  std::lock_guard<std::mutex> guard(mutex_);
  --open_;
  changed_.notify_all();
}

}  // namespace headrace::bigquery
