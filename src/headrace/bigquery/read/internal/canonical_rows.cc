#include "headrace/bigquery/read/internal/canonical_rows.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/scalar.h>
#include <arrow/table.h>
#include <arrow/util/decimal.h>
#include <arrow/util/string.h>
#include <fmt/format.h>

#include "headrace/bigquery/read/internal/decoder.h"
#include "headrace/types/normalize.h"
#include "headrace/types/type_table.h"
#include "headrace/types/utf8.h"

namespace headrace::bigquery {
namespace {

// BigQuery's bounds of DATE, TIME, DATETIME and TIMESTAMP: 0001-01-01 to 9999-12-31 23:59:59.999999.
constexpr int64_t kFirstDay = -719'162;
constexpr int64_t kLastDay = 2'932'896;
constexpr int64_t kMicrosPerDay = int64_t{86'400} * 1'000'000;
constexpr int64_t kFirstMicro = kFirstDay * kMicrosPerDay;
constexpr int64_t kLastMicro = (kLastDay + 1) * kMicrosPerDay - 1;

constexpr std::string_view kWkbExtension = "geoarrow.wkb";

bool HoldsExtension(const arrow::Field& field, std::string_view name) {
  return field.metadata() != nullptr && field.metadata()->Get(std::string(kExtensionNameKey)).ValueOr("") == name;
}

/// The text form is BigQuery's; bytes would need a reader of geometries, and what it wrote might be another text.
arrow::Status RefuseBinaryGeography(const arrow::Field& field, const std::string& path) {
  const auto id = field.type()->id();
  const bool binary = id == arrow::Type::BINARY || id == arrow::Type::LARGE_BINARY || id == arrow::Type::BINARY_VIEW;
  if (binary && (HoldsExtension(field, kGeographyExtension) || HoldsExtension(field, kWkbExtension))) {
    return MakeError({.code = Code::kUnimplemented, .service = "BigQuery Storage Read", .reason = "UNSUPPORTED", .column = path},
                     fmt::format("column {}: GEOGRAPHY in binary form (WKB) is not supported; BigQuery sends it as text (WKT)", path));
  }
  for (const auto& child : field.type()->fields()) {
    ARROW_RETURN_NOT_OK(RefuseBinaryGeography(*child, field.type()->id() == arrow::Type::STRUCT ? path + "." + child->name() : path));
  }
  return arrow::Status::OK();
}

/// Whether arrays of the one type, without nulls where the other has none, are arrays of the other.
bool SameLayout(const arrow::DataType& wire, const arrow::DataType& canonical) {
  if (wire.id() != canonical.id()) return false;
  if (wire.id() != arrow::Type::STRUCT && wire.id() != arrow::Type::LIST) return wire.Equals(canonical);
  if (wire.num_fields() != canonical.num_fields()) return false;
  for (int i = 0; i < wire.num_fields(); ++i) {
    if (!SameLayout(*wire.field(i)->type(), *canonical.field(i)->type())) return false;
  }
  return true;
}

/// Which column an array is of, and how its indices become rows.
struct Place {
  std::string path;
  const Place* parent = nullptr;     // of the struct or list that the array is inside
  const int32_t* offsets = nullptr;  // of that list
  int64_t lists = 0;                 // how many arrays they are of
  int64_t shift = 0;                 // of the struct: a slice's children are not sliced

  int64_t Row(int64_t index) const {
    if (parent == nullptr) return index;
    if (offsets == nullptr) return parent->Row(index - shift);
    return parent->Row(std::upper_bound(offsets, offsets + lists + 1, index) - offsets - 1);
  }
};

arrow::Status BadValue(const Place& place, int64_t index, const std::string& why) {
  const int64_t row = place.Row(index);
  return MakeError(
      {.code = Code::kDataLoss, .service = "BigQuery Storage Read", .reason = "VALUE_DOES_NOT_FIT", .row = row, .column = place.path},
      fmt::format("column {}, row {}: {}", place.path, row, why));
}

int64_t FirstNull(const arrow::ArrayData& data) {
  int64_t index = 0;
  while (data.IsValid(index)) ++index;
  return index;
}

/// `bad` says of a raw value that it is out of range; values under a null are looked at only when there seems to be a bad one.
template <typename Value, typename Bad>
arrow::Status CheckValues(const arrow::ArrayData& data, const Place& place, std::string_view range, Bad bad) {
  const auto* values = data.GetValues<Value>(1);
  bool any = false;
  for (int64_t i = 0; i < data.length; ++i) any |= bad(values[i]);
  for (int64_t i = 0; any && i < data.length; ++i) {
    if (!bad(values[i]) || data.IsNull(i)) continue;
    const auto scalar = arrow::MakeArray(std::make_shared<arrow::ArrayData>(data))->GetScalar(i);
    return BadValue(place, i, fmt::format("{} is outside {}", scalar.ok() ? (*scalar)->ToString() : "the value", range));
  }
  return arrow::Status::OK();
}

template <typename Value>
arrow::Status CheckBounds(const arrow::ArrayData& data, int64_t first, int64_t last, const Place& place, std::string_view range) {
  return CheckValues<Value>(data, place, range, [=](Value value) { return value < first || value > last; });
}

arrow::Status CheckDecimal(const arrow::ArrayData& data, const Place& place) {
  // Any 256 bits are a BIGNUMERIC; a NUMERIC has as many digits as its type says.
  const int precision = static_cast<const arrow::DecimalType&>(*data.type).precision();
  const arrow::FixedSizeBinaryArray array(std::make_shared<arrow::ArrayData>(data));
  if (data.type->id() == arrow::Type::DECIMAL256 && precision == 76) return arrow::Status::OK();
  for (int64_t i = 0; i < data.length; ++i) {
    const bool fits = data.type->id() == arrow::Type::DECIMAL256 ? arrow::Decimal256(array.GetValue(i)).FitsInPrecision(precision)
                                                                 : arrow::Decimal128(array.GetValue(i)).FitsInPrecision(precision);
    if (fits || data.IsNull(i)) continue;
    const std::string digits = data.type->id() == arrow::Type::DECIMAL256 ? arrow::Decimal256(array.GetValue(i)).ToIntegerString()
                                                                          : arrow::Decimal128(array.GetValue(i)).ToIntegerString();
    return BadValue(place, i,
                    fmt::format("the unscaled value {} has more than the {} digits of {}", digits, precision, data.type->ToString()));
  }
  return arrow::Status::OK();
}

/// All values at once: one text, and no value begins inside a character.
bool AllUtf8(const arrow::StringArray& array) {
  const int64_t first = array.value_offset(0);
  const int64_t end = array.value_offset(array.length());
  if (first == end) return true;
  const auto* bytes = reinterpret_cast<const char*>(array.raw_data());
  if (!IsUtf8({bytes + first, static_cast<size_t>(end - first)})) return false;
  bool whole = true;
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t at = array.value_offset(i);
    whole &= at == end || (static_cast<unsigned char>(bytes[at]) & 0xC0) != 0x80;
  }
  return whole;
}

arrow::Status CheckText(const arrow::ArrayData& data, const Place& place) {
  const arrow::StringArray array(std::make_shared<arrow::ArrayData>(data));
  if (data.length == 0 || AllUtf8(array)) return arrow::Status::OK();
  for (int64_t i = 0; i < data.length; ++i) {
    if (data.IsNull(i) || IsUtf8(array.GetView(i))) continue;
    return BadValue(place, i, fmt::format("a text is not UTF-8: {}", arrow::HexEncode(array.GetView(i).substr(0, 64))));
  }
  return arrow::Status::OK();
}

arrow::Status CheckScalars(const arrow::ArrayData& data, const Place& place) {
  switch (data.type->id()) {
    case arrow::Type::DATE32:
      return CheckBounds<int32_t>(data, kFirstDay, kLastDay, place, "0001-01-01 to 9999-12-31");
    case arrow::Type::TIME64:
      return CheckBounds<int64_t>(data, 0, kMicrosPerDay - 1, place, "00:00:00 to 23:59:59.999999");
    case arrow::Type::TIMESTAMP:
      // Nanoseconds reach from 1677 to 2262 only.
      if (static_cast<const arrow::TimestampType&>(*data.type).unit() != arrow::TimeUnit::MICRO) return arrow::Status::OK();
      return CheckBounds<int64_t>(data, kFirstMicro, kLastMicro, place, "0001-01-01 to 9999-12-31");
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256:
      return CheckDecimal(data, place);
    case arrow::Type::STRING:
      return CheckText(data, place);
    default:
      return arrow::Status::OK();
  }
}

bool AnyNull(const arrow::ArrayData& data) { return data.GetNullCount() > 0; }

/// The same buffers under the canonical type; null when a null array is in the way, which only a conversion makes an empty one.
arrow::Result<std::shared_ptr<arrow::ArrayData>> Relabel(const arrow::ArrayData& data, const arrow::Field& target, bool parent_has_nulls,
                                                         const Place& place) {
  const bool is_list = target.type()->id() == arrow::Type::LIST;
  auto same = data.Copy();
  same->type = target.type();
  if (same->buffers[0] != nullptr) same->null_count = arrow::kUnknownNullCount;  // the wire's count is only a claim
  const bool nulls = AnyNull(*same);
  if (is_list && nulls) return nullptr;
  if (!target.nullable() && !parent_has_nulls && nulls) return BadValue(place, FirstNull(*same), "null in a column that is not nullable");
  if (target.type()->num_fields() == 0) {
    ARROW_RETURN_NOT_OK(CheckScalars(*same, place));
    return same;
  }
  for (size_t i = 0; i < data.child_data.size(); ++i) {
    const arrow::Field& field = *target.type()->field(static_cast<int>(i));
    Place below{.path = is_list ? place.path : place.path + "." + field.name(), .parent = &place};
    if (is_list) {
      below.offsets = data.GetValues<int32_t>(1);
      below.lists = data.length;
    } else {
      below.shift = data.offset;
    }
    ARROW_ASSIGN_OR_RAISE(same->child_data[i], Relabel(*data.child_data[i], field, nulls, below));
    const auto& child = same->child_data[i];
    if (child == nullptr) return nullptr;
    if (is_list && AnyNull(*child)) return BadValue(below, FirstNull(*child), "an array holds a null, which BigQuery has not");
  }
  return same;
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::Schema>> CanonicalSchema(const arrow::Schema& wire) {
  for (const auto& field : wire.fields()) ARROW_RETURN_NOT_OK(RefuseBinaryGeography(*field, field->name()));
  ARROW_ASSIGN_OR_RAISE(const TableSchema table, FromArrowSchema(wire));
  return ToArrowSchema(table);
}

CanonicalRows::CanonicalRows(std::shared_ptr<arrow::Schema> wire, std::shared_ptr<arrow::Schema> canonical)
    : wire_(std::move(wire)), canonical_(std::move(canonical)) {
  for (int i = 0; i < canonical_->num_fields(); ++i) {
    same_layout_.push_back(SameLayout(*wire_->field(i)->type(), *canonical_->field(i)->type()));
  }
}

arrow::Result<std::shared_ptr<arrow::Array>> CanonicalRows::ConvertColumn(int column, const std::shared_ptr<arrow::Array>& array) const {
  const arrow::Field& target = *canonical_->field(column);
  if (same_layout_[static_cast<size_t>(column)]) {
    ARROW_ASSIGN_OR_RAISE(auto same, Relabel(*array->data(), target, false, {.path = target.name()}));
    if (same != nullptr) return arrow::MakeArray(std::move(same));
  }
  const auto table = arrow::Table::Make(arrow::schema({wire_->field(column)}), {array}, array->length());
  ARROW_ASSIGN_OR_RAISE(const auto normal, NormalizeToBigQuery(table));
  const auto& chunks = normal->column(0)->chunks();
  ARROW_ASSIGN_OR_RAISE(auto converted, chunks.size() == 1 ? arrow::Result<std::shared_ptr<arrow::Array>>(chunks[0])
                                                           : arrow::Concatenate(chunks, ArrowDecoder::Pool()));
  if (!converted->type()->Equals(*target.type())) {
    return MakeError({.code = Code::kInternal, .column = target.name()},
                     fmt::format("column {} became {}, not {}", target.name(), converted->type()->ToString(), target.type()->ToString()));
  }
  // Checks what the conversion left as it was, and makes the field's own type of an equal one.
  ARROW_ASSIGN_OR_RAISE(auto checked, Relabel(*converted->data(), target, false, {.path = target.name()}));
  return arrow::MakeArray(std::move(checked));
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> CanonicalRows::Convert(const arrow::RecordBatch& rows) const {
  arrow::ArrayVector columns;
  columns.reserve(static_cast<size_t>(rows.num_columns()));
  for (int i = 0; i < rows.num_columns(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto column, ConvertColumn(i, rows.column(i)));
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(canonical_, rows.num_rows(), std::move(columns));
}

}  // namespace headrace::bigquery
