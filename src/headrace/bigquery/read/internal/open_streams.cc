#include "headrace/bigquery/read/internal/open_streams.h"

#include <algorithm>

namespace headrace::bigquery {

OpenStreams::Room OpenStreams::RoomOf(const MemoryBudget* budget, int readers) {
  if (budget == nullptr) return {.budget = nullptr, .window = rpc::Window::kProbed};
  const bool all_fit = readers > 0 && readers * (rpc::WindowBytes(rpc::Window::kProbed) + kUsualMessage) <= budget->limit() / 2;
  return {.budget = budget, .window = all_fit ? rpc::Window::kProbed : rpc::Window::kFixed};
}

int64_t OpenStreams::Most(int64_t budget_bytes, rpc::Window window, int64_t largest_message) {
  const int64_t most = std::max<int64_t>(budget_bytes / 2 / (rpc::WindowBytes(window) + std::max(largest_message, kUsualMessage)), 1);
  return largest_message > 0 ? most : std::min<int64_t>(most, kBeforeTheFirst);
}

bool OpenStreams::FitsLocked(const Room& room) const {
  if (room.budget == nullptr) return true;
  const bool silent = largest_ == 0 && first_opened_.has_value() && std::chrono::steady_clock::now() - *first_opened_ >= kFirstLimit;
  const auto open = open_.find(room.budget);
  return open == open_.end() || open->second < Most(room.budget->limit(), room.window, silent ? kUsualMessage : largest_);
}

OpenStreams::Permit OpenStreams::OpenLocked(const Room& room) {
  if (!first_opened_.has_value()) first_opened_ = std::chrono::steady_clock::now();
  ++open_[room.budget];
  return {this, room.budget};
}

std::optional<OpenStreams::Permit> OpenStreams::Acquire(const Room& room, const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto fits = [&] { return FitsLocked(room); };
  // Only the time changes the answer without a notice, and only once.
  if (largest_ == 0 && first_opened_.has_value()) changed_.wait_until(lock, stop, *first_opened_ + kFirstLimit, fits);
  if (!changed_.wait(lock, stop, fits)) return std::nullopt;
  return OpenLocked(room);
}

std::optional<OpenStreams::Permit> OpenStreams::TryAcquire(const Room& room) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!FitsLocked(room)) return std::nullopt;
  return OpenLocked(room);
}

bool OpenStreams::has_room(const Room& room) const {
  std::lock_guard<std::mutex> guard(mutex_);
  return FitsLocked(room);
}

void OpenStreams::Note(int64_t message_bytes) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (message_bytes <= largest_) return;
  largest_ = message_bytes;
  changed_.notify_all();
}

void OpenStreams::Release(const MemoryBudget* budget) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (--open_[budget] == 0) open_.erase(budget);
  changed_.notify_all();
}

}  // namespace headrace::bigquery
