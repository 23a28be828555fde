#include "headrace/local/throttle.h"

#include <algorithm>

namespace headrace::local {

Duration Throttle::Reserve(int64_t bytes) {
  std::lock_guard lock(mutex_);
  MonotonicTime now = clock_->Monotonic();
  // The bytes go out at the end of their own time: the first message waits too, so that the rate holds from the start.
  double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_per_second_);
  next_ = std::max(next_, now) + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  return next_ - now;
}

}  // namespace headrace::local
