#include "headrace/types/schema_json.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/types/type_table.h"

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

arrow::Status Wrong(const std::string& path, std::string_view message) {
  ErrorInfo info{.code = Code::kInvalidArgument, .reason = "INVALID_SCHEMA", .column = path};
  return MakeError(std::move(info), path.empty() ? fmt::format("schema: {}", message) : fmt::format("schema, field {}: {}", path, message));
}

arrow::Result<std::string> TextOf(const Json& object, const char* key, const std::string& path) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::string();
  if (!found->is_string()) return Wrong(path, fmt::format("'{}' must be a string", key));
  return found->get<std::string>();
}

// The REST API prints 64-bit numbers as strings; people write them as numbers.
arrow::Result<int64_t> NumberOf(const Json& object, const char* key, int64_t limit, const std::string& path) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null()) return 0;
  int64_t value = -1;
  if (found->is_number_unsigned()) {
    auto number = found->get<uint64_t>();
    value = number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ? static_cast<int64_t>(number) : -1;
  } else if (found->is_string()) {
    const auto& text = found->get_ref<const std::string&>();
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) value = -1;
  }
  if (value < 0 || value > limit) return Wrong(path, fmt::format("'{}' must be a whole number from 0 to {}", key, limit));
  return value;
}

arrow::Status SetMode(const Json& object, const std::string& path, Field* field) {
  ARROW_ASSIGN_OR_RAISE(auto mode, TextOf(object, "mode", path));
  if (mode.empty() || SameColumnName(mode, "NULLABLE")) {
    field->mode = Mode::kNullable;
  } else if (SameColumnName(mode, "REQUIRED")) {
    field->mode = Mode::kRequired;
  } else if (SameColumnName(mode, "REPEATED")) {
    field->mode = Mode::kRepeated;
  } else {
    return Wrong(path, fmt::format("unknown mode '{}': NULLABLE, REQUIRED and REPEATED are known", mode));
  }
  return arrow::Status::OK();
}

arrow::Status SetRangeElement(const Json& object, const std::string& path, Field* field) {
  auto element = object.find("rangeElementType");
  if (element == object.end() || !element->is_object()) return Wrong(path, "a RANGE needs 'rangeElementType' with a 'type'");
  ARROW_ASSIGN_OR_RAISE(auto name, TextOf(*element, "type", path));
  auto kind = TypeKindFromName(name);
  if (!kind) return Wrong(path, fmt::format("unknown type '{}' of a RANGE", name));
  field->range_element = *kind;
  return arrow::Status::OK();
}

arrow::Result<std::vector<Field>> FieldsOf(const Json& list, const std::string& parent, int depth);

arrow::Status SetType(const Json& object, const std::string& path, int depth, Field* field) {
  ARROW_ASSIGN_OR_RAISE(auto type, TextOf(object, "type", path));
  auto kind = TypeKindFromName(type);
  if (!kind) return Wrong(path, fmt::format("unknown type '{}'", type));
  field->kind = *kind;
  ARROW_ASSIGN_OR_RAISE(auto timestamp_precision, NumberOf(object, "timestampPrecision", 12, path));
  if (timestamp_precision == 12 && *kind == TypeKind::kTimestamp) field->kind = TypeKind::kTimestamp12;
  // 6 is what the REST API may print of a plain TIMESTAMP.
  if (timestamp_precision != 0 && timestamp_precision != 12 && timestamp_precision != 6) {
    return Wrong(path, "'timestampPrecision' is 6 or 12");
  }
  if (*kind == TypeKind::kRange) ARROW_RETURN_NOT_OK(SetRangeElement(object, path, field));
  if (*kind != TypeKind::kStruct) return arrow::Status::OK();
  if (depth > kMaxNesting) return Wrong(path, fmt::format("more than {} records inside each other", kMaxNesting));
  auto fields = object.find("fields");
  if (fields == object.end()) return Wrong(path, "a record needs 'fields'");
  ARROW_ASSIGN_OR_RAISE(field->fields, FieldsOf(*fields, path, depth + 1));
  return arrow::Status::OK();
}

arrow::Result<Field> FieldOf(const Json& object, const std::string& parent, int depth) {
  if (!object.is_object()) return Wrong(parent, "every field must be an object with 'name' and 'type'");
  Field field;
  ARROW_ASSIGN_OR_RAISE(field.name, TextOf(object, "name", parent));
  if (field.name.empty()) return Wrong(parent, "a field without a 'name'");
  const std::string path = parent.empty() ? field.name : parent + "." + field.name;
  ARROW_RETURN_NOT_OK(SetType(object, path, depth, &field));
  ARROW_RETURN_NOT_OK(SetMode(object, path, &field));
  ARROW_ASSIGN_OR_RAISE(auto precision, NumberOf(object, "precision", 76, path));
  ARROW_ASSIGN_OR_RAISE(auto scale, NumberOf(object, "scale", 38, path));
  ARROW_ASSIGN_OR_RAISE(field.max_length, NumberOf(object, "maxLength", std::numeric_limits<int64_t>::max(), path));
  ARROW_ASSIGN_OR_RAISE(field.description, TextOf(object, "description", path));
  field.precision = static_cast<int>(precision);
  field.scale = static_cast<int>(scale);
  return field;
}

arrow::Result<std::vector<Field>> FieldsOf(const Json& list, const std::string& parent, int depth) {
  if (!list.is_array()) return Wrong(parent, "'fields' must be a list");
  std::vector<Field> fields;
  for (const auto& item : list) {
    ARROW_ASSIGN_OR_RAISE(auto field, FieldOf(item, parent, depth));
    fields.push_back(std::move(field));
  }
  return fields;
}

Json FieldsToJson(const std::vector<Field>& fields) {
  static constexpr const char* kModes[] = {"NULLABLE", "REQUIRED", "REPEATED"};
  Json list = Json::array();
  for (const Field& field : fields) {
    Json json = {{"name", field.name}, {"type", RowOf(field.kind).rest_type}, {"mode", kModes[static_cast<int>(field.mode)]}};
    if (field.precision != 0) json["precision"] = std::to_string(field.precision);
    if (field.scale != 0) json["scale"] = std::to_string(field.scale);
    if (field.max_length != 0) json["maxLength"] = std::to_string(field.max_length);
    if (field.kind == TypeKind::kTimestamp12) json["timestampPrecision"] = "12";
    if (field.kind == TypeKind::kRange) json["rangeElementType"] = {{"type", RowOf(field.range_element).rest_type}};
    if (!field.description.empty()) json["description"] = field.description;
    if (field.kind == TypeKind::kStruct) json["fields"] = FieldsToJson(field.fields);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

arrow::Result<TableSchema> SchemaFromJson(std::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Wrong("", "not JSON");
  const Json* list = &json;
  if (json.is_object()) {
    auto fields = json.find("fields");
    if (fields == json.end()) return Wrong("", "an object without 'fields'");
    list = &*fields;
  }
  TableSchema schema;
  ARROW_ASSIGN_OR_RAISE(schema.fields, FieldsOf(*list, "", 1));
  ARROW_RETURN_NOT_OK(ValidateSchema(schema));
  return schema;
}

std::string SchemaToJson(const TableSchema& schema, int indent) {
  // Names and descriptions may come from files: bytes that are not UTF-8 are replaced, never thrown about.
  return FieldsToJson(schema.fields).dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headrace
