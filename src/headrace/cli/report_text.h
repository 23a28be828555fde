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
/// {sources, destinations, boundedness}: lists of {namespace, name, facets}, and "bounded" or "continuous" as the source is. No
/// destinations where `sink` is null.
std::string LineageJson(const Lineage& source, const Lineage* sink);

}  // namespace headrace::cli
