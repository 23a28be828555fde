#include "headrace/avro/schema.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace headrace::avro {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 14> kKindNames = {"null",   "boolean", "int",  "long",  "float", "double", "bytes",
                                                         "string", "record",  "enum", "fixed", "array", "map",    "union"};
constexpr std::array<std::string_view, 15> kLogicalNames = {"",
                                                            "decimal",
                                                            "big-decimal",
                                                            "uuid",
                                                            "date",
                                                            "time-millis",
                                                            "time-micros",
                                                            "timestamp-millis",
                                                            "timestamp-micros",
                                                            "timestamp-nanos",
                                                            "local-timestamp-millis",
                                                            "local-timestamp-micros",
                                                            "local-timestamp-nanos",
                                                            "duration",
                                                            "datetime"};

// An Avro type inside another takes up to five levels of JSON: record, "fields", field, union, "type" of a type.
constexpr int kJsonLevelsPerType = 5;
// Values of the JSON text, which bound the memory that its tree takes; a field with its type is five to fifteen of them.
constexpr int64_t kMaxJsonValues = 2'000'000;
// 2^30: what the specification's implementations can hold, and far below what would overflow.
constexpr int64_t kMaxFixedBytes = int64_t{1} << 30;

arrow::Status Wrong(const std::string& where, std::string_view message) {
  ErrorInfo info{.code = Code::kInvalidArgument, .reason = "INVALID_AVRO_SCHEMA", .column = where};
  return MakeError(std::move(info),
                   where.empty() ? fmt::format("Avro schema: {}", message) : fmt::format("Avro schema, {}: {}", where, message));
}

// A look at the text before a tree is built of it.
arrow::Status CheckSize(std::string_view text) {
  if (static_cast<int64_t>(text.size()) > Schema::kMaxTextBytes) {
    return Wrong("", fmt::format("{} bytes are more than the {} that are read", text.size(), Schema::kMaxTextBytes));
  }
  int depth = 0;
  int64_t values = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == '{' || c == '[' || c == ',') ++values;
    if (depth > Schema::kMaxDepth * kJsonLevelsPerType) return Wrong("", fmt::format("more than {} levels of JSON", depth - 1));
    if (values > kMaxJsonValues) return Wrong("", fmt::format("more than {} JSON values", kMaxJsonValues));
  }
  return arrow::Status::OK();
}

std::optional<Kind> KindOf(std::string_view name) {
  for (size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == name) return static_cast<Kind>(i);
  }
  return std::nullopt;
}

bool IsPrimitive(Kind kind) { return kind <= Kind::kString; }
bool IsNamed(Kind kind) { return kind == Kind::kRecord || kind == Kind::kEnum || kind == Kind::kFixed; }

bool FitsType(Logical logical, const Node& node) {
  switch (logical) {
    case Logical::kNone:
      return true;
    case Logical::kDecimal:
      return node.kind == Kind::kBytes || node.kind == Kind::kFixed;
    case Logical::kBigDecimal:
      return node.kind == Kind::kBytes;
    case Logical::kUuid:
      return node.kind == Kind::kString || (node.kind == Kind::kFixed && node.size == 16);
    case Logical::kDate:
    case Logical::kTimeMillis:
      return node.kind == Kind::kInt;
    case Logical::kDuration:
      return node.kind == Kind::kFixed && node.size == 12;
    case Logical::kDatetime:
      return node.kind == Kind::kString;
    default:
      return node.kind == Kind::kLong;
  }
}

