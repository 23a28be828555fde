#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/cli/console.h"
#include "headrace/cli/progress.h"
#include "headrace/cli/report_text.h"
#include "headrace/cli/serve_options.h"
#include "headrace/cli/text.h"

namespace headrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Text, Numbers) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1000), "1,000");
  EXPECT_EQ(WithCommas(1234567), "1,234,567");
  EXPECT_EQ(WithCommas(-123456), "-123,456");
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(5.0 * (1 << 30)), "5.0 GiB");
  EXPECT_EQ(HumanSeconds(0.04), "0.0 s");
  EXPECT_EQ(HumanSeconds(12.4), "12 s");
  EXPECT_EQ(HumanSeconds(200), "3 min 20 s");
  EXPECT_EQ(HumanSeconds(7500), "2 h 5 min");
}

TEST(Text, ShellQuoting) {
  EXPECT_EQ(ShellQuoted("./names.job"), "./names.job");
  EXPECT_EQ(ShellQuoted("a b"), "'a b'");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuoted(""), "''");
  EXPECT_EQ(ShellQuoted("$(x)"), "'$(x)'");
}

Progress At(double seconds, int64_t rows, double fraction) {
  return {.rows = rows, .bytes = rows * 100, .fraction = fraction, .seconds = seconds};
}

TEST(ProgressText, ShareNeverGoesBackAndTimeLeftFollowsTheRate) {
  ProgressText text;
  text.Add(At(0, 0, 0));
  text.Add(At(1, 1000, 0.25));
  EXPECT_THAT(text.Line(200), HasSubstr("1,000 rows"));
  EXPECT_THAT(text.Line(200), HasSubstr("25 %"));
  EXPECT_THAT(text.Line(200), HasSubstr("3.0 s left"));
  text.Add(At(2, 2000, 0.20));
  EXPECT_THAT(text.Line(200), HasSubstr("25 %"));
  text.Add(At(3, 3000, 1.5));
  EXPECT_THAT(text.Line(200), HasSubstr("100 %"));
}

TEST(ProgressText, UnknownShareAndTroubleAreShown) {
  ProgressText text;
  Progress progress = At(1, 5, -1);
  progress.stalled_splits = 2;
  progress.throttled_splits = 1;
  text.Add(progress);
  std::string line = text.Line(200);
  EXPECT_THAT(line, Not(HasSubstr("%")));
  EXPECT_THAT(line, HasSubstr("2 stalled"));
  EXPECT_THAT(line, HasSubstr("1 throttled"));
  EXPECT_LE(text.Line(20).size(), 19u) << "a line that wraps cannot be rewritten";
  auto json = nlohmann::json::parse(text.Json())["progress"];
  EXPECT_EQ(json["rows"], 5);
  EXPECT_TRUE(json["fraction"].is_null());
  EXPECT_TRUE(json["estimated_rows"].is_null());
  EXPECT_EQ(json["stalled_splits"], 2);
}

/// A file in memory that tells what was printed.
class Printed {
 public:
  Printed() : file_(open_memstream(&text_, &size_)) {}
  ~Printed() {
    std::fclose(file_);
    free(text_);
  }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
};

arrow::Status SomeError() {
  return MakeError({.code = Code::kNotFound, .service = "S", .method = "ReadRows", .resource = "t", .reason = "NO_TABLE"},
                   "table 't' does not exist\x1b[2J");
}

TEST(Console, ResultsAndMessagesGoTheirOwnWays) {
  Printed out;
  Printed err;
  Console console({.out = out.file(), .err = err.file()});
  console.Result("result");
  console.Say("hello");
  console.Log(LogLevel::kWarning, "careful {} %s");
  console.Error(SomeError(), "headrace resume d");
  EXPECT_EQ(out.text(), "result\n");
  EXPECT_EQ(err.text(),
            "headrace: hello\nheadrace: warning: careful {} %s\nheadrace: table 't' does not exist?[2J [NOT_FOUND, NO_TABLE, in ReadRows]\n"
            "headrace: to go on from the last checkpoint: headrace resume d\n");
}

TEST(Console, QuietLeavesWarningsAndErrors) {
  Printed out;
  Printed err;
  Console console({.quiet = true, .out = out.file(), .err = err.file()});
  console.Say("hello");
  console.ProgressLine("1 row");
  console.Log(LogLevel::kWarning, "careful");
  EXPECT_EQ(err.text(), "headrace: warning: careful\n");
}

