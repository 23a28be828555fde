// Which columns a reader gets: selected fields, also single fields of a STRUCT, and the form of TIMESTAMP(12). Free functions, any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <arrow/type.h>

#include "headrace/base/error.h"
#include "headrace/local/row_batches.h"
#include "headrace/types/schema.h"
#include "headrace/types/type_table.h"

namespace headrace::local {

/// The fields of `schema` that `selected` names, in the schema's order and spelling: "a" with all that is in it, "a.b" as an a with b
/// alone. All fields when none is selected. INVALID_ARGUMENT, in the service's words, lists the names that are no field.
arrow::Result<TableSchema> SelectFields(const TableSchema& schema, const std::vector<std::string>& selected);

/// The rows with their TIMESTAMP(12) columns, at any depth, cut to the precision: timestamp[us] or timestamp[ns], or unchanged.
/// OUT_OF_RANGE names column and row of a value that 64 bits of nanoseconds do not hold.
arrow::Result<RowBatches> CutPicos(const RowBatches& rows, const TableSchema& schema, TimestampPrecision precision);

}  // namespace headrace::local
