// The one table of BigQuery's types and what each of them is in every form that Headrace reads or writes; docs/types.md shows the same
// table.
//
// Also the two ways between a TableSchema and an arrow::Schema. Free functions, any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <arrow/type.h>

#include "headrace/types/schema.h"

namespace headrace {

/// One type. The texts are what docs/types.md says.
struct TypeRow {
  std::optional<TypeKind> kind;  // nothing in the row of ARRAY, which is a mode
  std::string_view name;         // GoogleSQL's name
  std::string_view rest_type;    // the name in BigQuery's schema JSON, as the REST API prints it
  std::string_view arrow;
  std::string_view storage_avro;
  std::string_view protobuf;
  std::string_view json_row;
  std::string_view parquet;
  std::string_view csv;
  std::string_view rest_answer;
  std::string_view avro_load;
};

/// All rows, in the order of TypeKind, ARRAY last.
std::span<const TypeRow> TypeTable();
const TypeRow& RowOf(TypeKind kind);

/// GoogleSQL's name: "INT64".
std::string_view TypeName(TypeKind kind);
/// Any name that GoogleSQL or the REST API has for a type, whatever its case: INT64, INTEGER, FLOAT, DECIMAL, RECORD ... Nothing if
/// unknown.
std::optional<TypeKind> TypeKindFromName(std::string_view name);

/// What a TIMESTAMP(12) is in Arrow: text with 12 digits, or timestamp[ns, UTC] or timestamp[us, UTC] when a reader asked for less.
enum class TimestampPrecision { kMicros, kNanos, kPicos };

/// The canonical Arrow form. REPEATED is a list that is never null, REQUIRED is not nullable. What the Arrow type alone does not say (JSON,
/// GEOGRAPHY, INTERVAL, RANGE, TIMESTAMP(12)) is marked by ARROW:extension:name in the field's metadata; in a REPEATED column the mark
/// stands on the element.
arrow::Result<std::shared_ptr<arrow::Field>> ToArrowField(const Field& field, TimestampPrecision timestamp12 = TimestampPrecision::kPicos);
arrow::Result<std::shared_ptr<arrow::Schema>> ToArrowSchema(const TableSchema& schema,
                                                            TimestampPrecision timestamp12 = TimestampPrecision::kPicos);

/// How a table with these Arrow columns is stored in BigQuery: the inverse of ToArrowSchema, and more Arrow types than that (int32, float,
/// large_utf8, timestamps of other units, dictionaries, month_day_nano ...). UNIMPLEMENTED names the column path and the type that has no
/// BigQuery type.
arrow::Result<TableSchema> FromArrowSchema(const arrow::Schema& schema);

/// Metadata key and values that mark a column. The service's own names (all "google:sqlType:...") are understood besides ours.
inline constexpr std::string_view kExtensionNameKey = "ARROW:extension:name";
inline constexpr std::string_view kExtensionMetadataKey = "ARROW:extension:metadata";
inline constexpr std::string_view kJsonExtension = "arrow.json";
inline constexpr std::string_view kGeographyExtension = "google:sqlType:geography";
inline constexpr std::string_view kIntervalExtension = "google:sqlType:interval";
inline constexpr std::string_view kRangeExtension = "google:sqlType:range";
inline constexpr std::string_view kTimestampPicosExtension = "google:sqlType:timestamp_picos";

/// The kind of one Arrow field of canonical type (of a list: of its elements), mark included; nothing for a type that is not canonical.
std::optional<TypeKind> KindOfCanonical(const arrow::Field& field);

}  // namespace headrace
