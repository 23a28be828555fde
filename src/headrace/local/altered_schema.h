// A session's schema as a faulty server might send it with a response. Free functions, any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <arrow/type.h>

namespace headrace::local {

/// The first column has another name, or another type; or there is one column more.
enum class SchemaChange { kName, kType, kColumns };

std::shared_ptr<arrow::Schema> AlteredArrowSchema(const arrow::Schema& schema, SchemaChange change);
/// `json` is a record's schema that this service made.
std::string AlteredAvroSchema(std::string_view json, SchemaChange change);

}  // namespace headrace::local
