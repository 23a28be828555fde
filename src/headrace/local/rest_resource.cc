#include "headrace/local/rest_resource.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include <fmt/format.h>

#include "headrace/types/schema_json.h"
#include "headrace/types/type_table.h"

namespace headrace::local {
namespace {

constexpr int kDeepestBody = 100;  // a schema of 15 records inside each other has 34 levels

enum class Rule {
  kText,
  kInt64,    // a number, or text with one; answered as text
  kBool,     //
  kTextMap,  // labels
  kList,     // kept as it is
  kObject,   // of known properties
  kIgnored,  // set by the service, or part of the resource's name
  kRefused,  // valid for the real service; not kept here
};

struct Property {
  const char* name;
  Rule rule;
  std::span<const Property> fields = {};
};

// Sources: the REST reference of the resources Dataset and Table of BigQuery v2.
constexpr std::array kTimePartitioning = {Property{"type", Rule::kText}, Property{"expirationMs", Rule::kInt64},
                                          Property{"field", Rule::kText}, Property{"requirePartitionFilter", Rule::kBool}};
constexpr std::array kRange = {Property{"start", Rule::kInt64}, Property{"end", Rule::kInt64}, Property{"interval", Rule::kInt64}};
constexpr std::array kRangePartitioning = {Property{"field", Rule::kText}, Property{"range", Rule::kObject, kRange}};
constexpr std::array kClustering = {Property{"fields", Rule::kList}};
constexpr std::array kPrimaryKey = {Property{"columns", Rule::kList}};
constexpr std::array kConstraints = {Property{"primaryKey", Rule::kObject, kPrimaryKey}, Property{"foreignKeys", Rule::kList}};
constexpr std::array kView = {Property{"query", Rule::kText}, Property{"useLegacySql", Rule::kBool},
                              Property{"userDefinedFunctionResources", Rule::kList}, Property{"useExplicitColumnNames", Rule::kBool},
                              Property{"privacyPolicy", Rule::kRefused}};
constexpr std::array kEncryption = {Property{"kmsKeyName", Rule::kText}};

constexpr std::array kDatasetProperties = {
    Property{"kind", Rule::kIgnored},
    Property{"etag", Rule::kIgnored},
    Property{"id", Rule::kIgnored},
    Property{"selfLink", Rule::kIgnored},
    Property{"datasetReference", Rule::kIgnored},
    Property{"creationTime", Rule::kIgnored},
    Property{"lastModifiedTime", Rule::kIgnored},
    Property{"satisfiesPzs", Rule::kIgnored},
    Property{"satisfiesPzi", Rule::kIgnored},
    Property{"type", Rule::kIgnored},
    Property{"tags", Rule::kIgnored},
    Property{"restrictions", Rule::kIgnored},
    Property{"friendlyName", Rule::kText},
    Property{"description", Rule::kText},
    Property{"defaultTableExpirationMs", Rule::kInt64},
    Property{"defaultPartitionExpirationMs", Rule::kInt64},
    Property{"labels", Rule::kTextMap},
    Property{"access", Rule::kList},
    Property{"location", Rule::kText},
    Property{"defaultEncryptionConfiguration", Rule::kObject, kEncryption},
    Property{"isCaseInsensitive", Rule::kBool},
    Property{"defaultCollation", Rule::kText},
    Property{"defaultRoundingMode", Rule::kText},
    Property{"maxTimeTravelHours", Rule::kInt64},
    Property{"storageBillingModel", Rule::kText},
    Property{"resourceTags", Rule::kTextMap},
    Property{"linkedDatasetSource", Rule::kRefused},
    Property{"linkedDatasetMetadata", Rule::kRefused},
    Property{"externalDatasetReference", Rule::kRefused},
    Property{"externalCatalogDatasetOptions", Rule::kRefused},
};

constexpr std::array kTableProperties = {
    Property{"kind", Rule::kIgnored},
    Property{"etag", Rule::kIgnored},
    Property{"id", Rule::kIgnored},
    Property{"selfLink", Rule::kIgnored},
    Property{"tableReference", Rule::kIgnored},
    Property{"schema", Rule::kIgnored},  // see SchemaOf
    Property{"creationTime", Rule::kIgnored},
    Property{"lastModifiedTime", Rule::kIgnored},
    Property{"location", Rule::kIgnored},
    Property{"type", Rule::kIgnored},
    Property{"streamingBuffer", Rule::kIgnored},
    Property{"numBytes", Rule::kIgnored},
    Property{"numPhysicalBytes", Rule::kIgnored},
    Property{"numLongTermBytes", Rule::kIgnored},
    Property{"numRows", Rule::kIgnored},
    Property{"numPartitions", Rule::kIgnored},
    Property{"numTimeTravelPhysicalBytes", Rule::kIgnored},
    Property{"numTotalLogicalBytes", Rule::kIgnored},
    Property{"numActiveLogicalBytes", Rule::kIgnored},
    Property{"numLongTermLogicalBytes", Rule::kIgnored},
    Property{"numTotalPhysicalBytes", Rule::kIgnored},
    Property{"numActivePhysicalBytes", Rule::kIgnored},
    Property{"numLongTermPhysicalBytes", Rule::kIgnored},
    Property{"numCurrentPhysicalBytes", Rule::kIgnored},
    Property{"friendlyName", Rule::kText},
    Property{"description", Rule::kText},
    Property{"labels", Rule::kTextMap},
    Property{"timePartitioning", Rule::kObject, kTimePartitioning},
    Property{"rangePartitioning", Rule::kObject, kRangePartitioning},
    Property{"clustering", Rule::kObject, kClustering},
    Property{"requirePartitionFilter", Rule::kBool},
    Property{"expirationTime", Rule::kInt64},
    Property{"view", Rule::kObject, kView},
    Property{"tableConstraints", Rule::kObject, kConstraints},
    Property{"encryptionConfiguration", Rule::kObject, kEncryption},
    Property{"defaultCollation", Rule::kText},
    Property{"defaultRoundingMode", Rule::kText},
    Property{"maxStaleness", Rule::kText},
    Property{"resourceTags", Rule::kTextMap},
    Property{"partitionDefinition", Rule::kRefused},
    Property{"materializedView", Rule::kRefused},
    Property{"externalDataConfiguration", Rule::kRefused},
    Property{"biglakeConfiguration", Rule::kRefused},
    Property{"snapshotDefinition", Rule::kRefused},
    Property{"cloneDefinition", Rule::kRefused},
    Property{"replicas", Rule::kRefused},
    Property{"tableReplicationInfo", Rule::kRefused},
    Property{"externalCatalogTableOptions", Rule::kRefused},
    Property{"model", Rule::kRefused},
};

// Of one column. What is refused changes values or who may see them.
constexpr std::array kColumnProperties = {
    Property{"name", Rule::kText},
    Property{"type", Rule::kText},
    Property{"mode", Rule::kText},
    Property{"description", Rule::kText},
    Property{"precision", Rule::kInt64},
    Property{"scale", Rule::kInt64},
    Property{"maxLength", Rule::kInt64},
    Property{"timestampPrecision", Rule::kInt64},
    Property{"fields", Rule::kList},
    Property{"rangeElementType", Rule::kIgnored},
    Property{"policyTags", Rule::kRefused},
    Property{"dataPolicies", Rule::kRefused},
    Property{"categories", Rule::kRefused},
    Property{"collation", Rule::kRefused},
    Property{"defaultValueExpression", Rule::kRefused},
    Property{"roundingMode", Rule::kRefused},
    Property{"foreignTypeDefinition", Rule::kRefused},
    Property{"generatedColumn", Rule::kRefused},
};

arrow::Status Wrong(std::string message) { return MakeError({.code = Code::kInvalidArgument, .reason = "invalid"}, std::move(message)); }

arrow::Status WrongValue(const std::string& where, std::string_view wanted) {
  return Wrong(fmt::format("Invalid value at '{}': {} is wanted", where, wanted));
}

// Null, and what says nothing: {}, [], "", {"names": []}.
bool IsEmpty(const Json& value) {
  if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty())) return true;
  if (!value.is_structured()) return false;
  return value.empty() || (value.size() == 1 && value.is_object() && value.begin()->is_array() && value.begin()->empty());
}

