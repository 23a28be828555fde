// Where a mapper of ReadRows puts the records of one row, and what tells a collector that outlives its row.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {

namespace internal {

/// Which call of the mapper is running. Check may come from any thread at any time, so that late uses are told from good ones; the others
/// belong to the reader.
class CollectorGate {
 public:
  uint64_t Open();
  void Close() { turn_.store(0); }
  /// OK in the call that got this `turn` from Open, on its thread; else an error, remembered.
  arrow::Status Check(uint64_t turn);
  /// A collector was used after its call, or on another thread.
  bool misused() const { return misused_.load(); }
  static arrow::Status Misuse();

 private:
  std::atomic<uint64_t> turn_{0};  // 0 = no call
  std::atomic<bool> misused_{false};
  uint64_t last_turn_ = 0;
  std::atomic<std::thread::id> owner_{};  // atomic, as the call may end while another thread checks
};

arrow::Status NullRecord();

template <typename T>
struct Collected {
  CollectorGate gate{};
  std::vector<T> records{};
  arrow::Status error{};
};

}  // namespace internal

/// Takes 0 to n records for the row that the mapper was called with. It works during that call, on its thread; used later it answers an
/// error, and so does the reader from then on. May be copied.
template <typename T>
class Collector {
 public:
  Collector(std::shared_ptr<internal::Collected<T>> to, uint64_t turn) : to_(std::move(to)), turn_(turn) {}

  /// A null (of a record type that is a pointer) is an error, which also fails the row when the mapper passes over it.
  arrow::Status Emit(T record) const {
    ARROW_RETURN_NOT_OK(to_->gate.Check(turn_));
    if constexpr (requires { record == nullptr; }) {
      if (record == nullptr) return to_->error = internal::NullRecord();
    }
    to_->records.push_back(std::move(record));
    return arrow::Status::OK();
  }

 private:
  std::shared_ptr<internal::Collected<T>> to_;
  uint64_t turn_;
};

}  // namespace headrace
