#include "headrace/runtime/read.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headrace/runtime/internal/reader_loop.h"

namespace headrace {
namespace {

constexpr int kMostDefaultReaders = 4;  // read.h
constexpr int kMostReaders = 1'000;     // streams of one read session
constexpr int64_t kLeastMemory = int64_t{1} << 20;

class SplitStream final : public arrow::RecordBatchReader {
 public:
  SplitStream(std::shared_ptr<const Source> source, const ReadOptions& options)
      : source_(std::move(source)),
        memory_(options.memory_limit),
        rate_(options.context.clock, 0, 0),
        restarts_(0),
        queue_(options.memory_limit) {
    parts_.source = source_.get();
    parts_.context = options.context;
    if (parts_.context.job_name.empty()) parts_.context.job_name = options.job_name;
    if (parts_.context.memory == nullptr) parts_.context.memory = &memory_;
    if (parts_.context.metrics == nullptr) parts_.context.metrics = &metrics_;
    parts_.queues = {&queue_};
    parts_.rate = &rate_;
    parts_.restarts = &restarts_;
  }
  ~SplitStream() override { Stop(); }

  arrow::Status Start(const ReadOptions& options) {
    ARROW_ASSIGN_OR_RAISE(auto enumerator, source_->CreateEnumerator(parts_.context));
    ARROW_RETURN_NOT_OK(WithContext(enumerator->Start(), "planning"));
    parts_.schema = enumerator->schema();
    int64_t splits = enumerator->queued();
    ledger_ = std::make_unique<Ledger>(std::move(enumerator), LedgerOptions{.ordered = options.ordered});
    parts_.ledger = ledger_.get();
    int most = options.ordered ? 1 : options.readers > 0 ? options.readers : kMostDefaultReaders;
    // One reader even of no split: it is what finds out that there is none, and closes the queue.
    running_ = static_cast<int>(std::clamp<int64_t>(splits, 1, most));
    for (int i = 0; i < running_; ++i) loops_.push_back(std::make_unique<ReaderLoop>(parts_));
    try {
      for (auto& loop : loops_) threads_.emplace_back([this, reader = loop.get()] { RunReader(reader); });
    } catch (const std::system_error& error) {
      return MakeError({.code = Code::kResourceExhausted, .resource = "threads"},
                       fmt::format("cannot start {} reader threads: {}. Give fewer readers", loops_.size(), error.what()));
    }
    return arrow::Status::OK();
  }

  std::shared_ptr<arrow::Schema> schema() const override { return parts_.schema; }

  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    out->reset();
    if (closed_) return arrow::Status::Invalid("the reader is closed");
    ARROW_ASSIGN_OR_RAISE(auto item, queue_.Pop({}));
    // The batch leaves the budget here, whatever the caller keeps: reading a table larger than the limit ends.
    if (item) *out = std::move(std::get<Batch>(*item).rows);
    return arrow::Status::OK();
  }

  arrow::Status Close() override {
    closed_ = true;
    Stop();
    return arrow::Status::OK();
  }

 private:
  void RunReader(ReaderLoop* loop) {
    auto status = loop->Run(stop_.get_token());
    if (!status.ok()) {
      queue_.Fail(status);
      stop_.request_stop();
    }
    if (--running_ == 0) queue_.Close();
  }

  void Stop() {
    stop_.request_stop();
    queue_.Fail(arrow::Status::Cancelled("the reader is closed"));
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  const std::shared_ptr<const Source> source_;
  MemoryBudget memory_;
  MetricRegistry metrics_;
  RateLimiter rate_;
  RestartBudget restarts_;
  WriterQueue queue_;
  ReaderParts parts_;
  std::unique_ptr<Ledger> ledger_;
  std::vector<std::unique_ptr<ReaderLoop>> loops_;
  std::atomic<int> running_{0};
  std::stop_source stop_;
  std::vector<std::thread> threads_;
  bool closed_ = false;
};

}  // namespace

arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> Read(std::shared_ptr<const Source> source, ReadOptions options) {
  if (options.readers < 0 || options.readers > kMostReaders) {
    return InvalidOption("readers", fmt::format("readers is {}; give 0 (one per split, at most {}) to {}", options.readers,
                                                kMostDefaultReaders, kMostReaders));
  }
  if (options.ordered && options.readers > 1) {
    return InvalidOption("readers", "an ordered read has one reader; leave out either the number or ordered");
  }
  if (options.memory_limit < kLeastMemory) {
    return InvalidOption("memory_limit", fmt::format("memory_limit is {} bytes; give at least {}", options.memory_limit, kLeastMemory));
  }
  if (source->boundedness() == Boundedness::kContinuous) {
    return Unsupported("continuous source",
                       "a continuous source never ends and cannot be read as a whole; give it an end, or copy it with a job");
  }
  auto stream = std::make_shared<SplitStream>(std::move(source), options);
  ARROW_RETURN_NOT_OK(stream->Start(options));
  return stream;
}

}  // namespace headrace
