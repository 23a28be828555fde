#include "headrace/local/restriction_function.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <arrow/compute/api_scalar.h>
#include <arrow/compute/cast.h>
#include <fmt/format.h>

#include "headrace/types/type_table.h"

namespace headrace::local {
namespace {

namespace cp = arrow::compute;
using Type = arrow::Type;
using Arguments = std::vector<BoundPointer>;

bool Is(const BoundPointer& value, Type::type id) { return value->type->id() == id && value->sql_type.empty(); }
bool IsText(const BoundPointer& value) { return Is(value, Type::STRING); }
bool IsTextOrBytes(const BoundPointer& value) { return Is(value, Type::STRING) || Is(value, Type::BINARY); }

arrow::Status NoSignature(std::string_view what, const Arguments& arguments) {
  std::string types;
  for (const BoundPointer& argument : arguments) types += (types.empty() ? "" : ", ") + SqlTypeOf(*argument);
  return arrow::Status::Invalid(fmt::format("No matching signature for {} for argument types: {}", what, types));
}

arrow::Status NotTaken(std::string_view what) {
  return Unsupported("row_restriction", fmt::format("The local service does not take {} in a row restriction", what));
}

BoundPointer NullOf(const std::shared_ptr<arrow::DataType>& type) { return ConstantOf(arrow::MakeNullScalar(type)); }
BoundPointer Int64(BoundPointer value) { return CastTo(std::move(value), arrow::int64()); }

// NULL literals take the type of the others; numbers meet in one. False when the types do not fit each other.
bool Unify(Arguments* arguments) {
  std::shared_ptr<arrow::DataType> type;
  std::string sql_type;
  for (const BoundPointer& argument : *arguments) {
    if (argument->IsNull()) continue;
    if (type == nullptr) {
      type = argument->type;
      sql_type = argument->sql_type;
    } else if (IsNumber(*type) && IsNumber(*argument->type) && !type->Equals(*argument->type)) {
      type = CommonNumber(*type, *argument->type);
    } else if (!type->Equals(*argument->type) || sql_type != argument->sql_type) {
      return false;
    }
  }
  for (BoundPointer& argument : *arguments) {
    if (type == nullptr) break;
    argument = argument->IsNull() ? NullOf(type) : CastTo(std::move(argument), type);
  }
  return true;
}

// A function of a value and a literal that says what is looked for.
arrow::Result<BoundPointer> Match(const std::string& name, const Arguments& arguments) {
  if (arguments.size() != 2) return NoSignature("function " + name, arguments);
  const BoundPointer& value = arguments[0];
  const BoundPointer& pattern = arguments[1];
  if (value->IsNull() || pattern->IsNull()) return NullOf(arrow::boolean());
  if (!IsTextOrBytes(value) || !value->type->Equals(*pattern->type)) return NoSignature("function " + name, arguments);
  if (!pattern->constant.is_scalar() || pattern->op != Restriction::Bound::Op::kConstant) {
    return NotTaken(fmt::format("{} with a second argument that is no literal", name));
  }
  std::string text = static_cast<const arrow::BaseBinaryScalar&>(*pattern->constant.scalar()).value->ToString();
  if (name == "STARTS_WITH") return MatchOf(value, [text](std::string_view whole) { return whole.starts_with(text); });
  if (name == "ENDS_WITH") return MatchOf(value, [text](std::string_view whole) { return whole.ends_with(text); });
  // Not Arrow's kernels, which bring another build of the same library: see decision 0003.
  RE2::Options options(RE2::Quiet);
  if (value->type->id() == Type::BINARY) options.set_encoding(RE2::Options::EncodingLatin1);
  auto expression = std::make_shared<const RE2>(text, options);
  if (!expression->ok()) return arrow::Status::Invalid("Cannot parse regular expression: " + expression->error());
  return MatchOf(
      value, [expression](std::string_view whole) { return RE2::PartialMatch(re2::StringPiece(whole.data(), whole.size()), *expression); });
}

// A pattern of LIKE: bytes, "_" for one character and "%" for any number of them.
class LikePattern {
 public:
  /// Nothing when it ends inside an escape. `bytes`: a character is a byte.
  static std::optional<LikePattern> Parse(std::string_view text, bool bytes) {
    LikePattern pattern;
    pattern.bytes_ = bytes;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '%') {
        pattern.steps_.push_back(kMany);
      } else if (text[i] == '_') {
        pattern.steps_.push_back(kOne);
      } else {
        if (text[i] == '\\' && ++i == text.size()) return std::nullopt;
        pattern.steps_.push_back(static_cast<unsigned char>(text[i]));
      }
    }
    return pattern;
  }

