// Named numbers of a job, and what they are: counters and gauges. Names are Flink's where Flink has them: rowsRead, bytesRead, readRetries,
// splitsAssigned, ...
//
// A Counter lives as long as its registry; Add and Set are wait-free. All of this may be used from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

class Counter {
 public:
  void Add(int64_t delta = 1) { value_.fetch_add(delta, std::memory_order_relaxed); }
  void Set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

enum class MetricKind {
  kCounter,  // never goes down while the process lives
  kGauge,    // as it is now
};

/// What a metric is. Connectors keep theirs as constant data; docs/metrics.md shows all of them.
struct MetricInfo {
  std::string_view name;
  MetricKind kind;
  std::string_view unit;     // "rows", "bytes", "splits" ...
  std::string_view flink;    // its name in the Flink connectors; empty where they have none
  std::string_view label;    // what its parts are told apart by, NAME.PART; empty where it has none
  std::string_view meaning;  // one sentence
};

/// One number as it was when it was looked at.
struct MetricValue {
  std::string name{};
  std::string part{};                // "UNAVAILABLE" of readRetries.UNAVAILABLE; empty for the whole
  const MetricInfo* info = nullptr;  // of the name; null when nobody registered it
  int64_t value = 0;

  bool operator==(const MetricValue&) const = default;
};

class MetricRegistry {
 public:
  /// Makes the metrics, so that 0 means "did not happen". `infos` is constant data: it must outlive the registry. One that has the name of
  /// an earlier one changes nothing.
  void Register(std::span<const MetricInfo> infos);
  /// The counter of that name, made at the first call. "readRetries.UNAVAILABLE" is the part of readRetries with that code.
  Counter* counter(std::string_view name);
  /// All values by name, gauges among them.
  std::map<std::string, int64_t> Snapshot() const;
  /// All values with what they are, in the order of their names, a whole before its parts.
  std::vector<MetricValue> Collect() const;

 private:
  Counter* CounterLocked(std::string_view name);

  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Counter>, std::less<>> counters_;
  std::map<std::string_view, const MetricInfo*> infos_;
};

/// Receives a job's metrics (JobEnvironment::listener).
class MetricListener {
 public:
  virtual ~MetricListener() = default;
  /// At every interval and once at the end (`last`), from a thread of the job's, never twice at a time. Whoever takes long only makes the
  /// next call later.
  virtual void OnMetrics(const std::vector<MetricValue>& values, bool last) = 0;
};

}  // namespace headrace
