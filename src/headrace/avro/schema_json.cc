#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "headrace/avro/schema.h"

namespace headrace::avro {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
 public:
  Json Write(const Node& node, const std::string& space) {
    if (node.kind == Kind::kUnion) {
      Json branches = Json::array();
      for (const Node* branch : node.branches) branches.push_back(Write(*branch, space));
      return branches;
    }
    const bool named = !node.full_name.empty();
    if (named && !written_.insert(&node).second) return node.full_name;
    const bool bare = !named && node.branches.empty() && node.logical == Logical::kNone && node.sql_type.empty();
    if (bare) return std::string(KindName(node.kind));
    Json object = {{"type", std::string(KindName(node.kind))}};
    if (named) AddName(node, space, &object);
    if (node.kind == Kind::kRecord) object["fields"] = WriteFields(node, named ? SpaceOf(node.full_name) : space);
    if (node.kind == Kind::kEnum) object["symbols"] = node.symbols;
    if (node.kind == Kind::kEnum && !node.symbol_default.empty()) object["default"] = node.symbol_default;
    if (node.kind == Kind::kFixed) object["size"] = node.size;
    if (node.kind == Kind::kArray) object["items"] = Write(node.element(), space);
    if (node.kind == Kind::kMap) object["values"] = Write(node.element(), space);
    if (node.logical != Logical::kNone) object["logicalType"] = std::string(LogicalName(node.logical));
    if (node.logical == Logical::kDecimal) {
      object["precision"] = node.precision;
      object["scale"] = node.scale;
    }
    if (!node.sql_type.empty()) object["sqlType"] = node.sql_type;
    return object;
  }

 private:
  static std::string SpaceOf(const std::string& full_name) {
    const size_t dot = full_name.rfind('.');
    return dot == std::string::npos ? std::string() : full_name.substr(0, dot);
  }

  // A name without a namespace takes that of the type around it, so an empty one is written when that is not empty.
  static void AddName(const Node& node, const std::string& space, Json* object) {
    const std::string own_space = SpaceOf(node.full_name);
    (*object)["name"] = own_space.empty() ? node.full_name : node.full_name.substr(own_space.size() + 1);
    if (own_space != space) (*object)["namespace"] = own_space;
    if (!node.aliases.empty()) (*object)["aliases"] = node.aliases;
    if (!node.doc.empty()) (*object)["doc"] = node.doc;
  }

  Json WriteFields(const Node& node, const std::string& space) {
    Json fields = Json::array();
    for (const RecordField& field : node.fields) {
      Json object = {{"name", field.name}, {"type", Write(*field.type, space)}};
      if (!field.display_name.empty()) object["displayName"] = field.display_name;
      if (!field.aliases.empty()) object["aliases"] = field.aliases;
      if (!field.doc.empty()) object["doc"] = field.doc;
      if (!field.default_json.empty()) object["default"] = Json::parse(field.default_json);
      fields.push_back(std::move(object));
    }
    return fields;
  }

  std::unordered_set<const Node*> written_;
};

}  // namespace

std::string Schema::ToJson() const { return Writer().Write(*root_, "").dump(); }

}  // namespace headrace::avro
