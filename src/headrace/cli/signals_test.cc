#include "headrace/cli/signals.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

constexpr int kReachedTheEnd = 42;

/// A first signal whose handler then goes, as when the job has stopped, and a second one while the end is being told.
void TwoSignalsAroundTheEndOfAJob() {
  std::promise<void> handled;
  {
    SignalWatcher watcher(std::chrono::seconds{60});  // however late the second one is read
    watcher.SetHandler([&](int) { handled.set_value(); });
    kill(getpid(), SIGINT);
    if (handled.get_future().wait_for(std::chrono::seconds{20}) != std::future_status::ready) std::_Exit(EXIT_SUCCESS);
    watcher.SetHandler(nullptr);
    kill(getpid(), SIGTERM);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    for (sigset_t pending; sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1;) {
      if (std::chrono::steady_clock::now() > deadline) std::_Exit(EXIT_SUCCESS);
      std::this_thread::yield();
    }
  }  // joins the watcher, which has dealt with what it took
  std::_Exit(kReachedTheEnd);
}

TEST(SignalWatcherDeathTest, ASignalThatArrivesTwiceDoesNotCutOffTheReport) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the signals meet a process without other threads
  EXPECT_EXIT(TwoSignalsAroundTheEndOfAJob(), testing::ExitedWithCode(kReachedTheEnd), "");
}

/// Without a job a signal ends the program.
void OneSignal() {
  SignalWatcher watcher;
  kill(getpid(), SIGTERM);
  sleep(20);  // until the end of it, at most
  std::_Exit(kReachedTheEnd);
}

TEST(SignalWatcherDeathTest, WithoutAJobASignalEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(OneSignal(), testing::ExitedWithCode(EXIT_FAILURE), "");
}

}  // namespace
}  // namespace headrace::cli