arrow::Result<Json> CheckObject(std::span<const Property> known, const Json& object, const std::string& where);

arrow::Result<Json> CheckInt64(const Json& value, const std::string& where) {
  if (value.is_number_integer()) return Json(value.dump());
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    int64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return value;
  }
  return WrongValue(where, "a 64-bit number");
}

arrow::Result<Json> CheckTextMap(const Json& value, const std::string& where) {
  if (!value.is_object()) return WrongValue(where, "an object of strings");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string() && !text.is_null()) return WrongValue(where + "." + key, "a string");
  }
  return value;
}

arrow::Result<Json> CheckValue(const Property& property, const Json& value, const std::string& where) {
  if (value.is_null()) return value;
  switch (property.rule) {
    case Rule::kText:
      if (value.is_string()) return value;
      return WrongValue(where, "a string");
    case Rule::kBool:
      if (value.is_boolean()) return value;
      return WrongValue(where, "true or false");
    case Rule::kInt64:
      return CheckInt64(value, where);
    case Rule::kTextMap:
      return CheckTextMap(value, where);
    case Rule::kList:
      if (value.is_array()) return value;
      return WrongValue(where, "a list");
    case Rule::kObject:
      return CheckObject(property.fields, value, where);
    case Rule::kIgnored:
    case Rule::kRefused:
      break;
  }
  return value;
}

