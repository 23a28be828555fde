#include "headrace/runtime/fake_source_testing.h"

#include <charconv>
#include <chrono>
#include <stop_token>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <fmt/format.h>

namespace headrace::testing {
namespace {

int64_t Number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// RangeEnumerator behind a scripted Start.
class ScriptedEnumerator final : public SplitEnumerator {
 public:
  ScriptedEnumerator(std::shared_ptr<SourceScript> script, std::vector<Split> splits, bool planned)
      : script_(std::move(script)), inner_(std::move(splits)), planned_(planned) {}

  arrow::Status Start() override {
    std::unique_lock<std::mutex> lock(script_->mutex);
    ++script_->starting;
    script_->changed.notify_all();
    script_->changed.wait(lock, [&] { return !script_->block_start || cancelled_; });
    --script_->starting;
    if (cancelled_) return arrow::Status::Cancelled("planning was cancelled");
    ARROW_RETURN_NOT_OK(script_->start_error);
    if (planned_) return arrow::Status::OK();
    planned_ = true;
    ++script_->plans;
    std::vector<Split> splits;
    splits.reserve(script_->splits.size());
    for (size_t i = 0; i < script_->splits.size(); ++i) splits.push_back(MakeRangeSplit(fmt::format("s{}", i), script_->splits[i]));
    if (!splits.empty() && !script_->first_id.empty()) splits.front().id = script_->first_id;
    inner_.AddSplitsBack(std::move(splits));
    return arrow::Status::OK();
  }
  std::shared_ptr<arrow::Schema> schema() const override { return inner_.schema(); }
  arrow::Result<NextSplit> Next() override {
    ARROW_ASSIGN_OR_RAISE(auto next, inner_.Next());
    if (next.kind == NextSplit::Kind::kNoneEver && script_->boundedness == Boundedness::kContinuous) next.kind = NextSplit::Kind::kNoneNow;
    return next;
  }
  void AddSplitsBack(std::vector<Split> splits) override { inner_.AddSplitsBack(std::move(splits)); }
  void AddSuccessors(std::vector<Split> splits) override { inner_.AddSuccessors(std::move(splits)); }
  int64_t queued() const override { return inner_.queued(); }
  int64_t estimated_rows() const override { return script_->estimated_rows; }
  std::map<std::string, std::string> facts() const override { return {{"session", "fake"}}; }
  std::string Snapshot() const override { return inner_.Snapshot(); }
  void Cancel() override {
    std::lock_guard<std::mutex> guard(script_->mutex);
    cancelled_ = true;
    script_->changed.notify_all();
  }

 private:
  std::shared_ptr<SourceScript> script_;
  RangeEnumerator inner_;
  bool planned_;
  bool cancelled_ = false;
};

class ScriptedReader final : public SplitReader {
 public:
  ScriptedReader(std::shared_ptr<SourceScript> script, MemoryBudget* memory, Split split)
      : script_(std::move(script)), memory_(memory), split_(std::move(split)), range_(RangeOf(split_)), next_(NextRowOf(split_)) {
    std::lock_guard<std::mutex> guard(script_->mutex);
    script_->opened.emplace_back(split_.id, next_);
    script_->most_open_readers = std::max(script_->most_open_readers, ++script_->open_readers);
  }
  ~ScriptedReader() override {
    std::lock_guard<std::mutex> guard(script_->mutex);
    --script_->open_readers;
    script_->changed.notify_all();
  }

  arrow::Result<ReadResult> Next() override {
    Batch batch;
    if (script_->batch_bytes > 0 && next_ < range_.end) {
      ARROW_ASSIGN_OR_RAISE(batch.memory, memory_->Reserve(script_->batch_bytes, stop_.get_token()));
    }
    std::unique_lock<std::mutex> lock(script_->mutex);
    if (script_->blocked.contains(next_)) {
      ++script_->waiting;
      script_->changed.notify_all();
      script_->changed.wait(lock, [&] { return !script_->blocked.contains(next_) || stop_.stop_requested(); });
      --script_->waiting;
    }
    if (stop_.stop_requested()) return arrow::Status::Cancelled("the reader was cancelled");
    if (auto error = script_->errors.find(next_); error != script_->errors.end() && !error->second.empty()) {
      auto status = error->second.front();
      error->second.pop_front();
      return status;
    }
    if (auto cut = script_->cuts.find(next_); cut != script_->cuts.end()) {
      int64_t at = cut->second;
      script_->cuts.erase(cut);
      Cut answer{.near_descriptor = fmt::format("{}-{}", range_.begin, at), .far = {MakeRangeSplit(split_.id + "/1", {at, range_.end})}};
      range_.end = at;
      return answer;
    }
    if (auto cut = AnswerCutLocked()) return *std::move(cut);
    if (next_ >= range_.end) return End{};
    int64_t end = std::min(range_.end, next_ + script_->batch_rows);
    // A scripted row begins a batch of its own.
    for (int64_t row = next_ + 1; row < end; ++row) {
      if (script_->errors.contains(row) || script_->cuts.contains(row) || script_->blocked.contains(row)) end = row;
    }
    batch.rows = MakeRows(next_, end);
    batch.position = fmt::format("{}", end);
    batch.wire_bytes = (end - next_) * script_->wire_bytes_per_row;
    script_->rows_sent += end - next_;
    next_ = end;
    return batch;
  }
  void RequestCut(double fraction) override {
    std::lock_guard<std::mutex> guard(script_->mutex);
    ++script_->cut_requests;
    if (CanCutLocked()) wanted_ = fraction;
    refused_ = refused_ || script_->refuse_cuts;
    script_->changed.notify_all();
  }
  arrow::Result<std::string> PositionAt(const Batch& batch, int64_t row) override {
    return fmt::format("{}", Number(batch.position) - batch.rows->num_rows() + row);
  }
  SplitProgress Progress() const override {
    std::lock_guard<std::mutex> guard(script_->mutex);
    auto all = static_cast<double>(range_.end - range_.begin);
    return {.fraction = all > 0 ? static_cast<double>(next_ - range_.begin) / all : 1,
            .throttled = script_->throttled,
            .can_cut = CanCutLocked()};
  }
  void Cancel() override {
    stop_.request_stop();
    std::lock_guard<std::mutex> guard(script_->mutex);
    script_->changed.notify_all();
  }

