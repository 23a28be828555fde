// The seam through which all of Headrace reads time and waits.
//
// RealClock is the process's; ManualClock moves only when a test says so, so that no test sleeps for real time. Both may be used from any
// thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace headrace {

using Duration = std::chrono::nanoseconds;
using SystemTime = std::chrono::system_clock::time_point;
/// A point on a clock's own monotonic scale (nanoseconds since an arbitrary start).
using MonotonicTime = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual SystemTime Now() const = 0;
  virtual MonotonicTime Monotonic() const = 0;
  /// Waits once on `wake` until it is notified, `deadline` passes, or spuriously. The caller holds `lock` and tests its condition in a
  /// loop.
  virtual void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake, MonotonicTime deadline) = 0;
  /// Sleeps for `duration`; false when `stop` was requested first.
  bool SleepFor(Duration duration, const std::stop_token& stop);
};

/// The process's clock; never destroyed.
Clock* RealClock();

/// A clock that stands still until Advance. A waiter sees an advance within about a millisecond of real time.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(SystemTime start = SystemTime{std::chrono::seconds{1'700'000'000}});
  SystemTime Now() const override;
  MonotonicTime Monotonic() const override;
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake, MonotonicTime deadline) override;
  void Advance(Duration by);
  /// With auto-advance a thread that would wait until a deadline moves the clock there instead: sleeps take no time at all.
  void set_auto_advance(bool on);

 private:
  mutable std::mutex mutex_;
  SystemTime start_;
  Duration elapsed_{0};
  bool auto_advance_ = false;
};

}  // namespace headrace