arrow::Result<Json> CheckObject(std::span<const Property> known, const Json& object, const std::string& where) {
  if (!object.is_object()) return WrongValue(where, "an object");
  Json checked = Json::object();
  for (const auto& [key, value] : object.items()) {
    auto property = std::find_if(known.begin(), known.end(), [&](const Property& one) { return key == one.name; });
    std::string path = where + "." + key;
    if (property == known.end()) {
      return Wrong(fmt::format("Invalid JSON payload received. Unknown name \"{}\" at '{}': Cannot find field.", key, where));
    }
    if (property->rule == Rule::kRefused && !IsEmpty(value)) {
      return Unsupported(path, fmt::format("The local service does not keep the property {} yet.", path));
    }
    if (property->rule == Rule::kIgnored || property->rule == Rule::kRefused) continue;
    ARROW_ASSIGN_OR_RAISE(checked[key], CheckValue(*property, value, path));
  }
  return checked;
}

arrow::Status CheckColumns(const Json& columns, const std::string& where) {
  for (const Json& column : columns) {
    ARROW_RETURN_NOT_OK(CheckObject(kColumnProperties, column, where).status());
    auto fields = column.find("fields");
    if (fields != column.end() && fields->is_array()) ARROW_RETURN_NOT_OK(CheckColumns(*fields, where + ".fields"));
  }
  return arrow::Status::OK();
}

// Braces and brackets inside each other, before anything is built of them.
bool TooDeep(std::string_view json) {
  int depth = 0;
  bool text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (text && c == '\\') ++i;
    if (c == '"') text = !text;
    if (text) continue;
    if ((c == '{' || c == '[') && ++depth > kDeepestBody) return true;
    if (c == '}' || c == ']') --depth;
  }
  return false;
}

// "NUMERIC(10, 2)", as the service names types in the errors of a schema change.
std::string TypeText(const Field& field) {
  std::string text(RowOf(field.kind).rest_type);
  if (field.precision != 0) text += fmt::format("({}, {})", field.precision, field.scale);
  if (field.kind == TypeKind::kRange) text += fmt::format("<{}>", RowOf(field.range_element).rest_type);
  return text;
}

std::string_view ModeText(Mode mode) { return mode == Mode::kRequired ? "REQUIRED" : mode == Mode::kRepeated ? "REPEATED" : "NULLABLE"; }

class SchemaChange {
 public:
  explicit SchemaChange(const TableName& table) : table_(table) {}

