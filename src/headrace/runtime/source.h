// What an engine needs to read from: Source plans through a SplitEnumerator and reads splits through SplitReaders.
//
// A Source knows nothing of threads, queues or checkpoint files; the local Job and other engines drive it through these interfaces.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type.h>

#include "headrace/base/clock.h"
#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/base/log.h"
#include "headrace/base/memory_budget.h"
#include "headrace/base/metrics.h"
#include "headrace/base/random.h"
#include "headrace/runtime/lineage.h"
#include "headrace/runtime/split.h"

namespace headrace {

/// What the engine lends to sources and sinks. All pointers outlive everything made with the context.
struct JobContext {
  std::string job_name{};
  Clock* clock = RealClock();
  Random* random = SystemRandom();
  FileSystem* files = LocalFileSystem();
  Logger* logger = NullLogger();
  MetricRegistry* metrics = nullptr;  // never null when an engine made the context
  MemoryBudget* memory = nullptr;     // never null when an engine made the context
  int readers = 0;                    // of splits at the same time, at most; 0 = the engine does not say
};

/// Reads one split. One thread calls Next and PositionAt; Cancel, RequestCut and Progress may come from any thread.
class SplitReader {
 public:
  virtual ~SplitReader() = default;
  /// The next rows, a cut, or the end, in that order; the caller applies the answer before it calls again. Cancelled after Cancel, never
  /// End. After End or an error it is not called again.
  virtual arrow::Result<ReadResult> Next() = 0;
  /// Asks for a cut that leaves this reader about `fraction` of what is left; the answer, if any, is a Cut from Next. 0 = cut after the
  /// last batch handed over. A request while another is being answered, or of a reader that cannot cut, has no effect.
  virtual void RequestCut(double fraction) = 0;
  /// The position before row `row` (0 <= row <= rows) of a batch that this reader handed over: for row interfaces.
  virtual arrow::Result<std::string> PositionAt(const Batch& batch, int64_t row) = 0;
  virtual SplitProgress Progress() const = 0;
  virtual void Cancel() = 0;
};

struct NextSplit {
  enum class Kind { kSplit, kNoneNow, kNoneEver };
  Kind kind = Kind::kNoneEver;
  Split split{};
};

/// Plans a source and hands out its splits. Start may take long and talks to the service; Cancel may come from any thread at any time.
/// After Start all other functions only work on memory, never block, and are called under the engine's ledger lock.
class SplitEnumerator {
 public:
  virtual ~SplitEnumerator() = default;
  /// Plans, exactly once in a job's life. On a restored enumerator that had planned it only opens what it needs and never plans again.
  virtual arrow::Status Start() = 0;
  /// Known after Start or restore, before any batch; kept in the snapshot.
  virtual std::shared_ptr<arrow::Schema> schema() const = 0;
  /// kNoneEver is an answer for now as well: splits that are added later are handed out.
  virtual arrow::Result<NextSplit> Next() = 0;
  /// Splits given back by a reader or cut off from one: to the end of the queue, in the given order.
  virtual void AddSplitsBack(std::vector<Split> splits) = 0;
  virtual void AddSuccessors(std::vector<Split> splits) = 0;
  /// How many splits Next would still answer with kSplit.
  virtual int64_t queued() const = 0;
  /// The service's estimate of all rows at plan time; negative = unknown. Only for progress and warnings.
  virtual int64_t estimated_rows() const { return -1; }
  /// What the report should say of the plan: session, snapshot time ... No secrets.
  virtual std::map<std::string, std::string> facts() const { return {}; }
  virtual std::string Snapshot() const = 0;
  /// Ends a plan in progress: Start then answers Cancelled.
  virtual void Cancel() = 0;
};

/// Immutable and shareable by threads; no connection is opened and no file read until an enumerator or a reader is made.
class Source {
 public:
  virtual ~Source() = default;
  virtual Boundedness boundedness() const = 0;
  /// Its readers may answer cuts, so that more readers than splits have something to do.
  virtual bool supports_cuts() const { return false; }
  virtual Lineage lineage() const = 0;
  /// What its enumerators and readers count, as constant data. The engine registers them, so that each is there from the start.
  virtual std::span<const MetricInfo> metrics() const { return {}; }
  /// Not OK when the source cannot be read again from where a checkpoint says; the text says what to use instead.
  virtual arrow::Status SupportsCheckpoints() const { return arrow::Status::OK(); }
  virtual arrow::Result<std::unique_ptr<SplitEnumerator>> CreateEnumerator(const JobContext& context) const = 0;
  /// From SplitEnumerator::Snapshot of this or the previous release.
  virtual arrow::Result<std::unique_ptr<SplitEnumerator>> RestoreEnumerator(const JobContext& context, std::string_view state) const = 0;
  /// `schema` is the enumerator's.
  virtual arrow::Result<std::unique_ptr<SplitReader>> OpenReader(const JobContext& context, const std::shared_ptr<arrow::Schema>& schema,
                                                                 Split split) const = 0;
};

}  // namespace headrace
