// What a response's schema must share with its session's. Free functions; any thread.
#pragma once

#include <string>

#include <arrow/type.h>

#include "headrace/base/error.h"

namespace headrace::bigquery {

/// OK when both have the same columns in the same order, of types that are decoded alike: nullability, metadata and the names of list
/// elements do not count. Else DATA_LOSS that lists every difference: column, want (the session's), have.
arrow::Status CheckSameColumns(const arrow::Schema& session, const arrow::Schema& response);

}  // namespace headrace::bigquery
