#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/cli/exit_code.h"
#include "headrace/cli/job_run.h"
#include "headrace/files/manifest.h"

namespace headrace::cli {
namespace {

int AlreadyFinished(Console& console, const PersistedJob& persisted) {
  if (console.json()) {
    nlohmann::ordered_json json = {{"outcome", "already_finished"}, {"job_name", persisted.job_name}, {"checkpoint", persisted.checkpoint}};
    console.Result(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    console.Say(fmt::format("the job {} is finished: nothing is left to do", persisted.job_name));
  }
  return kExitDone;
}

}  // namespace

int Resume(Session session) {
  const std::string& directory = session.arguments.positionals[0];
  auto persisted = ReadPersistedJob(LocalFileSystem(), directory);
  if (!persisted.ok()) return Fail(session.console, persisted.status());
  auto configuration = catalog::FromMap(persisted->configuration);
  if (!configuration.ok()) return Fail(session.console, configuration.status());
  auto values = catalog::MergeForResume(*configuration, session.arguments.options);
  if (!values.ok()) return Fail(session.console, values.status());
  if (persisted->finished) {
    const auto there = CheckResultThere(LocalFileSystem(), configuration->destination.target, persisted->run_id);
    return there.ok() ? AlreadyFinished(session.console, *persisted) : Fail(session.console, there);
  }

  (*values)["checkpoint"] = directory;
  (*values)["job_name"] = persisted->job_name;
  auto parts = MakeParts(configuration->source, configuration->destination, *values);
  if (!parts.ok()) return Fail(session.console, parts.status());
  if (auto status = AnnounceEndpoint(session.console, configuration->source, *values); !status.ok()) {
    return Fail(session.console, status);
  }
  MetricsServer metrics;
  if (auto status = StartMetrics(session.console, *values, *parts, metrics); !status.ok()) return Fail(session.console, status);
  auto job = Job::Restore(parts->source, parts->sink, parts->options, ProgramEnvironment(session.console, metrics));
  if (!job.ok()) return Fail(session.console, job.status());
  return RunJob(session, *std::move(job), *parts, metrics);
}

}  // namespace headrace::cli
