// One byte budget shared by everything that a job holds on the way: received messages, decoded batches, queues.
//
// Whoever wants to hold more waits in arrival order; whoever holds memory may always finish what it holds (Resize never waits). A request
// larger than the whole budget is let through when nothing else is held. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/condition.h"
#include "headrace/base/error.h"

namespace headrace {

class MemoryBudget;

/// A part of a budget; given back when destroyed. Movable; not for use by two threads at once. The budget must outlive it.
class MemoryReservation {
 public:
  MemoryReservation() = default;
  MemoryReservation(MemoryReservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryReservation& operator=(MemoryReservation&& other) noexcept {
    if (this != &other) {
      Release();
      budget_ = std::exchange(other.budget_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }
  ~MemoryReservation() { Release(); }

  int64_t bytes() const { return bytes_; }
  /// Changes the size at once, also beyond the budget: what is held may be finished.
  void Resize(int64_t bytes);
  /// Splits `bytes` (at most what is held) off into a reservation of their own.
  MemoryReservation Split(int64_t bytes);
  void Release();

 private:
  friend class MemoryBudget;
  MemoryReservation(MemoryBudget* budget, int64_t bytes) : budget_(budget), bytes_(bytes) {}
  MemoryBudget* budget_ = nullptr;
  int64_t bytes_ = 0;
};

class MemoryBudget {
 public:
  /// `limit` in bytes, at least 1. The clock only tells last_wait.
  explicit MemoryBudget(int64_t limit, Clock* clock = RealClock()) : limit_(limit), clock_(clock) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// Waits, in arrival order, until `bytes` fit. Cancelled when `stop` is requested.
  arrow::Result<MemoryReservation> Reserve(int64_t bytes, const std::stop_token& stop);
  /// The same without waiting; nothing when `bytes` do not fit now, or somebody waits already.
  std::optional<MemoryReservation> TryReserve(int64_t bytes);

  int64_t limit() const { return limit_; }
  int64_t used() const;
  /// The most that was ever held.
  int64_t peak() const;
  /// When somebody last waited for memory: now while somebody does, nothing when nobody ever did.
  std::optional<MonotonicTime> last_wait() const;

 private:
  friend class MemoryReservation;
  void Adjust(int64_t delta);

  const int64_t limit_;
  Clock* const clock_;
  mutable std::mutex mutex_;
  Condition changed_;
  int64_t used_ = 0;
  int64_t peak_ = 0;
  int waiting_ = 0;
  std::optional<MonotonicTime> last_wait_;  // its end
  uint64_t next_ticket_ = 0;                // of the next caller
  uint64_t serving_ = 0;                    // whose turn it is; abandoned tickets are skipped
  std::vector<uint64_t> abandoned_;
};

}  // namespace headrace
