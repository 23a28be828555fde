#include "headrace/types/type_table.h"

#include <array>
#include <utility>

namespace headrace {
namespace {

constexpr std::array<TypeRow, 18> kTable = {{
    {TypeKind::kInt64, "INT64", "INTEGER", "int64", "long", "int64", "string", "INT64", "digits", "string", "long"},
    {TypeKind::kFloat64, "FLOAT64", "FLOAT", "double", "double", "double", "number; NaN, Infinity, -Infinity as strings", "DOUBLE",
     "shortest round-trip", "string", "double"},
    {TypeKind::kBool, "BOOL", "BOOLEAN", "bool", "boolean", "bool", "true/false", "BOOLEAN", "true/false", "string true/false", "boolean"},
    {TypeKind::kString, "STRING", "STRING", "utf8", "string", "string", "string", "BYTE_ARRAY, String", "text", "string", "string"},
    {TypeKind::kBytes, "BYTES", "BYTES", "binary", "bytes", "bytes", "base64 (standard)", "BYTE_ARRAY", "base64", "base64 (standard)",
     "bytes"},
    {TypeKind::kNumeric, "NUMERIC(p, s)", "NUMERIC", "decimal128(p or 38, s or 9)", "bytes, decimal(38, 9)",
     "bytes: little-endian two's complement, scale 9", "plain decimal string", "FIXED_LEN_BYTE_ARRAY, Decimal(p, s)", "plain decimal",
     "plain decimal string", "bytes, decimal(p, s)"},
    {TypeKind::kBigNumeric, "BIGNUMERIC(p, s)", "BIGNUMERIC", "decimal256(p or 76, s or 38)", "bytes, decimal(77, 38)",
     "bytes: little-endian two's complement, scale 38", "plain decimal string", "FIXED_LEN_BYTE_ARRAY, Decimal(p, s)", "plain decimal",
     "plain decimal string", "bytes, decimal(p, s)"},
    {TypeKind::kDate, "DATE", "DATE", "date32", "int, date", "int32 days", "YYYY-MM-DD", "INT32, Date", "YYYY-MM-DD", "YYYY-MM-DD",
     "int, date"},
    {TypeKind::kTime, "TIME", "TIME", "time64[us]", "long, time-micros", "int64 packed civil", "HH:MM:SS[.ffffff]",
     "INT64, Time(microseconds, not UTC)", "HH:MM:SS[.ffffff]", "HH:MM:SS[.ffffff]", "long, time-micros"},
    {TypeKind::kDatetime, "DATETIME", "DATETIME", "timestamp[us]", "string (with T), or logical datetime", "int64 packed civil",
     "YYYY-MM-DDTHH:MM:SS[.ffffff]", "INT64, Timestamp(microseconds, not UTC)", "YYYY-MM-DDTHH:MM:SS[.ffffff]",
     "YYYY-MM-DDTHH:MM:SS[.ffffff]", "long, local-timestamp-micros"},
    {TypeKind::kTimestamp, "TIMESTAMP", "TIMESTAMP", "timestamp[us, tz=UTC]", "long, timestamp-micros", "int64 microseconds",
     "RFC 3339 with Z", "INT64, Timestamp(microseconds, UTC)", "RFC 3339 with Z", "epoch seconds as text, or microseconds when asked",
     "long, timestamp-micros"},
    {TypeKind::kTimestamp12, "TIMESTAMP(12)", "TIMESTAMP",
     "utf8 (12 digits, Z), extension google:sqlType:timestamp_picos; timestamp[ns, tz=UTC] or timestamp[us, tz=UTC] when asked",
     "string, or long, timestamp-nanos or -micros, as the session asks", "message of seconds and picoseconds", "RFC 3339 with Z, 12 digits",
     "BYTE_ARRAY, String", "RFC 3339 with Z, 12 digits", "RFC 3339 with Z, 12 digits", "string (RFC 3339)"},
    {TypeKind::kGeography, "GEOGRAPHY", "GEOGRAPHY", "utf8, extension google:sqlType:geography", "string (WKT)", "string", "WKT",
     "BYTE_ARRAY, String", "WKT", "WKT", "string (WKT)"},
    {TypeKind::kJson, "JSON", "JSON", "utf8, extension arrow.json", "string", "string", "value as text", "BYTE_ARRAY, String", "text",
     "value as text", "string"},
    {TypeKind::kInterval, "INTERVAL", "INTERVAL", "struct{months int32, days int32, microseconds int64}, extension google:sqlType:interval",
     "record google.sqlType.INTERVAL", "string", "Y-M D H:M:S[.ffffff]", "group of months, days and microseconds", "Y-M D H:M:S[.ffffff]",
     "Y-M D H:M:S[.ffffff]", "-"},
    {TypeKind::kRange, "RANGE<T>", "RANGE", "struct{start T, end T}, extension google:sqlType:range", "record{start, end}", "message",
     "[a, b)", "group of start and end", "[a, b)", "[a, b)", "-"},
    {TypeKind::kStruct, "STRUCT", "RECORD", "struct", "record", "message", "object", "group", "error unless asked as JSON", "f/v rows",
     "record"},
    {std::nullopt, "ARRAY<T>", "mode REPEATED", "list<T>", "array", "repeated", "array", "LIST (three levels, element)",
     "error unless asked as JSON", "list of v", "array"},
}};

constexpr bool InOrder() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (i + 1 == kTable.size() ? kTable[i].kind.has_value() : static_cast<size_t>(*kTable[i].kind) != i) return false;
  }
  return static_cast<size_t>(TypeKind::kStruct) + 2 == kTable.size();
}
static_assert(InOrder(), "RowOf takes the kind as the row's index");

