// Plans a bounded source and reads it on reader threads: what Read and ReadRows share. No sink, no checkpoint files, no restarts.
//
// One owner plans, starts and stops; RequestStop may come from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "headrace/runtime/checkpoint_store.h"
#include "headrace/runtime/internal/reader_loop.h"
#include "headrace/runtime/read.h"

namespace headrace {

class SplitThreads {
 public:
  SplitThreads(std::shared_ptr<const Source> source, const ReadOptions& options);
  ~SplitThreads() { Stop(); }
  SplitThreads(const SplitThreads&) = delete;
  SplitThreads& operator=(const SplitThreads&) = delete;

  /// To be completed (queues or deliver) before Start.
  ReaderParts& parts() { return parts_; }
  /// A new plan, or the one of `state`. RequestStop ends it with Cancelled.
  arrow::Status Plan(const CheckpointState* state);
  /// `failed` is called, on a reader's thread, with each failure, after which all readers are stopping; `ended` once, when every row was
  /// read. Neither follows from a stop: who waits is told by whoever stops.
  arrow::Status Start(std::function<void(const arrow::Status&)> failed, std::function<void()> ended);
  void RequestStop() { stop_.request_stop(); }
  /// Also waits for the threads. Whatever they wait for must have been ended before.
  void Stop();

  Ledger& ledger() { return *ledger_; }
  const Source& source() const { return *source_; }
  const std::shared_ptr<arrow::Schema>& schema() const { return parts_.schema; }

 private:
  void Run(ReaderLoop* loop);

  const std::shared_ptr<const Source> source_;
  const int readers_;
  const bool ordered_;
  MemoryBudget memory_;
  MetricRegistry metrics_;
  RateLimiter rate_;
  RestartBudget restarts_;
  ReaderParts parts_;
  std::unique_ptr<Ledger> ledger_;
  std::function<void(const arrow::Status&)> failed_;
  std::function<void()> ended_;
  std::vector<std::unique_ptr<ReaderLoop>> loops_;
  std::atomic<int> running_{0};
  std::stop_source stop_;
  std::vector<std::thread> threads_;
};

}  // namespace headrace
