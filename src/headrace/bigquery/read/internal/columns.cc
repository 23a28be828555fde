#include "headrace/bigquery/read/internal/columns.h"

#include <algorithm>
#include <optional>

#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <fmt/format.h>

namespace headrace::bigquery {
namespace {

std::string AsciiLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::optional<uint32_t> FindColumn(const arrow::Schema& schema, std::string_view name) {
  std::optional<uint32_t> found;
  for (int i = 0; i < schema.num_fields(); ++i) {
    const std::string& candidate = schema.field(i)->name();
    if (candidate == name) return static_cast<uint32_t>(i);
    if (!found.has_value() && AsciiLower(candidate) == AsciiLower(name)) found = static_cast<uint32_t>(i);
  }
  return found;
}

/// The first segment of a path; a segment in backticks may hold dots.
std::string_view TopLevelName(std::string_view path) {
  if (path.starts_with('`')) {
    const size_t end = path.find('`', 1);
    if (end != std::string_view::npos) return path.substr(1, end - 1);
  }
  return path.substr(0, path.find('.'));
}

}  // namespace

arrow::Result<std::vector<uint32_t>> ResultColumns(const arrow::Schema& wire, const std::vector<std::string>& selected_fields) {
  std::vector<uint32_t> columns;
  if (selected_fields.empty()) {
    for (int i = 0; i < wire.num_fields(); ++i) columns.push_back(static_cast<uint32_t>(i));
    return columns;
  }
  for (const std::string& field : selected_fields) {
    auto column = FindColumn(wire, field);  // a column whose own name holds a dot
    if (!column.has_value()) column = FindColumn(wire, TopLevelName(field));
    if (!column.has_value()) {
      return MakeError({.code = Code::kInvalidArgument, .service = "BigQuery Storage Read", .resource = "selected_fields", .column = field},
                       fmt::format("selected_fields names \"{}\", which the session's schema does not have", field));
    }
    if (std::find(columns.begin(), columns.end(), *column) == columns.end()) columns.push_back(*column);
  }
  if (columns.size() != static_cast<size_t>(wire.num_fields())) {
    return MakeError({.code = Code::kInternal, .service = "BigQuery Storage Read", .resource = "selected_fields"},
                     fmt::format("{} columns were asked for, but the session has {}: the server ignored selected_fields", columns.size(),
                                 wire.num_fields()));
  }
  return columns;
}

arrow::Result<std::shared_ptr<arrow::Schema>> SelectFields(const std::shared_ptr<arrow::Schema>& wire,
                                                           const std::vector<uint32_t>& columns) {
  if (IsIdentity(columns) && columns.size() == static_cast<size_t>(wire->num_fields())) return wire;
  arrow::FieldVector fields;
  for (const uint32_t column : columns) {
    if (column >= static_cast<uint32_t>(wire->num_fields())) {
      return MakeError({.code = Code::kDataLoss, .reason = "CORRUPT_STATE"},
                       fmt::format("column {} of a schema of {} columns", column, wire->num_fields()));
    }
    fields.push_back(wire->field(static_cast<int>(column)));
  }
  return arrow::schema(std::move(fields), wire->endianness(), wire->metadata());
}

arrow::Result<std::vector<uint32_t>> InvertColumns(const std::vector<uint32_t>& columns) {
  constexpr uint32_t kUnset = UINT32_MAX;
  std::vector<uint32_t> inverse(columns.size(), kUnset);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] >= columns.size() || inverse[columns[i]] != kUnset) {
      return MakeError({.code = Code::kDataLoss, .reason = "CORRUPT_STATE"}, "the persisted order of columns is no permutation");
    }
    inverse[columns[i]] = static_cast<uint32_t>(i);
  }
  return inverse;
}

bool IsIdentity(const std::vector<uint32_t>& columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] != i) return false;
  }
  return true;
}

arrow::Result<std::shared_ptr<arrow::Schema>> ReadSchemaBytes(std::string_view bytes) {
  // The copy lets the schema's buffers outlive `bytes`.
  arrow::io::BufferReader input(arrow::Buffer::FromString(std::string(bytes)));
  arrow::ipc::DictionaryMemo memo;
  auto schema = arrow::ipc::ReadSchema(&input, &memo);
  if (!schema.ok()) {
    return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read"},
                     fmt::format("the Arrow schema of the session cannot be read: {}", schema.status().message()));
  }
  return schema;
}

}  // namespace headrace::bigquery
