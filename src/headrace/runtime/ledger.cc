#include "headrace/runtime/ledger.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace headrace {

Ledger::Ledger(std::unique_ptr<SplitEnumerator> enumerator, LedgerOptions options)
    : options_(options), enumerator_(std::move(enumerator)) {}
Ledger::~Ledger() = default;

void Ledger::Restore(const LedgerSnapshot& snapshot) {
  std::lock_guard<std::mutex> guard(mutex_);
  std::vector<Split> splits;
  for (const auto& held : snapshot.assigned) splits.push_back(held.split);
  next_attempt_ = snapshot.next_attempt;
  counts_ = snapshot.counts;
  QueueAgainLocked(std::move(splits));
}

void Ledger::QueueAgainLocked(std::vector<Split> splits) {
  if (splits.empty()) return;
  if (options_.ordered) {
    std::vector<AssignedSplit> first;
    for (auto& split : splits) first.push_back({.split = std::move(split), .writer = 0, .attempt = next_attempt_++});
    returned_.insert(returned_.begin(), std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
  } else {
    enumerator_->AddSplitsBack(std::move(splits));
  }
  ++version_;
  changed_.notify_all();
}

int Ledger::ChooseWriterLocked(const std::string& split_id) {
  if (auto known = writer_.find(split_id); known != writer_.end()) return known->second;
  std::vector<int> load(static_cast<size_t>(options_.writers), 0);
  for (const auto& [attempt, held] : assigned_) ++load[static_cast<size_t>(held.writer)];
  return static_cast<int>(std::min_element(load.begin(), load.end()) - load.begin());
}

AssignedSplit& Ledger::HoldLocked(Split split) {
  uint64_t attempt = next_attempt_++;
  int writer = ChooseWriterLocked(split.id);
  return assigned_.emplace(attempt, AssignedSplit{std::move(split), writer, attempt}).first->second;
}

arrow::Result<Ledger::Offer> Ledger::TryAssignLocked() {
  if (!returned_.empty()) {
    Split split = std::move(returned_.front().split);
    returned_.pop_front();
    return Offer{NextSplit::Kind::kSplit, HoldLocked(std::move(split))};
  }
  ARROW_ASSIGN_OR_RAISE(auto next, enumerator_->Next());
  switch (next.kind) {
    case NextSplit::Kind::kSplit:
      return Offer{NextSplit::Kind::kSplit, HoldLocked(std::move(next.split))};
    case NextSplit::Kind::kNoneNow:
      if (assigned_.empty() && options_.bounded) {
        return MakeError({.code = Code::kInternal, .resource = "source"},
                         "the source is bounded, none of its splits is being read, and it has none now: it would never end");
      }
      return Offer{NextSplit::Kind::kNoneNow, {}};
    case NextSplit::Kind::kNoneEver:
      break;
  }
  return Offer{assigned_.empty() ? NextSplit::Kind::kNoneEver : NextSplit::Kind::kNoneNow, {}};
}

arrow::Result<Ledger::Offer> Ledger::TryAssign() {
  std::lock_guard<std::mutex> guard(mutex_);
  return TryAssignLocked();
}

arrow::Result<std::optional<AssignedSplit>> Ledger::Assign(const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop.stop_requested()) {
    ARROW_ASSIGN_OR_RAISE(auto offer, TryAssignLocked());
    if (offer.kind == NextSplit::Kind::kSplit) return std::optional<AssignedSplit>(std::move(offer.assigned));
    if (offer.kind == NextSplit::Kind::kNoneEver) return std::optional<AssignedSplit>();
    ++idle_;
    changed_.notify_all();  // who waits for an idle reader
    changed_.wait(lock, stop, [this, seen = version_] { return version_ != seen; });
    --idle_;
  }
  return arrow::Status::Cancelled("stopped while waiting for a split");
}

arrow::Result<AssignedSplit*> Ledger::FindLocked(uint64_t attempt, const char* what) {
  auto found = assigned_.find(attempt);
  if (found != assigned_.end()) return &found->second;
  return MakeError({.code = Code::kInternal, .resource = "ledger", .reason = "NOT_ASSIGNED"},
                   fmt::format("{} of assignment {}, which is over or was handed back", what, attempt));
}

arrow::Status Ledger::Advance(uint64_t attempt, std::string position, const LedgerCounts& batch, const std::function<void()>& push) {
  std::lock_guard<std::mutex> guard(mutex_);
  ARROW_ASSIGN_OR_RAISE(auto* held, FindLocked(attempt, "a batch"));
  push();
  held->split.position = std::move(position);
  counts_.rows += batch.rows;
  counts_.wire_bytes += batch.wire_bytes;
  counts_.memory_bytes += batch.memory_bytes;
  return arrow::Status::OK();
}

arrow::Status Ledger::Cut(uint64_t attempt, std::string near_descriptor, std::vector<Split> far, double near_estimated_bytes) {
  std::lock_guard<std::mutex> guard(mutex_);
  ARROW_ASSIGN_OR_RAISE(auto* held, FindLocked(attempt, "a cut"));
  held->split.descriptor = std::move(near_descriptor);
  held->split.estimated_bytes = near_estimated_bytes;
  counts_.cuts += static_cast<int64_t>(far.size());
  for (Split& part : far) {
    if (part.id.empty()) part.id = fmt::format("{}/{}", held->split.id, next_attempt_++);
  }
  QueueAgainLocked(std::move(far));
  return arrow::Status::OK();
}

arrow::Status Ledger::End(uint64_t attempt, std::vector<Split> successors) {
  std::lock_guard<std::mutex> guard(mutex_);
  ARROW_ASSIGN_OR_RAISE(auto* held, FindLocked(attempt, "the end"));
  writer_.erase(held->split.id);
  assigned_.erase(attempt);
  ++counts_.finished;
  if (!successors.empty()) enumerator_->AddSuccessors(std::move(successors));
  ++version_;
  changed_.notify_all();
  return arrow::Status::OK();
}

arrow::Status Ledger::HandBack(uint64_t attempt) {
  std::lock_guard<std::mutex> guard(mutex_);
  ARROW_ASSIGN_OR_RAISE(auto* held, FindLocked(attempt, "the return"));
  writer_[held->split.id] = held->writer;
  std::vector<Split> splits{std::move(held->split)};
  assigned_.erase(attempt);
  QueueAgainLocked(std::move(splits));
  return arrow::Status::OK();
}

LedgerSnapshot Ledger::Snapshot(const std::function<void()>& place_barrier) const {
  std::lock_guard<std::mutex> guard(mutex_);
  place_barrier();
  LedgerSnapshot copy{.enumerator = enumerator_->Snapshot(), .next_attempt = next_attempt_, .counts = counts_};
  // Held ones first: in an ordered job the split in hand comes before those that were cut off from it.
  for (const auto& [attempt, held] : assigned_) copy.assigned.push_back(held);
  copy.assigned.insert(copy.assigned.end(), returned_.begin(), returned_.end());
  return copy;
}

Ledger::State Ledger::state() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return {.queued = QueuedLocked(), .assigned = static_cast<int64_t>(assigned_.size()), .idle = idle_, .counts = counts_};
}

bool Ledger::WaitForIdle(const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait(lock, stop, [this] { return idle_ > 0 && !assigned_.empty() && QueuedLocked() == 0; }) && !stop.stop_requested();
}

}  // namespace headrace
