// Names and values as the SQL of a row restriction (SourceOptions::row_restriction): quoted and escaped, so that a value stays a value
// whatever is in it.
//
//   ARROW_ASSIGN_OR_RAISE(const std::string wanted, SqlString(city));  // an error when it is not UTF-8
//   options.row_restriction = "`place`.`city` = " + wanted + " AND year > " + SqlInt64(1990);
//
// Literals are GoogleSQL's. Free functions, any thread. Errors are INVALID_ARGUMENT (reason INVALID_OPTION) and name row_restriction.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace::bigquery {

/// A column, or a field of STRUCTs by its path: each part in backquotes. A blank part is refused, and what is not UTF-8.
arrow::Result<std::string> SqlColumn(std::string_view path);

/// STRING. Refuses what is not UTF-8.
arrow::Result<std::string> SqlString(std::string_view text);
std::string SqlBytes(std::string_view bytes);
std::string SqlBool(bool value);
std::string SqlInt64(int64_t value);
/// Also NaN (which equals nothing, as in SQL) and the infinities. The text gives the same value back.
std::string SqlFloat64(double value);
/// A decimal number as it is written, "-12.50": digits, at most one point, a sign. The range is the service's matter.
arrow::Result<std::string> SqlNumeric(std::string_view decimal);
arrow::Result<std::string> SqlBignumeric(std::string_view decimal);
/// Years 1 to 9999.
arrow::Result<std::string> SqlDate(std::chrono::year_month_day date);
/// Microseconds since 1970 UTC, from year 1 to 9999.
arrow::Result<std::string> SqlTimestamp(int64_t microseconds);

}  // namespace headrace::bigquery
