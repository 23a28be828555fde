#include "headrace/runtime/row_view.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "headrace/runtime/internal/row_plan.h"
#include "headrace/types/json_text.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

/// Safe where ValueView::Check was: a plan's kind says which class its arrays have (internal/row_plan.cc).
template <typename Array>
const Array& As(const arrow::Array* array) {
  return static_cast<const Array&>(*array);
}

}  // namespace

arrow::Status ValueView::CheckExists() const {
  if (plan_ != nullptr) return arrow::Status::OK();
  const std::string what = missing_.empty() ? fmt::format("at index {}", index_) : std::string(Quoted(missing_));
  return MakeError({.code = Code::kNotFound,
                    .resource = "rows",
                    .reason = missing_.empty() ? "OUT_OF_BOUNDS" : "NO_SUCH_COLUMN",
                    .row = row_,
                    .column = std::string(missing_)},
                   fmt::format("there is no {} {}", missing_.empty() ? "column or element" : "column", what));
}

arrow::Status ValueView::Refuse(std::string_view wanted) const {
  const bool repeated = plan_->repeated;
  return MakeError({.code = Code::kInvalidArgument, .resource = "rows", .reason = "WRONG_TYPE", .row = row_, .column = plan_->path},
                   fmt::format("column {} is {}{}{}, and was asked for as {}", plan_->path, repeated ? "ARRAY<" : "",
                               TypeName(plan_->field.kind), repeated ? ">" : "", wanted));
}

arrow::Status ValueView::Check(TypeKind kind) const {
  if (plan_ == nullptr) return CheckExists();
  if (plan_->repeated || plan_->field.kind != kind) return Refuse(TypeName(kind));
  if (!array_->IsNull(index_)) return arrow::Status::OK();
  return MakeError({.code = Code::kInvalidArgument, .resource = "rows", .reason = "NULL_VALUE", .row = row_, .column = plan_->path},
                   fmt::format("column {} is null: ask is_null() first, or use OrNull", plan_->path));
}

arrow::Result<int64_t> ValueView::Int64() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kInt64));
  return As<arrow::Int64Array>(array_).Value(index_);
}

arrow::Result<double> ValueView::Float64() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kFloat64));
  return As<arrow::DoubleArray>(array_).Value(index_);
}

arrow::Result<bool> ValueView::Bool() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kBool));
  return As<arrow::BooleanArray>(array_).Value(index_);
}

arrow::Result<std::string_view> ValueView::String() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kString));
  return As<arrow::StringArray>(array_).GetView(index_);
}

arrow::Result<std::string_view> ValueView::Bytes() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kBytes));
  return As<arrow::BinaryArray>(array_).GetView(index_);
}

arrow::Result<arrow::Decimal128> ValueView::Numeric() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kNumeric));
  return arrow::Decimal128(As<arrow::Decimal128Array>(array_).GetValue(index_));
}

arrow::Result<arrow::Decimal256> ValueView::BigNumeric() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kBigNumeric));
  return arrow::Decimal256(As<arrow::Decimal256Array>(array_).GetValue(index_));
}

arrow::Result<int32_t> ValueView::Date() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kDate));
  return As<arrow::Date32Array>(array_).Value(index_);
}

arrow::Result<int64_t> ValueView::Time() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kTime));
  return As<arrow::Time64Array>(array_).Value(index_);
}

arrow::Result<int64_t> ValueView::Datetime() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kDatetime));
  return As<arrow::TimestampArray>(array_).Value(index_);
}

arrow::Result<int64_t> ValueView::Timestamp() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kTimestamp));
  return As<arrow::TimestampArray>(array_).Value(index_);
}

arrow::Result<PicosTimestamp> ValueView::Timestamp12() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kTimestamp12));
  if (plan_->units_per_second == 0) {
    auto parsed = ParsePicosTimestamp(As<arrow::StringArray>(array_).GetView(index_));
    return parsed.ok() ? parsed : WithContext(parsed.status(), fmt::format("column {}", plan_->path));
  }
  const int64_t units = As<arrow::TimestampArray>(array_).Value(index_);
  int64_t seconds = units / plan_->units_per_second;
  int64_t rest = units % plan_->units_per_second;
  if (rest < 0) {
    rest += plan_->units_per_second;
    --seconds;
  }
  return PicosTimestamp{.seconds = seconds, .picoseconds = rest * (1'000'000'000'000 / plan_->units_per_second)};
}

arrow::Result<std::string_view> ValueView::Geography() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kGeography));
  return As<arrow::StringArray>(array_).GetView(index_);
}

arrow::Result<std::string_view> ValueView::Json() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kJson));
  return As<arrow::StringArray>(array_).GetView(index_);
}

