// What a job against the local service shows of streams that wait: scripted faults, in virtual time.
#include "headrace/cli/progress.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include <arrow/builder.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/base/clock.h"
#include "headrace/bigquery/read/source.h"
#include "headrace/files/file_sink.h"
#include "headrace/local/service.h"
#include "headrace/runtime/job.h"

namespace headrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kRows = 1'000;
constexpr std::chrono::seconds kPatience{30};  // of real time

std::shared_ptr<arrow::Table> Numbers() {
  arrow::Int64Builder builder;
  for (int64_t i = 0; i < kRows; ++i) EXPECT_TRUE(builder.Append(i).ok());
  return arrow::Table::Make(arrow::schema({arrow::field("id", arrow::int64())}), {builder.Finish().ValueOrDie()});
}

class WaitingStreams : public ::testing::Test {
 protected:
  WaitingStreams() : directory_(std::filesystem::path(::testing::TempDir()) / ("waiting-" + SystemRandom()->Hex(8))) {
    std::filesystem::create_directories(directory_);
    clock_.set_auto_advance(false);
    service_ = std::make_unique<local::Service>(
        local::ServiceOptions{.tables = {{"p.d.t", Numbers()}}, .message_rows = 100, .streams_as_asked = true, .clock = &clock_});
  }
  ~WaitingStreams() override { std::filesystem::remove_all(directory_); }

  /// A copy with two streams under the fault, and `meanwhile` beside it; then time flies to its end.
  void Copy(const std::string& rule, const std::function<void(Job&)>& meanwhile) {
    auto addresses = service_->Start();
    ASSERT_TRUE(addresses.ok()) << addresses.status();
    ASSERT_TRUE(service_->SetFaults(R"({"rules":[)" + rule + "]}").ok());
    auto source =
        bigquery::Source::Make({.table = "p.d.t", .max_stream_count = 2, .bigquery_storage_endpoint = "http://" + addresses->grpc});
    ASSERT_TRUE(source.ok()) << source.status();
    auto sink = FileSink::Make({.path = (directory_ / "out").string() + "/"}).ValueOrDie();
    JobEnvironment environment{.clock = &clock_, .metrics = &metrics_};
    auto job = Job::Make(*source, sink, {.job_name = "waiting", .readers = 2}, environment).ValueOrDie();
    arrow::Result<JobResult> result = arrow::Status::UnknownError("not run");
    std::atomic<bool> ended{false};
    std::thread runner([&] {
      result = job->Run();
      ended = true;
    });
    meanwhile(*job);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!ended && std::chrono::steady_clock::now() < deadline) Step(std::chrono::seconds{1});
    if (!ended) job->StopNow();
    runner.join();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->report.rows_written, kRows);
    EXPECT_EQ(job->progress().stalled_splits, 0);
    EXPECT_EQ(job->progress().throttled_splits, 0);
    EXPECT_THAT(service_->FaultsJson(), HasSubstr("\"fired\":1"));
  }
  void Step(Duration by) {
    clock_.Advance(by);
    std::this_thread::sleep_for(std::chrono::milliseconds{5});  // the others see it
  }
  /// Seconds of virtual time until the progress is so; negative when it never was.
  int SecondsUntil(Job& job, const std::function<bool(const Progress&)>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (int seconds = 0; std::chrono::steady_clock::now() < deadline; ++seconds) {
      if (condition(job.progress())) return seconds;
      Step(std::chrono::seconds{1});
    }
    return -1;
  }
  /// Real time until the progress is so: nothing moves the clock.
  static bool Reaches(Job& job, const std::function<bool(const Progress&)>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      if (condition(job.progress())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return false;
  }
  static std::string Line(const Progress& progress) {
    ProgressText text;
    text.Add(progress);
    return text.Line(200);
  }
  static nlohmann::json Json(const Progress& progress) {
    ProgressText text;
    text.Add(progress);
    return nlohmann::json::parse(text.Json())["progress"];
  }
  void ExpectOneStalled(Job& job) {
    // The other stream is read to its end while the clock stands still.
    EXPECT_TRUE(Reaches(job, [](const Progress& progress) { return progress.finished_splits == 1 && progress.rows >= 700; }));
    EXPECT_TRUE(Reaches(job, [&](const Progress&) { return service_->FaultsJson().find("\"fired\":1") != std::string::npos; }));
    EXPECT_EQ(job.progress().stalled_splits, 0);
    EXPECT_THAT(Line(job.progress()), Not(HasSubstr("stalled")));
    const int seconds = SecondsUntil(job, [](const Progress& progress) { return progress.stalled_splits > 0; });
    EXPECT_GE(seconds, 10);
    EXPECT_LT(seconds, 30) << "with those that pass until the reader waits";
    EXPECT_TRUE(Reaches(job, [](const Progress& progress) { return progress.open_splits == 1; }));
    const Progress progress = job.progress();
    EXPECT_EQ(progress.stalled_splits, 1);
    EXPECT_EQ(progress.open_splits, 1);
    EXPECT_THAT(Line(progress), HasSubstr("  1 stalled"));
    EXPECT_EQ(Json(progress)["stalled_splits"], 1);
    EXPECT_EQ(metrics_.Snapshot().at("stalledSplits"), 1);
  }

  const std::filesystem::path directory_;
  ManualClock clock_;
  MetricRegistry metrics_;
  std::unique_ptr<local::Service> service_;
};

TEST_F(WaitingStreams, AStreamThatSendsNothingIsStalledAfterTenSeconds) {
  Copy(R"({"method":"ReadRows","match":{"stream":0},"after_messages":2,"times":1,"action":{"delay_ms":60000}})",
       [&](Job& job) { ExpectOneStalled(job); });
}

TEST_F(WaitingStreams, AStreamThatWaitsForItsNextAttemptIsStalledAfterTenSeconds) {
  Copy(R"({"method":"ReadRows","match":{"stream":1},"after_messages":2,"times":1,
           "action":{"status":{"code":"RESOURCE_EXHAUSTED","retry_delay_ms":30000}}})",
       [&](Job& job) { ExpectOneStalled(job); });
  EXPECT_EQ(metrics_.Snapshot().at("readRetries.RESOURCE_EXHAUSTED"), 1);
}

TEST_F(WaitingStreams, AStreamThatTheServiceSlowsDownIsThrottled) {
  Copy(R"({"method":"ReadRows","match":{"stream":0},"after_messages":1,"times":1,"action":{"throttle_bytes_per_second":300}})",
       [&](Job& job) {
         EXPECT_GE(SecondsUntil(job, [](const Progress& progress) { return progress.throttled_splits > 0; }), 1);
         const Progress progress = job.progress();
         EXPECT_EQ(progress.throttled_splits, 1);
         EXPECT_THAT(Line(progress), HasSubstr("  1 throttled"));
         EXPECT_EQ(Json(progress)["throttled_splits"], 1);
         EXPECT_EQ(metrics_.Snapshot().at("throttledSplits"), 1);
       });
}

}  // namespace
}  // namespace headrace::cli
