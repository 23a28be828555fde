// BigQuery's schema JSON, as `bq show --schema` prints it and `bq load` takes it, both ways. Free functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "headrace/types/schema.h"

namespace headrace {

/// A list of fields, or an object with "fields". Types by any of their names; numbers as numbers or as strings. The result is valid
/// (ValidateSchema); an error names the field by its path.
arrow::Result<TableSchema> SchemaFromJson(std::string_view json);

/// The list of fields, with the REST API's type names (INTEGER, FLOAT, BOOLEAN, RECORD) and its form of numbers (strings). `indent` below
/// zero gives one line. Parsing it again gives the same schema.
std::string SchemaToJson(const TableSchema& schema, int indent = -1);

}  // namespace headrace