arrow::Result<IntervalValue> ValueView::Interval() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kInterval));
  const auto& parts = As<arrow::StructArray>(array_);
  return IntervalValue{.months = As<arrow::Int32Array>(parts.field(0).get()).Value(index_),
                       .days = As<arrow::Int32Array>(parts.field(1).get()).Value(index_),
                       .microseconds = As<arrow::Int64Array>(parts.field(2).get()).Value(index_)};
}

arrow::Result<RangeView> ValueView::Range() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kRange));
  const auto& sides = As<arrow::StructArray>(array_);
  const auto& plans = plan_->fields.columns;
  return RangeView{.start = {&plans[0], sides.field(0).get(), index_, row_}, .end = {&plans[1], sides.field(1).get(), index_, row_}};
}

arrow::Result<RowView> ValueView::Struct() const {
  ARROW_RETURN_NOT_OK(Check(TypeKind::kStruct));
  return RowView(&plan_->fields, nullptr, &As<arrow::StructArray>(array_), index_, row_);
}

arrow::Result<ListView> ValueView::List() const {
  ARROW_RETURN_NOT_OK(CheckExists());
  if (!plan_->repeated) return Refuse("ARRAY");
  const auto& lists = As<arrow::ListArray>(array_);
  const arrow::Array* values = lists.values().get();
  // A list of canonical type is never null; of one that is, the offsets may say anything.
  if (lists.IsNull(index_)) return ListView(plan_->element.get(), values, 0, 0, row_);
  return ListView(plan_->element.get(), values, lists.value_offset(index_), lists.value_length(index_), row_);
}

arrow::Status ValueView::AppendText(std::string* out) const {
  ARROW_RETURN_NOT_OK(CheckExists());
  if (plan_->repeated) return AppendJson(out);
  ARROW_RETURN_NOT_OK(Check(plan_->field.kind));
  if (!plan_->text) return AppendJson(out);
  return plan_->text->Append(*array_, index_, out, row_ - index_);
}

arrow::Result<std::string> ValueView::Text() const {
  std::string text;
  ARROW_RETURN_NOT_OK(AppendText(&text));
  return text;
}

arrow::Status ValueView::AppendJson(std::string* out) const {
  if (plan_->repeated) {
    ARROW_ASSIGN_OR_RAISE(const ListView list, List());
    out->push_back('[');
    for (int64_t i = 0; i < list.size(); ++i) {
      if (i > 0) out->push_back(',');
      ARROW_RETURN_NOT_OK(list[i].AppendJson(out));
    }
    out->push_back(']');
    return arrow::Status::OK();
  }
  if (is_null()) {
    *out += "null";
    return arrow::Status::OK();
  }
  if (plan_->field.kind == TypeKind::kStruct) {
    ARROW_ASSIGN_OR_RAISE(const RowView fields, Struct());
    out->push_back('{');
    for (int i = 0; i < fields.column_count(); ++i) {
      if (i > 0) out->push_back(',');
      AppendJsonString(fields.field(i).name, out);
      out->push_back(':');
      ARROW_RETURN_NOT_OK(fields[i].AppendJson(out));
    }
    out->push_back('}');
    return arrow::Status::OK();
  }
  // As in NDJSON files: booleans and finite numbers of FLOAT64 are bare, everything else is a string.
  const bool bare = plan_->field.kind == TypeKind::kBool ||
                    (plan_->field.kind == TypeKind::kFloat64 && std::isfinite(As<arrow::DoubleArray>(array_).Value(index_)));
  if (bare) return plan_->text->Append(*array_, index_, out, row_ - index_);
  std::string text;
  ARROW_RETURN_NOT_OK(plan_->text->Append(*array_, index_, &text, row_ - index_));
  AppendJsonString(text, out);
  return arrow::Status::OK();
}

int ValueView::scale() const {
  const bool decimal =
      plan_ != nullptr && !plan_->repeated && (plan_->field.kind == TypeKind::kNumeric || plan_->field.kind == TypeKind::kBigNumeric);
  return decimal ? static_cast<const arrow::DecimalType&>(*plan_->type).scale() : 0;
}

ValueView ListView::operator[](int64_t element) const {
  if (element < 0 || element >= size_) return {std::string_view(), element, row_};
  return {element_, values_, first_ + element, row_};
}

int RowView::column_count() const { return static_cast<int>(plan_->columns.size()); }

const Field& RowView::field(int column) const { return plan_->columns[static_cast<size_t>(column)].field; }

ValueView RowView::operator[](int column) const {
  if (column < 0 || column >= column_count()) return {std::string_view(), column, row_};
  const arrow::Array* array = columns_ != nullptr ? columns_[column] : parent_->field(column).get();
  return {&plan_->columns[static_cast<size_t>(column)], array, index_, row_};
}

ValueView RowView::operator[](std::string_view name) const {
  const int column = plan_->Find(name);
  if (column < 0) return {name, column, row_};
  return (*this)[column];
}

}  // namespace headrace
