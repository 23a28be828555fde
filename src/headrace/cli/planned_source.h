// A source that was planned but is not read: what plan and schema show.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <arrow/type.h>

#include "headrace/cli/verbs.h"
#include "headrace/runtime/source.h"

namespace headrace::cli {

struct PlannedSource {
  std::shared_ptr<arrow::Schema> schema{};
  int64_t streams = 0;
  int64_t estimated_rows = -1;  // negative = unknown
  double estimated_bytes = -1;
  std::map<std::string, std::string> facts{};
};

/// Starts the source's enumerator, which may take long; a signal ends it.
arrow::Result<PlannedSource> PlanSource(Session session, const Source& source);

/// Column, type and mode of every column, nested ones indented.
arrow::Result<std::string> SchemaText(const arrow::Schema& schema);

}  // namespace headrace::cli
