#include "headrace/types/normalize.h"

#include <functional>
#include <limits>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/compute/cast.h>
#include <arrow/extension_type.h>
#include <arrow/util/bitmap_ops.h>
#include <fmt/format.h>

#include "headrace/types/type_table.h"

namespace headrace {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

// BigQuery's bounds of DATE, DATETIME and TIMESTAMP: 0001-01-01 to 9999-12-31 23:59:59.999999.
constexpr int64_t kFirstDay = -719162;
constexpr int64_t kLastDay = 2932896;
constexpr int64_t kMicrosPerDay = int64_t{86'400} * 1'000'000;
constexpr int64_t kMicrosFirst = kFirstDay * kMicrosPerDay;
constexpr int64_t kMicrosLast = (kLastDay + 1) * kMicrosPerDay - 1;

// Where a value is: its column, and its row as long as array index and row are the same thing.
struct Place {
  std::string path;
  std::optional<int64_t> first_row;

  Place Child(const std::string& name) const { return {path + "." + name, first_row}; }
  Place Inside() const { return {path, std::nullopt}; }
};

arrow::Status DoesNotFit(const Place& place, std::optional<int64_t> index, std::string_view why) {
  ErrorInfo info{.code = Code::kInvalidArgument, .reason = "VALUE_DOES_NOT_FIT", .column = place.path};
  std::string where = fmt::format("column {}", place.path);
  if (place.first_row && index) {
    info.row = *place.first_row + *index;
    where += fmt::format(", row {}", *info.row);
  }
  return MakeError(std::move(info), fmt::format("{}: {}", where, why));
}

// The cast that failed on the whole fails on one value: found by halving, since the error must name the row.
arrow::Status CastError(ArrayPtr array, const std::shared_ptr<arrow::DataType>& type, const Place& place, arrow::Status error) {
  int64_t first = 0;
  while (array->length() > 1) {
    int64_t half = array->length() / 2;
    auto left = arrow::compute::Cast(*array->Slice(0, half), type);
    if (left.ok()) {
      first += half;
      array = array->Slice(half);
    } else {
      error = left.status();
      array = array->Slice(0, half);
    }
  }
  auto last = arrow::compute::Cast(*array, type);
  if (!last.ok()) error = last.status();
  return DoesNotFit(place, first, fmt::format("cannot be stored as {}: {}", type->ToString(), error.message()));
}

template <typename ArrayType>
arrow::Status CheckBounds(const ArrayType& array, int64_t first, int64_t last, const Place& place) {
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsValid(i) && (array.Value(i) < first || array.Value(i) > last)) {
      return DoesNotFit(place, i, fmt::format("{} is outside 0001-01-01 to 9999-12-31", array.GetScalar(i).ValueOrDie()->ToString()));
    }
  }
  return arrow::Status::OK();
}

arrow::Status CheckRange(const arrow::Array& array, const Place& place) {
  if (array.type_id() == arrow::Type::DATE32) {
    return CheckBounds(static_cast<const arrow::Date32Array&>(array), kFirstDay, kLastDay, place);
  }
  if (array.type_id() == arrow::Type::TIMESTAMP) {
    return CheckBounds(static_cast<const arrow::TimestampArray&>(array), kMicrosFirst, kMicrosLast, place);
  }
  return arrow::Status::OK();
}

arrow::Result<ArrayPtr> Normalize(ArrayPtr array, const arrow::Field& target, bool parent_has_nulls, const Place& place);

arrow::Result<ArrayPtr> NormalizeStruct(const ArrayPtr& array, const arrow::Field& target, const Place& place) {
  const auto& source = static_cast<const arrow::StructArray&>(*array);
  arrow::ArrayVector children;
  for (int i = 0; i < target.type()->num_fields(); ++i) {
    const auto& field = *target.type()->field(i);
    // A null struct has null children, whatever stands in their place.
    ARROW_ASSIGN_OR_RAISE(auto child, source.GetFlattenedField(i));
    ARROW_ASSIGN_OR_RAISE(child, Normalize(std::move(child), field, source.null_count() > 0, place.Child(field.name())));
    children.push_back(std::move(child));
  }
  std::shared_ptr<arrow::Buffer> nulls;
  if (source.null_count() > 0) {
    ARROW_ASSIGN_OR_RAISE(
        nulls, arrow::internal::CopyBitmap(arrow::default_memory_pool(), source.null_bitmap_data(), source.offset(), source.length()));
  }
  return std::make_shared<arrow::StructArray>(target.type(), source.length(), std::move(children), std::move(nulls), source.null_count());
}

