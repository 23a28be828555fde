// Orders of columns: the service answers in the table's order, the user gets the order of selected_fields (FieldSelection).
//
// Free functions; any thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <arrow/type.h>

#include "headrace/base/error.h"

namespace headrace::bigquery {

/// The columns `columns` of `wire`, with the service's spelling, types and metadata.
arrow::Result<std::shared_ptr<arrow::Schema>> SelectFields(const std::shared_ptr<arrow::Schema>& wire,
                                                           const std::vector<uint32_t>& columns);

/// The inverse of a permutation; an error when it is none.
arrow::Result<std::vector<uint32_t>> InvertColumns(const std::vector<uint32_t>& columns);
/// True for 0, 1, 2, ...
bool IsIdentity(const std::vector<uint32_t>& columns);

/// The schema in `bytes`, an encapsulated Arrow IPC message from the service.
arrow::Result<std::shared_ptr<arrow::Schema>> ReadSchemaBytes(std::string_view bytes);

}  // namespace headrace::bigquery
