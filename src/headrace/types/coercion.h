// What may become a value of which type when text or JSON is read: one table, which docs/types.md shows. Free functions, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "headrace/types/schema.h"
#include "headrace/types/value_text.h"

namespace headrace {

/// What a value is before it is read. A CSV field is a text.
enum class ValueSource { kInteger, kDecimal, kText, kBool, kObject, kArray };

enum class Coercion { kAlways, kUnlessStrict, kNever };

/// One row; what has no row is never taken.
struct CoercionRow {
  std::optional<TypeKind> to;  // nothing: a column of mode REPEATED
  ValueSource from;
  Coercion coercion;
  std::string_view how;
};

std::span<const CoercionRow> CoercionTable();
Coercion CoercionOf(std::optional<TypeKind> to, ValueSource from);
/// "text", "whole number" ...
std::string_view SourceName(ValueSource source);

/// What an integer in a column of TIMESTAMP counts, since 1970.
enum class EpochUnit { kNone, kSeconds, kMillis, kMicros };

/// How text and JSON values are read.
struct ParseOptions {
  bool strict = false;                                 // only what is taken always
  DecimalRounding rounding = DecimalRounding::kError;  // digits after the point that NUMERIC and BIGNUMERIC have no place for
  EpochUnit epoch_unit = EpochUnit::kNone;             // kNone: an integer for a TIMESTAMP is an error
  bool ignore_unknown_keys = false;                    // JSON rows: a key that no column has; else an error
};

}  // namespace headrace
