// The canonical schema of a read session, whatever the wire's format. Free function; any thread.
#pragma once

#include <memory>
#include <string_view>

#include <arrow/type.h>

#include "headrace/bigquery/read/options.h"

namespace headrace::bigquery {

/// `bytes` is what the service sent: an Arrow IPC message, or Avro's JSON; `precision` is what was asked for. The columns are in the
/// service's order, with its spelling. Refused by column: types that BigQuery has not, names that are equal without regard to case.
arrow::Result<std::shared_ptr<arrow::Schema>> SessionSchema(SourceFormat format, std::string_view bytes,
                                                            TimestampPrecision precision = TimestampPrecision::kPicos);

}  // namespace headrace::bigquery
