#include "headrace/avro/table_schema.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/avro/internal/folded_name.h"
#include "headrace/types/type_table.h"

namespace headrace::avro {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIntervalName = "google.sqlType.INTERVAL";
// NUMERIC's and BIGNUMERIC's own digits in Avro: https://cloud.google.com/bigquery/docs/exporting-data#avro_export_details
constexpr std::pair<int, int> kNumericDigits = {38, 9};
constexpr std::pair<int, int> kBigNumericDigits = {77, 38};
// Columns of a table with those inside: quotas, "maximum columns in a table". It bounds what a small schema of many references can become.
constexpr int64_t kMaxColumns = 10'000;

arrow::Status Refuse(const std::string& path, std::string_view why) {
  ErrorInfo info{.code = Code::kUnimplemented, .resource = "Avro", .reason = "UNSUPPORTED", .column = path};
  return MakeError(std::move(info), fmt::format("column {}: {}", path, why));
}

bool IsAvroName(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name.front())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

class SchemaWriter {
 public:
  explicit SchemaWriter(const AvroSchemaOptions& options) : options_(options) {}

  arrow::Result<std::string> Write(const TableSchema& table) {
    const char* root = options_.dialect == Dialect::kStorageRead ? "__root__" : "Root";
    names_.insert(root);
    parents_ = root;
    ARROW_ASSIGN_OR_RAISE(Json fields, Fields(table.fields, ""));
    return Json{{"type", "record"}, {"name", root}, {"fields", std::move(fields)}}.dump();
  }

 private:
  bool has_sql_type() const { return options_.dialect != Dialect::kLoadFile; }

  arrow::Result<Json> Fields(const std::vector<Field>& fields, const std::string& path) {
    // Placeholders stay clear of the names that are there, whatever their case.
    std::unordered_set<std::string> taken;
    for (const Field& field : fields) taken.insert(FoldedName(field.name));
    Json result = Json::array();
    for (const Field& field : fields) {
      const std::string where = path.empty() ? field.name : path + "." + field.name;
      ARROW_ASSIGN_OR_RAISE(Json json, Named(field, where, &taken));
      const std::string avro_name = json["name"];
      ARROW_ASSIGN_OR_RAISE(Json type, TypeOf(field, avro_name, where));
      if (field.mode == Mode::kRepeated) {
        json["type"] = {{"type", "array"}, {"items", std::move(type)}};
      } else if (field.mode == Mode::kNullable) {
        json["type"] = Json::array({"null", std::move(type)});
      } else {
        json["type"] = std::move(type);
      }
      if (!field.description.empty()) json["doc"] = field.description;
      result.push_back(std::move(json));
    }
    return result;
  }

  arrow::Result<Json> Named(const Field& field, const std::string& where, std::unordered_set<std::string>* taken) {
    const bool shown = options_.dialect == Dialect::kStorageRead && options_.display_names;
    if (IsAvroName(field.name)) {
      Json json = {{"name", field.name}};
      if (shown) json["displayName"] = field.name;
      return json;
    }
    if (!shown && options_.dialect != Dialect::kExport) {
      return Refuse(where, "the name does not follow Avro's grammar [A-Za-z_][A-Za-z0-9_]*, which it must here");
    }
    std::string placeholder;
    do {
      placeholder = fmt::format("_field_{}", ++placeholders_);
    } while (!taken->insert(placeholder).second);
    return Json{{"name", placeholder}, {"displayName", field.name}};
  }

  // A type of BigQuery's that is Avro text or bytes otherwise.
  Json Attributed(const char* type, const char* sql_type) const {
    if (!has_sql_type()) return type;
    return {{"type", type}, {"sqlType", sql_type}};
  }
  static Json LogicalType(const char* type, Logical logical) {
    return {{"type", type}, {"logicalType", std::string(LogicalName(logical))}};
  }
  static Json Decimal(const Field& field, std::pair<int, int> own) {
    Json json = LogicalType("bytes", Logical::kDecimal);
    json["precision"] = field.precision == 0 ? own.first : field.precision;
    json["scale"] = field.precision == 0 ? own.second : field.scale;
    return json;
  }

