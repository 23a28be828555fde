#include "headrace/runtime/row_feed.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/short_name.h"
#include "headrace/runtime/internal/split_threads.h"
#include "headrace/runtime/job_metrics.h"

namespace headrace {
namespace {

arrow::Result<CheckpointState> ParseState(const std::string& bytes) {
  auto state = DecodeCheckpoint(bytes, "state");
  if (state.ok() && state->planned && !state->prepared) return state;
  if (CodeOf(state.status()) == Code::kUnimplemented) return state.status();
  const std::string_view what = state.ok() ? "is a checkpoint of a job: resume the job" : "is damaged, or not from RowReader::Snapshot";
  return MakeError({.code = Code::kDataLoss, .resource = "state", .reason = "BAD_STATE"},
                   fmt::format("the state that ReadRows is to go on from {}", what));
}

}  // namespace

// A reader thread parks with each batch until its rows are done, and asks for the next one only then. So the splits' positions are those of
// the rows, none of what waits is behind them, and SplitReader::PositionAt is called by nobody else while the feed calls it.
class RowFeed::Impl {
 public:
  Impl(std::shared_ptr<const Source> source, const ReadOptions& options) : threads_(std::move(source), options) {
    threads_.parts().deliver = [this](const AssignedSplit& split, SplitReader* reader, Batch batch, const LedgerCounts& counts,
                                      const std::stop_token& stop) { return Park(split, reader, std::move(batch), counts, stop); };
    threads_.parts().context.metrics->Register(RowMetrics());
    skipped_count_ = threads_.parts().context.metrics->counter("recordsSkipped");
    on_stop_.emplace(options.stop, Halt{this});
  }
  ~Impl() {
    on_stop_.reset();  // waits for it where it runs
    Stop();
  }

  arrow::Status Start(const std::string& state) {
    std::optional<CheckpointState> from;
    if (!state.empty()) {
      ARROW_ASSIGN_OR_RAISE(from, ParseState(state));
      counts_ = {.rows = from->ledger.counts.rows, .records = from->report.records_in, .skipped = from->report.rows_skipped};
    }
    ARROW_RETURN_NOT_OK(threads_.Plan(from ? &*from : nullptr));
    ARROW_ASSIGN_OR_RAISE(schema_, RowSchema::Make(threads_.schema()));
    auto set = [this](auto change) {
      std::lock_guard<std::mutex> guard(mutex_);
      change();
      changed_.notify_all();
    };
    return threads_.Start([=, this](const arrow::Status& status) { set([&] { failure_ = failure_.ok() ? status : failure_; }); },
                          [=, this] { set([this] { ended_ = true; }); });
  }

  arrow::Result<const RowView*> NextRow() {
    ARROW_RETURN_NOT_OK(error_);
    while (!batch_ || row_ == batch_->size()) {
      ARROW_ASSIGN_OR_RAISE(const bool more, NextBatch());
      if (!more) return nullptr;
    }
    if (cancelled_.load(std::memory_order_relaxed)) return arrow::Status::Cancelled("the reading was cancelled");
    view_ = (*batch_)[row_];
    return &*view_;
  }

  void RowDone(int64_t records) {
    ++row_;
    ++counts_.rows;
    counts_.records += records;
    if (records > 0) return;
    ++counts_.skipped;
    skipped_count_->Add();
  }

  arrow::Status Fail(const arrow::Status& error) {
    if (!error_.ok()) return error_;
    ErrorInfo info{.code = CodeOf(error)};
    if (const auto* own = GetErrorInfo(error)) info = *own;
    std::string place = "between rows";
    if (current_ != nullptr && row_ < batch_->size()) {
      auto position = current_->reader->PositionAt(current_->batch, row_);
      const int64_t number = (*batch_)[row_].number();
      place = fmt::format("split {}, row {} of what was read of it, position {}", ShortName(current_->split->split.id), number,
                          position.ok() ? Quoted(*position) : position.status().message());
      if (!info.row) info.row = number;
    }
    final_state_ = MakeSnapshot();
    error_ = MakeError(std::move(info), fmt::format("{}: {}", place, error.message()));
    Stop();
    return error_;
  }

  arrow::Result<std::string> Snapshot() const { return final_state_ ? *final_state_ : MakeSnapshot(); }

  void Cancel() {
    cancelled_ = true;
    threads_.RequestStop();
    std::lock_guard<std::mutex> guard(mutex_);
    changed_.notify_all();
  }

  const RowSchema& schema() const { return *schema_; }
  RowCounts counts() const { return counts_; }

 private:
  struct Halt {
    Impl* feed;
    void operator()() const { feed->Cancel(); }
  };

  struct Parked {
    const AssignedSplit* split;
    SplitReader* reader;
    Batch batch;
    LedgerCounts counts;
    bool released = false;
  };

