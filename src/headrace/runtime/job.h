// The local engine: N readers and M writers on threads, checkpoints, restore.
//
// A Job owns its threads while Run is active. Run is called once, by one thread; StopAtCheckpoint, StopNow and progress may come from any
// thread (not from a signal handler). Everything that the job persists is described in docs/formats/checkpoint.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "headrace/base/clock.h"
#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/base/log.h"
#include "headrace/base/random.h"
#include "headrace/runtime/report.h"
#include "headrace/runtime/sink.h"
#include "headrace/runtime/source.h"

namespace headrace {

struct JobOptions {
  std::string job_name{};
  int readers = 0;                            // 0 = 2 x cores, at most 16; no more than splits where those cannot be cut
  int writers = 0;                            // 0 = one per core, at most what the sink takes and the number of readers
  int64_t memory_limit = int64_t{512} << 20;  // bytes held on the way, see docs/guarantees.md
  std::string checkpoint{};                   // directory; empty = no checkpoints: all or nothing at the end
  std::chrono::milliseconds checkpoint_interval{60'000};
  int restart_attempts = 0;  // failures after which the job re-opens from its last checkpoint; needs `checkpoint`
  std::chrono::milliseconds restart_delay{1'000};
  double max_rows_per_second = 0;   // 0 = not slowed; token bucket over the whole job
  double max_bytes_per_second = 0;  // of Arrow buffers
  bool ordered = false;             // one reader, one writer
  /// Readers without work are given half of what is left of a busy one's split, where the source can cut splits (Source::supports_cuts:
  /// BigQuery's streams can be cut, files cannot). Off: a split is read by one reader to its end.
  bool work_sharing = true;
  /// Persisted as it is and given back by ReadJobConfiguration. No secrets.
  std::map<std::string, std::string> configuration{};
};

/// What Job::Make begins with; looks at nothing else. Refuses by name what is out of range, does not apply, or the source or sink cannot
/// do.
arrow::Status CheckJobOptions(const JobOptions& options, const Source& source, const Sink& sink);

/// Lent by the caller; what is pointed to outlives the job.
struct JobEnvironment {
  Clock* clock = RealClock();
  Random* random = SystemRandom();
  FileSystem* files = LocalFileSystem();
  Logger* logger = NullLogger();
  /// Where the job counts (docs/metrics.md), to be looked at whenever the caller likes; null = a registry of the job's own. One job each.
  MetricRegistry* metrics = nullptr;
  /// Is told the metrics at every interval while Run is active, and once more at its end; null = nobody.
  MetricListener* listener = nullptr;
  std::chrono::milliseconds metrics_interval{1'000};
};

/// Why Run ended without an error.
enum class JobEnd { kDone, kStoppedAtCheckpoint };

struct JobResult {
  JobEnd end = JobEnd::kDone;
  Report report{};
};

class Job {
 public:
  virtual ~Job() = default;

  /// A new job. With a checkpoint directory: takes its lock; ALREADY_EXISTS when it holds a job's checkpoints already. Checks the options
  /// and (Sink::Check) the target; contacts no service.
  static arrow::Result<std::unique_ptr<Job>> Make(std::shared_ptr<const Source> source, std::shared_ptr<const Sink> sink,
                                                  JobOptions options, JobEnvironment environment = {});
  /// Goes on from the newest checkpoint in options.checkpoint, under its lock. UNAVAILABLE (reason LOCKED) when another process has it,
  /// DATA_LOSS when the newest checkpoint cannot be read: an older one is never taken in its place, since its rows may already be
  /// committed.
  static arrow::Result<std::unique_ptr<Job>> Restore(std::shared_ptr<const Source> source, std::shared_ptr<const Sink> sink,
                                                     JobOptions options, JobEnvironment environment = {});

  /// Runs until the source ends, a stop, or the first error, which stops everything within ten seconds; later errors are attached to its
  /// text.
  virtual arrow::Result<JobResult> Run() = 0;
  /// Takes a last checkpoint and ends with kStoppedAtCheckpoint; without a checkpoint directory the same as StopNow.
  virtual void StopAtCheckpoint() = 0;
  /// Ends at once with Cancelled.
  virtual void StopNow() = 0;
  /// Also brings the gauges among the metrics up to date.
  virtual Progress progress() const = 0;
};

/// The configuration that the newest checkpoint in `directory` was made with, and whether that job is already finished.
struct PersistedJob {
  std::map<std::string, std::string> configuration{};
  std::string job_name{};
  std::string run_id{};
  bool finished = false;
  uint64_t checkpoint = 0;
};
arrow::Result<PersistedJob> ReadPersistedJob(FileSystem* files, const std::string& directory);

}  // namespace headrace
