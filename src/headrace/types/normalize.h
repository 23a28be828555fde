// Casts Arrow data of any kind to the canonical Arrow types of the type table. Free function, any thread.
#pragma once

#include <memory>

#include <arrow/table.h>

#include "headrace/base/error.h"

namespace headrace {

/// The table as BigQuery would store it: the types of ToArrowSchema(FromArrowSchema(table.schema())). A null array becomes an empty one. A
/// value that does not fit (a timestamp with nanoseconds, a date before the year 1, a null inside an array ...) is an error that names the
/// column, the row where it is known, and the type.
arrow::Result<std::shared_ptr<arrow::Table>> NormalizeToBigQuery(const std::shared_ptr<arrow::Table>& table);

}  // namespace headrace
