// Commits a checkpoint's committables, again and again where the service says so, within a limit.
#pragma once

#include <stop_token>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/log.h"
#include "headrace/runtime/sink.h"

namespace headrace {

/// OK when every one is committed (now or before). Cancelled when `stop` is requested during a wait.
arrow::Status CommitAll(Committer* committer, const std::vector<Committable>& committables, Clock* clock, Logger* logger,
                        const std::stop_token& stop);

}  // namespace headrace
