#include "headrace/cli/signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "headrace/cli/exit_code.h"

namespace headrace::cli {

SignalWatcher::SignalWatcher(std::chrono::milliseconds same_wish) : same_wish_(same_wish) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Watch(); });
}

SignalWatcher::~SignalWatcher() {
  uint64_t one = 1;
  while (write(stop_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  close(signals_);
  close(stop_);
}

void SignalWatcher::SetHandler(std::function<void(int)> handler) {
  std::lock_guard<std::mutex> guard(mutex_);
  handler_ = std::move(handler);
  count_ = 0;
}

SignalScope::~SignalScope() {
  if (code_) {
    signals_.SetHandler([code = *code_](int) { std::_Exit(code); });
  } else {
    signals_.SetHandler(nullptr);
  }
}

void SignalWatcher::Watch() {
  while (true) {
    pollfd waited[] = {{stop_, POLLIN, 0}, {signals_, POLLIN, 0}};
    if (poll(waited, 2, -1) < 0 && errno != EINTR) return;
    if (waited[0].revents != 0) return;
    signalfd_siginfo info;
    if (waited[1].revents == 0 || read(signals_, &info, sizeof info) != sizeof info) continue;
    auto now = std::chrono::steady_clock::now();
    std::lock_guard<std::mutex> guard(mutex_);
    // Also when the job of the first one has ended in between: the handler is gone by then, the wish is the same.
    if (last_ && now - *last_ < same_wish_) continue;
    last_ = now;
    ++count_;
    if (handler_ == nullptr || count_ > 2) std::_Exit(kExitFailed);
    handler_(count_);
  }
}

}  // namespace headrace::cli
