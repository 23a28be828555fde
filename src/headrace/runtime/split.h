// Splits, batches, and what a split reader answers. Plain values; a Split may be copied and persisted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <arrow/record_batch.h>

#include "headrace/base/memory_budget.h"

namespace headrace {

/// A piece of a source, or what is left of it.
struct Split {
  std::string id{};             // unique in the job; far parts are parent/n; names nothing on disk
  std::string descriptor{};     // source-owned, versioned bytes: stream name, key range ...
  std::string position{};       // source-owned: rows delivered, last key ...; empty = from the start
  std::string end_position{};   // exclusive bound, empty = none
  double estimated_bytes = -1;  // negative = unknown

  bool operator==(const Split&) const = default;
};

/// Rows and the position of their split after them. `memory` is the part of the job's budget that the rows hold; whoever consumes the rows
/// releases it.
struct Batch {
  std::shared_ptr<arrow::RecordBatch> rows;
  std::string position;
  MemoryReservation memory{};
  int64_t wire_bytes = 0;  // bytes received for these rows, for the report
};

/// The split was cut in two: the near part goes on in this reader under a new descriptor, the far parts are new splits. A far part without
/// an id is given one by whoever applies the cut.
struct Cut {
  std::string near_descriptor;
  std::vector<Split> far;
  double near_estimated_bytes = -1;  // of the whole near part; negative = unknown
};

/// The split is finished.
struct End {
  std::vector<Split> successors;
};

using ReadResult = std::variant<Batch, Cut, End>;

/// How far a reader is in its split.
struct SplitProgress {
  /// Of the split; never goes down but by a cut, 1 at its end. A cut changes it when Next is called again: it is applied by then.
  double fraction = 0;
  bool throttled = false;
  /// It waits for something of this process (memory, its turn), not for the source: no stall.
  bool waits_here = false;
  /// A cut may be asked for now: none is being answered, and none was refused for good.
  bool can_cut = false;
};

}  // namespace headrace
