#include "headrace/runtime/internal/row_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "headrace/types/type_table.h"

namespace headrace::internal {
namespace {

char Small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool NameLess(std::string_view a, std::string_view b) {
  return std::ranges::lexicographical_compare(a, b, [](char x, char y) { return Small(x) < Small(y); });
}

/// The Arrow type whose array class the views read values of `kind` through.
arrow::Type::type ArrowIdOf(TypeKind kind, const arrow::DataType& type) {
  switch (kind) {
    case TypeKind::kInt64:
      return arrow::Type::INT64;
    case TypeKind::kFloat64:
      return arrow::Type::DOUBLE;
    case TypeKind::kBool:
      return arrow::Type::BOOL;
    case TypeKind::kString:
    case TypeKind::kGeography:
    case TypeKind::kJson:
      return arrow::Type::STRING;
    case TypeKind::kBytes:
      return arrow::Type::BINARY;
    case TypeKind::kNumeric:
      return arrow::Type::DECIMAL128;
    case TypeKind::kBigNumeric:
      return arrow::Type::DECIMAL256;
    case TypeKind::kDate:
      return arrow::Type::DATE32;
    case TypeKind::kTime:
      return arrow::Type::TIME64;
    case TypeKind::kDatetime:
    case TypeKind::kTimestamp:
      return arrow::Type::TIMESTAMP;
    case TypeKind::kTimestamp12:
      return type.id() == arrow::Type::TIMESTAMP ? arrow::Type::TIMESTAMP : arrow::Type::STRING;
    case TypeKind::kInterval:
    case TypeKind::kRange:
    case TypeKind::kStruct:
      return arrow::Type::STRUCT;
  }
  return arrow::Type::NA;
}

arrow::Status CheckLayout(const ColumnPlan& plan, const arrow::DataType& type) {
  if (type.id() == ArrowIdOf(plan.field.kind, type)) return arrow::Status::OK();
  return MakeError({.code = Code::kInternal, .resource = "rows", .column = plan.path},
                   fmt::format("column {} is {}, but its Arrow type is {}", plan.path, TypeName(plan.field.kind), type.ToString()));
}

/// `canonical` is the field of one value: not REPEATED.
arrow::Result<ColumnPlan> CompileValue(Field field, const arrow::Field& canonical, std::string path) {
  ColumnPlan plan{.path = std::move(path), .field = std::move(field), .type = canonical.type()};
  ARROW_RETURN_NOT_OK(CheckLayout(plan, *plan.type));
  if (plan.field.kind == TypeKind::kStruct) {
    ARROW_ASSIGN_OR_RAISE(plan.fields, CompileRow(plan.type->fields(), plan.path + "."));
    return plan;
  }
  ARROW_ASSIGN_OR_RAISE(plan.text, ColumnText::Make(*canonical.WithName(plan.field.name)));
  if (plan.field.kind == TypeKind::kRange) {
    ARROW_ASSIGN_OR_RAISE(plan.fields, CompileRow(plan.type->fields(), plan.path + "."));
  }
  if (plan.field.kind == TypeKind::kInterval) {
    const auto& parts = plan.type->fields();
    const bool good = parts.size() == 3 && parts[0]->type()->id() == arrow::Type::INT32 && parts[1]->type()->id() == arrow::Type::INT32 &&
                      parts[2]->type()->id() == arrow::Type::INT64;
    if (!good) return arrow::Status::TypeError("column ", plan.path, ": an INTERVAL of type ", plan.type->ToString());
  }
  if (plan.field.kind == TypeKind::kTimestamp12 && plan.type->id() == arrow::Type::TIMESTAMP) {
    const bool nanos = static_cast<const arrow::TimestampType&>(*plan.type).unit() == arrow::TimeUnit::NANO;
    plan.units_per_second = nanos ? 1'000'000'000 : kMicrosPerSecond;
  }
  return plan;
}

arrow::Result<ColumnPlan> CompileColumn(const std::shared_ptr<arrow::Field>& canonical, const std::string& parent) {
  ARROW_ASSIGN_OR_RAISE(auto table, FromArrowSchema(arrow::Schema({canonical})));
  Field& field = table.fields[0];
  std::string path = parent + field.name;
  if (field.mode != Mode::kRepeated) return CompileValue(std::move(field), *canonical, std::move(path));
  if (canonical->type()->id() != arrow::Type::LIST) {
    return arrow::Status::TypeError("column ", path, ": an array of type ", canonical->type()->ToString());
  }
  ColumnPlan plan{.path = path, .field = field, .type = canonical->type(), .repeated = true};
  field.mode = Mode::kNullable;
  const auto& element = *static_cast<const arrow::ListType&>(*plan.type).value_field();
  ARROW_ASSIGN_OR_RAISE(auto compiled, CompileValue(std::move(field), element, std::move(path)));
  plan.element = std::make_unique<ColumnPlan>(std::move(compiled));
  return plan;
}

}  // namespace

int RowPlan::Find(std::string_view name) const {
  auto name_of = [this](int column) { return std::string_view(columns[static_cast<size_t>(column)].field.name); };
  auto found = std::ranges::lower_bound(by_name, name, NameLess, name_of);
  return found != by_name.end() && SameColumnName(name_of(*found), name) ? *found : -1;
}

arrow::Result<RowPlan> CompileRow(const std::vector<std::shared_ptr<arrow::Field>>& canonical, const std::string& parent) {
  RowPlan row;
  for (const auto& field : canonical) {
    ARROW_ASSIGN_OR_RAISE(auto column, CompileColumn(field, parent));
    row.columns.push_back(std::move(column));
  }
  row.by_name.resize(row.columns.size());
  std::iota(row.by_name.begin(), row.by_name.end(), 0);
  std::ranges::sort(row.by_name, NameLess, [&](int i) { return std::string_view(row.columns[static_cast<size_t>(i)].field.name); });
  return row;
}

}  // namespace headrace::internal