// The encoded size from below, once for each node. A node that is still being measured contains itself: nothing is known of it, and zero
// is always right from below. A union or an array takes a byte whatever is in it.
void Measure(Node* node, std::unordered_map<const Node*, int>* state) {
  constexpr int kOpen = 1;
  constexpr int kDone = 2;
  constexpr int64_t kEnough = int64_t{1} << 31;
  if ((*state)[node] != 0) return;
  (*state)[node] = kOpen;
  switch (node->kind) {
    case Kind::kNull:
      node->always_empty = true;
      break;
    case Kind::kFloat:
      node->min_bytes = 4;
      break;
    case Kind::kDouble:
      node->min_bytes = 8;
      break;
    case Kind::kFixed:
      node->min_bytes = node->size;
      node->always_empty = node->size == 0;
      break;
    case Kind::kRecord: {
      bool always_empty = true;
      int64_t bytes = 0;
      for (const RecordField& field : node->fields) {
        // The parser owns the nodes and nobody else has seen them yet.
        Measure(const_cast<Node*>(field.type), state);
        bytes = std::min(kEnough, bytes + field.type->min_bytes);
        always_empty = always_empty && field.type->always_empty && (*state)[field.type] == kDone;
      }
      node->min_bytes = bytes;
      node->always_empty = always_empty;
      break;
    }
    case Kind::kArray:
    case Kind::kMap:
      Measure(const_cast<Node*>(node->branches.front()), state);
      node->min_bytes = 1;
      break;
    case Kind::kUnion: {
      int64_t least = node->branches.empty() ? 0 : kEnough;
      for (const Node* branch : node->branches) {
        Measure(const_cast<Node*>(branch), state);
        least = std::min(least, branch->min_bytes);
      }
      node->min_bytes = 1 + least;
      break;
    }
    default:
      node->min_bytes = 1;
  }
  (*state)[node] = kDone;
}

}  // namespace

std::string_view KindName(Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }
std::string_view LogicalName(Logical logical) { return kLogicalNames[static_cast<size_t>(logical)]; }

class SchemaParser {
 public:
  arrow::Result<std::shared_ptr<const Schema>> Parse(const Json& json) {
    ARROW_ASSIGN_OR_RAISE(Node * root, ParseType(json, "", "", 1));
    schema_->root_ = root;
    std::unordered_map<const Node*, int> state;
    // A name is defined before it is used, so in this order the recursion goes no deeper than the text.
    for (const auto& node : schema_->nodes_) Measure(node.get(), &state);
    return schema_;
  }

 private:
  Node* Add(Kind kind) {
    schema_->nodes_.push_back(std::make_unique<Node>());
    schema_->nodes_.back()->kind = kind;
    return schema_->nodes_.back().get();
  }

  arrow::Status CountName(const std::string& where) {
    if (++names_ <= Schema::kMaxNames) return arrow::Status::OK();
    return Wrong(where, fmt::format("more than {} names", Schema::kMaxNames));
  }

  arrow::Result<Node*> ParseType(const Json& json, const std::string& space, const std::string& where, int depth) {
    if (depth > Schema::kMaxDepth) return Wrong(where, fmt::format("more than {} types inside each other", Schema::kMaxDepth));
    if (json.is_string()) return ParseName(json.get_ref<const std::string&>(), space, where);
    if (json.is_array()) return ParseUnion(json, space, where, depth);
    if (!json.is_object()) return Wrong(where, "a type is a name, an object or an array");
    auto type = json.find("type");
    if (type == json.end()) return Wrong(where, "an object without \"type\"");
    if (!type->is_string()) return ParseType(*type, space, where, depth + 1);
    const auto& name = type->get_ref<const std::string&>();
    auto kind = name == "error" ? Kind::kRecord : KindOf(name);
    if (!kind || *kind == Kind::kUnion) return ParseName(name, space, where);
    Node* node = Add(*kind);
    ARROW_RETURN_NOT_OK(SetText(json, "sqlType", where, &node->sql_type));
    switch (*kind) {
      case Kind::kRecord:
        ARROW_RETURN_NOT_OK(ParseRecord(json, space, where, depth, node));
        break;
      case Kind::kEnum:
        ARROW_RETURN_NOT_OK(ParseEnum(json, space, where, node));
        break;
      case Kind::kFixed:
        ARROW_RETURN_NOT_OK(ParseFixed(json, space, where, node));
        break;
      case Kind::kArray:
        ARROW_RETURN_NOT_OK(ParseElement(json, "items", space, where, depth, node));
        break;
      case Kind::kMap:
        ARROW_RETURN_NOT_OK(ParseElement(json, "values", space, where, depth, node));
        break;
      default:
        break;
    }
    SetLogical(json, node);
    return node;
  }

  arrow::Result<Node*> ParseName(const std::string& name, const std::string& space, const std::string& where) {
    auto kind = KindOf(name);
    if (kind && IsPrimitive(*kind)) return Add(*kind);
    auto found = named_.end();
    if (name.find('.') == std::string::npos && !space.empty()) found = named_.find(space + "." + name);
    if (found == named_.end()) found = named_.find(name);
    if (found == named_.end()) return Wrong(where, fmt::format("the type '{}' is not defined before it is used", name));
    return found->second;
  }

