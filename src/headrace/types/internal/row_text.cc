#include "headrace/types/internal/row_text.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/types/json_text.h"
#include "headrace/types/type_table.h"

namespace headrace::internal {

arrow::Result<RowText::Node> RowText::Compile(const Field& field, const arrow::Field& canonical, const std::string& parent, TextForm form) {
  Node node;
  node.path = parent.empty() ? field.name : parent + "." + field.name;
  AppendJsonString(field.name, &node.key);
  node.key.push_back(':');
  node.repeated = field.mode == Mode::kRepeated;
  node.value_type = canonical.type();
  if (node.repeated) {
    if (canonical.type()->id() != arrow::Type::LIST) {
      return MakeError({.code = Code::kInvalidArgument, .reason = "NOT_CANONICAL", .column = node.path},
                       fmt::format("column {}: {} is not the canonical Arrow type of an ARRAY", node.path, canonical.type()->ToString()));
    }
    node.value_type = canonical.type()->field(0)->type();
  }
  ARROW_RETURN_NOT_OK(CheckCanonical(field, *node.value_type, node.path));
  if (field.kind != TypeKind::kStruct) {
    node.scalar = std::make_unique<ScalarText>(field, *node.value_type, form);
    return node;
  }
  for (size_t i = 0; i < field.fields.size(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto child, Compile(field.fields[i], *node.value_type->field(static_cast<int>(i)), node.path, form));
    node.fields.push_back(std::move(child));
  }
  return node;
}

arrow::Result<std::unique_ptr<RowText>> RowText::Make(std::shared_ptr<arrow::Schema> canonical, RowShape shape, TextForm form) {
  ARROW_ASSIGN_OR_RAISE(auto table, FromArrowSchema(*canonical));
  std::unique_ptr<RowText> row(new RowText(canonical, shape));
  for (size_t i = 0; i < table.fields.size(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto node, Compile(table.fields[i], *canonical->field(static_cast<int>(i)), "", form));
    row->fields_.push_back(std::move(node));
  }
  return row;
}

void RowText::BindNode(std::shared_ptr<arrow::Array> array, Node* node) {
  if (node->repeated) {
    node->lists = std::move(array);
    node->values = static_cast<const arrow::ListArray&>(*node->lists).values();
  } else {
    node->values = std::move(array);
  }
  for (size_t i = 0; i < node->fields.size(); ++i) {
    BindNode(static_cast<const arrow::StructArray&>(*node->values).field(static_cast<int>(i)), &node->fields[i]);
  }
}

arrow::Status RowText::Bind(const arrow::RecordBatch& batch) {
  // Types decide how memory is read, so a batch of another schema must not get through.
  if (batch.num_columns() != schema_->num_fields()) return arrow::Status::Invalid("the batch has other columns than the writer's schema");
  for (int i = 0; i < batch.num_columns(); ++i) {
    if (!batch.column(i)->type()->Equals(*schema_->field(i)->type())) {
      return arrow::Status::Invalid(fmt::format("column {} of the batch is {}, the writer's is {}", schema_->field(i)->name(),
                                                batch.column(i)->type()->ToString(), schema_->field(i)->type()->ToString()));
    }
    BindNode(batch.column(i), &fields_[static_cast<size_t>(i)]);
  }
  return arrow::Status::OK();
}

arrow::Status RowText::Append(int64_t index, int64_t row, std::string* out) {
  row_ = row;
  return AppendFields(fields_, index, out);
}

arrow::Status RowText::AppendFields(const std::vector<Node>& fields, int64_t index, std::string* out) {
  const bool cells = shape_ == RowShape::kCells;
  *out += cells ? "{\"f\":[" : "{";
  bool first = true;
  for (const Node& node : fields) {
    if (!first) out->push_back(',');
    first = false;
    *out += cells ? std::string_view("{\"v\":") : std::string_view(node.key);
    ARROW_RETURN_NOT_OK(AppendColumn(node, index, out));
    if (cells) out->push_back('}');
  }
  *out += cells ? "]}" : "}";
  return arrow::Status::OK();
}

arrow::Status RowText::AppendColumn(const Node& node, int64_t index, std::string* out) {
  if (!node.repeated) {
    if (node.values->IsValid(index)) return AppendValue(node, index, out);
    *out += "null";
    return arrow::Status::OK();
  }
  const auto& lists = static_cast<const arrow::ListArray&>(*node.lists);
  const bool cells = shape_ == RowShape::kCells;
  out->push_back('[');
  // A null array reads as an empty one.
  const int64_t count = lists.IsValid(index) ? lists.value_length(index) : 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t element = lists.value_offset(index) + i;
    if (i > 0) out->push_back(',');
    if (node.values->IsNull(element)) {
      return AtPlace(arrow::Status::Invalid("an array holds a null, which BigQuery cannot store"), node.path, row_);
    }
    if (cells) *out += "{\"v\":";
    ARROW_RETURN_NOT_OK(AppendValue(node, element, out));
    if (cells) out->push_back('}');
  }
  out->push_back(']');
  return arrow::Status::OK();
}

arrow::Status RowText::AppendValue(const Node& node, int64_t index, std::string* out) {
  if (!node.scalar) return AppendFields(node.fields, index, out);
  auto status = node.scalar->AppendJson(*node.values, index, out);
  if (status.ok()) return status;
  return AtPlace(status, node.path, row_);
}

}  // namespace headrace::internal
