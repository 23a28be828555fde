// How many read streams of a job are open at once, so that what the transport holds for them stays small beside the job's memory budget.
//
// For each open stream the transport may hold its receive window and one message beyond the budget. Both together, times the open streams,
// stay within half of the budget (spec, runtime.md "Memory": resident memory below 1.5 times the limit). One stream may always be open.
// Where the windows that gRPC widens by itself have room for every reader they are taken, since they are faster; else the small ones, so
// that not fewer streams are open for them. Any thread; outlives its permits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "headrace/base/memory_budget.h"
#include "headrace/rpc/channel.h"

namespace headrace::bigquery {

class OpenStreams {
 public:
  /// Open until it is destroyed.
  class Permit {
   public:
    Permit(OpenStreams* streams, const MemoryBudget* budget) : streams_(streams), budget_(budget) {}
    Permit(Permit&& other) noexcept : streams_(std::exchange(other.streams_, nullptr)), budget_(other.budget_) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(streams_, other.streams_);
      std::swap(budget_, other.budget_);
      return *this;
    }
    ~Permit() {
      if (streams_ != nullptr) streams_->Release(budget_);
    }

   private:
    OpenStreams* streams_;
    const MemoryBudget* budget_;
  };

  /// Streams open before the first message has told how large messages are: a response may have any size up to 128 MiB (fact R10).
  static constexpr int kBeforeTheFirst = 4;
  /// So long the first message is waited for. A restriction that few rows pass may keep all streams silent for minutes, and then more of
  /// them side by side are what helps.
  static constexpr std::chrono::milliseconds kFirstLimit{2'000};
  /// The size that messages are taken for until then, the usual one of the service.
  static constexpr int64_t kUsualMessage = int64_t{1} << 20;

  /// What the streams of one job hold of. The same for all of them.
  struct Room {
    const MemoryBudget* budget = nullptr;  // the job's; null = no limit
    rpc::Window window = rpc::Window::kFixed;
  };
  /// Of a job with so many readers at most (0 = nobody knows).
  static Room RoomOf(const MemoryBudget* budget, int readers);

  /// Waits until one more stream may be opened; nothing when `stop` is requested.
  std::optional<Permit> Acquire(const Room& room, const std::stop_token& stop);
  /// The same without waiting.
  std::optional<Permit> TryAcquire(const Room& room);
  bool has_room(const Room& room) const;
  /// A message of so many bytes has come.
  void Note(int64_t message_bytes);

  /// How many streams may be open at messages of that size; 0 = none was seen yet.
  static int64_t Most(int64_t budget_bytes, rpc::Window window, int64_t largest_message);

 private:
  bool FitsLocked(const Room& room) const;
  Permit OpenLocked(const Room& room);
  void Release(const MemoryBudget* budget);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<const MemoryBudget*, int64_t> open_;  // of each budget that has some: jobs of one source do not wait for each other
  int64_t largest_ = 0;
  std::optional<std::chrono::steady_clock::time_point> first_opened_{};
};

}  // namespace headrace::bigquery
