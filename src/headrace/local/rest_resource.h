// What the REST resources of BigQuery may hold: the known properties of datasets and tables, checked by one table, and the merge of PATCH.
// Free functions, any thread. Errors are INVALID_ARGUMENT in the service's words, UNIMPLEMENTED for what the local service does not keep.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/local/table_name.h"
#include "headrace/types/schema.h"

namespace headrace::local {

using Json = nlohmann::ordered_json;

enum class ResourceKind { kDataset, kTable };

/// A request's body as a JSON object; an empty body is an empty object. At most 100 levels deep.
arrow::Result<Json> ParseBody(const std::string& body);

/// The properties of a body that a client may set, in the form in which they are answered (64-bit numbers as strings). What the service
/// sets itself, and references, are left out; null stays, for a patch. The schema of a table is left out too: see SchemaOf.
arrow::Result<Json> CheckProperties(ResourceKind kind, const Json& body);

/// `patch` over `target`, object by object: null removes, a list replaces.
void MergePatch(const Json& patch, Json* target);

/// The property "schema" of a table; no columns when it is missing.
arrow::Result<TableSchema> SchemaOf(const Json& body);

/// The schema of an existing table after a change to `wanted`: new columns at the end, REQUIRED that became NULLABLE, other descriptions,
/// longer limits of length. Anything else is INVALID_ARGUMENT in the service's words.
arrow::Result<TableSchema> ChangedSchema(const TableName& table, const TableSchema& have, const TableSchema& wanted);

/// Whether partitioning, clustering and keys name columns that are there and may be used for it.
arrow::Status CheckColumnsOfProperties(const Json& properties, const TableSchema& schema);

}  // namespace headrace::local