  arrow::Status Park(const AssignedSplit& split, SplitReader* reader, Batch batch, const LedgerCounts& counts,
                     const std::stop_token& stop) {
    Parked parked{.split = &split, .reader = reader, .batch = std::move(batch), .counts = counts};
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_.push_back(&parked);
    changed_.notify_all();
    if (changed_.wait(lock, stop, [&] { return parked.released; })) return arrow::Status::OK();
    // The feed may be in the middle of the batch, and ask the reader for a position.
    changed_.wait(lock, [&] { return parked.released || current_ != &parked; });
    std::erase(waiting_, &parked);
    return arrow::Status::Cancelled("stopped");
  }

  /// Leaves the batch in hand, all of whose rows are done, and takes the next one; false at the end.
  arrow::Result<bool> NextBatch() {
    batch_.reset();
    view_.reset();
    if (current_ != nullptr) {
      auto advanced = threads_.ledger().Advance(current_->split->attempt, current_->batch.position, current_->counts, [] {});
      Release();
      ARROW_RETURN_NOT_OK(advanced);
    }
    row_ = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return cancelled_ || !failure_.ok() || ended_ || !waiting_.empty(); });
    if (cancelled_) return arrow::Status::Cancelled("the reading was cancelled");
    if (!failure_.ok()) return failure_;
    if (waiting_.empty()) return false;
    current_ = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    current_->batch.memory.Release();  // the batch leaves the budget where it is handed over
    int64_t& first = rows_before_[current_->split->split.id];
    auto bound = schema_->Bind(current_->batch.rows, first);
    if (!bound.ok()) {
      error_ = WithContext(bound.status(), fmt::format("split {}", ShortName(current_->split->split.id)));
      return error_;
    }
    batch_ = *std::move(bound);
    first += batch_->size();
    return true;
  }

  void Release() {
    std::lock_guard<std::mutex> guard(mutex_);
    current_->released = true;
    current_ = nullptr;
    changed_.notify_all();
  }

  void Stop() {
    threads_.RequestStop();
    batch_.reset();
    view_.reset();
    if (current_ != nullptr) Release();
    threads_.Stop();
  }

  arrow::Result<std::string> MakeSnapshot() const {
    ARROW_RETURN_NOT_OK(threads_.source().SupportsCheckpoints());
    CheckpointState state{.job_name = threads_.parts().context.job_name, .planned = true};
    state.ledger = threads_.ledger().Snapshot([] {});
    state.ledger.counts.rows = counts_.rows;
    state.schema = threads_.schema();
    state.report.records_in = counts_.records;
    state.report.rows_skipped = counts_.skipped;
    if (current_ != nullptr) {
      for (auto& held : state.ledger.assigned) {
        if (held.attempt != current_->split->attempt) continue;
        ARROW_ASSIGN_OR_RAISE(held.split.position, current_->reader->PositionAt(current_->batch, row_));
      }
    }
    return EncodeCheckpoint(state);
  }

  std::shared_ptr<const RowSchema> schema_;
  Counter* skipped_count_ = nullptr;
  std::optional<RowBatch> batch_;
  std::optional<RowView> view_;
  int64_t row_ = 0;  // of the batch: the one at the position
  RowCounts counts_;
  std::map<std::string, int64_t> rows_before_;  // of each split, before the batch in hand
  arrow::Status error_;
  std::optional<arrow::Result<std::string>> final_state_;  // before an error stopped the readers
  std::atomic<bool> cancelled_{false};

  std::mutex mutex_;  // guards the next five; `current_` is only changed by the feed's thread
  std::condition_variable_any changed_;
  std::deque<Parked*> waiting_;
  Parked* current_ = nullptr;
  arrow::Status failure_;
  bool ended_ = false;

  mutable SplitThreads threads_;  // its threads use all of the above
  std::optional<std::stop_callback<Halt>> on_stop_;
};

RowFeed::RowFeed(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowFeed::~RowFeed() = default;

arrow::Result<std::unique_ptr<RowFeed>> RowFeed::Open(std::shared_ptr<const Source> source, const ReadRowsOptions& options) {
  ARROW_RETURN_NOT_OK(CheckReadOptions(*source, options.read));
  auto impl = std::make_unique<Impl>(std::move(source), options.read);
  ARROW_RETURN_NOT_OK(impl->Start(options.state));
  return std::unique_ptr<RowFeed>(new RowFeed(std::move(impl)));
}

const RowSchema& RowFeed::schema() const { return impl_->schema(); }
arrow::Result<const RowView*> RowFeed::NextRow() { return impl_->NextRow(); }
void RowFeed::RowDone(int64_t records) { impl_->RowDone(records); }
arrow::Status RowFeed::Fail(const arrow::Status& error) { return impl_->Fail(error); }
arrow::Result<std::string> RowFeed::Snapshot() const { return impl_->Snapshot(); }
RowCounts RowFeed::counts() const { return impl_->counts(); }
void RowFeed::Cancel() { impl_->Cancel(); }

}  // namespace headrace
