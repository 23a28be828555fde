#include "headrace/types/internal/json_row_tree.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/types/internal/scalar_text.h"
#include "headrace/types/type_table.h"

namespace headrace::internal {

namespace ondemand = simdjson::ondemand;

namespace {

void Fold(std::string_view name, std::string* folded) {
  folded->assign(name);
  for (char& c : *folded) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string_view TypeWord(ondemand::json_type type) {
  switch (type) {
    case ondemand::json_type::array:
      return "an array";
    case ondemand::json_type::object:
      return "an object";
    case ondemand::json_type::number:
      return "a number";
    case ondemand::json_type::string:
      return "a text";
    case ondemand::json_type::boolean:
      return "a boolean";
    case ondemand::json_type::null:
      break;
  }
  return "null";
}

}  // namespace

arrow::Result<JsonRowTree::Node> JsonRowTree::Compile(const Field& field, const arrow::DataType& type, const std::string& parent,
                                                      arrow::ArrayBuilder* builder) {
  Node node;
  node.name = field.name;
  node.path = parent.empty() ? field.name : parent + "." + field.name;
  node.mode = field.mode;
  const arrow::DataType* value_type = &type;
  if (field.mode == Mode::kRepeated) {
    if (type.id() != arrow::Type::LIST) {
      return MakeError({.code = Code::kInvalidArgument, .reason = "NOT_CANONICAL", .column = node.path},
                       fmt::format("column {}: {} is not the canonical Arrow type of an ARRAY", node.path, type.ToString()));
    }
    node.list = static_cast<arrow::ListBuilder*>(builder);
    builder = node.list->value_builder();
    value_type = type.field(0)->type().get();
  }
  ARROW_RETURN_NOT_OK(CheckCanonical(field, *value_type, node.path));
  if (field.kind != TypeKind::kStruct) {
    node.scalar = std::make_unique<ScalarAppender>(field, options_, builder);
    return node;
  }
  node.structure = static_cast<arrow::StructBuilder*>(builder);
  for (size_t i = 0; i < field.fields.size(); ++i) {
    const int child = static_cast<int>(i);
    ARROW_ASSIGN_OR_RAISE(auto compiled,
                          Compile(field.fields[i], *value_type->field(child)->type(), node.path, node.structure->field_builder(child)));
    Fold(compiled.name, &folded_);
    node.by_name[folded_] = i;
    node.fields.push_back(std::move(compiled));
  }
  return node;
}

arrow::Result<std::unique_ptr<JsonRowTree>> JsonRowTree::Make(const arrow::Schema& canonical, const ParseOptions& options,
                                                              arrow::MemoryPool* pool) {
  ARROW_ASSIGN_OR_RAISE(auto table, FromArrowSchema(canonical));
  auto tree = std::make_unique<JsonRowTree>();
  tree->options_ = options;
  for (size_t i = 0; i < table.fields.size(); ++i) {
    const auto& type = canonical.field(static_cast<int>(i))->type();
    ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(type, pool));
    ARROW_ASSIGN_OR_RAISE(auto node, tree->Compile(table.fields[i], *type, "", builder.get()));
    Fold(node.name, &tree->folded_);
    tree->root_.by_name[tree->folded_] = i;
    tree->root_.fields.push_back(std::move(node));
    tree->types_.push_back(type);
    tree->builders_.push_back(std::move(builder));
  }
  return tree;
}

arrow::Status JsonRowTree::At(const Node& node, const arrow::Status& status) const {
  if (status.ok() || GetErrorInfo(status) != nullptr || status.IsCapacityError() || status.IsOutOfMemory()) return status;
  if (!node.path.empty()) return AtPlace(status, node.path, row_);
  return MakeError({.code = Code::kInvalidArgument, .reason = "BAD_ROW", .row = row_}, fmt::format("row {}: {}", row_, status.message()));
}

arrow::Status JsonRowTree::Append(std::string_view line, int64_t row) {
  row_ = row;
  const auto append = [&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto* document, document_.Open(line));
    ondemand::json_type type{};
    if (auto error = document->type().get(type)) return JsonError(error);
    if (type != ondemand::json_type::object) return arrow::Status::Invalid(fmt::format("a row is a JSON object, not {}", TypeWord(type)));
    ondemand::object object;
    if (auto error = document->get_object().get(object)) return JsonError(error);
    ARROW_RETURN_NOT_OK(AppendObject(object, &root_));
    return document_.ExpectEnd();
  };
  auto status = append();
  if (status.ok() || GetErrorInfo(status) != nullptr) return status;
  return At(root_, status.WithMessage(fmt::format("{}: {}", Quoted(line), status.message())));
}

JsonRowTree::Node* JsonRowTree::Find(Node* parent, std::string_view key, size_t expected) {
  // Rows of one maker have their keys in one order.
  if (expected < parent->fields.size() && parent->fields[expected].name == key) return &parent->fields[expected];
  Fold(key, &folded_);
  auto found = parent->by_name.find(folded_);
  return found == parent->by_name.end() ? nullptr : &parent->fields[found->second];
}

arrow::Status JsonRowTree::AppendObject(ondemand::object object, Node* node) {
  const uint64_t this_object = ++objects_;
  size_t expected = 0;
  for (auto item : object) {
    ondemand::field field;
    if (auto error = std::move(item).get(field)) return At(*node, JsonError(error));
    std::string_view key;
    if (auto error = field.unescaped_key().get(key)) return At(*node, JsonError(error));
    Node* child = Find(node, key, expected++);
    if (child == nullptr) {
      if (!options_.ignore_unknown_keys) {
        return At(*node, arrow::Status::Invalid(fmt::format("no column has the name of the key {}", Quoted(key))));
      }
      ARROW_RETURN_NOT_OK(At(*node, WalkJson(field.value(), kMaxJsonNesting)));
      continue;
    }
    if (child->seen == this_object) {
      return At(*child, arrow::Status::Invalid(fmt::format("the key {} appears twice (upper and lower case are the same)", Quoted(key))));
    }
    child->seen = this_object;
    ARROW_RETURN_NOT_OK(AppendColumn(field.value(), child));
  }
  for (Node& child : node->fields) {
    if (child.seen != this_object) ARROW_RETURN_NOT_OK(AppendMissing(&child));
  }
  return arrow::Status::OK();
}

