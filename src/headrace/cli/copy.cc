#include "headrace/cli/job_run.h"

namespace headrace::cli {

int Copy(Session session) {
  const Arguments& arguments = session.arguments;
  auto prepared = [&]() -> arrow::Result<JobParts> {
    ARROW_ASSIGN_OR_RAISE(auto source, catalog::ParseAddress(arguments.positionals[0], catalog::AddressRole::kSource));
    ARROW_ASSIGN_OR_RAISE(auto destination, catalog::ParseAddress(arguments.positionals[1], catalog::AddressRole::kDestination));
    ARROW_RETURN_NOT_OK(catalog::CheckOptions(catalog::kCopy, source, destination, arguments.options));
    return MakeParts(source, destination, arguments.options);
  }();
  if (!prepared.ok()) return Refuse(session.console, prepared.status());
  if (auto status = AnnounceEndpoint(session.console, arguments.options); !status.ok()) return Refuse(session.console, status);
  auto job = Job::Make(prepared->source, prepared->sink, prepared->options, ProgramEnvironment(session.console));
  if (!job.ok()) return Refuse(session.console, job.status());
  return RunJob(session, **job, *prepared);
}

}  // namespace headrace::cli
