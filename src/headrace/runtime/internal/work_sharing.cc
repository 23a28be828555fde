#include "headrace/runtime/internal/work_sharing.h"

#include <utility>

namespace headrace {
namespace {

// How long a reader without work waits before another cut is asked for: an answer takes a call to the service, so asking more often only
// asks the same reader again.
constexpr Duration kPeriod = std::chrono::milliseconds{100};

bool IsWorthCutting(const ReaderLoop::State& reader) {
  if (!reader.open || !reader.progress.can_cut) return false;
  const double left = 1 - reader.progress.fraction;
  if (reader.estimated_bytes < 0) return left >= kLeastSharedFraction;
  return left * reader.estimated_bytes >= kLeastSharedBytes;
}

}  // namespace

std::optional<size_t> ChooseBusiest(const std::vector<ReaderLoop::State>& readers) {
  // Sizes compare only where all are known; fractions do otherwise.
  bool sizes = true;
  for (const auto& reader : readers) sizes = sizes && (!reader.open || reader.estimated_bytes >= 0);
  std::optional<size_t> busiest;
  double most = 0;
  for (size_t i = 0; i < readers.size(); ++i) {
    if (!IsWorthCutting(readers[i])) continue;
    const double left = (1 - readers[i].progress.fraction) * (sizes ? readers[i].estimated_bytes : 1);
    if (left <= most) continue;
    most = left;
    busiest = i;
  }
  return busiest;
}

WorkSharing::WorkSharing(Clock* clock, Ledger* ledger, std::vector<ReaderLoop*> readers, MetricRegistry* metrics)
    : clock_(clock), ledger_(ledger), readers_(std::move(readers)), requested_(metrics->counter("cutsRequested")) {}

void WorkSharing::Run(const std::stop_token& stop) {
  while (ledger_->WaitForIdle(stop)) {
    AskBusiest();
    if (!clock_->SleepFor(kPeriod, stop)) return;
  }
}

void WorkSharing::AskBusiest() {
  std::vector<ReaderLoop::State> states;
  for (const auto* reader : readers_) states.push_back(reader->Look());
  const auto busiest = ChooseBusiest(states);
  if (!busiest) return;
  requested_->Add();
  readers_[*busiest]->RequestCut(0.5);
}

}  // namespace headrace