  arrow::Result<Node*> ParseUnion(const Json& json, const std::string& space, const std::string& where, int depth) {
    Node* node = Add(Kind::kUnion);
    std::set<std::string> seen;
    for (const Json& item : json) {
      ARROW_ASSIGN_OR_RAISE(Node * branch, ParseType(item, space, where, depth + 1));
      if (branch->kind == Kind::kUnion) return Wrong(where, "a union directly in a union");
      std::string name = IsNamed(branch->kind) ? branch->full_name : std::string(KindName(branch->kind));
      if (!seen.insert(name).second) return Wrong(where, fmt::format("a union has the type '{}' twice", name));
      node->branches.push_back(branch);
    }
    if (node->branches.empty()) return Wrong(where, "a union without types");
    return node;
  }

  arrow::Status ParseElement(const Json& json, const char* key, const std::string& space, const std::string& where, int depth, Node* node) {
    auto element = json.find(key);
    if (element == json.end()) return Wrong(where, fmt::format("{} without \"{}\"", KindName(node->kind), key));
    ARROW_ASSIGN_OR_RAISE(Node * type, ParseType(*element, space, where, depth + 1));
    node->branches.push_back(type);
    return arrow::Status::OK();
  }

  arrow::Status ParseRecord(const Json& json, const std::string& space, const std::string& where, int depth, Node* node) {
    ARROW_ASSIGN_OR_RAISE(std::string own_space, DefineName(json, space, where, node));
    auto fields = json.find("fields");
    if (fields == json.end() || !fields->is_array()) return Wrong(where, fmt::format("the record {} without \"fields\"", node->full_name));
    std::unordered_set<std::string> seen;
    for (const Json& item : *fields) {
      ARROW_RETURN_NOT_OK(CountName(where));
      RecordField field;
      if (!item.is_object()) return Wrong(where, fmt::format("a field of {} is no object", node->full_name));
      ARROW_RETURN_NOT_OK(SetText(item, "name", where, &field.name));
      if (field.name.empty()) return Wrong(where, fmt::format("a field of {} has no name", node->full_name));
      const std::string path = where.empty() ? field.name : where + "." + field.name;
      if (!seen.insert(field.name).second) return Wrong(path, fmt::format("the record {} has the field twice", node->full_name));
      ARROW_RETURN_NOT_OK(SetText(item, "displayName", path, &field.display_name));
      ARROW_RETURN_NOT_OK(SetText(item, "doc", path, &field.doc));
      ARROW_RETURN_NOT_OK(SetAliases(item, path, &field.aliases));
      if (auto value = item.find("default"); value != item.end()) field.default_json = value->dump();
      auto type = item.find("type");
      if (type == item.end()) return Wrong(path, "a field without \"type\"");
      ARROW_ASSIGN_OR_RAISE(field.type, ParseType(*type, own_space, path, depth + 1));
      node->fields.push_back(std::move(field));
    }
    return arrow::Status::OK();
  }

  arrow::Status ParseEnum(const Json& json, const std::string& space, const std::string& where, Node* node) {
    ARROW_RETURN_NOT_OK(DefineName(json, space, where, node));
    auto symbols = json.find("symbols");
    if (symbols == json.end() || !symbols->is_array()) return Wrong(where, fmt::format("the enum {} without \"symbols\"", node->full_name));
    std::unordered_set<std::string> seen;
    for (const Json& symbol : *symbols) {
      ARROW_RETURN_NOT_OK(CountName(where));
      if (!symbol.is_string()) return Wrong(where, fmt::format("a symbol of {} is no text", node->full_name));
      node->symbols.push_back(symbol.get<std::string>());
      if (!seen.insert(node->symbols.back()).second) {
        return Wrong(where, fmt::format("the enum {} has the symbol '{}' twice", node->full_name, node->symbols.back()));
      }
    }
    return SetText(json, "default", where, &node->symbol_default);
  }

  arrow::Status ParseFixed(const Json& json, const std::string& space, const std::string& where, Node* node) {
    ARROW_RETURN_NOT_OK(DefineName(json, space, where, node));
    auto size = json.find("size");
    if (size == json.end() || !size->is_number_unsigned() || size->get<uint64_t>() > static_cast<uint64_t>(kMaxFixedBytes)) {
      return Wrong(where, fmt::format("the fixed {} needs a \"size\" from 0 to {}", node->full_name, kMaxFixedBytes));
    }
    node->size = size->get<int64_t>();
    return arrow::Status::OK();
  }

