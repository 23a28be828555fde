// Notices that a call waits too long for its client to take a message.
//
// Owns a thread, which ends with the watch. Writing and Written belong to the call's thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "headrace/base/clock.h"

namespace headrace::local {

class IdleWatch {
 public:
  /// `close` is called at most once, on the watch's thread.
  IdleWatch(Clock* clock, Duration limit, std::function<void()> close);
  ~IdleWatch();
  IdleWatch(const IdleWatch&) = delete;
  IdleWatch& operator=(const IdleWatch&) = delete;

  /// A message is handed over from now on, until Written.
  void Writing();
  void Written();
  /// `close` was called.
  bool closed() const;

 private:
  void Run();

  Clock* const clock_;
  const Duration limit_;
  const std::function<void()> close_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<MonotonicTime> since_{};
  bool closed_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace headrace::local
