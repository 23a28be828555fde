#include "headrace/runtime/internal/commit.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace headrace {
namespace {

// Half a second, doubled up to 16 seconds: eight attempts in about 48 seconds. Sinks retry single calls themselves; this is for what
// outlasts them.
constexpr int kMostAttempts = 8;
constexpr Duration kFirstDelay = std::chrono::milliseconds{500};
constexpr Duration kLongestDelay = std::chrono::seconds{16};

}  // namespace

arrow::Status CommitAll(Committer* committer, const std::vector<Committable>& committables, Clock* clock, Logger* logger,
                        const std::stop_token& stop) {
  auto pending = committables;
  auto delay = kFirstDelay;
  for (int attempt = 1; !pending.empty(); ++attempt) {
    auto results = committer->Commit(pending);
    if (results.size() != pending.size()) {
      return MakeError({.code = Code::kInternal, .resource = "sink"},
                       fmt::format("the sink answered {} results for {} committables", results.size(), pending.size()));
    }
    std::vector<Committable> later;
    arrow::Status failed;
    arrow::Status last;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].outcome == CommitOutcome::kFailed && failed.ok()) {
        failed = results[i].error.ok() ? arrow::Status::UnknownError("the sink gave no reason") : results[i].error;
      }
      if (results[i].outcome == CommitOutcome::kRetryLater) {
        later.push_back(pending[i]);
        last = results[i].error.ok() ? arrow::Status::UnknownError("the sink asked for another attempt") : results[i].error;
      }
    }
    ARROW_RETURN_NOT_OK(WithContext(failed, "commit"));
    if (later.empty()) return arrow::Status::OK();
    if (attempt == kMostAttempts) return WithContext(last, fmt::format("commit, given up after {} attempts", kMostAttempts));
    logger->Log(LogLevel::kWarning, fmt::format("{} of {} commits are tried again in {} ms: {}", later.size(), committables.size(),
                                                std::chrono::duration_cast<std::chrono::milliseconds>(delay).count(), last.message()));
    if (!clock->SleepFor(delay, stop)) return arrow::Status::Cancelled("stopped between two attempts to commit");
    delay = std::min(delay * 2, kLongestDelay);
    pending = std::move(later);
  }
  return arrow::Status::OK();
}

}  // namespace headrace
