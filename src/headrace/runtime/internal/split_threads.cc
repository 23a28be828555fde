#include "headrace/runtime/internal/split_threads.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace headrace {
namespace {

constexpr int kMostDefaultReaders = 4;  // read.h
constexpr int kMostReaders = 1'000;     // streams of one read session
constexpr int64_t kLeastMemory = int64_t{1} << 20;

}  // namespace

arrow::Status CheckReadOptions(const Source& source, const ReadOptions& options) {
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
  if (source.boundedness() == Boundedness::kContinuous) {
    return Unsupported("continuous source",
                       "a continuous source never ends and cannot be read as a whole; give it an end, or copy it with a job");
  }
  return arrow::Status::OK();
}

SplitThreads::SplitThreads(std::shared_ptr<const Source> source, const ReadOptions& options)
    : source_(std::move(source)),
      readers_(options.ordered       ? 1
               : options.readers > 0 ? options.readers
                                     : kMostDefaultReaders),
      ordered_(options.ordered),
      memory_(options.memory_limit, options.context.clock),
      rate_(options.context.clock, 0, 0),
      restarts_(0) {
  parts_.source = source_.get();
  parts_.context = options.context;
  if (parts_.context.job_name.empty()) parts_.context.job_name = options.job_name;
  if (parts_.context.memory == nullptr) parts_.context.memory = &memory_;
  if (parts_.context.metrics == nullptr) parts_.context.metrics = &metrics_;
  parts_.rate = &rate_;
  parts_.restarts = &restarts_;
  parts_.context.metrics->Register(source_->metrics());
}

arrow::Status SplitThreads::Plan(const CheckpointState* state) {
  auto made =
      state == nullptr ? source_->CreateEnumerator(parts_.context) : source_->RestoreEnumerator(parts_.context, state->ledger.enumerator);
  ARROW_ASSIGN_OR_RAISE(auto enumerator, std::move(made));
  {
    std::stop_callback on_stop(stop_.get_token(), [&] { enumerator->Cancel(); });
    ARROW_RETURN_NOT_OK(WithContext(enumerator->Start(), "planning"));
  }
  parts_.schema = enumerator->schema();
  if (state != nullptr && !parts_.schema->Equals(*state->schema)) {
    return MakeError({.code = Code::kFailedPrecondition, .resource = "source", .reason = "SCHEMA_CHANGED"},
                     "the source has another schema than when its position was kept. Read it anew");
  }
  int64_t splits = enumerator->queued();
  ledger_ = std::make_unique<Ledger>(std::move(enumerator), LedgerOptions{.ordered = ordered_});
  if (state != nullptr) {
    ledger_->Restore(state->ledger);
    splits += static_cast<int64_t>(state->ledger.assigned.size());
  }
  parts_.ledger = ledger_.get();
  // One reader even of no split: it is what finds out that there is none.
  running_ = static_cast<int>(std::clamp<int64_t>(splits, 1, readers_));
  return arrow::Status::OK();
}

arrow::Status SplitThreads::Start(std::function<void(const arrow::Status&)> failed, std::function<void()> ended) {
  failed_ = std::move(failed);
  ended_ = std::move(ended);
  const int count = running_;
  parts_.context.readers = count;
  for (int i = 0; i < count; ++i) loops_.push_back(std::make_unique<ReaderLoop>(parts_));
  try {
    for (auto& loop : loops_) threads_.emplace_back([this, reader = loop.get()] { Run(reader); });
  } catch (const std::system_error& error) {
    return MakeError({.code = Code::kResourceExhausted, .resource = "threads", .reason = "TOO_MANY_THREADS"},
                     fmt::format("cannot start {} reader threads: {}. Give fewer readers", loops_.size(), error.what()));
  }
  return arrow::Status::OK();
}

void SplitThreads::Run(ReaderLoop* loop) {
  auto status = loop->Run(stop_.get_token());
  if (!status.ok()) {
    failed_(status);
    stop_.request_stop();
  }
  // A reader that was asked to stop has not read all that there is.
  if (--running_ == 0 && !stop_.stop_requested()) ended_();
}

void SplitThreads::Stop() {
  stop_.request_stop();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace headrace
