// A token bucket over rows and bytes, shared by all readers of a job. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <stop_token>

#include "headrace/base/clock.h"
#include "headrace/base/error.h"

namespace headrace {

class RateLimiter {
 public:
  /// Per second; 0 = no limit.
  RateLimiter(Clock* clock, double rows, double bytes) : clock_(clock), rows_(rows), bytes_(bytes) {}

  /// Takes a batch's tokens. A batch goes at once when the bucket owes nothing, however large it is; the next one waits until it is paid
  /// for. Cancelled as soon as `stop` is requested.
  arrow::Status Acquire(int64_t rows, int64_t bytes, const std::stop_token& stop);

 private:
  Clock* const clock_;
  const double rows_;
  const double bytes_;
  std::mutex mutex_;
  MonotonicTime paid_until_ = MonotonicTime::min();  // when everything granted so far is paid for
};

}  // namespace headrace