  arrow::Result<std::vector<Field>> Fields(const std::vector<Field>& have, const std::vector<Field>& wanted, const std::string& parent) {
    std::vector<Field> changed;
    for (const Field& field : have) {
      auto found = FindField(wanted, field.name);
      if (!found) return Mismatch(fmt::format("Field {}{} is missing in new schema", parent, field.name));
      ARROW_ASSIGN_OR_RAISE(changed.emplace_back(), One(field, wanted[*found], parent + field.name));
    }
    for (const Field& field : wanted) {
      if (FindField(have, field.name)) continue;
      if (field.mode == Mode::kRequired) {
        return Mismatch(fmt::format("Cannot add required fields to an existing schema. (field: {}{})", parent, field.name));
      }
      changed.push_back(field);
    }
    return changed;
  }

 private:
  arrow::Status Mismatch(const std::string& what) const {
    return Wrong(fmt::format("Provided Schema does not match Table {}. {}", table_.Legacy(), what));
  }

  arrow::Result<Field> One(const Field& have, const Field& wanted, const std::string& path) {
    if (TypeText(have) != TypeText(wanted)) {
      return Mismatch(fmt::format("Field {} has changed type from {} to {}", path, TypeText(have), TypeText(wanted)));
    }
    if (have.mode != wanted.mode && !(have.mode == Mode::kRequired && wanted.mode == Mode::kNullable)) {
      return Mismatch(fmt::format("Field {} has changed mode from {} to {}", path, ModeText(have.mode), ModeText(wanted.mode)));
    }
    // No limit is the longest.
    if (wanted.max_length != 0 && (have.max_length == 0 || wanted.max_length < have.max_length)) {
      return Mismatch(fmt::format("Field {} has changed max length from {} to {}", path, have.max_length, wanted.max_length));
    }
    Field changed = wanted;
    changed.name = have.name;
    ARROW_ASSIGN_OR_RAISE(changed.fields, Fields(have.fields, wanted.fields, path + "."));
    return changed;
  }

  const TableName& table_;
};

// The text of properties[outer][inner]; empty when it is none.
std::string TextAt(const Json& properties, const char* outer, const char* inner) {
  auto object = properties.find(outer);
  if (object == properties.end() || !object->is_object()) return "";
  auto text = object->find(inner);
  return text == object->end() || !text->is_string() ? "" : text->get<std::string>();
}

arrow::Status CheckTimePartitioning(const Json& properties, const TableSchema& schema) {
  if (!properties.contains("timePartitioning")) return arrow::Status::OK();
  std::string type = TextAt(properties, "timePartitioning", "type");
  if (type != "DAY" && type != "HOUR" && type != "MONTH" && type != "YEAR") {
    return Wrong(fmt::format("Invalid time partitioning type \"{}\". Supported types are DAY, HOUR, MONTH and YEAR.", type));
  }
  std::string name = TextAt(properties, "timePartitioning", "field");
  if (name.empty()) return arrow::Status::OK();
  auto found = FindField(schema.fields, name);
  if (!found) return Wrong(fmt::format("The field specified for partitioning cannot be found in the schema. Field: {}", name));
  const Field& field = schema.fields[*found];
  bool fits = field.kind == TypeKind::kTimestamp || field.kind == TypeKind::kDatetime || (field.kind == TypeKind::kDate && type != "HOUR");
  if (fits && field.mode != Mode::kRepeated) return arrow::Status::OK();
  return Wrong(
      fmt::format("The field specified for time partitioning can only be of type TIMESTAMP, DATE or DATETIME. The type found is: {}.",
                  TypeText(field)));
}

arrow::Status CheckRangePartitioning(const Json& properties, const TableSchema& schema) {
  if (!properties.contains("rangePartitioning")) return arrow::Status::OK();
  if (properties.contains("timePartitioning")) return Wrong("Only one type of partitioning can be specified for a table");
  auto found = FindField(schema.fields, TextAt(properties, "rangePartitioning", "field"));
  if (!found) return Wrong("The field specified for range partitioning cannot be found in the schema");
  const Field& field = schema.fields[*found];
  if (field.kind == TypeKind::kInt64 && field.mode != Mode::kRepeated) return arrow::Status::OK();
  return Wrong(
      fmt::format("The field specified for range partitioning can only be of type INTEGER. The type found is: {}.", TypeText(field)));
}

