#include "headrace/bigquery/read/internal/columns.h"

#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <fmt/format.h>

namespace headrace::bigquery {
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
    return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read", .reason = "CORRUPT_RESPONSE"},
                     fmt::format("the Arrow schema of the session cannot be read: {}", schema.status().message()));
  }
  return schema;
}

}  // namespace headrace::bigquery