  // Gives the named type its full name and answers the namespace that holds inside it.
  arrow::Result<std::string> DefineName(const Json& json, const std::string& space, const std::string& where, Node* node) {
    ARROW_RETURN_NOT_OK(CountName(where));
    std::string name;
    std::string own_space = space;
    ARROW_RETURN_NOT_OK(SetText(json, "name", where, &name));
    if (json.contains("namespace")) ARROW_RETURN_NOT_OK(SetText(json, "namespace", where, &own_space));
    if (auto dot = name.rfind('.'); dot != std::string::npos) {
      own_space = name.substr(0, dot);
      name = name.substr(dot + 1);
    }
    if (name.empty()) return Wrong(where, fmt::format("a type {} has no name", KindName(node->kind)));
    node->full_name = own_space.empty() ? name : own_space + "." + name;
    if (!named_.emplace(node->full_name, node).second) return Wrong(where, fmt::format("the type '{}' is defined twice", node->full_name));
    ARROW_RETURN_NOT_OK(SetText(json, "doc", where, &node->doc));
    ARROW_RETURN_NOT_OK(SetAliases(json, where, &node->aliases));
    return own_space;
  }

  static arrow::Status SetText(const Json& json, const char* key, const std::string& where, std::string* text) {
    auto found = json.find(key);
    if (found == json.end() || found->is_null()) return arrow::Status::OK();
    if (!found->is_string()) return Wrong(where, fmt::format("\"{}\" is no text", key));
    *text = found->get<std::string>();
    return arrow::Status::OK();
  }

  static arrow::Status SetAliases(const Json& json, const std::string& where, std::vector<std::string>* aliases) {
    auto found = json.find("aliases");
    if (found == json.end() || found->is_null()) return arrow::Status::OK();
    if (!found->is_array()) return Wrong(where, "\"aliases\" is no array");
    for (const Json& alias : *found) {
      if (!alias.is_string()) return Wrong(where, "an alias is no text");
      aliases->push_back(alias.get<std::string>());
    }
    return arrow::Status::OK();
  }

  static void SetLogical(const Json& json, Node* node) {
    auto found = json.find("logicalType");
    if (found == json.end() || !found->is_string()) return;
    for (size_t i = 1; i < kLogicalNames.size(); ++i) {
      if (kLogicalNames[i] != found->get_ref<const std::string&>()) continue;
      const auto logical = static_cast<Logical>(i);
      if (!FitsType(logical, *node)) return;
      if (logical == Logical::kDecimal && !SetDecimal(json, node)) return;
      node->logical = logical;
    }
  }

  static bool SetDecimal(const Json& json, Node* node) {
    auto precision = json.find("precision");
    auto scale = json.find("scale");
    // Beyond any number of digits that a decimal of ours holds; keeps the numbers in an int.
    constexpr uint64_t kMost = 100'000;
    if (precision == json.end() || !precision->is_number_unsigned() || precision->get<uint64_t>() - 1 >= kMost) return false;
    if (scale != json.end() && (!scale->is_number_unsigned() || scale->get<uint64_t>() > precision->get<uint64_t>())) return false;
    node->precision = precision->get<int>();
    node->scale = scale == json.end() ? 0 : scale->get<int>();
    return true;
  }

  std::shared_ptr<Schema> schema_{new Schema()};
  std::unordered_map<std::string, Node*> named_;
  int64_t names_ = 0;
};

arrow::Result<std::shared_ptr<const Schema>> Schema::Parse(std::string_view text) {
  ARROW_RETURN_NOT_OK(CheckSize(text));
  // A bare name is a schema too, with or without its quotes: files hold `"string"`, people write `string`.
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    if (auto kind = KindOf(text); kind && IsPrimitive(*kind)) return SchemaParser().Parse(Json(std::string(text)));
    return Wrong("", "the text is no JSON");
  }
  return SchemaParser().Parse(json);
}

Optional SplitOptional(const Node& node) {
  if (node.kind == Kind::kNull) return {};
  if (node.kind != Kind::kUnion) return {.value = &node};
  Optional result;
  for (size_t i = 0; i < node.branches.size(); ++i) {
    if (node.branches[i]->kind == Kind::kNull) {
      result.null_branch = static_cast<int>(i);
    } else if (result.value != nullptr) {
      return {};
    } else {
      result.value = node.branches[i];
      result.value_branch = static_cast<int>(i);
    }
  }
  return result;
}

}  // namespace headrace::avro
