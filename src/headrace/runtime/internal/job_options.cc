#include "headrace/runtime/internal/job_options.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace headrace {
namespace {

// A read session of the BigQuery Storage API has at most 1,000 streams; each reader and writer is a thread.
constexpr int kMostThreads = 1'000;
// Below this not even one message of a stream fits beside its decoded rows.
constexpr int64_t kLeastMemory = int64_t{1} << 20;
constexpr int kMostDefaultReaders = 16;  // job.h

arrow::Status CheckRanges(const JobOptions& options) {
  if (options.readers < 0 || options.readers > kMostThreads) {
    return InvalidOption(
        "readers", fmt::format("readers is {}; give 0 (2 per core, at most {}) to {}", options.readers, kMostDefaultReaders, kMostThreads));
  }
  if (options.writers < 0 || options.writers > kMostThreads) {
    return InvalidOption("writers",
                         fmt::format("writers is {}; give 0 (one per core, no more than readers) to {}", options.writers, kMostThreads));
  }
  if (options.memory_limit < kLeastMemory) {
    return InvalidOption("memory_limit", fmt::format("memory_limit is {} bytes; give at least {}", options.memory_limit, kLeastMemory));
  }
  if (options.checkpoint_interval.count() <= 0) {
    return InvalidOption("checkpoint_interval",
                         fmt::format("checkpoint_interval is {} ms; it must be longer than 0", options.checkpoint_interval.count()));
  }
  if (options.restart_attempts < 0) {
    return InvalidOption("restart_attempts", fmt::format("restart_attempts is {}; give 0 or more", options.restart_attempts));
  }
  if (options.restart_delay.count() < 0) {
    return InvalidOption("restart_delay", fmt::format("restart_delay is {} ms; give 0 or more", options.restart_delay.count()));
  }
  for (auto [name, rate] :
       {std::pair("max_rows_per_second", options.max_rows_per_second), {"max_bytes_per_second", options.max_bytes_per_second}}) {
    if (!std::isfinite(rate) || rate < 0)
      return InvalidOption(name, fmt::format("{} is {}; give a number above 0, or 0 for no limit", name, rate));
  }
  return arrow::Status::OK();
}

}  // namespace

arrow::Status CheckJobOptions(const JobOptions& options, const Source& source, const Sink& sink) {
  ARROW_RETURN_NOT_OK(CheckRanges(options));
  if (options.ordered && (options.readers > 1 || options.writers > 1)) {
    return InvalidOption(options.readers > 1 ? "readers" : "writers",
                         "an ordered job has one reader and one writer; leave out either the number or ordered");
  }
  if (sink.max_writers() > 0 && options.writers > sink.max_writers()) {
    return InvalidOption("writers", fmt::format("writers is {}; this sink takes at most {}", options.writers, sink.max_writers()));
  }
  if (options.checkpoint.empty()) {
    if (options.restart_attempts > 0) {
      return InvalidOption("restart_attempts", "restart_attempts needs a checkpoint directory to restart from: give checkpoint as well");
    }
    if (source.boundedness() == Boundedness::kContinuous) {
      return InvalidOption("checkpoint",
                           "a continuous job has no end at which all of it could be made visible: give a checkpoint directory");
    }
    return arrow::Status::OK();
  }
  ARROW_RETURN_NOT_OK(source.SupportsCheckpoints());
  return sink.SupportsCheckpoints();
}

bool SharesWork(const JobOptions& options, const Source& source) {
  return options.work_sharing && !options.ordered && source.supports_cuts();
}

Parallelism ChooseParallelism(const JobOptions& options, int64_t splits, Boundedness boundedness, bool shared, int max_writers, int cores) {
  Parallelism chosen;
  if (options.ordered) {
    chosen.readers = splits == 0 && boundedness == Boundedness::kBounded ? 0 : 1;
    return chosen;
  }
  int by_default = std::min(2 * cores, kMostDefaultReaders);
  chosen.readers = options.readers > 0 ? options.readers : by_default;
  const bool some_to_share = shared && splits > 0;
  if (boundedness == Boundedness::kBounded && splits < chosen.readers && !some_to_share) {
    if (options.readers > 0 && splits > 0) {
      chosen.warning = fmt::format("the source has only {} splits: {} of the {} readers have nothing to do and are left out", splits,
                                   options.readers - splits, options.readers);
    }
    chosen.readers = static_cast<int>(splits);
  }
  int most = max_writers > 0 ? max_writers : std::numeric_limits<int>::max();
  chosen.writers = options.writers > 0 ? options.writers : std::min({cores, most, std::max(chosen.readers, 1)});
  return chosen;
}

}  // namespace headrace
