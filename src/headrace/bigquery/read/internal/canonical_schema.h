// The canonical schema of an Arrow session. Free function; any thread.
#pragma once

#include <memory>

#include <arrow/type.h>

#include "headrace/types/type_table.h"

namespace headrace::bigquery {

/// The canonical columns of a session's Arrow schema, in its order; `precision` is what was asked for. Refused by column: what has no
/// BigQuery type, GEOGRAPHY in binary form, names that are equal without regard to case.
arrow::Result<std::shared_ptr<arrow::Schema>> CanonicalSchema(const arrow::Schema& wire, TimestampPrecision precision);

}  // namespace headrace::bigquery
