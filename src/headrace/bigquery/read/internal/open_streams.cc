#include "headrace/bigquery/read/internal/open_streams.h"

#include <algorithm>

#include "headrace/rpc/channel.h"

namespace headrace::bigquery {

int64_t OpenStreams::Most(int64_t budget_bytes, int64_t largest_message) {
  const int64_t most = std::max<int64_t>(budget_bytes / 2 / (rpc::kReceiveWindow + std::max(largest_message, kUsualMessage)), 1);
  return largest_message > 0 ? most : std::min<int64_t>(most, kBeforeTheFirst);
}

bool OpenStreams::FitsLocked(const MemoryBudget* budget) const {
  if (budget == nullptr) return true;
  const bool silent = largest_ == 0 && first_opened_.has_value() && std::chrono::steady_clock::now() - *first_opened_ >= kFirstLimit;
  return open_ < Most(budget->limit(), silent ? kUsualMessage : largest_);
}

OpenStreams::Permit OpenStreams::OpenLocked() {
  if (!first_opened_.has_value()) first_opened_ = std::chrono::steady_clock::now();
  ++open_;
  return Permit(this);
}

std::optional<OpenStreams::Permit> OpenStreams::Acquire(const MemoryBudget* budget, const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto fits = [&] { return FitsLocked(budget); };
  // Only the time changes the answer without a notice, and only once.
  if (largest_ == 0 && first_opened_.has_value()) changed_.wait_until(lock, stop, *first_opened_ + kFirstLimit, fits);
  if (!changed_.wait(lock, stop, fits)) return std::nullopt;
  return OpenLocked();
}

std::optional<OpenStreams::Permit> OpenStreams::TryAcquire(const MemoryBudget* budget) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!FitsLocked(budget)) return std::nullopt;
  return OpenLocked();
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
