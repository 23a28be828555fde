// A BigQuery table's schema as plain values: TableSchema, Field, TypeKind, Mode. Nothing here is bound to Arrow or to a wire form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {

/// Every BigQuery type. An array is no kind of its own but a field whose mode is kRepeated.
enum class TypeKind {
  kInt64,
  kFloat64,
  kBool,
  kString,
  kBytes,
  kNumeric,
  kBigNumeric,
  kDate,
  kTime,
  kDatetime,
  kTimestamp,
  kTimestamp12,  // TIMESTAMP with picoseconds: type TIMESTAMP with timestampPrecision 12 in BigQuery's JSON
  kGeography,
  kJson,
  kInterval,
  kRange,
  kStruct,
};

enum class Mode { kNullable, kRequired, kRepeated };

struct Field {
  std::string name{};
  TypeKind kind = TypeKind::kString;
  Mode mode = Mode::kNullable;
  int precision = 0;                         // NUMERIC and BIGNUMERIC; 0 = the type's own
  int scale = 0;                             // only with a precision
  int64_t max_length = 0;                    // STRING (characters) and BYTES; 0 = none
  TypeKind range_element = TypeKind::kDate;  // RANGE: kDate, kDatetime or kTimestamp
  std::vector<Field> fields{};               // STRUCT
  std::string description{};

  bool operator==(const Field&) const = default;
};

struct TableSchema {
  std::vector<Field> fields{};

  bool operator==(const TableSchema&) const = default;
};

/// STRUCTs inside each other that BigQuery accepts (quotas: "maximum depth of nested columns").
inline constexpr int kMaxNesting = 15;
/// Characters of a column name (quotas: "maximum column name length").
inline constexpr int kMaxColumnNameLength = 300;

/// BigQuery's rule for column names: equal without regard to case (of ASCII letters).
bool SameColumnName(std::string_view a, std::string_view b);
/// The index of the field of that name, whatever its case; nothing when there is none.
std::optional<size_t> FindField(const std::vector<Field>& fields, std::string_view name);

/// Nothing for a name that BigQuery takes for a column, flexible ones included (letters of any script, digits first, spaces, dashes ...);
/// else what is wrong with it. Characters beyond ASCII are left to the service, save for control characters and invalid UTF-8.
std::optional<std::string> WhatIsWrongWithColumnName(std::string_view name);

/// What every schema must keep: names that BigQuery takes and none twice (whatever its case), nesting, precision and scale within the
/// type's bounds, a STRUCT with fields. The error names the column by its path (a.b.c).
arrow::Status ValidateSchema(const TableSchema& schema);

}  // namespace headrace
