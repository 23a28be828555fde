#include <optional>

#include <arrow/extension_type.h>
#include <fmt/format.h>

#include "headrace/types/internal/canonical_node.h"
#include "headrace/types/type_table.h"

namespace headrace::internal {
namespace {

std::shared_ptr<arrow::DataType> Bare(std::shared_ptr<arrow::DataType> type) {
  while (true) {
    if (type->id() == arrow::Type::DICTIONARY) {
      type = static_cast<const arrow::DictionaryType&>(*type).value_type();
    } else if (type->id() == arrow::Type::EXTENSION) {
      type = static_cast<const arrow::ExtensionType&>(*type).storage_type();
    } else {
      return type;
    }
  }
}

bool IsText(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING || type.id() == arrow::Type::STRING_VIEW;
}

bool IsList(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::LIST_VIEW:
    case arrow::Type::LARGE_LIST_VIEW:
      return true;
    default:
      return false;
  }
}

bool IsDecimal(TypeKind kind) { return kind == TypeKind::kNumeric || kind == TypeKind::kBigNumeric; }

// The types that some servers send as text.
bool ComesAsText(TypeKind kind) {
  return IsDecimal(kind) || kind == TypeKind::kDate || kind == TypeKind::kTime || kind == TypeKind::kDatetime ||
         kind == TypeKind::kTimestamp || kind == TypeKind::kInterval || kind == TypeKind::kRange;
}

// What makes `kind` of a value that is not nested; nothing when nothing does.
std::optional<CanonicalStep> LeafStep(const arrow::Field& wire, const arrow::DataType& source, TypeKind kind) {
  if (kind == TypeKind::kTimestamp12) {
    const bool zoned = source.id() == arrow::Type::TIMESTAMP && !static_cast<const arrow::TimestampType&>(source).timezone().empty();
    return IsText(source) || zoned ? std::optional(CanonicalStep::kPicos) : std::nullopt;
  }
  const auto wire_kind = KindOfCanonical(wire);
  if (!wire_kind) return std::nullopt;
  if (kind == TypeKind::kTimestamp && *wire_kind == TypeKind::kTimestamp12) return CanonicalStep::kPicos;
  if (kind == TypeKind::kInterval && source.id() == arrow::Type::INTERVAL_MONTH_DAY_NANO) return CanonicalStep::kMonthDayNano;
  if (IsText(source)) {
    if (kind == TypeKind::kString || kind == TypeKind::kGeography || kind == TypeKind::kJson) return CanonicalStep::kCast;
    return ComesAsText(kind) ? std::optional(CanonicalStep::kParse) : std::nullopt;
  }
  if (source.id() == arrow::Type::NA) return CanonicalStep::kCast;
  if (*wire_kind != kind && !(IsDecimal(*wire_kind) && IsDecimal(kind))) return std::nullopt;
  return CanonicalStep::kCast;
}

Field ChildField(const Field& field, size_t i) {
  if (field.kind == TypeKind::kStruct) return field.fields[i];
  if (field.kind == TypeKind::kRange) return {.name = i == 0 ? "start" : "end", .kind = field.range_element};
  // INTERVAL's parts are plain integers, narrower than INT64.
  static constexpr const char* kParts[] = {"months", "days", "microseconds"};
  return {.name = kParts[i], .kind = TypeKind::kInt64, .mode = Mode::kRequired};
}

}  // namespace

bool SameLayout(const arrow::DataType& a, const arrow::DataType& b) {
  if (a.id() != b.id()) return false;
  if (a.id() != arrow::Type::STRUCT && a.id() != arrow::Type::LIST) return a.Equals(b);
  if (a.num_fields() != b.num_fields()) return false;
  for (int i = 0; i < a.num_fields(); ++i) {
    if (!SameLayout(*a.field(i)->type(), *b.field(i)->type())) return false;
  }
  return true;
}

std::vector<int> MatchFields(const arrow::FieldVector& wire, const arrow::FieldVector& target, const std::string& parent,
                             std::vector<std::string>* differences) {
  const auto path = [&](const std::string& name) { return parent.empty() ? name : parent + "." + name; };
  std::vector<bool> used(wire.size(), false);
  std::vector<int> indexes;
  for (size_t t = 0; t < target.size(); ++t) {
    int found = -1;
    for (size_t i = 0; i < wire.size() && found < 0; ++i) {
      // Mostly at the same place.
      const size_t w = (t + i) % wire.size();
      if (!used[w] && SameColumnName(wire[w]->name(), target[t]->name())) found = static_cast<int>(w);
    }
    if (found >= 0) {
      used[static_cast<size_t>(found)] = true;
    } else {
      differences->push_back(fmt::format("{}: want {}, have nothing", path(target[t]->name()), target[t]->type()->ToString()));
    }
    indexes.push_back(found);
  }
  for (size_t w = 0; w < wire.size(); ++w) {
    if (!used[w]) differences->push_back(fmt::format("{}: want nothing, have {}", path(wire[w]->name()), wire[w]->type()->ToString()));
  }
  return indexes;
}

CanonicalNode CompileCanonical(const arrow::Field& wire, const std::shared_ptr<arrow::Field>& target, const Field& field,
                               const std::string& parent, std::vector<std::string>* differences) {
  CanonicalNode node;
  node.path = parent.empty() ? field.name : parent + "." + field.name;
  node.field = field;
  node.target = target;
  node.source = Bare(wire.type());
  node.same_layout = SameLayout(*node.source, *target->type());
  const auto differs = [&] {
    differences->push_back(fmt::format("{}: want {}, have {}", node.path, target->type()->ToString(), wire.type()->ToString()));
    return node;
  };
  if (field.mode == Mode::kRepeated) {
    if (!IsList(*node.source)) return differs();
    node.step = CanonicalStep::kList;
    Field element = field;
    element.mode = Mode::kNullable;
    // The service marks the column, we mark the element.
    auto source = node.source->field(0);
    if (source->metadata() == nullptr && wire.metadata() != nullptr) source = source->WithMetadata(wire.metadata());
    node.children.push_back(CompileCanonical(*source, target->type()->field(0), element, parent, differences));
    return node;
  }
  const bool nested = target->type()->id() == arrow::Type::STRUCT;
  if (nested && node.source->id() == arrow::Type::STRUCT) {
    node.step = CanonicalStep::kStruct;
    node.child_index = MatchFields(node.source->fields(), target->type()->fields(), node.path, differences);
    for (size_t i = 0; i < node.child_index.size(); ++i) {
      if (node.child_index[i] < 0) continue;
      auto child = target->type()->field(static_cast<int>(i));
      node.children.push_back(
          CompileCanonical(*node.source->field(node.child_index[i]), child, ChildField(field, i), node.path, differences));
    }
    return node;
  }
  auto step = LeafStep(wire, *node.source, field.kind);
  if (!step) return differs();
  node.step = *step;
  return node;
}

int64_t RowPlace::RowOf(int64_t index) const {
  if (parent_ == nullptr) return first_row_ + index;
  // The last list that begins at or before the element and is not empty.
  int64_t low = 0;
  int64_t high = count_;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (offsets_[middle] <= index ? low : high) = middle;
  }
  return parent_->RowOf(low);
}

}  // namespace headrace::internal
