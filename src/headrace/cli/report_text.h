// The end of a job for people and for programs, and lineage as JSON. Free functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "headrace/runtime/job.h"
#include "headrace/runtime/lineage.h"

namespace headrace::cli {

/// A few aligned lines.
std::string ReportText(const JobResult& result);
/// Report::ToJson with outcome ("done", "done_with_rejects", "stopped"), lineage, and resume_command when there is one.
std::string ReportJson(const JobResult& result, const Lineage& source, const Lineage& sink, std::string_view resume_command);
/// A list of {namespace, name, facets}.
std::string LineageJson(const Lineage& lineage);

}  // namespace headrace::cli
