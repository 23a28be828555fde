#include <limits>
#include <optional>
#include <utility>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/compute/cast.h>
#include <arrow/extension_type.h>
#include <arrow/util/bitmap_ops.h>
#include <fmt/format.h>

#include "headrace/types/internal/canonical_node.h"
#include "headrace/types/internal/scalar_appender.h"
#include "headrace/types/internal/scalar_text.h"
#include "headrace/types/type_table.h"
#include "headrace/types/value_text.h"

namespace headrace::internal {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

arrow::Result<ArrayPtr> CastTo(const arrow::Array& array, const std::shared_ptr<arrow::DataType>& type, arrow::MemoryPool* pool) {
  arrow::compute::ExecContext context(pool);
  return arrow::compute::Cast(array, type, arrow::compute::CastOptions::Safe(), &context);
}

// The cast that failed on the whole fails on one value: found by halving, since the error must name the row.
arrow::Status CastError(const CanonicalNode& node, ArrayPtr array, const std::shared_ptr<arrow::DataType>& type, const RowPlace& place,
                        const CanonicalizeOptions& options, arrow::Status error) {
  int64_t first = 0;
  while (array->length() > 1) {
    const int64_t half = array->length() / 2;
    auto left = CastTo(*array->Slice(0, half), type, options.pool);
    if (left.ok()) {
      first += half;
      array = array->Slice(half);
    } else {
      error = left.status();
      array = array->Slice(0, half);
    }
  }
  auto last = CastTo(*array, type, options.pool);
  if (!last.ok()) error = last.status();
  const auto what = fmt::format("{} cannot be stored as {}: {}", ShownValue(*array, 0), type->ToString(), error.message());
  return AtPlace(arrow::Status::Invalid(what), node.path, place.RowOf(first));
}

arrow::Result<ArrayPtr> CastLeaf(const CanonicalNode& node, const ArrayPtr& array, const CanonicalizeOptions& options,
                                 const RowPlace& place) {
  auto cast = CastTo(*array, node.target->type(), options.pool);
  if (cast.ok()) return *std::move(cast);
  return CastError(node, array, node.target->type(), place, options, cast.status());
}

// The same buffers under the target's type, whose names may differ.
ArrayPtr Retyped(const ArrayPtr& array, const std::shared_ptr<arrow::DataType>& type) {
  if (array->type()->Equals(*type, /*check_metadata=*/true)) return array;
  auto data = array->data()->Copy();
  data->type = type;
  return arrow::MakeArray(std::move(data));
}

// A REQUIRED field has a value wherever its STRUCT has one. `child` is null where `rows` is.
arrow::Status CheckRequiredField(const CanonicalNode& field, const arrow::StructArray& rows, const arrow::Array& child,
                                 const RowPlace& place) {
  if (field.target->nullable() || child.null_count() <= rows.null_count()) return arrow::Status::OK();
  int64_t i = 0;
  while (rows.IsNull(i) || child.IsValid(i)) ++i;
  return AtPlace(arrow::Status::Invalid("null in a column that is not nullable"), field.path, place.RowOf(i));
}

arrow::Result<ArrayPtr> ApplyStruct(const CanonicalNode& node, const ArrayPtr& array, const CanonicalizeOptions& options,
                                    const RowPlace& place) {
  const auto& source = static_cast<const arrow::StructArray&>(*array);
  const bool nulls = source.null_count() > 0;
  bool changed = !node.same_layout;
  arrow::ArrayVector children;
  for (size_t i = 0; i < node.children.size(); ++i) {
    ArrayPtr child = source.field(node.child_index[i]);
    if (static_cast<size_t>(node.child_index[i]) != i) changed = true;
    // A null struct has null children, whatever stands in their place.
    if (nulls) {
      ARROW_ASSIGN_OR_RAISE(child, source.GetFlattenedField(node.child_index[i], options.pool));
    }
    const arrow::Array* before = child.get();
    ARROW_ASSIGN_OR_RAISE(child, ApplyCanonical(node.children[i], std::move(child), options, place, nulls));
    if (nulls) ARROW_RETURN_NOT_OK(CheckRequiredField(node.children[i], source, *child, place));
    changed = changed || child.get() != before;
    children.push_back(std::move(child));
  }
  if (!changed) return Retyped(array, node.target->type());
  std::shared_ptr<arrow::Buffer> validity;
  if (nulls) {
    ARROW_ASSIGN_OR_RAISE(validity, arrow::internal::CopyBitmap(options.pool, source.null_bitmap_data(), source.offset(), source.length()));
  }
  return std::make_shared<arrow::StructArray>(node.target->type(), source.length(), std::move(children), std::move(validity),
                                              source.null_count());
}

arrow::Status CheckElements(const CanonicalNode& node, const arrow::Array& values, const RowPlace& place) {
  if (values.null_count() == 0) return arrow::Status::OK();
  int64_t i = 0;
  while (values.IsValid(i)) ++i;
  return AtPlace(arrow::Status::Invalid("an array holds a null, which BigQuery cannot store"), node.path, place.RowOf(i));
}

// The elements of the lists that are not null, one after the other, and offsets from zero over them.
struct PlainList {
  std::shared_ptr<arrow::Buffer> offsets;
  ArrayPtr values;
};

template <typename ArrayType>
arrow::Result<PlainList> PlainListOf(const CanonicalNode& node, const arrow::Array& array, arrow::MemoryPool* pool) {
  const auto& lists = static_cast<const ArrayType&>(array);
  ARROW_ASSIGN_OR_RAISE(auto offsets, arrow::AllocateBuffer((lists.length() + 1) * static_cast<int64_t>(sizeof(int32_t)), pool));
  auto* next = reinterpret_cast<int32_t*>(offsets->mutable_data());
  int64_t end = 0;
  *next++ = 0;
  for (int64_t i = 0; i < lists.length(); ++i) {
    if (lists.IsValid(i)) end += static_cast<int64_t>(lists.value_length(i));
    if (end > std::numeric_limits<int32_t>::max()) {
      return AtPlace(arrow::Status::Invalid("more than 2147483647 elements in the arrays of one batch"), node.path, std::nullopt);
    }
    *next++ = static_cast<int32_t>(end);
  }
  // Flatten makes an empty array of STRUCTs with a builder, and extension types inside have none.
  if (end == 0) return PlainList{std::move(offsets), lists.values()->Slice(0, 0)};
  ARROW_ASSIGN_OR_RAISE(auto values, lists.Flatten(pool));
  return PlainList{std::move(offsets), std::move(values)};
}

arrow::Result<PlainList> PlainListOf(const CanonicalNode& node, const arrow::Array& array, arrow::MemoryPool* pool) {
  switch (array.type_id()) {
    case arrow::Type::LARGE_LIST:
      return PlainListOf<arrow::LargeListArray>(node, array, pool);
    case arrow::Type::FIXED_SIZE_LIST:
      return PlainListOf<arrow::FixedSizeListArray>(node, array, pool);
    case arrow::Type::LIST_VIEW:
      return PlainListOf<arrow::ListViewArray>(node, array, pool);
    case arrow::Type::LARGE_LIST_VIEW:
      return PlainListOf<arrow::LargeListViewArray>(node, array, pool);
    default:
      return PlainListOf<arrow::ListArray>(node, array, pool);
  }
}

// Any kind of list becomes list<T> without nulls.
arrow::Result<ArrayPtr> ApplyList(const CanonicalNode& node, const ArrayPtr& array, const CanonicalizeOptions& options,
                                  const RowPlace& place) {
  ARROW_ASSIGN_OR_RAISE(auto list, PlainListOf(node, *array, options.pool));
  const RowPlace inside(&place, reinterpret_cast<const int32_t*>(list.offsets->data()), array->length());
  const arrow::Array* before = list.values.get();
  ARROW_ASSIGN_OR_RAISE(auto values, ApplyCanonical(node.children[0], list.values, options, inside, false));
  ARROW_RETURN_NOT_OK(CheckElements(node, *values, inside));
  if (array->null_count() == 0 && values.get() == before && SameLayout(*array->type(), *node.target->type())) {
    return Retyped(array, node.target->type());
  }
  return std::make_shared<arrow::ListArray>(node.target->type(), array->length(), std::move(list.offsets), std::move(values));
}

arrow::Result<ArrayPtr> MonthDayNanoToInterval(const CanonicalNode& node, const arrow::Array& array, const CanonicalizeOptions& options,
                                               const RowPlace& place) {
  constexpr int64_t kNanosPerMicro = 1'000;
  const auto& source = static_cast<const arrow::MonthDayNanoIntervalArray&>(array);
  ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(node.target->type(), options.pool));
  auto* interval = static_cast<arrow::StructBuilder*>(builder.get());
  for (int64_t i = 0; i < source.length(); ++i) {
    if (source.IsNull(i)) {
      ARROW_RETURN_NOT_OK(interval->AppendNull());
      continue;
    }
    const auto value = source.GetValue(i);
    if (value.nanoseconds % kNanosPerMicro != 0) {
      return AtPlace(arrow::Status::Invalid(fmt::format("{} months, {} days and {} nanoseconds are no whole microseconds", value.months,
                                                        value.days, value.nanoseconds)),
                     node.path, place.RowOf(i));
    }
    ARROW_RETURN_NOT_OK(static_cast<arrow::Int32Builder*>(interval->field_builder(0))->Append(value.months));
    ARROW_RETURN_NOT_OK(static_cast<arrow::Int32Builder*>(interval->field_builder(1))->Append(value.days));
    ARROW_RETURN_NOT_OK(static_cast<arrow::Int64Builder*>(interval->field_builder(2))->Append(value.nanoseconds / kNanosPerMicro));
    ARROW_RETURN_NOT_OK(interval->Append());
  }
  return builder->Finish();
}

