// Metrics as Prometheus reads them: text format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/). Free functions, any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/metrics.h"

namespace headrace {

/// The Content-Type of the text.
inline constexpr std::string_view kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

/// bytesRead, a counter: headrace_bytes_read_total.
std::string PrometheusName(std::string_view name, MetricKind kind);

/// HELP, TYPE and values of each metric. Of a metric with parts only the parts are given, each with its label (code="UNAVAILABLE"), so that
/// their sum is the whole; the whole while there is none. A metric that nobody registered is `untyped`.
std::string PrometheusText(const std::vector<MetricValue>& values);

}  // namespace headrace
