// The one place that knows where every split of a job is: queued (in the enumerator that it owns), in a reader's hands, or finished.
//
// One mutex guards it; assign, advance, cut, end, hand back and snapshot are its only transitions, each whole under that lock, so no end
// and no checkpoint can fall between a cut and its far part, nor between a position and the batch that it belongs to. All functions may be
// called from any thread; callables that are passed in run under the lock and must neither wait nor call the ledger.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/runtime/source.h"

namespace headrace {

/// A split in a reader's hands. `split.position` is that of the last batch put into a queue: neither what the reader has received (it may
/// be further) nor what a writer has taken (it may be behind).
struct AssignedSplit {
  Split split{};
  int writer = 0;        // index of the queue that all its batches go to
  uint64_t attempt = 0;  // names this assignment; a later one of the same split has another number

  bool operator==(const AssignedSplit&) const = default;
};

/// Counted under the ledger's lock, so that they agree with the positions.
struct LedgerCounts {
  int64_t rows = 0;          // put into queues
  int64_t wire_bytes = 0;    // received for them
  int64_t memory_bytes = 0;  // of their Arrow buffers
  int64_t finished = 0;      // splits that ended
  int64_t cuts = 0;

  bool operator==(const LedgerCounts&) const = default;
};

/// What a checkpoint keeps of the ledger: together with the rows before the barrier it is every row once.
struct LedgerSnapshot {
  std::string enumerator{};
  std::vector<AssignedSplit> assigned{};  // ordered by attempt; splits handed back to an ordered job are among them
  uint64_t next_attempt = 1;
  LedgerCounts counts{};
};

struct LedgerOptions {
  int writers = 1;
  bool bounded = true;
  /// Splits that come back (or are cut off) go before all others instead of to the end of the queue, so that their order is kept.
  bool ordered = false;
};

class Ledger {
 public:
  /// `enumerator` has started.
  Ledger(std::unique_ptr<SplitEnumerator> enumerator, LedgerOptions options);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Takes over what a checkpoint says, before any other call: its assigned splits are queued again at their positions.
  void Restore(const LedgerSnapshot& snapshot);

  struct Offer {
    NextSplit::Kind kind = NextSplit::Kind::kNoneEver;
    AssignedSplit assigned{};  // with kSplit
  };
  /// A split, or whether there may be one later: kNoneEver only when no reader holds a split any more, since a held one may still be cut,
  /// be handed back or have successors.
  arrow::Result<Offer> TryAssign();
  /// Waits while there is none now; nothing when there is none ever, Cancelled when `stop` is requested.
  arrow::Result<std::optional<AssignedSplit>> Assign(const std::stop_token& stop);

  /// The batch that `push` puts into the queue of the split's writer (into room that was reserved before) moves the split to `position`.
  arrow::Status Advance(uint64_t attempt, std::string position, const LedgerCounts& batch, const std::function<void()>& push);
  /// The split goes on under `near_descriptor`; the far parts are queued. One without an id becomes PARENT/N, N a number that the job never
  /// gives twice.
  arrow::Status Cut(uint64_t attempt, std::string near_descriptor, std::vector<Split> far, double near_estimated_bytes = -1);
  arrow::Status End(uint64_t attempt, std::vector<Split> successors);
  /// The reader failed: the split is queued again at the position of its last batch that was put into a queue. A cut or batch that still
  /// comes from this attempt is refused.
  arrow::Status HandBack(uint64_t attempt);

  /// A copy of everything, and `place_barrier` called under the same lock: what it puts into the writers' queues is behind exactly the
  /// batches that the copy counts.
  LedgerSnapshot Snapshot(const std::function<void()>& place_barrier) const;

  struct State {
    int64_t queued = 0;
    int64_t assigned = 0;
    int64_t idle = 0;  // readers that wait for a split
    LedgerCounts counts{};
  };
  State state() const;
  /// Waits until a reader has nothing to do while another has, and nothing is queued. False when `stop` is requested.
  bool WaitForIdle(const std::stop_token& stop);

  std::shared_ptr<arrow::Schema> schema() const { return enumerator_->schema(); }
  const SplitEnumerator& enumerator() const { return *enumerator_; }

 private:
  arrow::Result<Offer> TryAssignLocked();
  AssignedSplit& HoldLocked(Split split);
  arrow::Result<AssignedSplit*> FindLocked(uint64_t attempt, const char* what);
  void QueueAgainLocked(std::vector<Split> splits);
  int64_t QueuedLocked() const { return enumerator_->queued() + static_cast<int64_t>(returned_.size()); }
  int ChooseWriterLocked(const std::string& split_id);

  const LedgerOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  const std::unique_ptr<SplitEnumerator> enumerator_;
  std::map<uint64_t, AssignedSplit> assigned_;      // by attempt
  std::deque<AssignedSplit> returned_;              // ordered jobs: handed back, to be assigned before all others
  std::map<std::string, int, std::less<>> writer_;  // of splits that were handed back: their earlier batches may still be in that queue
  uint64_t next_attempt_ = 1;
  int64_t idle_ = 0;
  uint64_t version_ = 0;  // changes with everything that an idle reader may be waiting for
  LedgerCounts counts_;
};

}  // namespace headrace
