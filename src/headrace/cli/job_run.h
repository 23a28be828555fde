// What copy and resume share: running a Job under signals and progress, and telling its end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "headrace/catalog/make.h"
#include "headrace/cli/metrics_server.h"
#include "headrace/cli/verbs.h"
#include "headrace/rpc/endpoint.h"
#include "headrace/runtime/job.h"

namespace headrace::cli {

/// What a verb was asked to read and write, checked as far as that goes without looking at either.
struct Request {
  catalog::Address source{};
  std::optional<catalog::Address> destination{};
  catalog::OptionValues values{};  // `schema` is the content of the file that was named
};

/// Addresses and options of copy, plan and schema as they were given; nothing is read. A copy's last positional is its destination, and so
/// is a plan's second one; those before it are the source.
arrow::Result<Request> CheckRequest(const Arguments& arguments);
/// The same, with the files that options name.
arrow::Result<Request> ReadRequest(const Arguments& arguments);

struct JobParts {
  std::shared_ptr<const Source> source;
  std::shared_ptr<const Sink> sink;
  JobOptions options;
  std::string resume_command;  // empty without a checkpoint directory
};

/// Makes source, sink and job options. Whatever it refuses is a matter of usage.
arrow::Result<JobParts> MakeParts(const catalog::Address& source, const catalog::Address& destination, const catalog::OptionValues& values);
/// Whatever a run of the verb would refuse of addresses and options without a look at what they name, but for the file of `schema`.
arrow::Status CheckAsRun(const Arguments& arguments);
/// Of --metrics-port, if given.
arrow::Result<std::optional<int>> MetricsPort(const catalog::OptionValues& values);
/// Says which server BigQuery is read from when it is not the service itself; refuses an endpoint that cannot be understood.
arrow::Status AnnounceEndpoint(Console& console, const catalog::Address& source, const catalog::OptionValues& values);
/// Serves metrics if --metrics-port asks for it, and says where. Before the job is made, which leaves traces; the first scrape has every
/// metric of the job all the same.
arrow::Status StartMetrics(Console& console, const catalog::OptionValues& values, const JobParts& parts, MetricsServer& metrics);
/// Runs the job to its end and reports; answers the exit code. The job and its lock are gone before anything is told of its end.
int RunJob(Session session, std::unique_ptr<Job> job, const JobParts& parts, MetricsServer& metrics);
/// The environment of jobs started by the program.
JobEnvironment ProgramEnvironment(Console& console, MetricsServer& metrics);

}  // namespace headrace::cli
