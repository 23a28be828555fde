#include "headrace/runtime/internal/rate_limiter.h"

#include <algorithm>

namespace headrace {

arrow::Status RateLimiter::Acquire(int64_t rows, int64_t bytes, const std::stop_token& stop) {
  if (rows_ <= 0 && bytes_ <= 0) return arrow::Status::OK();
  double seconds = 0;
  if (rows_ > 0) seconds = static_cast<double>(rows) / rows_;
  if (bytes_ > 0) seconds = std::max(seconds, static_cast<double>(bytes) / bytes_);
  // A rate of one row a year is still a rate; beyond that the sum would overflow the clock's scale.
  constexpr double kMostSeconds = 365.0 * 24 * 3600;
  auto cost = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, kMostSeconds)));
  Duration wait{0};
  {
    std::lock_guard<std::mutex> guard(mutex_);
    auto now = clock_->Monotonic();
    auto start = std::max(now, paid_until_);
    wait = start - now;
    paid_until_ = start + cost;
  }
  if (wait > Duration{0} && !clock_->SleepFor(wait, stop)) return arrow::Status::Cancelled("stopped while slowed down");
  return arrow::Status::OK();
}

}  // namespace headrace