TEST(Console, JsonErrorsAreOneDocumentOnStandardOutput) {
  Printed out;
  Printed err;
  Console console({.json = true, .out = out.file(), .err = err.file()});
  console.Say("hello");
  console.Error(SomeError(), "headrace resume d");
  auto document = nlohmann::json::parse(out.text());
  EXPECT_EQ(document["error"]["code"], "NOT_FOUND");
  EXPECT_EQ(document["error"]["reason"], "NO_TABLE");
  EXPECT_EQ(document["error"]["method"], "ReadRows");
  EXPECT_EQ(document["error"]["resource"], "t");
  EXPECT_EQ(document["resume_command"], "headrace resume d");
  EXPECT_EQ(nlohmann::json::parse(err.text())["log"]["message"], "hello");
}

TEST(Console, WithDataOnStandardOutputEverythingElseGoesToStandardError) {
  Printed out;
  Printed err;
  Console console({.json = true, .data_on_output = true, .out = out.file(), .err = err.file()});
  console.Result("report");
  console.Error(SomeError());
  EXPECT_EQ(out.text(), "");
  EXPECT_THAT(err.text(), ::testing::StartsWith("report\n{\"error\""));
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  Console deaf({.data_on_output = true, .out = out.file(), .err = full});
  deaf.Result("lost");
  EXPECT_TRUE(deaf.result_written()) << "the data are the result";
  std::fclose(full);
}

TEST(Console, AFailedResultIsNoticed) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  Console console({.out = full});
  console.Result("lost");
  EXPECT_FALSE(console.result_written());
  std::fclose(full);
}

// Spec runtime 68: what a calm run has none of is not in its report.
TEST(Report, SaysWhatWasNotCalm) {
  const Report calm{.rows_read = 10, .records_in = 10, .rows_written = 10, .counters = {{"readRetries", 0}, {"cutsRefused", 0}}};
  for (const char* word : {"retries", "cuts", "read  ", "into the sink", "restarts", "rejected", "skipped"}) {
    EXPECT_THAT(ReportText({.report = calm}), ::testing::Not(HasSubstr(word)));
  }
  Report report = calm;
  report.rows_read = 1200;
  report.records_in = 1100;
  report.cuts = 3;
  report.counters = {
      {"readRetries", 1003}, {"readRetries.DEADLINE_EXCEEDED", 1}, {"readRetries.INTERNAL", 0}, {"readRetries.UNAVAILABLE", 1002}};
  const std::string text = ReportText({.report = report});
  EXPECT_THAT(text, ::testing::ContainsRegex("\nread +1,200 rows"));
  EXPECT_THAT(text, ::testing::ContainsRegex("\ninto the sink +1,100 records"));
  EXPECT_THAT(text, ::testing::ContainsRegex("\ncuts +3"));
  EXPECT_THAT(text, ::testing::ContainsRegex("\nretries +1,003 .DEADLINE_EXCEEDED 1, UNAVAILABLE 1,002."));
}

TEST(Report, OutcomeLineageAndResumeCommand) {
  JobResult result{.end = JobEnd::kStoppedAtCheckpoint, .report = {.job_name = "j", .rows_written = 1234}};
  Lineage source{.datasets = {{.namespace_name = "bigquery", .name = "p.d.t", .facets = {{"gcp", {{"project", "p"}}}}}}};
  auto json = nlohmann::json::parse(ReportJson(result, source, {}, "headrace resume d"));
  EXPECT_EQ(json["outcome"], "stopped");
  EXPECT_EQ(json["rows_written"], 1234);
  EXPECT_EQ(json["lineage"]["sources"][0]["facets"]["gcp"]["project"], "p");
  EXPECT_EQ(json["lineage"]["boundedness"], "bounded");
  EXPECT_EQ(nlohmann::json::parse(LineageJson({.boundedness = Boundedness::kContinuous}, nullptr)),
            (nlohmann::json{{"sources", nlohmann::json::array()}, {"boundedness", "continuous"}}));
  EXPECT_EQ(json["resume_command"], "headrace resume d");
  result = {.report = {.rows_written = 10, .rows_rejected = 2, .warnings = {"odd"}}};
  EXPECT_EQ(nlohmann::json::parse(ReportJson(result, {}, {}, ""))["outcome"], "done_with_rejects");
  EXPECT_THAT(ReportText(result), HasSubstr("rejected  "));
  EXPECT_THAT(ReportText(result), HasSubstr("odd"));
  EXPECT_THAT(ReportText({.report = {.rows_written = 1234567}}), HasSubstr("copied    1,234,567 rows"));
}