  arrow::Result<Json> TypeOf(const Field& field, const std::string& avro_name, const std::string& path) {
    switch (field.kind) {
      case TypeKind::kInt64:
        return Json("long");
      case TypeKind::kFloat64:
        return Json("double");
      case TypeKind::kBool:
        return Json("boolean");
      case TypeKind::kString:
        return Json("string");
      case TypeKind::kBytes:
        return Json("bytes");
      case TypeKind::kNumeric:
        return Decimal(field, kNumericDigits);
      case TypeKind::kBigNumeric:
        return Decimal(field, kBigNumericDigits);
      case TypeKind::kDate:
        return LogicalType("int", Logical::kDate);
      case TypeKind::kTime:
        return LogicalType("long", Logical::kTimeMicros);
      case TypeKind::kDatetime:
        return Datetime();
      case TypeKind::kTimestamp:
        return LogicalType("long", Logical::kTimestampMicros);
      case TypeKind::kTimestamp12:
        return Timestamp12(path);
      case TypeKind::kGeography:
        return Attributed("string", "GEOGRAPHY");
      case TypeKind::kJson:
        return Attributed("string", "JSON");
      case TypeKind::kInterval:
        return Interval(path);
      case TypeKind::kRange:
        return Range(field, path);
      case TypeKind::kStruct: {
        const std::string space = space_;
        const std::string parents = parents_;
        Json record = Record(avro_name, space);
        if (record.contains("namespace")) space_ = record["namespace"];
        parents_ = parents_ + "." + avro_name;
        ARROW_ASSIGN_OR_RAISE(record["fields"], Fields(field.fields, path));
        space_ = space;
        parents_ = parents;
        return record;
      }
    }
    return Refuse(path, "an unknown type");
  }

  Json Datetime() const {
    if (!has_sql_type()) return LogicalType("long", Logical::kLocalTimestampMicros);
    Json json = LogicalType("string", Logical::kDatetime);
    json["sqlType"] = "DATETIME";
    return json;
  }

  arrow::Result<Json> Timestamp12(const std::string& path) const {
    if (!has_sql_type()) return Refuse(path, "load jobs take no TIMESTAMP(12) from Avro files");
    if (options_.picos == PicosPrecision::kMicros) return LogicalType("long", Logical::kTimestampMicros);
    if (options_.picos == PicosPrecision::kNanos) return LogicalType("long", Logical::kTimestampNanos);
    return Attributed("string", "TIMESTAMP(12)");
  }

  arrow::Result<Json> Interval(const std::string& path) {
    if (!has_sql_type()) return Refuse(path, "load jobs take no INTERVAL from Avro files");
    if (!names_.insert(kIntervalName).second) return Json(kIntervalName);
    Json record = {{"type", "record"}, {"name", "INTERVAL"}, {"namespace", "google.sqlType"}, {"sqlType", "INTERVAL"}};
    record["fields"] = Json::array(
        {{{"name", "months"}, {"type", "int"}}, {{"name", "days"}, {"type", "int"}}, {{"name", "microseconds"}, {"type", "long"}}});
    return record;
  }

  arrow::Result<Json> Range(const Field& field, const std::string& path) {
    if (!has_sql_type()) return Refuse(path, "load jobs take no RANGE from Avro files");
    const std::string element(TypeName(field.range_element));
    const std::string full_name = "google.sqlType.RANGE_" + element;
    if (!names_.insert(full_name).second) return Json(full_name);
    ARROW_ASSIGN_OR_RAISE(Json bound, TypeOf({.name = field.name, .kind = field.range_element}, field.name, path));
    Json record = {
        {"type", "record"}, {"name", "RANGE_" + element}, {"namespace", "google.sqlType"}, {"sqlType", "RANGE<" + element + ">"}};
    record["fields"] = Json::array({{{"name", "start"}, {"type", {"null", bound}}}, {{"name", "end"}, {"type", {"null", bound}}}});
    return record;
  }

  // Avro knows one type by each name: the second record of a name is told apart by its path, as namespace.
  Json Record(const std::string& avro_name, const std::string& space) {
    Json record = {{"type", "record"}, {"name", avro_name}};
    std::string own_space;
    if (!names_.insert(avro_name).second) {
      own_space = parents_;
      while (!names_.insert(fmt::format("{}.{}", own_space, avro_name)).second) own_space += "_";
    }
    // A name without a namespace takes that of the record around it.
    if (own_space != space) record["namespace"] = own_space;
    return record;
  }

