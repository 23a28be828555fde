#include "headrace/base/memory_budget.h"

#include <algorithm>

namespace headrace {

void MemoryReservation::Resize(int64_t bytes) {
  if (budget_ == nullptr) return;
  budget_->Adjust(bytes - bytes_);
  bytes_ = bytes;
}

MemoryReservation MemoryReservation::Split(int64_t bytes) {
  bytes = std::min(bytes, bytes_);
  bytes_ -= bytes;
  return {budget_, bytes};
}

void MemoryReservation::Release() {
  if (budget_ != nullptr && bytes_ != 0) budget_->Adjust(-bytes_);
  budget_ = nullptr;
  bytes_ = 0;
}

arrow::Result<MemoryReservation> MemoryBudget::Reserve(int64_t bytes, const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t ticket = next_ticket_++;
  auto fits = [&] { return serving_ == ticket && (used_ == 0 || used_ + bytes <= limit_); };
  if (!fits()) {
    ++waiting_;
    changed_.Wait(lock, stop, fits);
    --waiting_;
    last_wait_ = clock_->Monotonic();
  }
  const bool granted = fits() && !stop.stop_requested();
  if (granted) {
    used_ += bytes;
    peak_ = std::max(peak_, used_);
  } else {
    abandoned_.push_back(ticket);
  }
  if (granted) ++serving_;
  for (auto gone = abandoned_.begin(); (gone = std::find(abandoned_.begin(), abandoned_.end(), serving_)) != abandoned_.end();) {
    abandoned_.erase(gone);
    ++serving_;
  }
  changed_.NotifyAll();
  if (!granted) return arrow::Status::Cancelled("stopped while waiting for memory");
  return MemoryReservation(this, bytes);
}

std::optional<MemoryReservation> MemoryBudget::TryReserve(int64_t bytes) {
  std::lock_guard<std::mutex> guard(mutex_);
  const bool nobody_waits = serving_ == next_ticket_;
  if (!nobody_waits || (used_ != 0 && used_ + bytes > limit_)) return std::nullopt;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return MemoryReservation(this, bytes);
}

int64_t MemoryBudget::used() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return used_;
}

std::optional<MonotonicTime> MemoryBudget::last_wait() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return waiting_ > 0 ? clock_->Monotonic() : last_wait_;
}

int64_t MemoryBudget::peak() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return peak_;
}

void MemoryBudget::Adjust(int64_t delta) {
  std::lock_guard<std::mutex> guard(mutex_);
  used_ += delta;
  peak_ = std::max(peak_, used_);
  changed_.NotifyAll();
}

}  // namespace headrace
