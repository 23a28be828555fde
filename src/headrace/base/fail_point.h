// Named steps at which a test may stop the process. Compiled in only with HEADRACE_BUILD_TESTS; otherwise FailPoint is nothing at all.
#pragma once

#include <functional>
#include <string_view>

#include <arrow/status.h>

namespace headrace {

#ifdef HEADRACE_FAIL_POINTS
inline constexpr bool kFailPointsCompiled = true;
/// Calls `handler` at every pass of every step instead, for tests that play the death of a process inside of theirs; null ends that. Set
/// while no job runs.
void SetFailPointHandler(std::function<void(std::string_view)> handler);
/// Kills the process with SIGKILL when this is the armed step's n-th pass.
void FailPoint(std::string_view name);
#else
inline constexpr bool kFailPointsCompiled = false;
inline void FailPoint(std::string_view) {}
#endif

/// Arms one step: "NAME" or "NAME:N" (the N-th pass, from 1). An unknown name or a build without fail points is an error.
arrow::Status ArmFailPoint(std::string_view spec);

/// Every step there is, in the order a checkpointed job passes them.
inline constexpr std::string_view kFailPoints[] = {
    "job.created",                 // configuration persisted, nothing planned
    "job.planned",                 // the source has planned (session created), nothing persisted of it
    "job.prepared",                // the sink is prepared, the plan not yet persisted
    "checkpoint.barrier",          // the barrier is in every queue, the ledger copied
    "checkpoint.writer_prepared",  // a writer has answered the barrier
    "checkpoint.temp_written",     // state written under its temporary name
    "checkpoint.renamed",          // state has its final name
    "commit.before",               // state durable, nothing committed
    "commit.item",                 // one committable committed
    "commit.after",                // all committed, not yet recorded
    "commit.recorded",             // recorded, older checkpoint not yet removed
    "file.temp_created",           // a sink's file exists under its temporary name
    "file.renamed",                // a sink's file has its final name
    "finish.before",               // last commit recorded, nothing finished
    "finish.manifest_written",     // manifest has its final name
    "finish.after",                // finished, not yet recorded
};

/// The steps of a cut, which only a job that shares work passes, in their order.
inline constexpr std::string_view kCutFailPoints[] = {
    "cut.asked",     // a reader was asked for a cut, the service not yet
    "cut.answered",  // the service has split the stream, nothing reads the two new ones
    "cut.proven",    // the near part is being read at the right row, nobody knows of the far part
    "cut.applied",   // the ledger holds both parts
};

/// Steps that change nothing durable: for what is seen of a job at that moment.
inline constexpr std::string_view kLookFailPoints[] = {
    "split.ended",  // the ledger counts the split as finished
};

}  // namespace headrace