  const AvroSchemaOptions& options_;
  std::unordered_set<std::string> names_;
  std::string parents_;  // Avro names of the records around, from the root
  std::string space_;    // the namespace that holds there
  int placeholders_ = 0;
};

class SchemaReader {
 public:
  arrow::Result<TableSchema> Read(const Schema& schema) {
    const Node& root = schema.root();
    if (root.kind != Kind::kRecord) {
      return Unsupported("Avro", fmt::format("Avro schema: a table's rows are records, not {}", KindName(root.kind)));
    }
    TableSchema table;
    ARROW_ASSIGN_OR_RAISE(table.fields, Fields(root, ""));
    ARROW_RETURN_NOT_OK(ValidateSchema(table));
    return table;
  }

 private:
  arrow::Result<std::vector<Field>> Fields(const Node& record, const std::string& path) {
    if (std::find(open_.begin(), open_.end(), &record) != open_.end()) {
      return Refuse(path, fmt::format("the record {} contains itself, which no table can hold", record.full_name));
    }
    open_.push_back(&record);
    std::vector<Field> fields;
    for (const RecordField& avro : record.fields) {
      const std::string where = path.empty() ? avro.column_name() : path + "." + avro.column_name();
      if (++columns_ > kMaxColumns) return Refuse(where, fmt::format("more than {} columns", kMaxColumns));
      Field field{.name = avro.column_name(), .description = avro.doc};
      ARROW_RETURN_NOT_OK(SetType(*avro.type, where, &field));
      fields.push_back(std::move(field));
    }
    open_.pop_back();
    return fields;
  }

  arrow::Result<const Node*> ValueOf(const Node& declared, const std::string& path, bool* nullable) {
    const Optional split = SplitOptional(declared);
    if (split.value == nullptr) {
      const bool only_null = declared.kind == Kind::kNull || declared.branches.size() == 1;
      return Refuse(path, only_null ? "null alone is no column" : "a union of several types is no column");
    }
    *nullable = split.null_branch >= 0;
    return split.value;
  }

  arrow::Status SetType(const Node& declared, const std::string& path, Field* field) {
    bool nullable = false;
    ARROW_ASSIGN_OR_RAISE(const Node* node, ValueOf(declared, path, &nullable));
    field->mode = nullable ? Mode::kNullable : Mode::kRequired;
    if (node->kind == Kind::kMap) {
      field->mode = Mode::kRepeated;
      field->kind = TypeKind::kStruct;
      Field value{.name = "value"};
      ARROW_RETURN_NOT_OK(SetType(node->element(), path + ".value", &value));
      field->fields = {Field{.name = "key", .mode = Mode::kRequired}, std::move(value)};
      return arrow::Status::OK();
    }
    if (node->kind == Kind::kArray) {
      // Elements that may be null are taken, as Hive and Spark write all of theirs; one that is null is found when it comes.
      ARROW_ASSIGN_OR_RAISE(node, ValueOf(node->element(), path, &nullable));
      field->mode = Mode::kRepeated;
      if (node->kind == Kind::kArray || node->kind == Kind::kMap) return Refuse(path, "an array cannot hold arrays or maps");
    }
    return SetKind(*node, path, field);
  }

  arrow::Status SetKind(const Node& node, const std::string& path, Field* field) {
    switch (node.kind) {
      case Kind::kBoolean:
        field->kind = TypeKind::kBool;
        return arrow::Status::OK();
      case Kind::kFloat:
      case Kind::kDouble:
        field->kind = TypeKind::kFloat64;
        return arrow::Status::OK();
      case Kind::kInt:
      case Kind::kLong:
        return SetNumber(node, path, field);
      case Kind::kEnum:
        field->kind = TypeKind::kString;
        return arrow::Status::OK();
      case Kind::kString:
        SetText(node, field);
        return arrow::Status::OK();
      case Kind::kBytes:
      case Kind::kFixed:
        return SetBytes(node, path, field);
      case Kind::kRecord:
        return SetRecord(node, path, field);
      default:
        return Refuse(path, fmt::format("{} is no column", KindName(node.kind)));
    }
  }

