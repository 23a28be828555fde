// A condition variable whose waits end with a stop token, for what happens with every message.
//
// std::condition_variable_any has such waits too, but a mutex of its own inside, which every waiter takes again when it wakes, while who
// woke it still holds it: measured with messages of 1 MiB, half of all changes between threads. Here there is only the caller's mutex.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>

namespace headrace {

class Condition {
 public:
  /// Wakes every waiter. Best called without the mutex, after what `ready` looks at was changed under it. Any thread.
  void NotifyAll() { changed_.notify_all(); }

  /// Waits until `ready` holds, which is asked under `lock`'s mutex only, or `stop` is requested. Whether `ready` holds; `lock` is held
  /// before and after, and let go meanwhile. `stop` must not be requested by a thread that holds the mutex.
  template <typename Ready>
  bool Wait(std::unique_lock<std::mutex>& lock, const std::stop_token& stop, Ready ready) {
    if (ready()) return true;
    auto notify = [this, mutex = lock.mutex()] {
      // Not between a waiter's look at the token and its wait, where it would not be heard.
      std::lock_guard<std::mutex> guard(*mutex);
      changed_.notify_all();
    };
    while (true) {
      // The callback takes the mutex, so it is made and destroyed without it.
      lock.unlock();
      std::optional<std::stop_callback<decltype(notify)>> on_stop(std::in_place, stop, notify);
      lock.lock();
      changed_.wait(lock, [&] { return stop.stop_requested() || ready(); });
      lock.unlock();
      on_stop.reset();
      lock.lock();
      if (ready()) return true;
      if (stop.stop_requested()) return false;
      // Another waiter was quicker.
    }
  }

 private:
  std::condition_variable changed_;
};

}  // namespace headrace
