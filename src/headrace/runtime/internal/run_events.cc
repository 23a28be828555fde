#include "headrace/runtime/internal/run_events.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

namespace headrace {

RunEvents::RunEvents(Clock* clock, std::stop_token at_checkpoint, std::stop_token now, int readers, int writers)
    : clock_(clock),
      at_checkpoint_(std::move(at_checkpoint)),
      now_(std::move(now)),
      readers_running_(readers),
      answers_(static_cast<size_t>(writers)),
      on_checkpoint_(at_checkpoint_,
                     [this] {
                       std::lock_guard<std::mutex> guard(mutex_);
                       changed_.notify_all();
                     }),
      on_now_(now_, [this] { Halt(); }) {}

void RunEvents::Fail(const arrow::Status& error) {
  {
    std::lock_guard<std::mutex> guard(mutex_);
    errors_.push_back(error);
  }
  Halt();
}

void RunEvents::Halt() {
  readers_.request_stop();
  writers_.request_stop();
  std::lock_guard<std::mutex> guard(mutex_);
  changed_.notify_all();
}

void RunEvents::ReaderDone() {
  std::lock_guard<std::mutex> guard(mutex_);
  --readers_running_;
  changed_.notify_all();
}

void RunEvents::Answer(int writer, WriterAnswer answer) {
  std::lock_guard<std::mutex> guard(mutex_);
  answers_[static_cast<size_t>(writer)] = std::move(answer);
  changed_.notify_all();
}

RunEvents::Wake RunEvents::Wait(MonotonicTime deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    if (!errors_.empty()) return Wake::kFailed;
    if (now_.stop_requested()) return Wake::kStopNow;
    if (readers_running_ == 0) return Wake::kReadersDone;
    if (at_checkpoint_.stop_requested()) return Wake::kStopAtCheckpoint;
    if (clock_->Monotonic() >= deadline) return Wake::kTime;
    if (deadline == MonotonicTime::max()) {
      changed_.wait(lock);  // every condition above but time is announced
    } else {
      clock_->WaitUntil(lock, changed_, deadline);
    }
  }
}

arrow::Result<std::vector<WriterAnswer>> RunEvents::WaitForAnswers(uint64_t checkpoint) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto all_answered = [&] {
    for (const auto& answer : answers_) {
      if (!answer || answer->checkpoint != checkpoint) return false;
    }
    return true;
  };
  // A failure comes first: an answer that arrived beside it must not make a checkpoint of a run that is ending.
  changed_.wait(lock, [&] { return !errors_.empty() || now_.stop_requested() || all_answered(); });
  ARROW_RETURN_NOT_OK(StatusLocked());
  std::vector<WriterAnswer> answers;
  for (auto& answer : answers_) answers.push_back(*std::exchange(answer, std::nullopt));
  return answers;
}

arrow::Status RunEvents::status() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return StatusLocked();
}

arrow::Status RunEvents::StatusLocked() const {
  if (errors_.empty()) return now_.stop_requested() ? arrow::Status::Cancelled("the job was stopped") : arrow::Status::OK();
  // The threads that a failure stops may fail of it in their turn; five of their errors tell as much as all.
  constexpr size_t kMostAttached = 5;
  std::string text = errors_.front().message();
  for (size_t i = 1; i < errors_.size() && i <= kMostAttached; ++i) text += fmt::format("; then: {}", errors_[i].message());
  if (errors_.size() > kMostAttached + 1) text += fmt::format("; and {} more errors", errors_.size() - kMostAttached - 1);
  return errors_.front().WithMessage(text);
}

}  // namespace headrace
