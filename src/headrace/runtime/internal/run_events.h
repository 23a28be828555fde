// What the threads of one run of a job tell its coordinator, and how they are all stopped.
//
// Any thread may fail the run, and answer; only the coordinator waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/error.h"

namespace headrace {

/// Rows and bytes of a writer in this run, up to a barrier.
struct WriterCounts {
  int64_t records_in = 0;
  int64_t written = 0;
  int64_t rejected = 0;
  int64_t bytes_written = 0;
};

/// A writer's answer to a barrier: everything before it is acknowledged and named.
struct WriterAnswer {
  uint64_t checkpoint = 0;
  std::string state{};
  std::vector<std::string> committables{};
  WriterCounts counts{};
};

class RunEvents {
 public:
  /// `at_checkpoint` and `now` are the job's two kinds of stop.
  RunEvents(Clock* clock, std::stop_token at_checkpoint, std::stop_token now, int readers, int writers);

  /// The first failure is the run's, stops every thread and calls `on_halt`; later ones are attached to its text.
  void Fail(const arrow::Status& error);
  void ReaderDone();
  void Answer(int writer, WriterAnswer answer);

  /// Asked to end: readers also by StopReaders, all by a failure, a stop at once or Halt.
  std::stop_token readers() const { return readers_.get_token(); }
  std::stop_token writers() const { return writers_.get_token(); }
  void StopReaders() { readers_.request_stop(); }
  void Halt();

  enum class Wake { kFailed, kStopNow, kReadersDone, kStopAtCheckpoint, kTime };
  /// Waits for something to do, at the latest until `deadline`.
  Wake Wait(MonotonicTime deadline);
  /// Every writer's answer to the barrier of `checkpoint`, in the writers' order; the error when the run ends first.
  arrow::Result<std::vector<WriterAnswer>> WaitForAnswers(uint64_t checkpoint);
  /// OK, the first failure with the later ones, or Cancelled after a stop at once.
  arrow::Status status() const;

 private:
  arrow::Status StatusLocked() const;

  Clock* const clock_;
  const std::stop_token at_checkpoint_;
  const std::stop_token now_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<arrow::Status> errors_;
  int readers_running_;
  std::vector<std::optional<WriterAnswer>> answers_;
  std::stop_source readers_;
  std::stop_source writers_;
  std::stop_callback<std::function<void()>> on_checkpoint_;
  std::stop_callback<std::function<void()>> on_now_;  // last: its callback uses all of the above
};

}  // namespace headrace
