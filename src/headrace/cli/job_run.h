// What copy and resume share: running a Job under signals and progress, and telling its end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "headrace/catalog/make.h"
#include "headrace/cli/verbs.h"
#include "headrace/rpc/endpoint.h"
#include "headrace/runtime/job.h"

namespace headrace::cli {

struct JobParts {
  std::shared_ptr<const Source> source;
  std::shared_ptr<const Sink> sink;
  JobOptions options;
  std::string resume_command;  // empty without a checkpoint directory
};

/// Makes source, sink and job options. Whatever it refuses is a matter of usage.
arrow::Result<JobParts> MakeParts(const catalog::Address& source, const catalog::Address& destination, const catalog::OptionValues& values);
/// Says which server is used when it is not the service itself; refuses an endpoint that cannot be understood.
arrow::Status AnnounceEndpoint(Console& console, const catalog::OptionValues& values);
/// Runs the job to its end and reports; answers the exit code.
int RunJob(Session session, Job& job, const JobParts& parts);
/// The environment of jobs started by the program.
JobEnvironment ProgramEnvironment(Console& console);

}  // namespace headrace::cli