  static arrow::Status SetNumber(const Node& node, const std::string& path, Field* field) {
    switch (node.logical) {
      case Logical::kDate:
        field->kind = TypeKind::kDate;
        return arrow::Status::OK();
      case Logical::kTimeMillis:
      case Logical::kTimeMicros:
        field->kind = TypeKind::kTime;
        return arrow::Status::OK();
      case Logical::kTimestampMillis:
      case Logical::kTimestampMicros:
        field->kind = TypeKind::kTimestamp;
        return arrow::Status::OK();
      case Logical::kTimestampNanos:  // more digits than TIMESTAMP keeps
        field->kind = TypeKind::kTimestamp12;
        return arrow::Status::OK();
      case Logical::kLocalTimestampMillis:
      case Logical::kLocalTimestampMicros:
        field->kind = TypeKind::kDatetime;
        return arrow::Status::OK();
      case Logical::kLocalTimestampNanos:
        return Refuse(path, "local-timestamp-nanos has more digits than DATETIME keeps");
      default:
        field->kind = TypeKind::kInt64;
        return arrow::Status::OK();
    }
  }

  static void SetText(const Node& node, Field* field) {
    // Only types whose text the decoder reads as what they are; any other sqlType stays the text that it is.
    const auto known = TypeKindFromName(node.sql_type);
    const bool read = known == TypeKind::kJson || known == TypeKind::kGeography || known == TypeKind::kDate || known == TypeKind::kTime ||
                      known == TypeKind::kDatetime || known == TypeKind::kTimestamp || known == TypeKind::kTimestamp12 ||
                      known == TypeKind::kInterval;
    field->kind = read ? *known : node.logical == Logical::kDatetime ? TypeKind::kDatetime : TypeKind::kString;
  }

  static arrow::Status SetBytes(const Node& node, const std::string& path, Field* field) {
    field->kind = TypeKind::kBytes;
    if (node.logical == Logical::kNone) return arrow::Status::OK();
    if (node.logical != Logical::kDecimal) {
      return Refuse(path, fmt::format("{} ({}) has no BigQuery type", KindName(node.kind), LogicalName(node.logical)));
    }
    const int whole = node.precision - node.scale;
    const bool numeric = node.scale <= kNumericDigits.second && whole <= kNumericDigits.first - kNumericDigits.second;
    field->kind = numeric ? TypeKind::kNumeric : TypeKind::kBigNumeric;
    const std::pair digits(node.precision, node.scale);
    // 76 digits is how Arrow spells BIGNUMERIC's.
    if (digits == kNumericDigits || digits == kBigNumericDigits || digits == std::pair(76, 38)) return arrow::Status::OK();
    if (node.scale > 38 || whole > 38) {
      return Refuse(
          path, fmt::format("decimal({}, {}): BIGNUMERIC has at most 38 digits before and after the point", node.precision, node.scale));
    }
    field->precision = node.precision;
    field->scale = node.scale;
    return arrow::Status::OK();
  }

  arrow::Status SetRecord(const Node& node, const std::string& path, Field* field) {
    if (node.full_name == kIntervalName || node.sql_type == "INTERVAL") {
      field->kind = TypeKind::kInterval;
      return arrow::Status::OK();
    }
    field->kind = TypeKind::kStruct;
    ARROW_ASSIGN_OR_RAISE(field->fields, Fields(node, path));
    if (!node.sql_type.starts_with("RANGE")) return arrow::Status::OK();
    const auto start = FindField(field->fields, "start");
    if (!start || field->fields.size() != 2) return Refuse(path, "a RANGE is a record of start and end");
    field->kind = TypeKind::kRange;
    field->range_element = field->fields[*start].kind;
    field->fields.clear();
    return arrow::Status::OK();
  }

  std::vector<const Node*> open_;
  int64_t columns_ = 0;
};

}  // namespace

arrow::Result<std::string> ToAvroSchema(const TableSchema& table, const AvroSchemaOptions& options) {
  ARROW_RETURN_NOT_OK(ValidateSchema(table));
  return SchemaWriter(options).Write(table);
}

arrow::Result<TableSchema> FromAvroSchema(const Schema& schema) { return SchemaReader().Read(schema); }

}  // namespace headrace::avro