// Names that GoogleSQL and the REST API take: https://cloud.google.com/bigquery/docs/reference/rest/v2/tables#TableFieldSchema and the
// aliases of https://cloud.google.com/bigquery/docs/reference/standard-sql/data-types
constexpr std::array<std::pair<std::string_view, TypeKind>, 29> kNames = {{
    {"INT64", TypeKind::kInt64},
    {"INTEGER", TypeKind::kInt64},
    {"INT", TypeKind::kInt64},
    {"SMALLINT", TypeKind::kInt64},
    {"BIGINT", TypeKind::kInt64},
    {"TINYINT", TypeKind::kInt64},
    {"BYTEINT", TypeKind::kInt64},
    {"FLOAT64", TypeKind::kFloat64},
    {"FLOAT", TypeKind::kFloat64},
    {"DOUBLE", TypeKind::kFloat64},
    {"BOOL", TypeKind::kBool},
    {"BOOLEAN", TypeKind::kBool},
    {"STRING", TypeKind::kString},
    {"BYTES", TypeKind::kBytes},
    {"NUMERIC", TypeKind::kNumeric},
    {"DECIMAL", TypeKind::kNumeric},
    {"BIGNUMERIC", TypeKind::kBigNumeric},
    {"BIGDECIMAL", TypeKind::kBigNumeric},
    {"DATE", TypeKind::kDate},
    {"TIME", TypeKind::kTime},
    {"DATETIME", TypeKind::kDatetime},
    {"TIMESTAMP", TypeKind::kTimestamp},
    {"TIMESTAMP(12)", TypeKind::kTimestamp12},
    {"GEOGRAPHY", TypeKind::kGeography},
    {"JSON", TypeKind::kJson},
    {"INTERVAL", TypeKind::kInterval},
    {"RANGE", TypeKind::kRange},
    {"STRUCT", TypeKind::kStruct},
    {"RECORD", TypeKind::kStruct},
}};

constexpr std::array<std::string_view, 17> kPlainNames = {"INT64",      "FLOAT64", "BOOL",     "STRING",   "BYTES",     "NUMERIC",
                                                          "BIGNUMERIC", "DATE",    "TIME",     "DATETIME", "TIMESTAMP", "TIMESTAMP(12)",
                                                          "GEOGRAPHY",  "JSON",    "INTERVAL", "RANGE",    "STRUCT"};

}  // namespace

std::span<const TypeRow> TypeTable() { return kTable; }

const TypeRow& RowOf(TypeKind kind) { return kTable[static_cast<size_t>(kind)]; }

std::string_view TypeName(TypeKind kind) { return kPlainNames[static_cast<size_t>(kind)]; }

std::optional<TypeKind> TypeKindFromName(std::string_view name) {
  for (const auto& [known, kind] : kNames) {
    if (SameColumnName(known, name)) return kind;
  }
  return std::nullopt;
}

}  // namespace headrace
