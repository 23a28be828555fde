#include "headrace/types/json_schema_inference.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headrace/types/internal/json_walk.h"
#include "headrace/types/internal/scalar_text.h"
#include "headrace/types/json_text.h"
#include "headrace/types/value_text.h"

namespace headrace {
namespace {

namespace ondemand = simdjson::ondemand;

// A number that FLOAT64 would change.
struct LostDigits {
  int64_t row = 0;
  std::string text;
};

// What has been seen of a column.
struct Seen {
  std::string name;
  std::string path;
  bool arrays = false;
  bool single = false;             // a value that is neither null nor an array
  std::optional<TypeKind> kind{};  // of the values or elements
  std::optional<LostDigits> lost{};
  std::vector<Seen> fields{};
  std::unordered_map<std::string, size_t> by_name{};  // lower-case ASCII
};

std::string Folded(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return folded;
}

// Texts in the form that they are written in: others (2024-1-5) stay text, which does not change them.
TypeKind KindOfText(std::string_view text) {
  if (text.size() == 10 && ParseDate(text).ok()) return TypeKind::kDate;
  if (text.size() >= 8 && text[2] == ':' && text[5] == ':' && ParseTime(text).ok()) return TypeKind::kTime;
  if (text.size() < 19 || text[10] == '-' || text[13] != ':' || text[16] != ':') return TypeKind::kString;
  if (ParseDatetime(text).ok()) return TypeKind::kDatetime;
  return ParseTimestamp(text).ok() ? TypeKind::kTimestamp : TypeKind::kString;
}

bool IsNumber(TypeKind kind) { return kind == TypeKind::kInt64 || kind == TypeKind::kFloat64; }

TypeKind Merged(TypeKind a, TypeKind b) {
  if (a == b) return a;
  if (IsNumber(a) && IsNumber(b)) return TypeKind::kFloat64;
  return TypeKind::kString;
}

}  // namespace

struct JsonSchemaInference::State {
  internal::JsonDocument document;
  Seen root;
  int64_t row = 0;

  arrow::Status At(const Seen& seen, std::string_view what) const {
    if (!seen.path.empty()) return internal::AtPlace(arrow::Status::Invalid(what), seen.path, row);
    return MakeError({.code = Code::kInvalidArgument, .reason = "BAD_ROW", .row = row}, fmt::format("row {}: {}", row, what));
  }
  arrow::Status At(const Seen& seen, simdjson::error_code error) const { return At(seen, internal::JsonError(error).message()); }

  Seen* Column(Seen* parent, std::string_view name) {
    auto [found, added] = parent->by_name.try_emplace(Folded(name), parent->fields.size());
    if (added) {
      Seen column;
      column.name = name;
      column.path = parent->path.empty() ? column.name : parent->path + "." + column.name;
      parent->fields.push_back(std::move(column));
    }
    return &parent->fields[found->second];
  }

  arrow::Status AddObject(ondemand::object object, Seen* parent, int depth) {
    for (auto item : object) {
      ondemand::field field;
      if (auto error = std::move(item).get(field)) return At(*parent, error);
      std::string_view key;
      if (auto error = field.unescaped_key().get(key)) return At(*parent, error);
      ARROW_RETURN_NOT_OK(AddColumn(field.value(), Column(parent, key), depth));
    }
    return arrow::Status::OK();
  }

  arrow::Status AddColumn(ondemand::value value, Seen* seen, int depth) {
    ondemand::json_type type{};
    if (auto error = value.type().get(type)) return At(*seen, error);
    if (type == ondemand::json_type::null) {
      auto status = internal::TakeNull(value);
      return status.ok() ? status : At(*seen, status.message());
    }
    const bool array = type == ondemand::json_type::array;
    (array ? seen->arrays : seen->single) = true;
    if (seen->arrays && seen->single) return At(*seen, "an array in one row and a single value in another");
    if (!array) return AddValue(value, type, seen, depth);
    ondemand::array elements;
    if (auto error = value.get_array().get(elements)) return At(*seen, error);
    for (auto item : elements) {
      ondemand::value element;
      if (auto error = item.get(element)) return At(*seen, error);
      if (auto error = element.type().get(type)) return At(*seen, error);
      if (type == ondemand::json_type::null) return At(*seen, "an array holds a null, which BigQuery cannot store");
      if (type == ondemand::json_type::array) return At(*seen, "an array cannot hold arrays");
      ARROW_RETURN_NOT_OK(AddValue(element, type, seen, depth));
    }
    return arrow::Status::OK();
  }

