// What a job did: printed at its end, kept in checkpoints, written into manifests. And what it is doing: Progress. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {

/// Row counts cover the whole job, also the parts before a resume; `seconds`, `peak_*` and `counters` cover this run of it.
struct Report {
  std::string job_name{};
  std::string run_id{};
  int64_t rows_read = 0;     // rows that came from the source and are covered by the last checkpoint or the end
  int64_t records_in = 0;    // records put into the sink
  int64_t rows_written = 0;  // acknowledged by the sink
  int64_t rows_rejected = 0;
  int64_t rows_skipped = 0;     // by a row function
  int64_t bytes_read = 0;       // as received from the network or files
  int64_t bytes_in_memory = 0;  // as Arrow buffers
  int64_t bytes_written = 0;    // by the sink
  double seconds = 0;
  int64_t splits = 0;
  int64_t cuts = 0;
  uint64_t checkpoints = 0;
  int64_t restarts = 0;  // by the restart policy
  bool resumed = false;
  int64_t peak_budget_bytes = 0;
  int64_t peak_resident_bytes = 0;
  std::map<std::string, int64_t> counters{};   // the connectors' metrics
  std::map<std::string, std::string> facts{};  // session, snapshot time, where the data are and when they become visible ...
  std::vector<std::string> warnings{};

  /// One JSON object, keys as the fields.
  std::string ToJson() const;
};

/// A look at a running job.
struct Progress {
  int64_t rows = 0;  // enqueued towards the sink, all runs of the job
  int64_t bytes = 0;
  int64_t estimated_rows = -1;
  double fraction = 0;  // 0..1, never goes down; negative = unknown
  int open_splits = 0;
  int64_t queued_splits = 0;
  int64_t finished_splits = 0;
  int throttled_splits = 0;
  int stalled_splits = 0;  // no batch for 10 seconds though there is room for one
  double seconds = 0;
  uint64_t checkpoint = 0;  // the last one completed
};

}  // namespace headrace
