#include "headrace/types/internal/scalar_text.h"

#include <cmath>

#include <fmt/format.h>

#include "headrace/types/json_text.h"
#include "headrace/types/type_table.h"
#include "headrace/types/utf8.h"
#include "headrace/types/value_text.h"

namespace headrace::internal {
namespace {

arrow::Type::type IdOf(TypeKind kind) {
  switch (kind) {
    case TypeKind::kInt64:
      return arrow::Type::INT64;
    case TypeKind::kFloat64:
      return arrow::Type::DOUBLE;
    case TypeKind::kBool:
      return arrow::Type::BOOL;
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
    case TypeKind::kInterval:
    case TypeKind::kRange:
    case TypeKind::kStruct:
      return arrow::Type::STRUCT;
    case TypeKind::kString:
    case TypeKind::kGeography:
    case TypeKind::kJson:
    case TypeKind::kTimestamp12:
      break;
  }
  return arrow::Type::STRING;
}

bool IsMicros(const arrow::DataType& type) {
  if (type.id() == arrow::Type::TIMESTAMP) return static_cast<const arrow::TimestampType&>(type).unit() == arrow::TimeUnit::MICRO;
  if (type.id() == arrow::Type::TIME64) return static_cast<const arrow::Time64Type&>(type).unit() == arrow::TimeUnit::MICRO;
  return true;
}

bool IsCanonical(const Field& field, const arrow::DataType& type) {
  if (field.kind == TypeKind::kTimestamp12 && type.id() == arrow::Type::TIMESTAMP) return true;
  if (type.id() != IdOf(field.kind) || !IsMicros(type)) return false;
  if (field.kind != TypeKind::kRange) return true;
  return IsCanonical({.kind = field.range_element}, *type.field(0)->type()) &&
         IsCanonical({.kind = field.range_element}, *type.field(1)->type());
}

template <typename ArrayType>
auto ValueOf(const arrow::Array& array, int64_t index) {
  return static_cast<const ArrayType&>(array).Value(index);
}

std::string_view TextOf(const arrow::Array& array, int64_t index) { return static_cast<const arrow::BinaryArray&>(array).GetView(index); }

arrow::Status OutOfRange(TypeKind kind, std::string_view value, std::string_view range) {
  return arrow::Status::Invalid(fmt::format("{} is outside the range of {}, {}", Quoted(value), TypeName(kind), range));
}

template <typename Decimal>
arrow::Status AppendDecimalValue(const Decimal& value, TypeKind kind, int precision, int scale, std::string* out) {
  const size_t before = out->size();
  AppendDecimal(value, scale, out);
  // All 256 bits are BIGNUMERIC's range.
  if (precision >= 76 || value.FitsInPrecision(precision)) return arrow::Status::OK();
  return OutOfRange(kind, out->substr(before), fmt::format("{} digits", precision));
}

arrow::Status AppendIntervalValue(const arrow::StructArray& array, int64_t index, std::string* out) {
  for (const int child : {0, 1, 2}) {
    if (array.field(child)->IsNull(index))
      return arrow::Status::Invalid(fmt::format("an INTERVAL without {}", array.type()->field(child)->name()));
  }
  const IntervalValue value{ValueOf<arrow::Int32Array>(*array.field(0), index), ValueOf<arrow::Int32Array>(*array.field(1), index),
                            ValueOf<arrow::Int64Array>(*array.field(2), index)};
  const size_t before = out->size();
  AppendInterval(value, out);
  if (IntervalInRange(value)) return arrow::Status::OK();
  return OutOfRange(TypeKind::kInterval, out->substr(before), "10000 years, 3660000 days and 87840000 hours");
}

arrow::Status AppendUtf8(std::string_view text, std::string* out) {
  if (!IsUtf8(text)) return arrow::Status::Invalid(fmt::format("{} is not valid UTF-8", Quoted(text)));
  out->append(text);
  return arrow::Status::OK();
}

}  // namespace

arrow::Status AtPlace(const arrow::Status& status, std::string_view column, std::optional<int64_t> row) {
  if (status.ok()) return status;
  ErrorInfo info{.code = Code::kInvalidArgument, .reason = "VALUE_DOES_NOT_FIT", .row = row, .column = std::string(column)};
  if (const ErrorInfo* own = GetErrorInfo(status)) info.code = own->code;
  return MakeError(std::move(info), row ? fmt::format("column {}, row {}: {}", column, *row, status.message())
                                        : fmt::format("column {}: {}", column, status.message()));
}

arrow::Status CheckCanonical(const Field& field, const arrow::DataType& type, const std::string& path) {
  if (IsCanonical(field, type)) return arrow::Status::OK();
  return MakeError({.code = Code::kInvalidArgument, .reason = "NOT_CANONICAL", .column = path},
                   fmt::format("column {}: {} is not the canonical Arrow type of {}", path, type.ToString(), TypeName(field.kind)));
}

ScalarText::ScalarText(const Field& field, const arrow::DataType& type, TextForm form) : kind_(field.kind), form_(form) {
  if (type.id() == arrow::Type::DECIMAL128 || type.id() == arrow::Type::DECIMAL256) {
    precision_ = static_cast<const arrow::DecimalType&>(type).precision();
    scale_ = static_cast<const arrow::DecimalType&>(type).scale();
  }
  if (kind_ == TypeKind::kTimestamp12 && type.id() == arrow::Type::TIMESTAMP) {
    switch (static_cast<const arrow::TimestampType&>(type).unit()) {
      case arrow::TimeUnit::SECOND:
        units_per_second_ = 1;
        break;
      case arrow::TimeUnit::MILLI:
        units_per_second_ = 1'000;
        break;
      case arrow::TimeUnit::MICRO:
        units_per_second_ = kMicrosPerSecond;
        break;
      case arrow::TimeUnit::NANO:
        units_per_second_ = 1'000'000'000;
        break;
    }
  }
  if (kind_ == TypeKind::kRange) element_ = std::make_unique<ScalarText>(Field{.kind = field.range_element}, *type.field(0)->type(), form);
}

arrow::Status ScalarText::AppendTimestampValue(int64_t micros, std::string* out) const {
  if (micros < kMinTimestamp || micros > kMaxTimestamp) {
    std::string text;
    AppendDatetime(micros, &text);
    return OutOfRange(kind_, text, "0001-01-01 to 9999-12-31");
  }
  if (kind_ == TypeKind::kDatetime) {
    AppendDatetime(micros, out);
  } else if (form_ == TextForm::kRest) {
    AppendEpochSeconds(micros, out);
  } else if (form_ == TextForm::kRestMicros) {
    AppendInt64(micros, out);
  } else {
    AppendTimestamp(micros, out);
  }
  return arrow::Status::OK();
}

arrow::Status ScalarText::AppendTimestamp12(const arrow::Array& array, int64_t index, std::string* out) const {
  PicosTimestamp value;
  if (units_per_second_ == 0) {
    ARROW_ASSIGN_OR_RAISE(value, ParsePicosTimestamp(TextOf(array, index)));
  } else {
    const int64_t units = ValueOf<arrow::TimestampArray>(array, index);
    int64_t rest = units % units_per_second_;
    if (rest < 0) rest += units_per_second_;
    value.seconds = units / units_per_second_ - (units % units_per_second_ < 0 ? 1 : 0);
    value.picoseconds = rest * (1'000'000'000'000 / units_per_second_);
    if (value.seconds < kMinTimestamp / kMicrosPerSecond || value.seconds > kMaxTimestamp / kMicrosPerSecond) {
      return OutOfRange(kind_, fmt::format("{}", units), "0001-01-01 to 9999-12-31");
    }
  }
  AppendPicosTimestamp(value, out);
  return arrow::Status::OK();
}

arrow::Status ScalarText::AppendRange(const arrow::StructArray& array, int64_t index, std::string* out) const {
  out->push_back('[');
  for (const int side : {0, 1}) {
    const arrow::Array& values = *array.field(side);
    if (side == 1) *out += ", ";
    if (values.IsNull(index)) {
      *out += "UNBOUNDED";
    } else {
      ARROW_RETURN_NOT_OK(element_->Append(values, index, out));
    }
  }
  out->push_back(')');
  return arrow::Status::OK();
}

arrow::Status ScalarText::AppendCivil(const arrow::Array& array, int64_t index, std::string* out) const {
  const size_t before = out->size();
  if (kind_ == TypeKind::kDate) {
    const int32_t days = ValueOf<arrow::Date32Array>(array, index);
    AppendDate(days, out);
    if (days >= kMinDate && days <= kMaxDate) return arrow::Status::OK();
    return OutOfRange(kind_, out->substr(before), "0001-01-01 to 9999-12-31");
  }
  const int64_t micros = ValueOf<arrow::Time64Array>(array, index);
  AppendTime(micros, out);
  if (micros >= 0 && micros < kMicrosPerDay) return arrow::Status::OK();
  return OutOfRange(kind_, out->substr(before), "00:00:00 to 23:59:59.999999");
}

arrow::Status ScalarText::Append(const arrow::Array& array, int64_t index, std::string* out) const {
  switch (kind_) {
    case TypeKind::kInt64:
      AppendInt64(ValueOf<arrow::Int64Array>(array, index), out);
      return arrow::Status::OK();
    case TypeKind::kFloat64:
      AppendDouble(ValueOf<arrow::DoubleArray>(array, index), out);
      return arrow::Status::OK();
    case TypeKind::kBool:
      *out += ValueOf<arrow::BooleanArray>(array, index) ? "true" : "false";
      return arrow::Status::OK();
    case TypeKind::kString:
    case TypeKind::kGeography:
    case TypeKind::kJson:
      return AppendUtf8(TextOf(array, index), out);
    case TypeKind::kBytes:
      AppendBase64(TextOf(array, index), out);
      return arrow::Status::OK();
    case TypeKind::kNumeric:
      return AppendDecimalValue(arrow::Decimal128(static_cast<const arrow::Decimal128Array&>(array).GetValue(index)), kind_, precision_,
                                scale_, out);
    case TypeKind::kBigNumeric:
      return AppendDecimalValue(arrow::Decimal256(static_cast<const arrow::Decimal256Array&>(array).GetValue(index)), kind_, precision_,
                                scale_, out);
    case TypeKind::kDate:
    case TypeKind::kTime:
      return AppendCivil(array, index, out);
    case TypeKind::kDatetime:
    case TypeKind::kTimestamp:
      return AppendTimestampValue(ValueOf<arrow::TimestampArray>(array, index), out);
    case TypeKind::kTimestamp12:
      return AppendTimestamp12(array, index, out);
    case TypeKind::kInterval:
      return AppendIntervalValue(static_cast<const arrow::StructArray&>(array), index, out);
    case TypeKind::kRange:
      return AppendRange(static_cast<const arrow::StructArray&>(array), index, out);
    case TypeKind::kStruct:
      break;
  }
  return arrow::Status::NotImplemented("a STRUCT has no plain text");
}

arrow::Status ScalarText::AppendJson(const arrow::Array& array, int64_t index, std::string* out) const {
  if (kind_ == TypeKind::kString || kind_ == TypeKind::kGeography || kind_ == TypeKind::kJson) {
    const std::string_view text = TextOf(array, index);
    if (!IsUtf8(text)) return arrow::Status::Invalid(fmt::format("{} is not valid UTF-8", Quoted(text)));
    AppendJsonString(text, out);
    return arrow::Status::OK();
  }
  const bool bare = form_ == TextForm::kPlain &&
                    (kind_ == TypeKind::kBool || (kind_ == TypeKind::kFloat64 && std::isfinite(ValueOf<arrow::DoubleArray>(array, index))));
  if (bare) return Append(array, index, out);
  // No text of the other types holds a character that JSON escapes.
  out->push_back('"');
  ARROW_RETURN_NOT_OK(Append(array, index, out));
  out->push_back('"');
  return arrow::Status::OK();
}

}  // namespace headrace::internal
