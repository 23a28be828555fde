#include <arrow/extension_type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include "headrace/types/type_table.h"

namespace headrace {
namespace {

arrow::Result<std::shared_ptr<arrow::DataType>> ArrowTypeOf(const Field& field, const std::string& path);

arrow::Result<std::shared_ptr<arrow::Field>> ToArrow(const Field& field, const std::string& path) {
  if (!RowOf(field.kind).built) {
    ErrorInfo info{.code = Code::kUnimplemented, .resource = std::string(TypeName(field.kind)), .reason = "UNSUPPORTED", .column = path};
    return MakeError(std::move(info), fmt::format("column {}: the type {} is not built yet; leave the column out of the selected fields",
                                                  path, TypeName(field.kind)));
  }
  ARROW_ASSIGN_OR_RAISE(auto type, ArrowTypeOf(field, path));
  std::shared_ptr<arrow::KeyValueMetadata> metadata;
  if (field.kind == TypeKind::kJson) {
    metadata =
        arrow::key_value_metadata({std::string(kExtensionNameKey), std::string(kExtensionMetadataKey)}, {std::string(kJsonExtension), ""});
  } else if (field.kind == TypeKind::kGeography) {
    metadata = arrow::key_value_metadata({std::string(kExtensionNameKey), std::string(kExtensionMetadataKey)},
                                         {std::string(kGeographyExtension), R"({"encoding": "WKT"})"});
  }
  if (field.mode != Mode::kRepeated) return arrow::field(field.name, std::move(type), field.mode != Mode::kRequired, metadata);
  // The metadata says what the values are, so it belongs to the element.
  return arrow::field(field.name, arrow::list(arrow::field("item", std::move(type), true, metadata)), false);
}

arrow::Result<std::shared_ptr<arrow::DataType>> StructTypeOf(const Field& field, const std::string& path) {
  arrow::FieldVector children;
  for (const Field& child : field.fields) {
    ARROW_ASSIGN_OR_RAISE(auto arrow_child, ToArrow(child, path + "." + child.name));
    children.push_back(std::move(arrow_child));
  }
  return arrow::struct_(std::move(children));
}

arrow::Result<std::shared_ptr<arrow::DataType>> ArrowTypeOf(const Field& field, const std::string& path) {
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
      return field.precision == 0 ? arrow::Decimal128Type::Make(38, 9) : arrow::Decimal128Type::Make(field.precision, field.scale);
    case TypeKind::kBigNumeric:
      return field.precision == 0 ? arrow::Decimal256Type::Make(76, 38) : arrow::Decimal256Type::Make(field.precision, field.scale);
    case TypeKind::kDate:
      return arrow::date32();
    case TypeKind::kTime:
      return arrow::time64(arrow::TimeUnit::MICRO);
    case TypeKind::kDatetime:
      return arrow::timestamp(arrow::TimeUnit::MICRO);
    case TypeKind::kTimestamp:
      return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
    case TypeKind::kStruct:
      return StructTypeOf(field, path);
    case TypeKind::kTimestamp12:
    case TypeKind::kInterval:
    case TypeKind::kRange:
      break;  // refused by the caller
  }
  return arrow::Status::NotImplemented(TypeName(field.kind));
}

arrow::Status NoBigQueryType(const arrow::DataType& type, const std::string& path, std::string_view why) {
  ErrorInfo info{.code = Code::kUnimplemented, .resource = type.ToString(), .reason = "UNSUPPORTED", .column = path};
  return MakeError(std::move(info), fmt::format("column {}: the Arrow type {} has no BigQuery type{}", path, type.ToString(), why));
}

// What a utf8 column's extension name says that it is.
TypeKind TextKind(std::string_view extension) {
  if (extension == kJsonExtension || extension == "google:sqlType:json") return TypeKind::kJson;
  if (extension == kGeographyExtension) return TypeKind::kGeography;
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
      field->kind = static_cast<const arrow::TimestampType&>(type).timezone().empty() ? TypeKind::kDatetime : TypeKind::kTimestamp;
      return arrow::Status::OK();
    case arrow::Type::STRUCT:
      return SetStruct(type, path, depth, field);
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

arrow::Result<std::shared_ptr<arrow::Field>> ToArrowField(const Field& field) {
  ARROW_RETURN_NOT_OK(ValidateSchema({{field}}));
  return ToArrow(field, field.name);
}

arrow::Result<std::shared_ptr<arrow::Schema>> ToArrowSchema(const TableSchema& schema) {
  ARROW_RETURN_NOT_OK(ValidateSchema(schema));
  arrow::FieldVector fields;
  for (const Field& field : schema.fields) {
    ARROW_ASSIGN_OR_RAISE(auto arrow_field, ToArrow(field, field.name));
    fields.push_back(std::move(arrow_field));
  }
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

}  // namespace headrace