// Any kind of list becomes list<T> with offsets from zero, without nulls.
arrow::Result<ArrayPtr> NormalizeList(ArrayPtr array, const arrow::Field& target, const Place& place) {
  if (array->type_id() != arrow::Type::LIST) {
    auto plain = arrow::list(array->type()->field(0));
    auto cast = arrow::compute::Cast(*array, plain);
    if (!cast.ok()) return CastError(array, plain, place, cast.status());
    array = *std::move(cast);
  }
  const auto& source = static_cast<const arrow::ListArray&>(*array);
  ARROW_ASSIGN_OR_RAISE(auto values, source.Flatten());
  ARROW_ASSIGN_OR_RAISE(auto offsets, arrow::AllocateBuffer((source.length() + 1) * static_cast<int64_t>(sizeof(int32_t))));
  auto* next = reinterpret_cast<int32_t*>(offsets->mutable_data());
  int32_t end = 0;
  *next++ = 0;
  for (int64_t i = 0; i < source.length(); ++i) {
    if (source.IsValid(i)) end += source.value_length(i);
    *next++ = end;
  }
  const auto& element = *target.type()->field(0);
  ARROW_ASSIGN_OR_RAISE(values, Normalize(std::move(values), element, false, place.Inside()));
  if (values->null_count() > 0) return DoesNotFit(place.Inside(), std::nullopt, "an array holds a null, which BigQuery cannot store");
  return std::make_shared<arrow::ListArray>(target.type(), source.length(), std::shared_ptr<arrow::Buffer>(std::move(offsets)),
                                            std::move(values));
}

arrow::Result<ArrayPtr> NormalizeValues(ArrayPtr array, const arrow::Field& target, const Place& place) {
  while (true) {
    if (array->type_id() == arrow::Type::EXTENSION) {
      array = static_cast<const arrow::ExtensionArray&>(*array).storage();
    } else if (array->type_id() == arrow::Type::DICTIONARY) {
      const auto& type = static_cast<const arrow::DictionaryType&>(*array->type());
      ARROW_ASSIGN_OR_RAISE(array, arrow::compute::Cast(*array, type.value_type()));
    } else {
      break;
    }
  }
  if (target.type()->id() == arrow::Type::STRUCT) return NormalizeStruct(array, target, place);
  if (target.type()->id() == arrow::Type::LIST) return NormalizeList(std::move(array), target, place);
  if (!array->type()->Equals(*target.type())) {
    auto cast = arrow::compute::Cast(*array, target.type());
    if (!cast.ok()) return CastError(array, target.type(), place, cast.status());
    array = *std::move(cast);
  }
  ARROW_RETURN_NOT_OK(CheckRange(*array, place));
  return array;
}

arrow::Result<ArrayPtr> Normalize(ArrayPtr array, const arrow::Field& target, bool parent_has_nulls, const Place& place) {
  ARROW_ASSIGN_OR_RAISE(array, NormalizeValues(std::move(array), target, place));
  // Under a null struct a required field has nothing to say; what stands there is not looked at.
  if (!target.nullable() && !parent_has_nulls && array->null_count() > 0) {
    int64_t row = 0;
    while (array->IsValid(row)) ++row;
    return DoesNotFit(place, row, "null in a column that is not nullable");
  }
  return array;
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::Table>> NormalizeToBigQuery(const std::shared_ptr<arrow::Table>& table) {
  ARROW_ASSIGN_OR_RAISE(auto bigquery, FromArrowSchema(*table->schema()));
  ARROW_ASSIGN_OR_RAISE(auto schema, ToArrowSchema(bigquery));
  std::vector<std::shared_ptr<arrow::ChunkedArray>> columns;
  for (int i = 0; i < schema->num_fields(); ++i) {
    const auto& field = *schema->field(i);
    arrow::ArrayVector chunks;
    int64_t row = 0;
    for (const auto& chunk : table->column(i)->chunks()) {
      ARROW_ASSIGN_OR_RAISE(auto normalized, Normalize(chunk, field, false, {field.name(), row}));
      row += chunk->length();
      chunks.push_back(std::move(normalized));
    }
    columns.push_back(std::make_shared<arrow::ChunkedArray>(std::move(chunks), field.type()));
  }
  return arrow::Table::Make(std::move(schema), std::move(columns), table->num_rows());
}

}  // namespace headrace
