#include "headrace/local/idle_watch.h"

#include <utility>

namespace headrace::local {

IdleWatch::IdleWatch(Clock* clock, Duration limit, std::function<void()> close)
    : clock_(clock), limit_(limit), close_(std::move(close)), thread_([this] { Run(); }) {}

IdleWatch::~IdleWatch() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void IdleWatch::Writing() {
  {
    std::lock_guard lock(mutex_);
    since_ = clock_->Monotonic();
  }
  changed_.notify_all();
}

void IdleWatch::Written() {
  std::lock_guard lock(mutex_);
  since_.reset();
}

bool IdleWatch::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

void IdleWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (!since_) {
      changed_.wait(lock);
    } else if (clock_->Monotonic() >= *since_ + limit_) {
      closed_ = true;
      close_();
      return;
    } else {
      clock_->WaitUntil(lock, changed_, *since_ + limit_);
    }
  }
}

}  // namespace headrace::local
