#include "headrace/types/internal/scalar_appender.h"

#include <limits>
#include <optional>

#include <fmt/format.h>

#include "headrace/types/type_table.h"
#include "headrace/types/utf8.h"
#include "headrace/types/value_text.h"

namespace headrace::internal {
namespace {

template <typename Builder, typename Value>
arrow::Status AppendTo(arrow::ArrayBuilder* builder, const Value& value) {
  return static_cast<Builder*>(builder)->Append(value);
}

bool LooksLikeInteger(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

int64_t MicrosPer(EpochUnit unit) { return unit == EpochUnit::kSeconds ? kMicrosPerSecond : unit == EpochUnit::kMillis ? 1'000 : 1; }

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

ScalarAppender::ScalarAppender(const Field& field, const ParseOptions& options, arrow::ArrayBuilder* builder)
    : kind_(field.kind), range_element_(field.range_element), options_(options), builder_(builder) {
  // A builder of STRUCTs makes its type anew each time.
  const std::shared_ptr<arrow::DataType> holder = builder->type();
  const auto& type = *holder;
  if (type.id() == arrow::Type::DECIMAL128 || type.id() == arrow::Type::DECIMAL256) {
    precision_ = static_cast<const arrow::DecimalType&>(type).precision();
    scale_ = static_cast<const arrow::DecimalType&>(type).scale();
  }
}

arrow::Status ScalarAppender::AppendNull() {
  if (kind_ != TypeKind::kRange) return builder_->AppendNull();
  auto* range = static_cast<arrow::StructBuilder*>(builder_);
  for (int side = 0; side < 2; ++side) ARROW_RETURN_NOT_OK(range->field_builder(side)->AppendNull());
  return range->Append(false);
}

arrow::Status ScalarAppender::AppendNothing() { return builder_->AppendEmptyValue(); }

arrow::Status ScalarAppender::Append(ValueSource source, std::string_view text) {
  const Coercion coercion = CoercionOf(kind_, source);
  if (coercion == Coercion::kNever || (coercion == Coercion::kUnlessStrict && options_.strict)) {
    return arrow::Status::Invalid(fmt::format("{} is a {}, which is not taken for {}{}", Quoted(text), SourceName(source), TypeName(kind_),
                                              coercion == Coercion::kNever ? "" : " when values are read strictly"));
  }
  return AppendAllowed(source, text);
}

arrow::Status ScalarAppender::AppendAllowed(ValueSource source, std::string_view text) {
  switch (kind_) {
    case TypeKind::kInt64:
      return AppendInt64(text);
    case TypeKind::kFloat64: {
      ARROW_ASSIGN_OR_RAISE(double value, ParseDouble(text));
      return AppendTo<arrow::DoubleBuilder>(builder_, value);
    }
    case TypeKind::kBool: {
      ARROW_ASSIGN_OR_RAISE(bool value, ParseBool(text));
      return AppendTo<arrow::BooleanBuilder>(builder_, value);
    }
    case TypeKind::kString:
    case TypeKind::kGeography:
    case TypeKind::kJson:
      return AppendText(source, text);
    case TypeKind::kBytes:
      return AppendBytes(text);
    case TypeKind::kNumeric:
    case TypeKind::kBigNumeric:
      return AppendDecimal(text);
    case TypeKind::kDate:
      return AppendDate(text);
    case TypeKind::kTime: {
      ARROW_ASSIGN_OR_RAISE(int64_t micros, ParseTime(text));
      return AppendTo<arrow::Time64Builder>(builder_, micros);
    }
    case TypeKind::kDatetime: {
      ARROW_ASSIGN_OR_RAISE(int64_t micros, Datetime(text));
      return AppendTo<arrow::TimestampBuilder>(builder_, micros);
    }
    case TypeKind::kTimestamp:
      return AppendTimestamp(source, text);
    case TypeKind::kTimestamp12:
      return AppendTimestamp12(source, text);
    case TypeKind::kInterval:
      return AppendInterval(text);
    case TypeKind::kRange:
      return AppendRange(text);
    case TypeKind::kStruct:
      break;
  }
  return arrow::Status::NotImplemented("a STRUCT has no plain text");
}

arrow::Status ScalarAppender::AppendInt64(std::string_view text) {
  ARROW_ASSIGN_OR_RAISE(int64_t value, options_.strict ? ParseInt64(text) : ParseWholeNumber(text));
  return AppendTo<arrow::Int64Builder>(builder_, value);
}

arrow::Status ScalarAppender::AppendDecimal(std::string_view text) {
  ARROW_ASSIGN_OR_RAISE(auto value, ParseDecimal(text, precision_, scale_, options_.rounding));
  if (kind_ == TypeKind::kBigNumeric) return AppendTo<arrow::Decimal256Builder>(builder_, value);
  const auto& words = value.little_endian_array();
  return AppendTo<arrow::Decimal128Builder>(builder_, arrow::Decimal128(static_cast<int64_t>(words[1]), words[0]));
}

arrow::Status ScalarAppender::AppendText(ValueSource source, std::string_view text) {
  if (!IsUtf8(text)) return arrow::Status::Invalid(fmt::format("{} is not valid UTF-8", Quoted(text)));
  // What is not in quotes has been read as JSON already, but for what lies inside an object or array.
  const bool checked = source != ValueSource::kText && source != ValueSource::kObject && source != ValueSource::kArray;
  if (kind_ == TypeKind::kJson && !checked) ARROW_RETURN_NOT_OK(json_.Check(text));
  return AppendTo<arrow::StringBuilder>(builder_, text);
}

arrow::Status ScalarAppender::AppendBytes(std::string_view text) {
  buffer_.clear();
  ARROW_RETURN_NOT_OK(ParseBase64(text, &buffer_));
  return AppendTo<arrow::BinaryBuilder>(builder_, std::string_view(buffer_));
}

arrow::Status ScalarAppender::AppendDate(std::string_view text) {
  ARROW_ASSIGN_OR_RAISE(int32_t days, ParseDate(text));
  return AppendTo<arrow::Date32Builder>(builder_, days);
}

arrow::Result<int64_t> ScalarAppender::Datetime(std::string_view text) const {
  auto value = ParseDatetime(text);
  if (value.ok() || options_.strict) return value;
  auto date = ParseDate(text);
  return date.ok() ? arrow::Result<int64_t>(*date * kMicrosPerDay) : value;
}

arrow::Result<int64_t> ScalarAppender::Timestamp(std::string_view text) const {
  auto value = ParseTimestamp(text);
  if (value.ok() || options_.strict) return value;
  auto without_offset = Datetime(text);
  return without_offset.ok() ? without_offset : value;
}

arrow::Result<int64_t> ScalarAppender::Epoch(std::string_view text) const {
  if (options_.epoch_unit == EpochUnit::kNone) {
    return arrow::Status::Invalid(
        fmt::format("{} is a number, which is taken for {} only with a stated unit: seconds, milliseconds or microseconds since 1970",
                    Quoted(text), TypeName(kind_)));
  }
  const int64_t micros = MicrosPer(options_.epoch_unit);
  ARROW_ASSIGN_OR_RAISE(int64_t value, ParseInt64(text));
  // The bounds are multiples of the unit, but for the last fraction of 9999.
  if (value >= kMinTimestamp / micros && value <= kMaxTimestamp / micros) return value * micros;
  return arrow::Status::Invalid(fmt::format("{} is outside the range of {}, 0001-01-01 to 9999-12-31", Quoted(text), TypeName(kind_)));
}

arrow::Status ScalarAppender::AppendTimestamp(ValueSource source, std::string_view text) {
  const bool epoch = source == ValueSource::kInteger || LooksLikeInteger(text);
  ARROW_ASSIGN_OR_RAISE(int64_t micros, epoch ? Epoch(text) : Timestamp(text));
  return AppendTo<arrow::TimestampBuilder>(builder_, micros);
}

arrow::Status ScalarAppender::AppendTimestamp12(ValueSource source, std::string_view text) {
  PicosTimestamp value;
  if (auto precise = ParsePicosTimestamp(text); precise.ok()) {
    value = *precise;
  } else if (const bool epoch = source == ValueSource::kInteger || LooksLikeInteger(text); epoch || !options_.strict) {
    auto micros = epoch ? Epoch(text) : Datetime(text);
    if (!micros.ok()) {
      // A datetime of twelve digits without an offset is UTC like any other.
      buffer_.assign(text).append("Z");
      precise = epoch ? precise : ParsePicosTimestamp(buffer_);
      if (!precise.ok()) return epoch ? micros.status() : ParsePicosTimestamp(text).status();
      value = *precise;
    } else {
      const int64_t fraction = (*micros % kMicrosPerSecond + kMicrosPerSecond) % kMicrosPerSecond;
      value = {(*micros - fraction) / kMicrosPerSecond, fraction * 1'000'000};
    }
  } else {
    return precise.status();
  }
  if (builder_->type()->id() == arrow::Type::STRING) {
    buffer_.clear();
    AppendPicosTimestamp(value, &buffer_);
    return AppendTo<arrow::StringBuilder>(builder_, std::string_view(buffer_));
  }
  constexpr int64_t kPicosPerNano = 1'000;
  int64_t nanos = 0;
  if (value.picoseconds % kPicosPerNano != 0 || __builtin_mul_overflow(value.seconds, int64_t{1'000'000'000}, &nanos) ||
      __builtin_add_overflow(nanos, value.picoseconds / kPicosPerNano, &nanos)) {
    return arrow::Status::Invalid(fmt::format("{} does not fit into timestamp[ns]", Quoted(text)));
  }
  return AppendTo<arrow::TimestampBuilder>(builder_, nanos);
}

arrow::Status ScalarAppender::AppendInterval(std::string_view text) {
  ARROW_ASSIGN_OR_RAISE(auto value, ParseInterval(text));
  auto* interval = static_cast<arrow::StructBuilder*>(builder_);
  ARROW_RETURN_NOT_OK(AppendTo<arrow::Int32Builder>(interval->field_builder(0), value.months));
  ARROW_RETURN_NOT_OK(AppendTo<arrow::Int32Builder>(interval->field_builder(1), value.days));
  ARROW_RETURN_NOT_OK(AppendTo<arrow::Int64Builder>(interval->field_builder(2), value.microseconds));
  return interval->Append();
}

arrow::Result<int64_t> ScalarAppender::RangeSide(std::string_view text) const {
  if (range_element_ == TypeKind::kDate) {
    ARROW_ASSIGN_OR_RAISE(int32_t days, ParseDate(text));
    return days;
  }
  return range_element_ == TypeKind::kDatetime ? Datetime(text) : Timestamp(text);
}

arrow::Status ScalarAppender::AppendRange(std::string_view text) {
  const size_t comma = text.find(',');
  if (!text.starts_with('[') || !text.ends_with(')') || comma == std::string_view::npos) {
    return arrow::Status::Invalid(fmt::format("{} is no RANGE: [start, end) is wanted, UNBOUNDED for an open side", Quoted(text)));
  }
  const std::string_view sides[] = {Trimmed(text.substr(1, comma - 1)), Trimmed(text.substr(comma + 1, text.size() - comma - 2))};
  std::optional<int64_t> values[2];
  for (const int side : {0, 1}) {
    if (SameColumnName(sides[side], "UNBOUNDED") || SameColumnName(sides[side], "NULL")) continue;
    auto value = RangeSide(sides[side]);
    if (!value.ok()) return arrow::Status::Invalid(fmt::format("{} is no RANGE: {}", Quoted(text), value.status().message()));
    values[side] = *value;
  }
  if (values[0] && values[1] && *values[0] >= *values[1]) {
    return arrow::Status::Invalid(fmt::format("{} is no RANGE: its start is not before its end", Quoted(text)));
  }
  auto* range = static_cast<arrow::StructBuilder*>(builder_);
  for (const int side : {0, 1}) {
    auto* builder = range->field_builder(side);
    if (!values[side]) {
      ARROW_RETURN_NOT_OK(builder->AppendNull());
    } else if (range_element_ == TypeKind::kDate) {
      ARROW_RETURN_NOT_OK(AppendTo<arrow::Date32Builder>(builder, static_cast<int32_t>(*values[side])));
    } else {
      ARROW_RETURN_NOT_OK(AppendTo<arrow::TimestampBuilder>(builder, *values[side]));
    }
  }
  return range->Append();
}

}  // namespace headrace::internal
