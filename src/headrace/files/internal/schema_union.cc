#include "headrace/files/internal/schema_union.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/types/schema.h"

namespace headrace {
namespace {

arrow::Status Differs(const std::string& path, const std::string& column, std::string message) {
  return MakeError(
      {.code = Code::kInvalidArgument, .service = "local files", .resource = path, .reason = "SCHEMA_DIFFERS", .column = column},
      fmt::format("the files have not the same columns: {}", message));
}

std::shared_ptr<arrow::Field> FindColumn(const arrow::Schema& schema, const std::string& name) {
  for (const auto& field : schema.fields()) {
    if (SameColumnName(field->name(), name)) return field;
  }
  return nullptr;
}

}  // namespace

arrow::Status SchemaUnion::Add(const std::shared_ptr<arrow::Schema>& schema, const std::string& path) {
  if (schema_ == nullptr) {
    schema_ = schema;
    first_path_ = path;
    return arrow::Status::OK();
  }
  arrow::FieldVector fields;
  for (const auto& field : schema_->fields()) {
    const auto other = FindColumn(*schema, field->name());
    if (other == nullptr) return Differs(path, field->name(), fmt::format("{} has no column {}, {} has", path, field->name(), first_path_));
    const auto merged = field->WithNullable(field->nullable() || other->nullable());
    // The markers of JSON, GEOGRAPHY ... are part of a type; the file's own spelling of the name is not.
    if (!merged->Equals(other->WithName(field->name())->WithNullable(merged->nullable()), /*check_metadata=*/true)) {
      return Differs(path, field->name(),
                     fmt::format("column {} is {} in {} and {} in {}", field->name(), other->ToString(/*show_metadata=*/true), path,
                                 field->ToString(true), first_path_));
    }
    fields.push_back(merged);
  }
  for (const auto& field : schema->fields()) {
    if (FindColumn(*schema_, field->name()) != nullptr) continue;
    return Differs(path, field->name(), fmt::format("{} has a column {}, {} has none", path, field->name(), first_path_));
  }
  schema_ = arrow::schema(std::move(fields));
  return arrow::Status::OK();
}

}  // namespace headrace
