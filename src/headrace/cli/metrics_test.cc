// What real runs count is in the inventory, and each metric of a connector is counted by one; the metrics server.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include <arrow/builder.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include "headrace/bigquery/read/source.h"
#include "headrace/catalog/metric_inventory.h"
#include "headrace/cli/console.h"
#include "headrace/cli/job_run.h"
#include "headrace/cli/metrics_server.h"
#include "headrace/files/file_sink.h"
#include "headrace/files/file_source.h"
#include "headrace/local/service.h"
#include "headrace/runtime/job.h"
#include "headrace/runtime/job_metrics.h"
#include "headrace/runtime/read_rows.h"

namespace headrace::cli {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 1'000;

/// Hears that the service has answered a request for a cut.
class SplitListener final : public Logger {
 public:
  void Log(LogLevel /*level*/, std::string_view message) override {
    if (message.find("the service split") != std::string_view::npos) heard = true;
  }
  std::atomic<bool> heard{false};
};

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() : directory_(std::filesystem::path(::testing::TempDir()) / ("metrics-" + SystemRandom()->Hex(8))) {
    std::filesystem::create_directories(directory_);
  }
  ~MetricsTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }

  static std::shared_ptr<arrow::Table> Numbers() {
    arrow::Int64Builder builder;
    for (int64_t i = 0; i < kRows; ++i) EXPECT_TRUE(builder.Append(i).ok());
    return arrow::Table::Make(arrow::schema({arrow::field("id", arrow::int64())}), {builder.Finish().ValueOrDie()});
  }
  /// Copies to files and adds what was counted to the sums; every name must be in the inventory.
  void Count(const std::shared_ptr<const Source>& source, JobOptions options = {}) {
    auto sink = FileSink::Make({.path = Path("out-" + std::to_string(++runs_)) + "/"}).ValueOrDie();
    JobEnvironment environment;
    environment.metrics = &registry_;
    options.job_name = "metrics";
    auto job = Job::Make(source, sink, options, environment).ValueOrDie();
    auto result = job->Run();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->report.rows_written, kRows);
  }
  void ExpectCounted(std::span<const MetricInfo> infos) {
    std::set<std::string_view> known;
    for (const auto& row : catalog::MetricInventory()) known.insert(row.info->name);
    for (const MetricValue& value : registry_.Collect()) {
      EXPECT_TRUE(known.contains(value.name)) << value.name << " is counted and in no inventory";
      EXPECT_NE(value.info, nullptr) << value.name << " is not registered";
      EXPECT_TRUE(value.part.empty() || (value.info != nullptr && !value.info->label.empty())) << value.name << "." << value.part;
    }
    for (const MetricInfo& info : infos) EXPECT_GT(registry_.Snapshot().at(std::string(info.name)), 0) << info.name << " is never counted";
  }

  const std::filesystem::path directory_;
  MetricRegistry registry_;
  int runs_ = 0;
};

TEST_F(MetricsTest, EachMetricOfABigQuerySourceIsCounted) {
  ManualClock clock;
  local::Service service({.tables = {{"p.d.t", Numbers()}}, .message_rows = 100, .clock = &clock});
  auto addresses = service.Start();
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  ASSERT_TRUE(service
                  .SetFaults(R"({"rules":[{"method":"ReadRows","after_messages":2,"times":1,"action":{"status":{"code":"UNAVAILABLE"}}},
                                          {"method":"ReadRows","after_messages":3,"times":1,"action":{"drop":true}}]})")
                  .ok());
  auto source = bigquery::Source::Make({.table = "p.d.t", .bigquery_storage_endpoint = "http://" + addresses->grpc}).ValueOrDie();
  Count(source);
  // A cut that is refused: the near part cannot be opened. It is tried while the original has rows left, which wait until the cut is known.
  ASSERT_TRUE(service
                  .SetFaults(R"({"rules":[{"method":"ReadRows","match":{"part":"primary"},"action":{"status":{"code":"NOT_FOUND"}}},
                                          {"method":"ReadRows","match":{"part":"original"},"after_messages":2,"action":{"delay_ms":1000}}]})")
                  .ok());
  SplitListener listener;
  const std::jthread time([&](const std::stop_token& stop) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{30};
    while (!stop.stop_requested()) {
      if (listener.heard || std::chrono::steady_clock::now() > patience) clock.Advance(std::chrono::seconds{1});
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  });
  const JobContext context{.logger = &listener, .metrics = &registry_};
  auto enumerator = source->CreateEnumerator(context).ValueOrDie();
  ASSERT_TRUE(enumerator->Start().ok());
  auto reader = source->OpenReader(context, enumerator->schema(), enumerator->Next().ValueOrDie().split).ValueOrDie();
  ASSERT_TRUE(std::holds_alternative<Batch>(reader->Next().ValueOrDie()));
  reader->RequestCut(0.5);
  while (!std::holds_alternative<End>(reader->Next().ValueOrDie())) {
  }
  ExpectCounted(bigquery::ReadMetrics());
  // One for each fault; the connection that is dropped may fail a second call as well.
  EXPECT_THAT(registry_.Snapshot().at("readRetries"), testing::AllOf(testing::Ge(2), testing::Le(3)));
  EXPECT_EQ(registry_.Snapshot().at("readRetries.UNAVAILABLE"), registry_.Snapshot().at("readRetries"));
  EXPECT_EQ(registry_.Snapshot().at("rowsRead"), 2 * kRows);
}

