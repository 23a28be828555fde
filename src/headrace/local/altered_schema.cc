#include "headrace/local/altered_schema.h"

#include <nlohmann/json.hpp>

namespace headrace::local {
namespace {

constexpr const char* kAdded = "added_by_the_server";
constexpr const char* kRenamed = "renamed_by_the_server";

}  // namespace

std::shared_ptr<arrow::Schema> AlteredArrowSchema(const arrow::Schema& schema, SchemaChange change) {
  arrow::FieldVector fields = schema.fields();
  if (change == SchemaChange::kColumns || fields.empty()) {
    fields.push_back(arrow::field(kAdded, arrow::int64()));
  } else if (change == SchemaChange::kName) {
    fields[0] = fields[0]->WithName(kRenamed);
  } else {
    bool text = fields[0]->type()->id() == arrow::Type::STRING;
    fields[0] = fields[0]->WithType(text ? arrow::int64() : arrow::utf8());
  }
  return arrow::schema(std::move(fields), schema.metadata());
}

std::string AlteredAvroSchema(std::string_view json, SchemaChange change) {
  auto schema = nlohmann::ordered_json::parse(json, nullptr, false);
  if (!schema.is_object() || !schema["fields"].is_array()) return std::string(json);
  auto& fields = schema["fields"];
  if (change == SchemaChange::kColumns || fields.empty()) {
    fields.push_back({{"name", kAdded}, {"type", {"null", "long"}}});
  } else if (change == SchemaChange::kName) {
    fields[0]["name"] = kRenamed;
  } else {
    nlohmann::ordered_json text = {"null", "string"};
    bool is_text = fields[0]["type"] == text || fields[0]["type"] == "string";
    fields[0]["type"] = is_text ? nlohmann::ordered_json{"null", "long"} : text;
  }
  return schema.dump();
}

}  // namespace headrace::local