  // Goes back to the last "%" only: what the ones before it took need not change.
  bool Matches(std::string_view text) const {
    size_t step = 0;
    size_t at = 0;
    std::optional<std::pair<size_t, size_t>> many;  // the step after the "%", and where its text ends
    while (at < text.size()) {
      if (step < steps_.size() && steps_[step] == kMany) {
        many = {++step, at};
      } else if (step < steps_.size() && steps_[step] == kOne) {
        at = After(text, at);
        ++step;
      } else if (step < steps_.size() && steps_[step] == static_cast<unsigned char>(text[at])) {
        ++at;
        ++step;
      } else if (many) {
        many->second = After(text, many->second);
        step = many->first;
        at = many->second;
      } else {
        return false;
      }
    }
    while (step < steps_.size() && steps_[step] == kMany) ++step;
    return step == steps_.size();
  }

 private:
  static constexpr int kOne = 256;
  static constexpr int kMany = 257;

  // The character's end.
  size_t After(std::string_view text, size_t at) const {
    ++at;
    while (!bytes_ && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
    return at;
  }

  bool bytes_ = false;
  std::vector<int> steps_;
};

arrow::Result<BoundPointer> Concat(std::string_view what, Arguments arguments) {
  bool fits = Unify(&arguments) && !arguments.empty();
  if (fits && arguments[0]->IsNull()) return NullOf(arrow::utf8());
  if (!fits || !IsTextOrBytes(arguments[0])) return NoSignature(what, arguments);
  auto type = arguments[0]->type;
  ARROW_ASSIGN_OR_RAISE(auto nothing, arrow::MakeScalar(type, arrow::Buffer::FromString("")));
  arguments.push_back(ConstantOf(std::move(nothing)));  // between them
  return CallOf("binary_join_element_wise", std::move(arguments), type, std::make_shared<cp::JoinOptions>());
}

arrow::Result<BoundPointer> Length(const std::string& name, const Arguments& arguments) {
  if (arguments.size() != 1 || !(IsTextOrBytes(arguments[0]) || arguments[0]->IsNull())) return NoSignature("function " + name, arguments);
  if (arguments[0]->IsNull()) return NullOf(arrow::int64());
  bool characters = IsText(arguments[0]) && name != "BYTE_LENGTH" && name != "OCTET_LENGTH";
  return Int64(CallOf(characters ? "utf8_length" : "binary_length", arguments, arrow::int32()));
}

arrow::Result<BoundPointer> OfText(const std::string& name, const char* kernel, const Arguments& arguments) {
  if (arguments.size() == 2 && name.ends_with("TRIM")) return NotTaken(name + " with two arguments");
  if (arguments.size() != 1 || !(IsText(arguments[0]) || arguments[0]->IsNull())) return NoSignature("function " + name, arguments);
  if (arguments[0]->IsNull()) return NullOf(arrow::utf8());
  return CallOf(kernel, arguments, arrow::utf8());
}

arrow::Result<BoundPointer> OfFloat(const std::string& name, const char* kernel, const Arguments& arguments) {
  bool fits = arguments.size() == 1 && (IsNumber(*arguments[0]->type) || arguments[0]->IsNull());
  if (!fits) return NoSignature("function " + name, arguments);
  if (arguments[0]->IsNull()) return NullOf(arrow::boolean());
  return CallOf(kernel, {CastTo(arguments[0], arrow::float64())}, arrow::boolean());
}

BoundPointer WithType(BoundPointer call, const BoundPointer& like) {
  auto typed = std::make_shared<Restriction::Bound>(*call);
  typed->sql_type = like->sql_type;
  return typed;
}

arrow::Result<BoundPointer> Coalesce(const std::string& name, Arguments arguments) {
  bool fits = name == "IFNULL" ? arguments.size() == 2 : !arguments.empty();
  if (!fits || !Unify(&arguments)) return NoSignature("function " + name, arguments);
  if (arguments.size() == 1) return arguments[0];
  BoundPointer first = arguments[0];
  return WithType(CallOf("coalesce", std::move(arguments), first->type), first);
}

arrow::Result<BoundPointer> If(Arguments arguments) {
  bool fits = arguments.size() == 3 && Is(arguments[0], Type::BOOL);
  Arguments values(arguments.begin() + (fits ? 1 : 0), arguments.end());
  if (!fits || !Unify(&values)) return NoSignature("function IF", arguments);
  // A condition that is NULL takes the second value.
  auto condition = CallOf("coalesce", {arguments[0], ConstantOf(std::make_shared<arrow::BooleanScalar>(false))}, arrow::boolean());
  return WithType(CallOf("if_else", {condition, values[0], values[1]}, values[0]->type), values[0]);
}

arrow::Result<BoundPointer> Nullif(Arguments arguments) {
  if (arguments.size() != 2 || !Unify(&arguments) || !arguments[0]->sql_type.empty() || arguments[0]->type->num_fields() > 0) {
    return NoSignature("function NULLIF", arguments);
  }
  auto equal = CallOf("equal", {arguments[0], arguments[1]}, arrow::boolean());
  auto known = CallOf("coalesce", {equal, ConstantOf(std::make_shared<arrow::BooleanScalar>(false))}, arrow::boolean());
  return CallOf("if_else", {known, NullOf(arguments[0]->type), arguments[0]}, arguments[0]->type);
}

arrow::Result<BoundPointer> Abs(const Arguments& arguments) {
  if (arguments.size() != 1 || !(IsNumber(*arguments[0]->type) || arguments[0]->IsNull())) return NoSignature("function ABS", arguments);
  if (arguments[0]->IsNull()) return NullOf(arrow::int64());
  return CallOf("abs_checked", arguments, arguments[0]->type);
}

arrow::Result<BoundPointer> ArrayLength(const Arguments& arguments) {
  if (arguments.size() != 1 || arguments[0]->type->id() != Type::LIST) return NoSignature("function ARRAY_LENGTH", arguments);
  return Int64(CallOf("list_value_length", arguments, arrow::int32()));
}

arrow::Result<BoundPointer> Date(const Arguments& arguments) {
  if (arguments.size() > 1) return NotTaken("DATE with several arguments");
  bool time = arguments.size() == 1 && arguments[0]->type->id() == Type::TIMESTAMP;
  if (!time) return NoSignature("function DATE", arguments);
  return BindCast(arguments[0], arrow::date32());
}

bool IsZoned(const arrow::DataType& type) {
  return type.id() == Type::TIMESTAMP && !static_cast<const arrow::TimestampType&>(type).timezone().empty();
}

}  // namespace

