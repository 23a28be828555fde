// One reader thread of a job: takes splits from the ledger, reads them and puts their batches into the writers' queues.
//
// Run belongs to the thread; Look and RequestCut may be called from any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <variant>
#include <vector>

#include "headrace/base/byte_queue.h"
#include "headrace/runtime/internal/rate_limiter.h"
#include "headrace/runtime/ledger.h"

namespace headrace {

/// Marks the place in a writer's queue up to which a checkpoint reaches.
struct Barrier {
  uint64_t checkpoint = 0;
  bool last = false;  // no checkpoint follows in this run: the writer ends
};

using WriterItem = std::variant<Batch, Barrier>;
using WriterQueue = ByteQueue<WriterItem>;
/// On the way to all writers of a job, or to the caller of Read. What waits longer is cold memory when its turn comes, so more is of use
/// only while a writer pauses.
constexpr int64_t kMostQueuedBytes = int64_t{32} << 20;

/// The failures that a job may still survive. Any thread.
class RestartBudget {
 public:
  explicit RestartBudget(int attempts) : left_(attempts) {}
  /// Takes one attempt; false when none is left.
  bool Take() {
    int left = left_.load();
    while (left > 0 && !left_.compare_exchange_weak(left, left - 1)) {
    }
    if (left > 0) used_.fetch_add(1);
    return left > 0;
  }
  int used() const { return used_.load(); }
  int left() const { return left_.load(); }

 private:
  std::atomic<int> left_;
  std::atomic<int> used_{0};
};

/// What all readers of a run share; lent by the run.
struct ReaderParts {
  const Source* source = nullptr;
  JobContext context{};
  std::shared_ptr<arrow::Schema> schema{};
  Ledger* ledger = nullptr;
  std::vector<WriterQueue*> queues{};  // by writer index
  RateLimiter* rate = nullptr;
  RestartBudget* restarts = nullptr;
  std::chrono::milliseconds restart_delay{0};
  /// Takes each batch that has rows, in place of the queues, and applies it to the ledger when its rows are done with. The next batch of
  /// the split is asked for once it returns.
  std::function<arrow::Status(const AssignedSplit& split, SplitReader* reader, Batch batch, const LedgerCounts& counts,
                              const std::stop_token& stop)>
      deliver{};
};

class ReaderLoop {
 public:
  explicit ReaderLoop(const ReaderParts& parts);

  /// Until there is no split any more or `stop` is requested (both OK), or a failure that no restart is left for.
  arrow::Status Run(const std::stop_token& stop);

  struct State {
    bool open = false;  // has a split
    bool stalled = false;
    SplitProgress progress{};
    double estimated_bytes = -1;  // of the whole split
  };
  State Look() const;
  /// Passes the wish on to the split in hand, if there is one.
  void RequestCut(double fraction);

 private:
  arrow::Status ReadSplit(const AssignedSplit& assigned, const std::stop_token& stop);
  arrow::Status Drain(const AssignedSplit& assigned, SplitReader* reader, const std::stop_token& stop);
  arrow::Status Enqueue(const AssignedSplit& assigned, SplitReader* reader, Batch batch, const std::stop_token& stop);
  void SetCurrent(SplitReader* reader);

  const ReaderParts& parts_;
  Counter* const assigned_count_;
  Counter* const returned_count_;
  Counter* const cut_count_;
  std::atomic<int64_t> waiting_since_{-1};  // nanoseconds of the clock since when Next has not answered; negative = not in Next
  std::atomic<double> estimated_bytes_{-1};
  mutable std::mutex mutex_;
  SplitReader* current_ = nullptr;
};

}  // namespace headrace
