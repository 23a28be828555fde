// Gives readers without work a part of a busy reader's split: asks the reader with the most work left for a cut of half of it.
//
// Run belongs to one thread of the run. It decides nothing about rows: the cut is the busy reader's answer, applied by its own thread
// through the ledger, so a request that is too late or refused changes nothing.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <vector>

#include "headrace/runtime/internal/reader_loop.h"
#include "headrace/runtime/ledger.h"

namespace headrace {

/// Less than this of a split is read faster than a cut of it is answered: two of the usual 1 MiB responses on either side.
inline constexpr double kLeastSharedBytes = 4 << 20;
/// The same where a split's size is unknown.
inline constexpr double kLeastSharedFraction = 0.02;

/// The index of the reader that a cut should be asked of; nothing when none has enough left.
std::optional<size_t> ChooseBusiest(const std::vector<ReaderLoop::State>& readers);

class WorkSharing {
 public:
  /// `readers` and `ledger` outlive it.
  WorkSharing(Clock* clock, Ledger* ledger, std::vector<ReaderLoop*> readers, MetricRegistry* metrics);
  /// Until `stop` is requested.
  void Run(const std::stop_token& stop);

 private:
  void AskBusiest();

  Clock* const clock_;
  Ledger* const ledger_;
  const std::vector<ReaderLoop*> readers_;
  Counter* const requested_;
};

}  // namespace headrace
