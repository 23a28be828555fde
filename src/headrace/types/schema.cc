#include "headrace/types/schema.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "headrace/types/type_table.h"
#include "headrace/types/utf8.h"

namespace headrace {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string Folded(std::string_view name) {
  std::string folded(name);
  std::transform(folded.begin(), folded.end(), folded.begin(), Lower);
  return folded;
}

arrow::Status Wrong(const std::string& path, std::string message) {
  return MakeError({.code = Code::kInvalidArgument, .reason = "INVALID_SCHEMA", .column = path}, std::move(message));
}

// https://cloud.google.com/bigquery/docs/schemas#column_names: what a name, also a flexible one, must not hold or begin with.
constexpr std::string_view kRefusedCharacters = "!\"$()*,./;?@[\\]^`{}~";
constexpr std::array<std::string_view, 6> kRefusedPrefixes = {"_TABLE_",        "_FILE_",   "_PARTITION",
                                                              "_ROW_TIMESTAMP", "__ROOT__", "_COLIDENTIFIER"};

// Bounds of https://cloud.google.com/bigquery/docs/reference/standard-sql/data-types#parameterized_decimal_type
arrow::Status CheckDecimal(const Field& field, const std::string& path) {
  if (field.precision == 0 && field.scale == 0) return arrow::Status::OK();
  const bool big = field.kind == TypeKind::kBigNumeric;
  const int max_scale = big ? 38 : 9;
  const int max_integer_digits = big ? 38 : 29;
  const bool fits = field.scale >= 0 && field.scale <= max_scale && field.precision >= std::max(1, field.scale) &&
                    field.precision - field.scale <= max_integer_digits;
  if (fits) return arrow::Status::OK();
  return Wrong(
      path, fmt::format("column {}: {}({}, {}) is out of bounds: the scale is 0 to {}, the precision at least 1 and the scale, at most the "
                        "scale plus {}",
                        path, TypeName(field.kind), field.precision, field.scale, max_scale, max_integer_digits));
}

arrow::Status ValidateFields(const std::vector<Field>& fields, const std::string& parent, int depth);

arrow::Status ValidateField(const Field& field, const std::string& path, int depth) {
  const bool decimal = field.kind == TypeKind::kNumeric || field.kind == TypeKind::kBigNumeric;
  if (decimal) {
    ARROW_RETURN_NOT_OK(CheckDecimal(field, path));
  } else if (field.precision != 0 || field.scale != 0) {
    return Wrong(path, fmt::format("column {}: {} takes no precision or scale", path, TypeName(field.kind)));
  }
  const bool has_length = field.kind == TypeKind::kString || field.kind == TypeKind::kBytes;
  if (field.max_length < 0 || (field.max_length > 0 && !has_length)) {
    return Wrong(path, fmt::format("column {}: {} takes no maximum length of {}", path, TypeName(field.kind), field.max_length));
  }
  if (field.kind == TypeKind::kRange && field.range_element != TypeKind::kDate && field.range_element != TypeKind::kDatetime &&
      field.range_element != TypeKind::kTimestamp) {
    return Wrong(path, fmt::format("column {}: a RANGE is of DATE, DATETIME or TIMESTAMP, not of {}", path, TypeName(field.range_element)));
  }
  if (field.kind != TypeKind::kStruct) {
    if (field.fields.empty()) return arrow::Status::OK();
    return Wrong(path, fmt::format("column {}: {} has no fields", path, TypeName(field.kind)));
  }
  if (field.fields.empty()) return Wrong(path, fmt::format("column {}: a STRUCT needs at least one field", path));
  if (depth >= kMaxNesting) {
    return Wrong(path, fmt::format("column {}: more than {} STRUCTs inside each other", path, kMaxNesting));
  }
  return ValidateFields(field.fields, path, depth + 1);
}

arrow::Status ValidateFields(const std::vector<Field>& fields, const std::string& parent, int depth) {
  std::set<std::string> names;
  for (const Field& field : fields) {
    std::string path = parent.empty() ? field.name : parent + "." + field.name;
    if (field.name.empty()) return Wrong(path, fmt::format("a column {} has no name", parent.empty() ? "of the table" : "of " + parent));
    if (auto wrong = WhatIsWrongWithColumnName(field.name)) return Wrong(path, fmt::format("column {}: {}", path, *wrong));
    if (!names.insert(Folded(field.name)).second) {
      return Wrong(path, fmt::format("column {}: the name appears twice (upper and lower case are the same to BigQuery)", path));
    }
    ARROW_RETURN_NOT_OK(ValidateField(field, path, depth));
  }
  return arrow::Status::OK();
}

}  // namespace

bool SameColumnName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return Lower(x) == Lower(y); });
}

std::optional<size_t> FindField(const std::vector<Field>& fields, std::string_view name) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (SameColumnName(fields[i].name, name)) return i;
  }
  return std::nullopt;
}

std::optional<std::string> WhatIsWrongWithColumnName(std::string_view name) {
  if (name.empty()) return "a column needs a name";
  for (std::string_view prefix : kRefusedPrefixes) {
    if (SameColumnName(name.substr(0, prefix.size()), prefix))
      return fmt::format("BigQuery keeps names that begin with {} to itself", prefix);
  }
  int characters = 0;
  for (std::string_view rest = name; !rest.empty(); ++characters) {
    auto first = FirstCharacter(rest);
    if (!first) return "the name is not valid UTF-8";
    const auto [point, length] = *first;
    if (point < 0x20 || (point >= 0x7F && point < 0xA0)) return fmt::format("a name cannot hold the control character U+{:04X}", point);
    if (length == 1 && kRefusedCharacters.find(rest[0]) != std::string_view::npos) {
      return fmt::format("a name cannot hold the character {}: rename the column", rest[0]);
    }
    rest.remove_prefix(length);
  }
  if (characters > kMaxColumnNameLength) return fmt::format("a column name has at most {} characters", kMaxColumnNameLength);
  return std::nullopt;
}

arrow::Status ValidateSchema(const TableSchema& schema) { return ValidateFields(schema.fields, "", 0); }

}  // namespace headrace
