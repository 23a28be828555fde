#include "headrace/runtime/job_metrics.h"

namespace headrace {
namespace {

using enum MetricKind;

constexpr MetricInfo kJob[] = {
    {"splitsAssigned", kCounter, "splits", "splitsAssigned", "", "Splits given to a reader, also those that came back before."},
    {"splitsReturned", kCounter, "splits", "splitsReturned", "", "Splits that a failed reader gave back."},
    {"splitsCut", kCounter, "splits", "", "", "Splits that were cut off from one that was being read."},
    {"cutsRequested", kCounter, "requests", "", "", "Requests to cut a split, so that a reader without work gets a part of it."},
    {"unassignedSplits", kGauge, "splits", "unassignedSplits", "", "Splits that wait for a reader."},
    {"openSplits", kGauge, "splits", "", "", "Splits that are being read."},
    {"finishedSplits", kGauge, "splits", "", "", "Splits that are read to their end, by all runs of the job."},
    {"stalledSplits", kGauge, "splits", "", "", "Open splits whose source has not answered for 10 seconds."},
    {"throttledSplits", kGauge, "splits", "", "", "Open splits that the service slows down."},
    {"rowsEnqueued", kGauge, "rows", "", "", "Rows on their way to the sink or written, by all runs of the job; a restart sets it back."},
    {"budgetBytes", kGauge, "bytes", "", "", "Bytes held of the memory limit."},
    {"lastCheckpoint", kGauge, "1", "", "", "Number of the last complete checkpoint."},
};

constexpr MetricInfo kRows[] = {
    {"recordsSkipped", kCounter, "rows", "recordsSkipped", "", "Rows for which a mapper emitted no record."},
};

}  // namespace

std::span<const MetricInfo> JobMetrics() { return kJob; }
std::span<const MetricInfo> RowMetrics() { return kRows; }

}  // namespace headrace