TEST_F(MetricsTest, EachMetricOfAFileSourceAndOfReadRowsIsCounted) {
  {
    local::Service service({.tables = {{"p.d.t", Numbers()}}});
    auto addresses = service.Start().ValueOrDie();
    Count(bigquery::Source::Make({.table = "p.d.t", .bigquery_storage_endpoint = "http://" + addresses.grpc}).ValueOrDie());
  }
  registry_.counter("rowsRead")->Set(0);
  registry_.counter("bytesRead")->Set(0);
  auto files = FileSource::Make({.paths = {Path("out-1") + "/"}}).ValueOrDie();
  Count(files);
  ExpectCounted(FileSourceMetrics());
  auto reader = ReadRows<int64_t>(files,
                                  [](const RowView& row, const Collector<int64_t>& out) -> arrow::Status {
                                    ARROW_ASSIGN_OR_RAISE(const int64_t id, row["id"].Int64());
                                    return id % 2 == 0 ? arrow::Status::OK() : out.Emit(id);
                                  },
                                  {.read = {.context = {.metrics = &registry_}}})
                    .ValueOrDie();
  int64_t sum = 0;
  auto status = reader->ForEach([&](int64_t id) {
    sum += id;
    return arrow::Status::OK();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(sum, kRows / 2 * (kRows / 2));
  EXPECT_EQ(reader->counts(), (RowCounts{.rows = kRows, .records = kRows / 2, .skipped = kRows / 2}));
  ExpectCounted(RowMetrics());
}

// A scraper that was told the address may be faster than the job is made.
TEST_F(MetricsTest, TheFirstScrapeHasEveryMetricOfTheJob) {
  auto source = bigquery::Source::Make({.table = "p.d.t", .bigquery_storage_endpoint = "http://localhost:1"}).ValueOrDie();
  auto sink = FileSink::Make({.path = Path("out") + "/"}).ValueOrDie();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> said(std::tmpfile(), &std::fclose);
  MetricsServer server;
  Console console({.err = said.get()});
  auto status =
      StartMetrics(console, {{"metrics_port", "0"}}, {.source = source, .sink = sink, .options = {}, .resume_command = ""}, server);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(std::fseek(said.get(), 0, SEEK_SET), 0);
  int port = 0;
  ASSERT_EQ(std::fscanf(said.get(), "headrace: metrics at http://127.0.0.1:%d/metrics", &port), 1);
  auto answer = httplib::Client("127.0.0.1", port).Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->body, HasSubstr("\nheadrace_read_sessions_created_total 0\n"));
  std::set<std::string, std::less<>> there;
  for (const MetricValue& value : server.registry()->Collect()) there.insert(value.name);
  for (const auto& infos : {JobMetrics(), source->metrics(), sink->metrics()}) {
    for (const MetricInfo& info : infos) EXPECT_TRUE(there.contains(info.name)) << info.name;
  }
}

TEST(MetricsServer, AnswersMetricsAndNothingElse) {
  MetricsServer server;
  auto url = server.Start(0);
  ASSERT_TRUE(url.ok()) << url.status();
  const std::string base = url->substr(0, url->rfind('/'));
  httplib::Client client(base);
  server.registry()->Register(JobMetrics());
  server.registry()->counter("splitsAssigned")->Add(3);
  auto answer = client.Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(answer->body, HasSubstr("\nheadrace_splits_assigned_total 3\n"));
  EXPECT_THAT(answer->body, HasSubstr("\nheadrace_open_splits 0\n"));
  server.Follow([&] { server.registry()->counter("openSplits")->Set(5); });
  EXPECT_THAT(client.Get("/metrics")->body, HasSubstr("\nheadrace_open_splits 5\n"));
  server.Follow(nullptr);
  EXPECT_EQ(client.Get("/")->status, 404);
  EXPECT_EQ(client.Post("/metrics", std::string(1 << 20, 'x'), "text/plain")->status / 100, 4);

  MetricsServer second;
  auto taken = second.Start(std::stoi(base.substr(base.rfind(':') + 1)));
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(CodeOf(taken.status()), Code::kUnavailable);
  EXPECT_THAT(taken.status().message(), HasSubstr("--metrics-port"));
}

}  // namespace
}  // namespace headrace::cli
