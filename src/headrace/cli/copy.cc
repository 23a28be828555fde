#include "headrace/cli/job_run.h"

namespace headrace::cli {

int Copy(Session session) {
  auto request = ReadRequest(session.arguments);
  if (!request.ok()) return Fail(session.console, request.status());
  auto parts = MakeParts(request->source, *request->destination, request->values);
  if (!parts.ok()) return Fail(session.console, parts.status());
  if (auto status = AnnounceEndpoint(session.console, request->source, request->values); !status.ok()) {
    return Fail(session.console, status);
  }
  MetricsServer metrics;
  if (auto status = StartMetrics(session.console, request->values, *parts, metrics); !status.ok()) return Fail(session.console, status);
  auto job = Job::Make(parts->source, parts->sink, parts->options, ProgramEnvironment(session.console, metrics));
  if (!job.ok()) return Fail(session.console, job.status());
  return RunJob(session, *std::move(job), *parts, metrics);
}

}  // namespace headrace::cli
