// A queue bounded by bytes, for handing work from one thread to another.
//
// Room is taken first (Reserve, which may wait) and filled later (PushReserved, which never waits), so that a caller can fill it under a
// lock of its own. An item larger than the whole queue is let in when the queue is empty. Any number of producers and consumers; the queue
// outlives the calls of all of them.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "headrace/base/condition.h"
#include "headrace/base/error.h"

namespace headrace {

template <typename T>
class ByteQueue {
 public:
  /// `capacity` in bytes, at least 1.
  explicit ByteQueue(int64_t capacity) : capacity_(capacity) {}
  ByteQueue(const ByteQueue&) = delete;
  ByteQueue& operator=(const ByteQueue&) = delete;

  /// Waits for room for an item of `bytes` bytes and keeps it. Cancelled when `stop` is requested; the error given to Fail once failed.
  arrow::Status Reserve(int64_t bytes, const std::stop_token& stop) {
    std::unique_lock<std::mutex> lock(mutex_);
    bool stopped = !changed_.Wait(lock, stop, [&] { return !failure_.ok() || held_ == 0 || held_ + bytes <= capacity_; });
    if (!failure_.ok()) return failure_;
    if (stopped || stop.stop_requested()) return arrow::Status::Cancelled("stopped while waiting for room in a queue");
    held_ += bytes;
    return arrow::Status::OK();
  }

  /// Gives back room that will not be filled.
  void CancelReservation(int64_t bytes) {
    std::lock_guard<std::mutex> guard(mutex_);
    held_ -= bytes;
    changed_.NotifyAll();
  }

  /// Puts an item into room kept by Reserve(bytes); never waits.
  void PushReserved(T item, int64_t bytes) {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      items_.emplace_back(std::move(item), bytes);
    }
    changed_.NotifyAll();  // without the lock: who wakes wants it
  }

  /// Puts an item of no size (a marker) behind everything queued; never waits.
  void PushMarker(T item) { PushReserved(std::move(item), 0); }

  /// Reserve, then PushReserved.
  arrow::Status Push(T item, int64_t bytes, const std::stop_token& stop) {
    ARROW_RETURN_NOT_OK(Reserve(bytes, stop));
    PushReserved(std::move(item), bytes);
    return arrow::Status::OK();
  }

  /// No item follows: Pop answers nullopt once the queue is empty.
  void Close() {
    std::lock_guard<std::mutex> guard(mutex_);
    closed_ = true;
    changed_.NotifyAll();
  }

  /// Ends every wait, now and later, with `status`; queued items are dropped. The first failure stays.
  void Fail(arrow::Status status) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    items_.clear();
    changed_.NotifyAll();
  }

  /// The next item; its bytes are free at once. nullopt after Close. Cancelled when `stop` is requested first.
  arrow::Result<std::optional<T>> Pop(const std::stop_token& stop) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.Wait(lock, stop, [&] { return !failure_.ok() || !items_.empty() || closed_; });
    if (!failure_.ok()) return failure_;
    if (!items_.empty() && !stop.stop_requested()) {
      std::optional<T> item = PopLocked();
      lock.unlock();
      changed_.NotifyAll();
      return item;
    }
    if (stop.stop_requested()) return arrow::Status::Cancelled("stopped while waiting for a queue");
    return std::optional<T>();
  }

  /// The next item if there is one.
  std::optional<T> TryPop() {
    std::optional<T> item;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      if (items_.empty()) return item;
      item = PopLocked();
    }
    changed_.NotifyAll();
    return item;
  }

  int64_t bytes() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return held_;
  }

 private:
  T PopLocked() {
    T item = std::move(items_.front().first);
    held_ -= items_.front().second;
    items_.pop_front();
    return item;
  }

  const int64_t capacity_;
  mutable std::mutex mutex_;
  Condition changed_;
  std::deque<std::pair<T, int64_t>> items_;
  int64_t held_ = 0;  // bytes queued and bytes of room kept
  bool closed_ = false;
  arrow::Status failure_;
};

}  // namespace headrace
