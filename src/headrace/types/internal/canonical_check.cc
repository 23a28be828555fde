#include <cstring>
#include <span>

#include <arrow/scalar.h>
#include <fmt/format.h>

#include "headrace/types/column_scan.h"
#include "headrace/types/internal/canonical_node.h"
#include "headrace/types/internal/scalar_text.h"
#include "headrace/types/type_table.h"
#include "headrace/types/utf8.h"
#include "headrace/types/value_text.h"

namespace headrace::internal {
namespace {

template <typename ArrayType>
arrow::Status CheckBounds(const CanonicalNode& node, const arrow::Array& array, typename ArrayType::value_type least,
                          typename ArrayType::value_type most, std::string_view range, const RowPlace& place) {
  const auto& values = static_cast<const ArrayType&>(array);
  const auto* raw = values.raw_values();
  if (AreWithin(std::span(raw, static_cast<size_t>(values.length())), least, most)) return arrow::Status::OK();
  for (int64_t i = 0; i < values.length(); ++i) {
    if (values.IsNull(i) || (raw[i] >= least && raw[i] <= most)) continue;
    return AtPlace(arrow::Status::Invalid(fmt::format("{} is outside {}", ShownValue(array, i), range)), node.path, place.RowOf(i));
  }
  return arrow::Status::OK();
}

template <typename ArrayType, typename Decimal>
arrow::Status CheckDigits(const CanonicalNode& node, const arrow::Array& array, const RowPlace& place) {
  const auto& type = static_cast<const arrow::DecimalType&>(*array.type());
  if (type.precision() >= 76) return arrow::Status::OK();  // all 256 bits are BIGNUMERIC's range
  const auto& values = static_cast<const ArrayType&>(array);
  // Without a branch: nearly always the highest word alone says that all of them fit.
  const auto limit = static_cast<int64_t>(Decimal::GetScaleMultiplier(type.precision()).native_endian_array().back());
  const auto width = static_cast<size_t>(type.byte_width());
  const uint8_t* highest = values.raw_values() + width - sizeof(limit);
  bool fits = true;
  for (int64_t i = 0; i < values.length(); ++i, highest += width) {
    int64_t word = 0;
    std::memcpy(&word, highest, sizeof(word));
    fits &= word < limit && word > -limit;
  }
  if (fits) return arrow::Status::OK();
  for (int64_t i = 0; i < values.length(); ++i) {
    if (values.IsNull(i) || Decimal(values.GetValue(i)).FitsInPrecision(type.precision())) continue;
    return AtPlace(arrow::Status::Invalid(fmt::format("{} has more digits than {} allows", ShownValue(array, i), type.ToString())),
                   node.path, place.RowOf(i));
  }
  return arrow::Status::OK();
}

arrow::Status CheckUtf8(const CanonicalNode& node, const arrow::Array& array, const RowPlace& place) {
  const auto& texts = static_cast<const arrow::StringArray&>(array);
  if (texts.length() == 0) return arrow::Status::OK();
  const auto* data = reinterpret_cast<const char*>(texts.raw_data());
  if (AreUtf8(data, {texts.raw_value_offsets(), static_cast<size_t>(texts.length()) + 1})) return arrow::Status::OK();
  for (int64_t i = 0; i < texts.length(); ++i) {  // what stands in the place of a null does not matter
    if (texts.IsNull(i) || IsUtf8(texts.GetView(i))) continue;
    return AtPlace(arrow::Status::Invalid(fmt::format("{} is not valid UTF-8", Quoted(texts.GetView(i)))), node.path, place.RowOf(i));
  }
  return arrow::Status::OK();
}

arrow::Status CheckInterval(const CanonicalNode& node, const arrow::StructArray& array, const RowPlace& place) {
  const auto& months = static_cast<const arrow::Int32Array&>(*array.field(0));
  const auto& days = static_cast<const arrow::Int32Array&>(*array.field(1));
  const auto& micros = static_cast<const arrow::Int64Array&>(*array.field(2));
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i) || IntervalInRange({months.Value(i), days.Value(i), micros.Value(i)})) continue;
    return AtPlace(arrow::Status::Invalid(fmt::format("{} is outside 10000 years, 3660000 days and 87840000 hours", ShownValue(array, i))),
                   node.path, place.RowOf(i));
  }
  return arrow::Status::OK();
}

}  // namespace

std::string ShownValue(const arrow::Array& array, int64_t index) {
  if (array.type_id() == arrow::Type::STRUCT && array.num_fields() == 3) {
    std::string text;
    const auto& interval = static_cast<const arrow::StructArray&>(array);
    AppendInterval({static_cast<const arrow::Int32Array&>(*interval.field(0)).Value(index),
                    static_cast<const arrow::Int32Array&>(*interval.field(1)).Value(index),
                    static_cast<const arrow::Int64Array&>(*interval.field(2)).Value(index)},
                   &text);
    return Quoted(text);
  }
  std::string text;
  switch (array.type_id()) {
    case arrow::Type::DATE32:
      AppendDate(static_cast<const arrow::Date32Array&>(array).Value(index), &text);
      return Quoted(text);
    case arrow::Type::TIME64:
      AppendInt64(static_cast<const arrow::Time64Array&>(array).Value(index), &text);
      return Quoted(text);
    case arrow::Type::TIMESTAMP:
      if (static_cast<const arrow::TimestampType&>(*array.type()).unit() == arrow::TimeUnit::MICRO) {
        AppendDatetime(static_cast<const arrow::TimestampArray&>(array).Value(index), &text);
      } else {
        AppendInt64(static_cast<const arrow::TimestampArray&>(array).Value(index), &text);
      }
      return Quoted(text);
    default:
      break;
  }
  auto scalar = array.GetScalar(index);
  return scalar.ok() ? Quoted((*scalar)->ToString()) : std::string("a value");
}

arrow::Status CheckValues(const CanonicalNode& node, const arrow::Array& array, const RowPlace& place) {
  constexpr std::string_view kDates = "0001-01-01 to 9999-12-31";
  switch (array.type_id()) {
    case arrow::Type::DATE32:
      return CheckBounds<arrow::Date32Array>(node, array, kMinDate, kMaxDate, kDates, place);
    case arrow::Type::TIME64:
      return CheckBounds<arrow::Time64Array>(node, array, 0, kMicrosPerDay - 1, "00:00:00 to 23:59:59.999999", place);
    case arrow::Type::TIMESTAMP:
      if (static_cast<const arrow::TimestampType&>(*array.type()).unit() != arrow::TimeUnit::MICRO)
        return arrow::Status::OK();  // within 1677 to 2262
      return CheckBounds<arrow::TimestampArray>(node, array, kMinTimestamp, kMaxTimestamp, kDates, place);
    case arrow::Type::DECIMAL128:
      return CheckDigits<arrow::Decimal128Array, arrow::Decimal128>(node, array, place);
    case arrow::Type::DECIMAL256:
      return CheckDigits<arrow::Decimal256Array, arrow::Decimal256>(node, array, place);
    case arrow::Type::STRING:
      return CheckUtf8(node, array, place);
    case arrow::Type::STRUCT:
      if (node.field.kind == TypeKind::kInterval) return CheckInterval(node, static_cast<const arrow::StructArray&>(array), place);
      return arrow::Status::OK();
    default:
      return arrow::Status::OK();
  }
}

}  // namespace headrace::internal