 private:
  bool CanCutLocked() const { return script_->cuttable && !refused_ && !wanted_; }
  std::optional<Cut> AnswerCutLocked() {
    if (!wanted_) return std::nullopt;
    const double fraction = *std::exchange(wanted_, std::nullopt);
    const int64_t left = range_.end - next_;
    if (refused_ || left < script_->least_cut_rows) return std::nullopt;
    const int64_t at = next_ + static_cast<int64_t>(static_cast<double>(left) * fraction);
    Cut answer{.near_descriptor = fmt::format("{}-{}", range_.begin, at), .far = {MakeRangeSplit("", {at, range_.end})}};
    range_.end = at;
    return answer;
  }

  std::shared_ptr<SourceScript> script_;
  MemoryBudget* memory_;
  Split split_;
  Range range_;
  int64_t next_;
  std::optional<double> wanted_;  // a cut of this fraction
  bool refused_ = false;
  std::stop_source stop_;
};

}  // namespace

Split MakeRangeSplit(std::string id, Range range, std::string position) {
  return {.id = std::move(id), .descriptor = fmt::format("{}-{}", range.begin, range.end), .position = std::move(position)};
}

Range RangeOf(const Split& split) {
  std::string_view text = split.descriptor;
  auto dash = text.find('-');
  return {Number(text.substr(0, dash)), Number(text.substr(dash + 1))};
}

int64_t NextRowOf(const Split& split) { return split.position.empty() ? RangeOf(split).begin : Number(split.position); }

std::shared_ptr<arrow::Schema> RangeEnumerator::schema() const {
  static const auto schema = arrow::schema({arrow::field("id", arrow::int64(), false)});
  return schema;
}

arrow::Result<NextSplit> RangeEnumerator::Next() {
  if (queue_.empty()) return NextSplit{NextSplit::Kind::kNoneEver, {}};
  NextSplit next{NextSplit::Kind::kSplit, std::move(queue_.front())};
  queue_.pop_front();
  return next;
}

void RangeEnumerator::AddSplitsBack(std::vector<Split> splits) {
  for (auto& split : splits) queue_.push_back(std::move(split));
}

std::string RangeEnumerator::Snapshot() const {
  std::string text;
  for (const auto& split : queue_) {
    text += split.id;
    text += ' ';
    text += split.descriptor;
    text += ' ';
    text += split.position;
    text += '\n';
  }
  return text;
}

std::vector<Split> SplitsInSnapshot(std::string_view snapshot) {
  std::vector<Split> splits;
  while (!snapshot.empty()) {
    auto line = snapshot.substr(0, snapshot.find('\n'));
    snapshot.remove_prefix(line.size() + 1);
    auto first = line.find(' ');
    auto second = line.find(' ', first + 1);
    splits.push_back({.id = std::string(line.substr(0, first)),
                      .descriptor = std::string(line.substr(first + 1, second - first - 1)),
                      .position = std::string(line.substr(second + 1))});
  }
  return splits;
}

void SourceScript::Unblock(int64_t row) {
  std::lock_guard<std::mutex> guard(mutex);
  blocked.erase(row);
  changed.notify_all();
}

bool SourceScript::WaitForBlocked(int n) {
  std::unique_lock<std::mutex> lock(mutex);
  return changed.wait_for(lock, std::chrono::seconds{20}, [&] { return waiting >= n; });
}

arrow::Result<std::unique_ptr<SplitEnumerator>> ScriptedSource::CreateEnumerator(const JobContext&) const {
  return std::make_unique<ScriptedEnumerator>(script_, std::vector<Split>{}, false);
}

arrow::Result<std::unique_ptr<SplitEnumerator>> ScriptedSource::RestoreEnumerator(const JobContext&, std::string_view state) const {
  std::lock_guard<std::mutex> guard(script_->mutex);
  ++script_->restores;
  return std::make_unique<ScriptedEnumerator>(script_, SplitsInSnapshot(state), true);
}

arrow::Result<std::unique_ptr<SplitReader>> ScriptedSource::OpenReader(const JobContext& context, const std::shared_ptr<arrow::Schema>&,
                                                                       Split split) const {
  return std::make_unique<ScriptedReader>(script_, context.memory, std::move(split));
}

std::shared_ptr<arrow::RecordBatch> MakeRows(int64_t begin, int64_t end) {
  arrow::Int64Builder builder;
  for (int64_t row = begin; row < end; ++row) (void)builder.Append(row);
  return arrow::RecordBatch::Make(RangeEnumerator({}).schema(), end - begin, {builder.Finish().ValueOrDie()});
}

std::vector<int64_t> RowsOf(const arrow::RecordBatch& batch) {
  const auto& column = static_cast<const arrow::Int64Array&>(*batch.column(0));
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(column.length()));
  for (int64_t i = 0; i < column.length(); ++i) rows.push_back(column.Value(i));
  return rows;
}

}  // namespace headrace::testing