arrow::Status JsonRowTree::AppendColumn(ondemand::value value, Node* node) {
  ondemand::json_type type{};
  if (auto error = value.type().get(type)) return At(*node, JsonError(error));
  if (type == ondemand::json_type::null) {
    ARROW_RETURN_NOT_OK(At(*node, TakeNull(value)));
    return AppendNull(node);
  }
  if (node->mode != Mode::kRepeated) return AppendValue(value, type, node);
  if (type != ondemand::json_type::array) {
    return At(*node, arrow::Status::Invalid(fmt::format("{} in a REPEATED column, which takes an array", TypeWord(type))));
  }
  return AppendArray(value, node);
}

arrow::Status JsonRowTree::AppendArray(ondemand::value value, Node* node) {
  ondemand::array array;
  if (auto error = value.get_array().get(array)) return At(*node, JsonError(error));
  ARROW_RETURN_NOT_OK(node->list->Append());
  for (auto item : array) {
    ondemand::value element;
    if (auto error = item.get(element)) return At(*node, JsonError(error));
    ondemand::json_type type{};
    if (auto error = element.type().get(type)) return At(*node, JsonError(error));
    if (type == ondemand::json_type::null) return At(*node, arrow::Status::Invalid("an array holds a null, which BigQuery cannot store"));
    ARROW_RETURN_NOT_OK(AppendValue(element, type, node));
  }
  return arrow::Status::OK();
}

arrow::Status JsonRowTree::AppendValue(ondemand::value value, ondemand::json_type type, Node* node) {
  if (node->structure == nullptr) return At(*node, AppendScalar(value, type, node));
  if (type != ondemand::json_type::object) {
    return At(*node, arrow::Status::Invalid(fmt::format("{} in a STRUCT, which takes an object", TypeWord(type))));
  }
  ondemand::object object;
  if (auto error = value.get_object().get(object)) return At(*node, JsonError(error));
  ARROW_RETURN_NOT_OK(node->structure->Append());
  return AppendObject(object, node);
}

arrow::Status JsonRowTree::AppendScalar(ondemand::value value, ondemand::json_type type, Node* node) {
  switch (type) {
    case ondemand::json_type::string: {
      std::string_view text;
      if (auto error = value.get_string().get(text)) return JsonError(error);
      return node->scalar->Append(ValueSource::kText, text);
    }
    case ondemand::json_type::number: {
      ARROW_ASSIGN_OR_RAISE(auto token, NumberToken(value));
      const bool integer = token.find_first_of(".eE") == std::string_view::npos;
      return node->scalar->Append(integer ? ValueSource::kInteger : ValueSource::kDecimal, token);
    }
    case ondemand::json_type::boolean: {
      ARROW_ASSIGN_OR_RAISE(bool truth, BoolOf(value));
      return node->scalar->Append(ValueSource::kBool, truth ? "true" : "false");
    }
    case ondemand::json_type::object: {
      ondemand::object object;
      std::string_view text;
      if (auto error = value.get_object().get(object)) return JsonError(error);
      if (auto error = object.raw_json().get(text)) return JsonError(error);
      return node->scalar->Append(ValueSource::kObject, text.substr(0, text.rfind('}') + 1));
    }
    case ondemand::json_type::array: {
      ondemand::array array;
      std::string_view text;
      if (auto error = value.get_array().get(array)) return JsonError(error);
      if (auto error = array.raw_json().get(text)) return JsonError(error);
      return node->scalar->Append(ValueSource::kArray, text.substr(0, text.rfind(']') + 1));
    }
    case ondemand::json_type::null:
      break;
  }
  return JsonError(simdjson::TAPE_ERROR);
}

arrow::Status JsonRowTree::AppendNull(Node* node) {
  if (node->mode == Mode::kRepeated) return node->list->Append();  // a null array reads as an empty one
  if (node->mode == Mode::kRequired) return At(*node, arrow::Status::Invalid("null in a REQUIRED column"));
  if (node->scalar) return node->scalar->AppendNull();
  ARROW_RETURN_NOT_OK(node->structure->Append(false));
  for (Node& child : node->fields) ARROW_RETURN_NOT_OK(AppendBelowNull(&child));
  return arrow::Status::OK();
}

arrow::Status JsonRowTree::AppendMissing(Node* node) {
  if (node->mode == Mode::kRequired) return At(*node, arrow::Status::Invalid("no value for a REQUIRED column"));
  return AppendNull(node);
}

arrow::Status JsonRowTree::AppendBelowNull(Node* node) {
  if (node->mode != Mode::kRequired) return AppendNull(node);
  if (node->scalar) return node->scalar->AppendNothing();
  return node->structure->AppendEmptyValue();
}

arrow::Result<arrow::ArrayVector> JsonRowTree::Finish() {
  arrow::ArrayVector columns;
  for (size_t i = 0; i < builders_.size(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto column, builders_[i]->Finish());
    // Builders make up their types anew; this one has the names and the marks.
    auto data = column->data()->Copy();
    data->type = types_[i];
    columns.push_back(arrow::MakeArray(data));
  }
  return columns;
}

}  // namespace headrace::internal
