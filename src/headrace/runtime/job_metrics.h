// The metrics that every job and every reading has, whatever it reads and writes. Constant data, any thread.
#pragma once

#include <span>

#include "headrace/base/metrics.h"

namespace headrace {

/// Of what sources have in common; each source that counts them names them among its own (Source::metrics).
inline constexpr MetricInfo kRowsRead{.name = "rowsRead",
                                      .kind = MetricKind::kCounter,
                                      .unit = "rows",
                                      .flink = "rowsRead",
                                      .label = "",
                                      .meaning = "Rows received from the source; what is received again after a restart counts again."};
inline constexpr MetricInfo kBytesRead{.name = "bytesRead",
                                       .kind = MetricKind::kCounter,
                                       .unit = "bytes",
                                       .flink = "bytesRead",
                                       .label = "",
                                       .meaning = "Bytes received for these rows, as they came; not what is billed."};

/// Counted by the engine for any source.
std::span<const MetricInfo> JobMetrics();
/// Counted by ReadRows besides.
std::span<const MetricInfo> RowMetrics();

}  // namespace headrace
