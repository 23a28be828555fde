// REQUIRED columns hold a value in every row. Arrow's readers make a REQUIRED field of a null STRUCT null as well, which is no value of the
// table, but its writers refuse: this tells the two apart. Free function, any thread.
#pragma once

#include <memory>

#include <arrow/record_batch.h>

#include "headrace/base/error.h"

namespace headrace {

/// The batch with no null mark on a field that is not nullable: below a null STRUCT the mark is dropped, anywhere else it is an error that
/// names the column and, counted from `first_row`, the row. The values are not copied.
arrow::Result<std::shared_ptr<arrow::RecordBatch>> DropNullsBelowNull(const std::shared_ptr<arrow::RecordBatch>& batch, int64_t first_row);

}  // namespace headrace
