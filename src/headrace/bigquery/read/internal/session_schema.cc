#include "headrace/bigquery/read/internal/session_schema.h"

#include <fmt/format.h>

#include "headrace/avro/schema.h"
#include "headrace/avro/table_schema.h"
#include "headrace/bigquery/read/internal/canonical_schema.h"
#include "headrace/bigquery/read/internal/columns.h"

namespace headrace::bigquery {

arrow::Result<std::shared_ptr<arrow::Schema>> SessionSchema(SourceFormat format, std::string_view bytes, TimestampPrecision precision) {
  if (format == SourceFormat::kArrow) {
    ARROW_ASSIGN_OR_RAISE(const auto wire, ReadSchemaBytes(bytes));
    return CanonicalSchema(*wire, precision);
  }
  const auto schema = avro::Schema::Parse(bytes);
  if (!schema.ok()) {
    return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read", .reason = "CORRUPT_RESPONSE"},
                     fmt::format("the Avro schema of the session cannot be read: {}", schema.status().message()));
  }
  ARROW_ASSIGN_OR_RAISE(const TableSchema table, avro::FromAvroSchema(**schema));
  return ToArrowSchema(table, precision);
}

}  // namespace headrace::bigquery
