#include "headrace/bigquery/read/internal/canonical_schema.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace headrace::bigquery {
namespace {

constexpr std::string_view kWkbExtension = "geoarrow.wkb";

bool HoldsExtension(const arrow::Field& field, std::string_view name) {
  return field.metadata() != nullptr && field.metadata()->Get(std::string(kExtensionNameKey)).ValueOr("") == name;
}

/// The text form is BigQuery's; bytes would need a reader of geometries, and what it wrote might be another text.
arrow::Status RefuseBinaryGeography(const arrow::Field& field, const std::string& path) {
  const auto id = field.type()->id();
  const bool binary = id == arrow::Type::BINARY || id == arrow::Type::LARGE_BINARY || id == arrow::Type::BINARY_VIEW;
  if (binary && (HoldsExtension(field, kGeographyExtension) || HoldsExtension(field, kWkbExtension))) {
    return MakeError({.code = Code::kUnimplemented, .service = "BigQuery Storage Read", .reason = "UNSUPPORTED", .column = path},
                     fmt::format("column {}: GEOGRAPHY in binary form (WKB) is not supported; BigQuery sends it as text (WKT)", path));
  }
  for (const auto& child : field.type()->fields()) {
    ARROW_RETURN_NOT_OK(RefuseBinaryGeography(*child, id == arrow::Type::STRUCT ? path + "." + child->name() : path));
  }
  return arrow::Status::OK();
}

/// Nanoseconds, when they were asked for, are what the service makes of a TIMESTAMP(12).
void MarkNanos(const arrow::DataType& wire, Field* field) {
  if (wire.id() == arrow::Type::TIMESTAMP) {
    const auto& type = static_cast<const arrow::TimestampType&>(wire);
    if (type.unit() == arrow::TimeUnit::NANO && !type.timezone().empty()) field->kind = TypeKind::kTimestamp12;
  } else if (field->mode == Mode::kRepeated && wire.num_fields() == 1 && wire.id() != arrow::Type::STRUCT) {
    MarkNanos(*wire.field(0)->type(), field);
  } else if (wire.id() == arrow::Type::STRUCT && field->fields.size() == static_cast<size_t>(wire.num_fields())) {
    for (int i = 0; i < wire.num_fields(); ++i) MarkNanos(*wire.field(i)->type(), &field->fields[static_cast<size_t>(i)]);
  }
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::Schema>> CanonicalSchema(const arrow::Schema& wire, TimestampPrecision precision) {
  for (const auto& field : wire.fields()) ARROW_RETURN_NOT_OK(RefuseBinaryGeography(*field, field->name()));
  ARROW_ASSIGN_OR_RAISE(TableSchema table, FromArrowSchema(wire));
  for (int i = 0; precision == TimestampPrecision::kNanos && i < wire.num_fields(); ++i) {
    MarkNanos(*wire.field(i)->type(), &table.fields[static_cast<size_t>(i)]);
  }
  return ToArrowSchema(table, precision);
}

}  // namespace headrace::bigquery
