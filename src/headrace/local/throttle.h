// A token bucket over bytes without burst: n bytes are let through n / rate seconds after those before them. Any thread.
#pragma once

#include <cstdint>
#include <mutex>

#include "headrace/base/clock.h"

namespace headrace::local {

class Throttle {
 public:
  Throttle(Clock* clock, int64_t bytes_per_second) : clock_(clock), bytes_per_second_(bytes_per_second) {}
  /// Reserves `bytes` and answers how long the caller must wait before it sends them.
  Duration Reserve(int64_t bytes);

 private:
  Clock* const clock_;
  const int64_t bytes_per_second_;
  std::mutex mutex_;
  MonotonicTime next_{0};
};

}  // namespace headrace::local
