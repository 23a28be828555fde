#include "headrace/bigquery/read/internal/session_schema.h"

#include "headrace/bigquery/read/internal/canonical_rows.h"
#include "headrace/bigquery/read/internal/columns.h"

namespace headrace::bigquery {

arrow::Result<std::shared_ptr<arrow::Schema>> SessionSchema(SourceFormat format, std::string_view bytes) {
  if (format == SourceFormat::kAvro) return Unsupported("source_format", "source_format avro is not supported; use arrow");
  ARROW_ASSIGN_OR_RAISE(const auto wire, ReadSchemaBytes(bytes));
  return CanonicalSchema(*wire);
}

}  // namespace headrace::bigquery
