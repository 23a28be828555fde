#include "headrace/runtime/internal/reader_loop.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/batch_size.h"
#include "headrace/base/fail_point.h"
#include "headrace/base/short_name.h"

namespace headrace {
namespace {

bool IsRetryable(const arrow::Status& status) {
  const ErrorInfo* info = GetErrorInfo(status);
  return info != nullptr && info->retryable;
}

/// The error with the split's name, which people get short; whole in the detail where that names nothing else.
arrow::Status OfSplit(const arrow::Status& status, const std::string& id) {
  arrow::Status named = WithContext(status, fmt::format("split {}", ShortName(id)));
  const ErrorInfo* info = GetErrorInfo(status);
  if (info == nullptr || !info->resource.empty()) return named;
  ErrorInfo whole = *info;
  whole.resource = id;
  return MakeError(std::move(whole), named.message());
}

}  // namespace

ReaderLoop::ReaderLoop(const ReaderParts& parts)
    : parts_(parts),
      assigned_count_(parts.context.metrics->counter("splitsAssigned")),
      returned_count_(parts.context.metrics->counter("splitsReturned")),
      cut_count_(parts.context.metrics->counter("splitsCut")) {}

arrow::Status ReaderLoop::Run(const std::stop_token& stop) {
  while (true) {
    auto assigned = parts_.ledger->Assign(stop);
    if (stop.stop_requested()) return arrow::Status::OK();
    ARROW_RETURN_NOT_OK(assigned.status());
    if (!*assigned) return arrow::Status::OK();
    assigned_count_->Add();
    auto status = ReadSplit(**assigned, stop);
    if (status.ok()) continue;
    // Once stopped, Cancelled is a consequence of that; the split stays in the ledger at its position.
    if (stop.stop_requested() && CodeOf(status) == Code::kCancelled) return arrow::Status::OK();
    status = OfSplit(status, (*assigned)->split.id);
    if (stop.stop_requested() || !IsRetryable(status) || !parts_.restarts->Take()) return status;
    parts_.context.logger->Log(LogLevel::kWarning,
                               fmt::format("reading goes on in {} ms after: {}", parts_.restart_delay.count(), status.message()));
    // The delay comes first: handed back at once, another idle reader would take the split without any delay.
    if (!parts_.context.clock->SleepFor(parts_.restart_delay, stop)) return arrow::Status::OK();
    ARROW_RETURN_NOT_OK(parts_.ledger->HandBack((*assigned)->attempt));
    returned_count_->Add();
  }
}

arrow::Status ReaderLoop::ReadSplit(const AssignedSplit& assigned, const std::stop_token& stop) {
  ARROW_ASSIGN_OR_RAISE(auto reader, parts_.source->OpenReader(parts_.context, parts_.schema, assigned.split));
  estimated_bytes_ = assigned.split.estimated_bytes;
  SetCurrent(reader.get());
  arrow::Status status;
  {
    std::stop_callback cancel(stop, [&] { reader->Cancel(); });
    status = Drain(assigned, reader.get(), stop);
  }
  waiting_since_ = -1;
  SetCurrent(nullptr);
  return status;
}

arrow::Status ReaderLoop::Drain(const AssignedSplit& assigned, SplitReader* reader, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    waiting_since_ = parts_.context.clock->Monotonic().count();
    ARROW_ASSIGN_OR_RAISE(auto answer, reader->Next());
    waiting_since_ = -1;
    // Each answer is applied before the next one is asked for: no end and no checkpoint can pass between a cut and its far part.
    if (auto* batch = std::get_if<Batch>(&answer)) {
      ARROW_RETURN_NOT_OK(Enqueue(assigned, reader, std::move(*batch), stop));
    } else if (auto* cut = std::get_if<Cut>(&answer)) {
      auto far = static_cast<int64_t>(cut->far.size());
      ARROW_RETURN_NOT_OK(
          parts_.ledger->Cut(assigned.attempt, std::move(cut->near_descriptor), std::move(cut->far), cut->near_estimated_bytes));
      FailPoint("cut.applied");
      cut_count_->Add(far);
      estimated_bytes_ = cut->near_estimated_bytes;
    } else {
      // Let go of first: who looks in between sees it neither open nor finished, never both.
      waiting_since_ = -1;
      SetCurrent(nullptr);
      auto ended = parts_.ledger->End(assigned.attempt, std::move(std::get<End>(answer).successors));
      FailPoint("split.ended");
      return ended;
    }
  }
  return arrow::Status::Cancelled("stopped");
}

arrow::Status ReaderLoop::Enqueue(const AssignedSplit& assigned, SplitReader* reader, Batch batch, const std::stop_token& stop) {
  LedgerCounts counts{.wire_bytes = batch.wire_bytes};
  if (batch.rows != nullptr) {
    counts.rows = batch.rows->num_rows();
    counts.memory_bytes = ReferencedBytes(*batch.rows);
  }
  std::string position = batch.position;
  if (counts.rows == 0) return parts_.ledger->Advance(assigned.attempt, std::move(position), counts, [] {});
  if (parts_.deliver) return parts_.deliver(assigned, reader, std::move(batch), counts, stop);
  ARROW_RETURN_NOT_OK(parts_.rate->Acquire(counts.rows, counts.memory_bytes, stop));
  auto* queue = parts_.queues[static_cast<size_t>(assigned.writer)];
  // What the batch holds of the budget may be more than its buffers (the message they lie in), so the larger one counts.
  // Of what the queue holds, batches of a few bytes would be much more than their bytes.
  const int64_t size =
      std::max(counts.memory_bytes, batch.memory.bytes()) + kBatchObjectBytes + batch.rows->num_columns() * kColumnObjectBytes;
  ARROW_RETURN_NOT_OK(queue->Reserve(size, stop));
  auto status = parts_.ledger->Advance(assigned.attempt, std::move(position), counts, [&] { queue->PushReserved(std::move(batch), size); });
  if (!status.ok()) queue->CancelReservation(size);
  return status;
}

void ReaderLoop::SetCurrent(SplitReader* reader) {
  std::lock_guard<std::mutex> guard(mutex_);
  current_ = reader;
}

ReaderLoop::State ReaderLoop::Look() const {
  constexpr Duration kStalled = std::chrono::seconds{10};  // report.h
  State state;
  std::lock_guard<std::mutex> guard(mutex_);
  if (current_ == nullptr) return state;
  int64_t since = waiting_since_;
  // Who waits for memory waits for the sink, which holds it, and so does a split whose reader cannot receive meanwhile.
  if (auto wait = parts_.context.memory->last_wait(); wait && since >= 0) since = std::max(since, wait->count());
  state.open = true;
  state.progress = current_->Progress();
  state.stalled = since >= 0 && !state.progress.waits_here && parts_.context.clock->Monotonic() - MonotonicTime{since} >= kStalled;
  state.estimated_bytes = estimated_bytes_;
  return state;
}

void ReaderLoop::RequestCut(double fraction) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (current_ != nullptr) current_->RequestCut(fraction);
}

}  // namespace headrace
