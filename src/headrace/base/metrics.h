// Named counters of a job. Names are Flink's where Flink has the counter: rowsRead, bytesRead, readRetries, splitsAssigned, ...
//
// A Counter lives as long as its registry; Add is wait-free and may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace headrace {

class Counter {
 public:
  void Add(int64_t delta = 1) { value_.fetch_add(delta, std::memory_order_relaxed); }
  void Set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

class MetricRegistry {
 public:
  /// The counter of that name, made at the first call. "readRetries.UNAVAILABLE" is the part of readRetries with that code.
  Counter* counter(std::string_view name);
  /// All counters by name.
  std::map<std::string, int64_t> Snapshot() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Counter>, std::less<>> counters_;
};

}  // namespace headrace
