// SIGINT and SIGTERM as calls on an ordinary thread.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace headrace::cli {

/// Made first thing in main, before any other thread: every thread inherits the block, so that only the watcher's own thread sees the
/// signals.
class SignalWatcher {
 public:
  SignalWatcher();
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  /// `handler(n)` is called on the watcher's thread for the n-th signal since it was set (from 1); signals within 0.3 s count as one. Null,
  /// as at the start, and any third signal: the process ends at once, with the code of a failure. Once this returns, the handler set before
  /// is not running any more.
  void SetHandler(std::function<void(int)> handler);

 private:
  void Watch();

  int signals_ = -1;  // signalfd
  int stop_ = -1;     // eventfd
  std::mutex mutex_;
  std::function<void(int)> handler_;
  int count_ = 0;
  std::optional<std::chrono::steady_clock::time_point> last_{};
  std::thread thread_;
};

/// A handler for as long as what it uses lives.
class SignalScope {
 public:
  SignalScope(SignalWatcher& signals, std::function<void(int)> handler) : signals_(signals) { signals_.SetHandler(std::move(handler)); }
  ~SignalScope() { signals_.SetHandler(nullptr); }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  SignalWatcher& signals_;
};

}  // namespace headrace::cli