arrow::Result<ArrayPtr> ParseTexts(const CanonicalNode& node, const arrow::Array& array, const CanonicalizeOptions& options,
                                   const RowPlace& place) {
  ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(node.target->type(), options.pool));
  ScalarAppender appender(node.field, {.strict = true}, builder.get());
  const auto& texts = static_cast<const arrow::StringArray&>(array);
  for (int64_t i = 0; i < texts.length(); ++i) {
    auto status = texts.IsNull(i) ? appender.AppendNull() : appender.Append(ValueSource::kText, texts.GetView(i));
    if (!status.ok()) return AtPlace(status, node.path, place.RowOf(i));
  }
  return builder->Finish();
}

// TIMESTAMP(12) from text or a timestamp of any unit, through text with all its digits; cut never.
arrow::Result<ArrayPtr> ConvertPicos(const CanonicalNode& node, const arrow::Array& array, const CanonicalizeOptions& options,
                                     const RowPlace& place) {
  const Field picos{.kind = TypeKind::kTimestamp12};
  const ScalarText read(picos, *array.type(), TextForm::kPlain);
  const bool micros = node.target->type()->id() == arrow::Type::TIMESTAMP &&
                      static_cast<const arrow::TimestampType&>(*node.target->type()).unit() == arrow::TimeUnit::MICRO;
  ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(node.target->type(), options.pool));
  ScalarAppender appender(micros ? Field{.kind = TypeKind::kTimestamp} : picos, {.strict = true}, builder.get());
  std::string text;
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i)) {
      ARROW_RETURN_NOT_OK(builder->AppendNull());
      continue;
    }
    text.clear();
    auto status = read.Append(array, i, &text);
    // Twelve digits and Z; six of them are all that a TIMESTAMP takes.
    if (status.ok() && micros && text.ends_with("000000Z")) text.erase(text.size() - 7, 6);
    if (status.ok()) status = appender.Append(ValueSource::kText, text);
    if (!status.ok()) return AtPlace(status, node.path, place.RowOf(i));
  }
  return builder->Finish();
}

