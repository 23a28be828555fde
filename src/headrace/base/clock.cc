#include "headrace/base/clock.h"

namespace headrace {
namespace {

class ProcessClock final : public Clock {
 public:
  SystemTime Now() const override { return std::chrono::system_clock::now(); }
  MonotonicTime Monotonic() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake, MonotonicTime deadline) override {
    // steady_clock overflows close to its maximum; a year is for ever here.
    constexpr Duration kForEver = std::chrono::hours{24 * 365};
    auto now = Monotonic();
    auto wait = std::min<Duration>(deadline - now, kForEver);
    if (deadline > now) wake.wait_for(lock, wait);
  }
};

}  // namespace

bool Clock::SleepFor(Duration duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::stop_callback on_stop(stop, [&] {
    std::lock_guard<std::mutex> guard(mutex);
    wake.notify_all();
  });
  auto deadline = Monotonic() + duration;
  std::unique_lock<std::mutex> lock(mutex);
  while (!stop.stop_requested() && Monotonic() < deadline) WaitUntil(lock, wake, deadline);
  return !stop.stop_requested();
}

Clock* RealClock() {
  static ProcessClock* clock = new ProcessClock;
  return clock;
}

ManualClock::ManualClock(SystemTime start) : start_(start) {}

SystemTime ManualClock::Now() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return start_ + std::chrono::duration_cast<SystemTime::duration>(elapsed_);
}

MonotonicTime ManualClock::Monotonic() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return elapsed_;
}

void ManualClock::WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake, MonotonicTime deadline) {
  // One real millisecond per look: a waiter needs no registration, and Advance cannot be missed.
  bool notified = wake.wait_for(lock, std::chrono::milliseconds{1}) == std::cv_status::no_timeout;
  std::lock_guard<std::mutex> guard(mutex_);
  if (!notified && auto_advance_ && deadline > elapsed_) elapsed_ = deadline;
}

void ManualClock::Advance(Duration by) {
  std::lock_guard<std::mutex> guard(mutex_);
  elapsed_ += by;
}

void ManualClock::set_auto_advance(bool on) {
  std::lock_guard<std::mutex> guard(mutex_);
  auto_advance_ = on;
}

}  // namespace headrace