arrow::Result<BoundPointer> BindFunction(const std::string& name, Arguments arguments) {
  if (name == "STARTS_WITH" || name == "ENDS_WITH" || name == "REGEXP_CONTAINS") return Match(name, arguments);
  if (name == "CONCAT") return Concat("function CONCAT", std::move(arguments));
  constexpr std::array<std::string_view, 5> kLengths = {"LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "BYTE_LENGTH", "OCTET_LENGTH"};
  if (std::find(kLengths.begin(), kLengths.end(), name) != kLengths.end()) return Length(name, arguments);
  constexpr std::array<std::pair<std::string_view, const char*>, 5> kText = {{{"LOWER", "utf8_lower"},
                                                                              {"UPPER", "utf8_upper"},
                                                                              {"TRIM", "utf8_trim_whitespace"},
                                                                              {"LTRIM", "utf8_ltrim_whitespace"},
                                                                              {"RTRIM", "utf8_rtrim_whitespace"}}};
  for (const auto& [function, kernel] : kText) {
    if (name == function) return OfText(name, kernel, arguments);
  }
  if (name == "IS_NAN") return OfFloat(name, "is_nan", arguments);
  if (name == "IS_INF") return OfFloat(name, "is_inf", arguments);
  if (name == "IFNULL" || name == "COALESCE") return Coalesce(name, std::move(arguments));
  if (name == "IF") return If(std::move(arguments));
  if (name == "NULLIF") return Nullif(std::move(arguments));
  if (name == "ABS") return Abs(arguments);
  if (name == "ARRAY_LENGTH") return ArrayLength(arguments);
  if (name == "DATE") return Date(arguments);
  return NotTaken("the function " + name);
}

arrow::Result<BoundPointer> BindArithmetic(const std::string& op, BoundPointer left, BoundPointer right) {
  if (op == "||") return Concat("operator ||", {std::move(left), std::move(right)});
  if (left->IsNull() || right->IsNull()) {
    auto other = left->IsNull() ? right : left;
    if (other->IsNull()) return NullOf(arrow::int64());
    left = right = NullOf(other->type);
  }
  if (!IsNumber(*left->type) || !IsNumber(*right->type)) return NoSignature("operator " + op, {left, right});
  auto type = CommonNumber(*left->type, *right->type);
  if (IsDecimal(*type)) {
    bool big = left->type->id() == Type::DECIMAL256 || right->type->id() == Type::DECIMAL256;
    if (big) return NotTaken(fmt::format("the operator {} of BIGNUMERIC", op));
    if (op != "+" && op != "-") return NotTaken(fmt::format("the operator {} of NUMERIC", op));
    constexpr int32_t kDigits = 50;  // 29 + 9 of NUMERIC, or 19 of INT64, with room for a carry
    int32_t scale = static_cast<const arrow::DecimalType&>(*type).scale();
    auto wide = arrow::decimal256(kDigits, scale);
    return CallOf(op == "+" ? "add_checked" : "subtract_checked", {CastTo(std::move(left), wide), CastTo(std::move(right), wide)},
                  arrow::decimal256(kDigits + 1, scale));
  }
  if (op == "/") type = arrow::float64();
  const char* kernel = op == "+" ? "add_checked" : op == "-" ? "subtract_checked" : op == "*" ? "multiply_checked" : "divide_checked";
  return CallOf(kernel, {CastTo(std::move(left), type), CastTo(std::move(right), type)}, type);
}

arrow::Result<BoundPointer> BindSign(const std::string& op, BoundPointer operand) {
  if (operand->IsNull()) return NullOf(arrow::int64());
  if (!IsNumber(*operand->type)) return NoSignature("operator " + op, {operand});
  if (op == "+") return operand;
  auto type = operand->type;
  return CallOf("negate_checked", {std::move(operand)}, type);
}

arrow::Result<BoundPointer> BindLike(BoundPointer value, const BoundPointer& pattern) {
  if (value->IsNull() || pattern->IsNull()) return NullOf(arrow::boolean());
  if (!IsTextOrBytes(value) || !value->type->Equals(*pattern->type)) return NoSignature("operator LIKE", {value, pattern});
  if (pattern->op != Restriction::Bound::Op::kConstant) return NotTaken("LIKE with a pattern that is no literal");
  std::string text = static_cast<const arrow::BaseBinaryScalar&>(*pattern->constant.scalar()).value->ToString();
  auto parsed = LikePattern::Parse(text, value->type->id() == Type::BINARY);
  if (!parsed) return arrow::Status::Invalid("LIKE pattern ends with a backslash");
  return MatchOf(std::move(value), [like = std::move(*parsed)](std::string_view whole) { return like.Matches(whole); });
}

std::shared_ptr<arrow::DataType> CastType(const std::string& name) {
  auto kind = TypeKindFromName(name);
  if (!kind) return nullptr;
  switch (*kind) {
    case TypeKind::kInt64:
      return arrow::int64();
    case TypeKind::kFloat64:
      return arrow::float64();
    case TypeKind::kBool:
      return arrow::boolean();
    case TypeKind::kString:
      return arrow::utf8();
    case TypeKind::kBytes:
      return arrow::binary();
    case TypeKind::kNumeric:
      return arrow::decimal128(38, 9);
    case TypeKind::kBigNumeric:
      return arrow::decimal256(76, 38);
    case TypeKind::kDate:
      return arrow::date32();
    case TypeKind::kTime:
      return arrow::time64(arrow::TimeUnit::MICRO);
    case TypeKind::kDatetime:
      return arrow::timestamp(arrow::TimeUnit::MICRO);
    case TypeKind::kTimestamp:
      return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
    default:
      return nullptr;
  }
}

arrow::Result<BoundPointer> BindCast(BoundPointer operand, const std::shared_ptr<arrow::DataType>& type) {
  if (operand->IsNull()) return NullOf(type);
  std::string from = SqlTypeOf(*operand);
  auto to = std::make_shared<Restriction::Bound>();
  to->type = type;
  if (!operand->sql_type.empty()) return NotTaken(fmt::format("CAST from {} to {}", from, SqlTypeOf(*to)));
  if (operand->type->Equals(*type)) return operand;
  struct Pair {
    Type::type from;
    Type::type to;
  };
  // What Arrow's kernels cast as GoogleSQL does.
  constexpr std::array kPairs = {
      Pair{Type::INT64, Type::DOUBLE},
      Pair{Type::INT64, Type::DECIMAL128},
      Pair{Type::INT64, Type::DECIMAL256},
      Pair{Type::INT64, Type::STRING},
      Pair{Type::INT64, Type::BOOL},
      Pair{Type::BOOL, Type::INT64},
      Pair{Type::BOOL, Type::STRING},
      Pair{Type::DECIMAL128, Type::DOUBLE},
      Pair{Type::DECIMAL256, Type::DOUBLE},
      Pair{Type::DECIMAL128, Type::DECIMAL256},
      Pair{Type::STRING, Type::INT64},
      Pair{Type::STRING, Type::BINARY},
      Pair{Type::BINARY, Type::STRING},
      Pair{Type::DATE32, Type::TIMESTAMP},
      Pair{Type::TIMESTAMP, Type::DATE32},
      Pair{Type::TIMESTAMP, Type::TIMESTAMP},
      Pair{Type::DECIMAL128, Type::DECIMAL128},
  };
  bool taken = std::any_of(kPairs.begin(), kPairs.end(),
                           [&](const Pair& pair) { return pair.from == operand->type->id() && pair.to == type->id(); });
  if (!taken) return NotTaken(fmt::format("CAST from {} to {}", from, SqlTypeOf(*to)));
  // The zone is UTC on both ways: the same number with or without one.
  auto civil = arrow::timestamp(arrow::TimeUnit::MICRO);
  if (IsZoned(*operand->type)) operand = CastTo(std::move(operand), civil);
  if (IsZoned(*type)) operand = CastTo(std::move(operand), civil);
  return CastTo(std::move(operand), type);
}

}  // namespace headrace::local
