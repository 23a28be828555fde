// The protocol of splits, cuts and checkpoints as single steps around the real Ledger, for tests that choose the order of the steps: a
// search of all orders, and random walks. Readers, writer queues and the disk are plain values, so that nothing happens but what the test
// says.
//
// At every checkpoint that becomes durable, and at the end of the job, each row must count exactly once.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/runtime/fake_source_testing.h"
#include "headrace/runtime/ledger.h"

namespace headrace::testing {

/// Ways to get the protocol wrong. Each must be found by the tests.
enum class Mutation {
  kNone,
  kCutAppliedLate,           // the reader goes on before its cut is in the ledger
  kFarPartAfterEnd,          // a cut's far part comes in a step of its own, after which the near part may have ended
  kHandBackConsumed,         // a split is handed back at what the writer has taken
  kHandBackReceived,         // ... or at what the reader has received
  kPositionBeforeEnqueue,    // the ledger moves in one step and the batch is queued in another
  kEnqueueBeforePosition,    // the same the other way round
  kEnumeratorBeforeReaders,  // a checkpoint copies queued and assigned splits in two steps
  kReadersBeforeEnumerator,  // ... the other way round
  kBarrierAfterCopy,         // the barrier is queued after the ledger is copied, without its lock
  kCommitBeforeDurable,      // rows become visible before the checkpoint that names them is on disk
  kNoCommitOnRestore,        // a restore takes for granted that its checkpoint was committed
};
constexpr Mutation kAllMutations[] = {
    Mutation::kCutAppliedLate,          Mutation::kFarPartAfterEnd,         Mutation::kHandBackConsumed,
    Mutation::kHandBackReceived,        Mutation::kPositionBeforeEnqueue,   Mutation::kEnqueueBeforePosition,
    Mutation::kEnumeratorBeforeReaders, Mutation::kReadersBeforeEnumerator, Mutation::kBarrierAfterCopy,
    Mutation::kCommitBeforeDurable,     Mutation::kNoCommitOnRestore,
};
const char* NameOf(Mutation mutation);

struct WorldOptions {
  std::vector<Range> splits{{0, 4}};
  int readers = 2;
  int writers = 1;
  int cuts = 1;  // at most this many of each
  int failures = 1;
  int checkpoints = 1;  // besides the one at the end
  int crashes = 1;
  bool vary_on_crash = false;  // another number of readers and writers takes over
  Mutation mutation = Mutation::kNone;
};

struct Action {
  enum class Kind : uint8_t {
    kAssign,
    kReceive,
    kAnswerRow,
    kAnswerCut,
    kAnswerEnd,
    kApply,
    kApplyRest,
    kFail,
    kBarrier,
    kBarrierRest,
    kWrite,
    kPersist,
    kCommit,
    kRecord,
    kCrash
  };
  Kind kind;
  uint8_t who = 0;  // reader or writer
  uint8_t at = 0;   // row of a cut
  std::string ToString() const;
};

class World {
 public:
  explicit World(const WorldOptions& options);

  /// Every step that may come next. Empty = the job is done.
  std::vector<Action> Enabled() const;
  /// Takes a step. Answers what is wrong now, or nothing.
  std::optional<std::string> Take(const Action& action);
  /// What is wrong with a job that is done.
  std::optional<std::string> CheckDone() const;
  /// Equal keys = equal futures.
  std::string Key() const;

 private:
  struct Answer {
    enum class Kind : uint8_t { kNone, kRow, kCut, kEnd } kind = Kind::kNone;
    int64_t value = 0;
  };
  struct Reader {
    std::optional<AssignedSplit> held{};
    int64_t end = 0;       // of its range now
    int64_t received = 0;  // next row to come from the service
    int64_t next = 0;      // next row to hand over
    Answer answer{};       // of Next, not yet applied
    Answer rest{};         // second half of a mutated step
    uint64_t rest_attempt = 0;
    Split rest_split{};
    int rest_writer = 0;
  };
  struct Checkpoint {
    LedgerSnapshot ledger{};
    std::vector<int64_t> committable{};
    bool final = false;
  };
  enum class Stage : uint8_t { kNone, kHalfPlaced, kPlaced, kAnswered, kDurable, kCommitted };

  void Open(std::vector<Split> queued);
  void EnabledOf(size_t index, std::vector<Action>* actions) const;
  bool ReadersDone() const;
  void Apply(Reader* reader);
  void ApplyRest(Reader* reader);
  void HandBack(Reader* reader);
  void PlaceBarrier();
  void PlaceBarrierRest();
  void PushMarkers();
  std::optional<std::string> WriteNext(size_t writer);
  std::optional<std::string> Persist();
  void Commit(const Checkpoint& checkpoint);
  void Crash();
  std::optional<std::string> CheckCovered(const Checkpoint& checkpoint) const;
  Split FarOf(const Split& split, int64_t at, int64_t end) const;

  WorldOptions options_;
  int64_t rows_ = 0;
  std::unique_ptr<Ledger> ledger_;
  std::vector<Reader> readers_;
  std::vector<std::deque<int64_t>> queues_;        // rows; kMarker = barrier
  std::vector<std::vector<int64_t>> uncommitted_;  // by writer
  std::vector<bool> answered_;
  std::vector<bool> taken_;  // by row: a writer has had it since the last crash, or it is visible
  Stage stage_ = Stage::kNone;
  Checkpoint pending_;
  std::optional<Checkpoint> durable_;
  bool committed_ = false;  // durable_ is, whether recorded or not: committing it again changes nothing
  bool recorded_ = false;
  std::vector<int> visible_;  // by row
  int cuts_ = 0, failures_ = 0, checkpoints_ = 0, crashes_ = 0;
  bool done_ = false;
};

}  // namespace headrace::testing
