#include <arrow/extension_type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include "headrace/types/type_table.h"

namespace headrace {
namespace {

std::shared_ptr<arrow::KeyValueMetadata> Mark(std::string_view name, std::string metadata = "") {
  return arrow::key_value_metadata({std::string(kExtensionNameKey), std::string(kExtensionMetadataKey)},
                                   {std::string(name), std::move(metadata)});
}

std::shared_ptr<arrow::KeyValueMetadata> MarkOf(TypeKind kind, TimestampPrecision timestamp12) {
  switch (kind) {
    case TypeKind::kJson:
      return Mark(kJsonExtension);
    case TypeKind::kGeography:
      return Mark(kGeographyExtension, R"({"encoding": "WKT"})");
    case TypeKind::kInterval:
      return Mark(kIntervalExtension);
    case TypeKind::kRange:
      return Mark(kRangeExtension);
    case TypeKind::kTimestamp12:
      // Cut to microseconds, it is a TIMESTAMP like any other.
      return timestamp12 == TimestampPrecision::kMicros ? nullptr : Mark(kTimestampPicosExtension);
    default:
      return nullptr;
  }
}

std::shared_ptr<arrow::DataType> Timestamp12Type(TimestampPrecision timestamp12) {
  switch (timestamp12) {
    case TimestampPrecision::kMicros:
      return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
    case TimestampPrecision::kNanos:
      return arrow::timestamp(arrow::TimeUnit::NANO, "UTC");
    case TimestampPrecision::kPicos:
      break;
  }
  return arrow::utf8();
}

std::shared_ptr<arrow::DataType> IntervalType() {
  return arrow::struct_({arrow::field("months", arrow::int32(), false), arrow::field("days", arrow::int32(), false),
                         arrow::field("microseconds", arrow::int64(), false)});
}

std::shared_ptr<arrow::DataType> ArrowTypeOf(const Field& field, TimestampPrecision timestamp12);

std::shared_ptr<arrow::Field> ToArrow(const Field& field, TimestampPrecision timestamp12) {
  auto type = ArrowTypeOf(field, timestamp12);
  auto metadata = MarkOf(field.kind, timestamp12);
  if (field.mode != Mode::kRepeated) return arrow::field(field.name, std::move(type), field.mode != Mode::kRequired, std::move(metadata));
  // The metadata says what the values are, so it belongs to the element.
  return arrow::field(field.name, arrow::list(arrow::field("item", std::move(type), true, std::move(metadata))), false);
}

std::shared_ptr<arrow::DataType> StructTypeOf(const Field& field, TimestampPrecision timestamp12) {
  arrow::FieldVector children;
  for (const Field& child : field.fields) children.push_back(ToArrow(child, timestamp12));
  return arrow::struct_(std::move(children));
}

std::shared_ptr<arrow::DataType> RangeType(TypeKind element) {
  // A null side is unbounded.
  auto type = ArrowTypeOf({.name = "start", .kind = element}, TimestampPrecision::kPicos);
  return arrow::struct_({arrow::field("start", type), arrow::field("end", type)});
}

// The schema is valid, so every decimal type can be made.
std::shared_ptr<arrow::DataType> DecimalOf(const Field& field) {
  if (field.kind == TypeKind::kNumeric) {
    return field.precision == 0 ? arrow::decimal128(38, 9) : arrow::decimal128(field.precision, field.scale);
  }
  return field.precision == 0 ? arrow::decimal256(76, 38) : arrow::decimal256(field.precision, field.scale);
}

std::shared_ptr<arrow::DataType> ArrowTypeOf(const Field& field, TimestampPrecision timestamp12) {
  switch (field.kind) {
    case TypeKind::kInt64:
      return arrow::int64();
    case TypeKind::kFloat64:
      return arrow::float64();
    case TypeKind::kBool:
      return arrow::boolean();
    case TypeKind::kString:
    case TypeKind::kGeography:
    case TypeKind::kJson:
      return arrow::utf8();
    case TypeKind::kBytes:
      return arrow::binary();
    case TypeKind::kNumeric:
    case TypeKind::kBigNumeric:
      return DecimalOf(field);
    case TypeKind::kDate:
      return arrow::date32();
    case TypeKind::kTime:
      return arrow::time64(arrow::TimeUnit::MICRO);
    case TypeKind::kDatetime:
      return arrow::timestamp(arrow::TimeUnit::MICRO);
    case TypeKind::kTimestamp:
      return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
    case TypeKind::kTimestamp12:
      return Timestamp12Type(timestamp12);
    case TypeKind::kInterval:
      return IntervalType();
    case TypeKind::kRange:
      return RangeType(field.range_element);
    case TypeKind::kStruct:
      return StructTypeOf(field, timestamp12);
  }
  return arrow::null();  // not reached: every kind is above
}

arrow::Status NoBigQueryType(const arrow::DataType& type, const std::string& path, std::string_view why) {
  ErrorInfo info{.code = Code::kUnimplemented, .resource = type.ToString(), .reason = "UNSUPPORTED", .column = path};
  return MakeError(std::move(info), fmt::format("column {}: the Arrow type {} has no BigQuery type{}", path, type.ToString(), why));
}

// What a utf8 column's extension name says that it is. The service sends TIMESTAMP(12) as text when picoseconds are asked for.
TypeKind TextKind(std::string_view extension) {
  if (extension == kJsonExtension || extension == "google:sqlType:json") return TypeKind::kJson;
  if (extension == kGeographyExtension) return TypeKind::kGeography;
  if (extension == kTimestampPicosExtension || extension == "google:sqlType:timestamp") return TypeKind::kTimestamp12;
  return TypeKind::kString;
}

std::string ExtensionNameOf(const arrow::Field& field) {
  if (field.metadata() == nullptr) return {};
  auto name = field.metadata()->Get(std::string(kExtensionNameKey));
  return name.ok() ? *name : std::string();
}

arrow::Status SetDecimal(const arrow::DataType& type, const std::string& path, Field* field) {
  const auto& decimal = static_cast<const arrow::DecimalType&>(type);
  const int precision = decimal.precision();
  const int scale = decimal.scale();
  const bool numeric = type.id() != arrow::Type::DECIMAL256 && scale >= 0 && scale <= 9 && precision - scale <= 29;
  const bool big = scale >= 0 && scale <= 38 && precision - scale <= 38;
  if (!numeric && !big) return NoBigQueryType(type, path, ": BIGNUMERIC has at most 38 digits before and after the point");
  field->kind = numeric ? TypeKind::kNumeric : TypeKind::kBigNumeric;
  if (precision == (numeric ? 38 : 76) && scale == (numeric ? 9 : 38)) return arrow::Status::OK();
  field->precision = precision;
  field->scale = scale;
  return arrow::Status::OK();
}

arrow::Result<Field> FromArrow(const arrow::Field& arrow_field, const std::string& path, int depth);

arrow::Status SetStruct(const arrow::DataType& type, const std::string& path, int depth, Field* field) {
  field->kind = TypeKind::kStruct;
  // Checked again by ValidateSchema; here it bounds the recursion.
  if (depth > kMaxNesting) return NoBigQueryType(type, path, fmt::format(": more than {} STRUCTs inside each other", kMaxNesting));
  for (const auto& child : type.fields()) {
    ARROW_ASSIGN_OR_RAISE(auto converted, FromArrow(*child, path + "." + child->name(), depth + 1));
    field->fields.push_back(std::move(converted));
  }
  return arrow::Status::OK();
}

// A struct of exactly these integer children, whatever their order of nullability: what the service and files of others send.
arrow::Status SetInterval(const arrow::DataType& type, const std::string& path, Field* field) {
  static constexpr std::pair<const char*, arrow::Type::type> kChildren[] = {
      {"months", arrow::Type::INT32}, {"days", arrow::Type::INT32}, {"microseconds", arrow::Type::INT64}};
  bool fits = type.num_fields() == 3;
  for (int i = 0; fits && i < 3; ++i) {
    const auto& child = *type.field(i);
    fits = SameColumnName(child.name(), kChildren[i].first) && child.type()->id() == kChildren[i].second;
  }
  if (!fits) return NoBigQueryType(type, path, ": an INTERVAL is struct{months int32, days int32, microseconds int64}");
  field->kind = TypeKind::kInterval;
  return arrow::Status::OK();
}

arrow::Status SetRange(const arrow::DataType& type, const std::string& path, int depth, Field* field) {
  constexpr std::string_view kWhat = ": a RANGE is struct{start T, end T} of two DATEs, DATETIMEs or TIMESTAMPs";
  if (type.num_fields() != 2 || !SameColumnName(type.field(0)->name(), "start") || !SameColumnName(type.field(1)->name(), "end")) {
    return NoBigQueryType(type, path, kWhat);
  }
  ARROW_ASSIGN_OR_RAISE(auto start, FromArrow(*type.field(0), path + ".start", depth + 1));
  ARROW_ASSIGN_OR_RAISE(auto end, FromArrow(*type.field(1), path + ".end", depth + 1));
  const bool element = start.kind == TypeKind::kDate || start.kind == TypeKind::kDatetime || start.kind == TypeKind::kTimestamp;
  if (!element || start.kind != end.kind || start.mode == Mode::kRepeated || end.mode == Mode::kRepeated) {
    return NoBigQueryType(type, path, kWhat);
  }
  field->kind = TypeKind::kRange;
  field->range_element = start.kind;
  return arrow::Status::OK();
}

arrow::Status SetStructKind(std::string_view extension, const arrow::DataType& type, const std::string& path, int depth, Field* field) {
  if (extension == kIntervalExtension) return SetInterval(type, path, field);
  if (extension == kRangeExtension) return SetRange(type, path, depth, field);
  return SetStruct(type, path, depth, field);
}

void SetTimestamp(std::string_view extension, const arrow::TimestampType& type, Field* field) {
  if (type.timezone().empty()) {
    field->kind = TypeKind::kDatetime;
  } else {
    field->kind = extension == kTimestampPicosExtension ? TypeKind::kTimestamp12 : TypeKind::kTimestamp;
  }
}

arrow::Status SetRepeated(const arrow::Field& list, const arrow::Field& list_item, const std::string& path, int depth, Field* field) {
  auto element = list_item.WithName(field->name);
  // The service marks the column, we mark the element.
  if (!ExtensionNameOf(list).empty() && ExtensionNameOf(list_item).empty()) element = element->WithMetadata(list.metadata());
  ARROW_ASSIGN_OR_RAISE(*field, FromArrow(*element, path, depth));
  if (field->mode == Mode::kRepeated) return NoBigQueryType(*list.type(), path, ": an array cannot hold arrays");
  field->mode = Mode::kRepeated;
  return arrow::Status::OK();
}

arrow::Status SetKind(const arrow::Field& arrow_field, const arrow::DataType& type, const std::string& path, int depth, Field* field) {
  switch (type.id()) {
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
    case arrow::Type::UINT32:
    case arrow::Type::UINT64:
      field->kind = TypeKind::kInt64;
      return arrow::Status::OK();
    case arrow::Type::HALF_FLOAT:
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE:
      field->kind = TypeKind::kFloat64;
      return arrow::Status::OK();
    case arrow::Type::BOOL:
      field->kind = TypeKind::kBool;
      return arrow::Status::OK();
    case arrow::Type::NA:  // a column without any value
      field->kind = TypeKind::kString;
      return arrow::Status::OK();
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      field->kind = TextKind(ExtensionNameOf(arrow_field));
      return arrow::Status::OK();
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::FIXED_SIZE_BINARY:
      field->kind = TypeKind::kBytes;
      return arrow::Status::OK();
    case arrow::Type::DECIMAL32:
    case arrow::Type::DECIMAL64:
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256:
      return SetDecimal(type, path, field);
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
      field->kind = TypeKind::kDate;
      return arrow::Status::OK();
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
      field->kind = TypeKind::kTime;
      return arrow::Status::OK();
    case arrow::Type::TIMESTAMP:
      SetTimestamp(ExtensionNameOf(arrow_field), static_cast<const arrow::TimestampType&>(type), field);
      return arrow::Status::OK();
    case arrow::Type::INTERVAL_MONTH_DAY_NANO:
      field->kind = TypeKind::kInterval;
      return arrow::Status::OK();
    case arrow::Type::STRUCT:
      return SetStructKind(ExtensionNameOf(arrow_field), type, path, depth, field);
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::LIST_VIEW:
    case arrow::Type::LARGE_LIST_VIEW:
      return SetRepeated(arrow_field, *type.field(0), path, depth, field);
    case arrow::Type::DICTIONARY:
      return SetKind(arrow_field, *static_cast<const arrow::DictionaryType&>(type).value_type(), path, depth, field);
    case arrow::Type::EXTENSION: {
      const auto& extension = static_cast<const arrow::ExtensionType&>(type);
      if (TextKind(extension.extension_name()) == TypeKind::kString) return NoBigQueryType(type, path, "");
      ARROW_RETURN_NOT_OK(SetKind(arrow_field, *extension.storage_type(), path, depth, field));
      if (field->kind != TypeKind::kString) return NoBigQueryType(type, path, "");
      field->kind = TextKind(extension.extension_name());
      return arrow::Status::OK();
    }
    default:
      return NoBigQueryType(type, path, "");
  }
}

arrow::Result<Field> FromArrow(const arrow::Field& arrow_field, const std::string& path, int depth) {
  Field field{.name = arrow_field.name(), .mode = arrow_field.nullable() ? Mode::kNullable : Mode::kRequired};
  ARROW_RETURN_NOT_OK(SetKind(arrow_field, *arrow_field.type(), path, depth, &field));
  return field;
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::Field>> ToArrowField(const Field& field, TimestampPrecision timestamp12) {
  ARROW_RETURN_NOT_OK(ValidateSchema({{field}}));
  return ToArrow(field, timestamp12);
}

arrow::Result<std::shared_ptr<arrow::Schema>> ToArrowSchema(const TableSchema& schema, TimestampPrecision timestamp12) {
  ARROW_RETURN_NOT_OK(ValidateSchema(schema));
  arrow::FieldVector fields;
  for (const Field& field : schema.fields) fields.push_back(ToArrow(field, timestamp12));
  return arrow::schema(std::move(fields));
}

arrow::Result<TableSchema> FromArrowSchema(const arrow::Schema& schema) {
  TableSchema result;
  for (const auto& field : schema.fields()) {
    ARROW_ASSIGN_OR_RAISE(auto converted, FromArrow(*field, field->name(), 1));
    result.fields.push_back(std::move(converted));
  }
  ARROW_RETURN_NOT_OK(ValidateSchema(result));
  return result;
}

std::optional<TypeKind> KindOfCanonical(const arrow::Field& field) {
  auto converted = FromArrow(field, field.name(), 1);
  if (!converted.ok()) return std::nullopt;
  return converted->kind;
}

}  // namespace headrace