arrow::Status CheckNames(const Json& properties, const char* outer, const char* inner, size_t most, const TableSchema& schema,
                         std::string_view what) {
  auto object = properties.find(outer);
  if (object == properties.end() || !object->contains(inner)) return arrow::Status::OK();
  const Json& names = (*object)[inner];
  if (names.size() > most) return Wrong(fmt::format("At most {} columns can be given for {}; {} are.", most, what, names.size()));
  for (const Json& name : names) {
    if (!name.is_string()) return Wrong(fmt::format("Invalid value at '{}.{}': a list of column names is wanted", outer, inner));
    const auto& text = name.get_ref<const std::string&>();
    const std::vector<Field>* fields = &schema.fields;
    size_t start = 0;
    while (true) {  // clustering takes fields of structs
      size_t dot = text.find('.', start);
      auto found = FindField(*fields, text.substr(start, dot - start));
      if (!found) return Wrong(fmt::format("The field specified for {} cannot be found in the schema. Invalid field: {}.", what, text));
      if (dot == std::string::npos) break;
      fields = &(*fields)[*found].fields;
      start = dot + 1;
    }
  }
  return arrow::Status::OK();
}

}  // namespace

arrow::Result<Json> ParseBody(const std::string& body) {
  if (body.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  if (TooDeep(body)) return Wrong("Invalid JSON payload received. The payload is nested too deeply.");
  Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return MakeError({.code = Code::kInvalidArgument, .reason = "parseError"}, "Parse Error");
  if (!json.is_object()) return Wrong("Invalid JSON payload received. An object is wanted.");
  return json;
}

arrow::Result<Json> CheckProperties(ResourceKind kind, const Json& body) {
  if (kind == ResourceKind::kDataset) return CheckObject(kDatasetProperties, body, "dataset");
  return CheckObject(kTableProperties, body, "table");
}

void MergePatch(const Json& patch, Json* target) {
  for (const auto& [key, value] : patch.items()) {
    if (value.is_null()) {
      target->erase(key);
    } else if (value.is_object()) {
      Json& inner = (*target)[key];
      if (!inner.is_object()) inner = Json::object();
      MergePatch(value, &inner);
    } else {
      (*target)[key] = value;
    }
  }
}

arrow::Result<TableSchema> SchemaOf(const Json& body) {
  auto schema = body.find("schema");
  if (schema == body.end() || schema->is_null()) return TableSchema{};
  if (!schema->is_object()) return WrongValue("table.schema", "an object");
  auto fields = schema->find("fields");
  if (fields == schema->end() || fields->empty()) return TableSchema{};
  if (!fields->is_array()) return WrongValue("table.schema.fields", "a list");
  ARROW_RETURN_NOT_OK(CheckColumns(*fields, "table.schema.fields"));
  auto parsed = SchemaFromJson(fields->dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!parsed.ok()) return Wrong(parsed.status().message());
  return parsed;
}

arrow::Result<TableSchema> ChangedSchema(const TableName& table, const TableSchema& have, const TableSchema& wanted) {
  TableSchema changed;
  ARROW_ASSIGN_OR_RAISE(changed.fields, SchemaChange(table).Fields(have.fields, wanted.fields, ""));
  return changed;
}

arrow::Status CheckColumnsOfProperties(const Json& properties, const TableSchema& schema) {
  constexpr size_t kMostClustering = 4;  // documentation of clustered tables
  constexpr size_t kMostKeys = 16;       // documentation of primary keys
  ARROW_RETURN_NOT_OK(CheckTimePartitioning(properties, schema));
  ARROW_RETURN_NOT_OK(CheckRangePartitioning(properties, schema));
  ARROW_RETURN_NOT_OK(CheckNames(properties, "clustering", "fields", kMostClustering, schema, "clustering"));
  auto constraints = properties.find("tableConstraints");
  if (constraints == properties.end()) return arrow::Status::OK();
  return CheckNames(*constraints, "primaryKey", "columns", kMostKeys, schema, "the primary key");
}

}  // namespace headrace::local
