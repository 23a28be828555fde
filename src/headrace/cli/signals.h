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
  /// One Ctrl-C or one `kill` of a wrapper (timeout, a shell's job) often arrives twice, from the terminal and from the wrapper. What comes
  /// this soon after a signal is the same wish, not a second one.
  static constexpr std::chrono::milliseconds kSameWish{300};

  explicit SignalWatcher(std::chrono::milliseconds same_wish = kSameWish);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  /// `handler(n)` is called on the watcher's thread for the n-th signal since it was set (from 1); those of one wish count as one. Null,
  /// as at the start, and any third signal: the process ends at once, with the code of a failure. Once this returns, the handler set before
  /// is not running any more.
  void SetHandler(std::function<void(int)> handler);

 private:
  void Watch();

  const std::chrono::milliseconds same_wish_;
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
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;
  /// Everything was done and told: a signal behind the scope ends the process at once with this code.
  int EndsWith(int code) {
    code_ = code;
    return code;
  }

 private:
  SignalWatcher& signals_;
  std::optional<int> code_{};
};

}  // namespace headrace::cli
