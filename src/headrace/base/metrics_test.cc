#include "headrace/base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/prometheus.h"

namespace headrace {
namespace {

constexpr MetricInfo kInfos[] = {
    {"rowsRead", MetricKind::kCounter, "rows", "rowsRead", "", "Rows \\ received\nand so on."},
    {"readRetries", MetricKind::kCounter, "attempts", "readRetries", "code", "Attempts \"again\"."},
    {"openSplits", MetricKind::kGauge, "splits", "", "", "Splits."},
};

TEST(Metrics, RegisteredOnesAreThereFromTheStart) {
  MetricRegistry registry;
  registry.Register(kInfos);
  registry.Register(kInfos);
  registry.counter("rowsRead")->Add(3);
  registry.counter("openSplits")->Set(-1);
  registry.counter("readRetries.UNAVAILABLE")->Add(2);
  registry.counter("other.x.y")->Add();
  EXPECT_THAT(registry.Collect(),
              ::testing::ElementsAre(MetricValue{.name = "openSplits", .info = &kInfos[2], .value = -1},
                                     MetricValue{.name = "other", .part = "x.y", .value = 1},
                                     MetricValue{.name = "readRetries", .info = &kInfos[1]},
                                     MetricValue{.name = "readRetries", .part = "UNAVAILABLE", .info = &kInfos[1], .value = 2},
                                     MetricValue{.name = "rowsRead", .info = &kInfos[0], .value = 3}));
  EXPECT_EQ(registry.Snapshot().at("readRetries.UNAVAILABLE"), 2);
}

TEST(Prometheus, Names) {
  EXPECT_EQ(PrometheusName("rowsRead", MetricKind::kCounter), "headrace_rows_read_total");
  EXPECT_EQ(PrometheusName("openSplits", MetricKind::kGauge), "headrace_open_splits");
  EXPECT_EQ(PrometheusName("ABTest-2", MetricKind::kGauge), "headrace_abtest_2");
}

TEST(Prometheus, TheTextOfEachKind) {
  MetricRegistry registry;
  EXPECT_EQ(PrometheusText(registry.Collect()), "");
  registry.Register(kInfos);
  registry.counter("rowsRead")->Add(3);
  EXPECT_EQ(PrometheusText(registry.Collect()),
            "# HELP headrace_open_splits Splits.\n"
            "# TYPE headrace_open_splits gauge\n"
            "headrace_open_splits 0\n"
            "# HELP headrace_read_retries_total Attempts \"again\".\n"
            "# TYPE headrace_read_retries_total counter\n"
            "headrace_read_retries_total 0\n"
            "# HELP headrace_rows_read_total Rows \\\\ received\\nand so on.\n"
            "# TYPE headrace_rows_read_total counter\n"
            "headrace_rows_read_total 3\n");
}

TEST(Prometheus, PartsAreGivenInsteadOfTheWholeAndAreEscaped) {
  MetricRegistry registry;
  registry.Register(std::span(kInfos).subspan(1, 1));
  registry.counter("readRetries")->Add(5);
  registry.counter("readRetries.UNAVAILABLE")->Add(3);
  registry.counter("readRetries.a\"b\\c\nd")->Add(2);
  registry.counter("stray")->Add(7);
  registry.counter("tail.end")->Add(1);
  EXPECT_EQ(PrometheusText(registry.Collect()),
            "# HELP headrace_read_retries_total Attempts \"again\".\n"
            "# TYPE headrace_read_retries_total counter\n"
            "headrace_read_retries_total{code=\"UNAVAILABLE\"} 3\n"
            "headrace_read_retries_total{code=\"a\\\"b\\\\c\\nd\"} 2\n"
            "# TYPE headrace_stray untyped\n"
            "headrace_stray 7\n"
            "# TYPE headrace_tail untyped\n"
            "headrace_tail{part=\"end\"} 1\n");
}

}  // namespace
}  // namespace headrace