  arrow::Status AddValue(ondemand::value value, ondemand::json_type type, Seen* seen, int depth) {
    const bool object = type == ondemand::json_type::object;
    if (seen->kind && (*seen->kind == TypeKind::kStruct) != object) return At(*seen, "an object in one row and a single value in another");
    if (object) {
      if (depth >= kMaxNesting) return At(*seen, fmt::format("more than {} STRUCTs inside each other", kMaxNesting));
      seen->kind = TypeKind::kStruct;
      ondemand::object fields;
      if (auto error = value.get_object().get(fields)) return At(*seen, error);
      return AddObject(fields, seen, depth + 1);
    }
    auto kind = KindOf(value, type, seen);
    if (!kind.ok()) return At(*seen, kind.status().message());
    seen->kind = seen->kind ? Merged(*seen->kind, *kind) : *kind;
    return arrow::Status::OK();
  }

  arrow::Result<TypeKind> KindOf(ondemand::value value, ondemand::json_type type, Seen* seen) const {
    if (type == ondemand::json_type::boolean) {
      ARROW_RETURN_NOT_OK(internal::BoolOf(value).status());
      return TypeKind::kBool;
    }
    if (type == ondemand::json_type::string) {
      std::string_view text;
      if (auto error = value.get_string().get(text)) return internal::JsonError(error);
      return KindOfText(text);
    }
    ARROW_ASSIGN_OR_RAISE(auto token, internal::NumberToken(value));
    const bool whole = token.find_first_of(".eE") == std::string_view::npos;
    if (!seen->lost && LosesDigitsAsDouble(token)) seen->lost = LostDigits{row, std::string(token)};
    return whole && token != "-0" && ParseInt64(token).ok() ? TypeKind::kInt64 : TypeKind::kFloat64;
  }

  static arrow::Result<std::vector<Field>> FieldsOf(const Seen& parent) {
    std::vector<Field> fields;
    for (const Seen& seen : parent.fields) {
      Field field{
          .name = seen.name, .kind = seen.kind.value_or(TypeKind::kString), .mode = seen.arrays ? Mode::kRepeated : Mode::kNullable};
      if (field.kind == TypeKind::kFloat64 && seen.lost) {
        return internal::AtPlace(arrow::Status::Invalid(fmt::format(
                                     "{} would lose digits as FLOAT64, which other values of the column or its "
                                     "size or point ask for; give a schema with NUMERIC, BIGNUMERIC or STRING, or FLOAT64 if that is meant",
                                     Quoted(seen.lost->text))),
                                 seen.path, seen.lost->row);
      }
      if (field.kind == TypeKind::kStruct) {
        if (seen.fields.empty())
          return internal::AtPlace(arrow::Status::Invalid("its objects never have a field"), seen.path, std::nullopt);
        ARROW_ASSIGN_OR_RAISE(field.fields, FieldsOf(seen));
      }
      fields.push_back(std::move(field));
    }
    return fields;
  }
};

JsonSchemaInference::JsonSchemaInference() : state_(std::make_unique<State>()) {}
JsonSchemaInference::~JsonSchemaInference() = default;

arrow::Status JsonSchemaInference::Add(std::string_view line, int64_t row_number) {
  State& state = *state_;
  state.row = row_number;
  auto document = state.document.Open(line);
  if (!document.ok()) return state.At(state.root, fmt::format("{}: {}", Quoted(line), document.status().message()));
  ondemand::object object;
  if ((*document)->get_object().get(object) != simdjson::SUCCESS) {
    return state.At(state.root, fmt::format("{}: a row is a JSON object", Quoted(line)));
  }
  ARROW_RETURN_NOT_OK(state.AddObject(object, &state.root, 0));
  auto end = state.document.ExpectEnd();
  return end.ok() ? end : state.At(state.root, fmt::format("{}: {}", Quoted(line), end.message()));
}

arrow::Result<TableSchema> JsonSchemaInference::Finish() const {
  TableSchema schema;
  ARROW_ASSIGN_OR_RAISE(schema.fields, State::FieldsOf(state_->root));
  ARROW_RETURN_NOT_OK(ValidateSchema(schema));
  return schema;
}

}  // namespace headrace
