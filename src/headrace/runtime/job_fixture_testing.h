// What job tests share: a scripted source, a target, files in memory, a clock that a test moves.
#pragma once

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headrace/runtime/fake_sink_testing.h"
#include "headrace/runtime/fake_source_testing.h"
#include "headrace/runtime/job.h"
#include "headrace/runtime/memory_files_testing.h"

namespace headrace::testing {

class JobFixture : public ::testing::Test {
 protected:
  static constexpr const char* kDirectory = "/checkpoints";

  JobFixture() { clock_.set_auto_advance(false); }

  JobEnvironment environment() { return {.clock = &clock_, .random = &random_, .files = &files_}; }
  arrow::Result<std::unique_ptr<Job>> Make(JobOptions options) {
    return Job::Make(std::make_shared<ScriptedSource>(script_), std::make_shared<TargetSink>(target_), std::move(options), environment());
  }
  arrow::Result<std::unique_ptr<Job>> Restore(JobOptions options) {
    return Job::Restore(std::make_shared<ScriptedSource>(script_), std::make_shared<TargetSink>(target_), std::move(options),
                        environment());
  }
  arrow::Result<JobResult> Run(JobOptions options) {
    ARROW_ASSIGN_OR_RAISE(auto job, Make(std::move(options)));
    return job->Run();
  }
  arrow::Result<JobResult> Resume(JobOptions options) {
    ARROW_ASSIGN_OR_RAISE(auto job, Restore(std::move(options)));
    return job->Run();
  }
  static std::vector<int64_t> Rows(int64_t n) {
    std::vector<int64_t> rows(static_cast<size_t>(n));
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
  }
  static JobOptions Checkpointed() { return {.job_name = "test", .checkpoint = kDirectory}; }
  static arrow::Status Passing(const char* text = "try again") { return MakeError({.code = Code::kUnavailable, .retryable = true}, text); }
  static arrow::Status Lasting(const char* text = "no") { return MakeError({.code = Code::kPermissionDenied}, text); }

  ManualClock clock_;
  SeededRandom random_{7};
  MemoryFiles files_;
  std::shared_ptr<SourceScript> script_ = std::make_shared<SourceScript>();
  std::shared_ptr<Target> target_ = std::make_shared<Target>();
};

}  // namespace headrace::testing