// One row per option of the local service; a new one without a row fails.
TEST(ServeOptions, EveryOptionArrives) {
  struct Row {
    std::string name;
    std::string text;
    std::function<bool(const local::ServiceOptions&)> arrived;
  };
  const Row rows[] = {
      {"load", "p.d.t=a=b\np.d.u=c", [](auto& o) { return o.load.size() == 2 && o.load[0].path == "a=b" && o.load[1].name == "p.d.u"; }},
      {"csv_null_values", ",NA", [](auto& o) { return o.csv_null_values == std::vector<std::string>{"", "NA"}; }},
      {"view", "p.d.v", [](auto& o) { return o.views == std::vector<std::string>{"p.d.v"}; }},
      {"bind_address", "0.0.0.0", [](auto& o) { return o.bind_address == "0.0.0.0"; }},
      {"grpc_port", "1", [](auto& o) { return o.grpc_port == 1; }},
      {"port", "2", [](auto& o) { return o.port == 2; }},
      {"throttle", "1K", [](auto& o) { return o.throttle_bytes_per_second == 1024; }},
      {"stream_throttle", "3K", [](auto& o) { return o.stream_throttle_bytes_per_second == 3072; }},
      {"response_cache", "5M", [](auto& o) { return o.response_cache_bytes == 5 << 20; }},
      {"message_bytes", "2K", [](auto& o) { return o.message_bytes == 2048; }},
      {"message_rows", "3", [](auto& o) { return o.message_rows == 3; }},
      {"empty_table_streams", "1", [](auto& o) { return o.empty_table_streams == 1; }},
      {"streams_as_asked", "true", [](auto& o) { return o.streams_as_asked; }},
      {"ignore_offsets", "children", [](auto& o) { return o.ignore_offsets == local::IgnoredOffsets::kChildren; }},
      {"seed", "9", [](auto& o) { return o.seed == 9u; }},
      {"faults", "f.json", [](auto& o) { return o.fault_script == "f.json"; }},
  };
  // The program's own, which tests/cli reads; and what belongs to a table of --load, tested below.
  std::set<std::string> seen{"ready_file", "load_schema"};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    seen.insert(row.name);
    EXPECT_FALSE(row.arrived(*MakeServiceOptions({})));
    catalog::OptionValues values{{row.name, row.text}};
    values.emplace("load", "p.d.t=a.csv");  // csv_null_values acts on CSV only
    auto made = MakeServiceOptions(values);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(row.arrived(*made));
  }
  for (const catalog::Option& option : catalog::Options()) {
    if ((option.places & catalog::kServe) != 0) {
      EXPECT_EQ(seen.count(std::string(option.name)), 1u) << option.name << " has no row";
    }
  }
}

TEST(ServeOptions, ASchemaBelongsToALoadedTable) {
  auto made = MakeServiceOptions({{"load", "p.d.t=a.csv\np.d.u=b.csv"}, {"load_schema", "p.d.u=s=1.json"}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->load[0].schema, "");
  EXPECT_EQ(made->load[1].schema, "s=1.json");
  EXPECT_FALSE(MakeServiceOptions({{"load", "p.d.t=a.csv"}, {"load_schema", "p.d.u=s.json"}}).ok());
  EXPECT_FALSE(MakeServiceOptions({{"load_schema", "s.json"}}).ok());
}

TEST(ServeOptions, WrongValuesAreRefused) {
  struct Row {
    std::string name;
    std::string text;
  };
  for (const Row& row : {Row{"load", "p.d.t"}, Row{"load", "=f"}, Row{"load", "p.d.t="}, Row{"port", "65536"}, Row{"grpc_port", "-1"},
                         Row{"throttle", "fast"}, Row{"stream_throttle", "fast"}, Row{"empty_table_streams", "2"},
                         Row{"ignore_offsets", "some"}, Row{"seed", "x"}}) {
    auto status = MakeServiceOptions({{row.name, row.text}}).status();
    ASSERT_FALSE(status.ok()) << row.name;
    EXPECT_EQ(GetErrorInfo(status)->resource, row.name);
  }
}

}  // namespace
}  // namespace headrace::cli
