// Which options a job takes, and how many readers and writers it runs.
#pragma once

#include <string>

#include "headrace/runtime/job.h"

namespace headrace {

struct Parallelism {
  int readers = 1;  // 0 = there is nothing to read
  int writers = 1;
  std::string warning{};  // empty = none
};

/// Readers may share the splits of the source.
bool SharesWork(const JobOptions& options, const Source& source);

/// `splits`: those that may be read side by side now. A continuous source may have more later, and with `shared` they may be cut.
Parallelism ChooseParallelism(const JobOptions& options, int64_t splits, Boundedness boundedness, bool shared, int max_writers, int cores);

}  // namespace headrace