arrow::Result<ArrayPtr> Unwrapped(const CanonicalNode& node, ArrayPtr array, const CanonicalizeOptions& options) {
  while (true) {
    if (array->type_id() == arrow::Type::EXTENSION) {
      array = static_cast<const arrow::ExtensionArray&>(*array).storage();
    } else if (array->type_id() == arrow::Type::DICTIONARY) {
      ARROW_ASSIGN_OR_RAISE(array, CastTo(*array, static_cast<const arrow::DictionaryType&>(*array->type()).value_type(), options.pool));
    } else {
      break;
    }
  }
  // The step was chosen for this type: memory is read by it.
  if (array->type()->Equals(*node.source) || SameLayout(*array->type(), *node.source)) return array;
  return MakeError(
      {.code = Code::kFailedPrecondition, .reason = "SCHEMA_DIFFERS", .column = node.path},
      fmt::format("column {}: the data is {}, its schema says {}", node.path, array->type()->ToString(), node.source->ToString()));
}

arrow::Result<ArrayPtr> ApplyStep(const CanonicalNode& node, ArrayPtr array, const CanonicalizeOptions& options, const RowPlace& place) {
  if (node.step == CanonicalStep::kStruct) return ApplyStruct(node, array, options, place);
  if (node.step == CanonicalStep::kList) return ApplyList(node, array, options, place);
  if (node.step == CanonicalStep::kMonthDayNano) return MonthDayNanoToInterval(node, *array, options, place);
  const bool picos_text = node.step == CanonicalStep::kPicos && node.target->type()->id() == arrow::Type::STRING;
  if (node.same_layout && !picos_text) return array;
  if (node.step == CanonicalStep::kCast) return CastLeaf(node, array, options, place);
  if (array->type_id() == arrow::Type::LARGE_STRING || array->type_id() == arrow::Type::STRING_VIEW) {
    ARROW_ASSIGN_OR_RAISE(array, CastTo(*array, arrow::utf8(), options.pool));
  }
  return node.step == CanonicalStep::kPicos ? ConvertPicos(node, *array, options, place) : ParseTexts(node, *array, options, place);
}

}  // namespace

arrow::Result<ArrayPtr> ApplyCanonical(const CanonicalNode& node, ArrayPtr array, const CanonicalizeOptions& options, const RowPlace& place,
                                       bool below_null) {
  ARROW_ASSIGN_OR_RAISE(array, Unwrapped(node, std::move(array), options));
  ARROW_ASSIGN_OR_RAISE(array, ApplyStep(node, std::move(array), options, place));
  if (options.check_values) ARROW_RETURN_NOT_OK(CheckValues(node, *array, place));
  // Under a null struct a required field has nothing to say; what stands there is not looked at.
  if (!node.target->nullable() && !below_null && array->null_count() > 0) {
    int64_t row = 0;
    while (array->IsValid(row)) ++row;
    return AtPlace(arrow::Status::Invalid("null in a column that is not nullable"), node.path, place.RowOf(row));
  }
  return array;
}

}  // namespace headrace::internal
