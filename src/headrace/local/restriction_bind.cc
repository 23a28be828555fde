#include <array>
#include <optional>
#include <utility>

#include <arrow/array/builder_base.h>
#include <arrow/array/util.h>
#include <arrow/compute/api_scalar.h>
#include <arrow/compute/initialize.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include "headrace/local/restriction.h"
#include "headrace/local/restriction_bound.h"
#include "headrace/local/restriction_function.h"
#include "headrace/local/restriction_lexer.h"
#include "headrace/local/restriction_literal.h"
#include "headrace/types/type_table.h"
#include "headrace/types/value_text.h"

namespace headrace::local {
namespace {

namespace cp = arrow::compute;
using Bound = Restriction::Bound;
using Pointer = Bound::Pointer;
using Kind = SyntaxNode::Kind;

class Binder {
 public:
  Binder(std::string_view text, const arrow::Schema& schema) : text_(text), schema_(schema) {}

  arrow::Result<Pointer> BindBool(const SyntaxNode& node, std::string_view where) {
    ARROW_ASSIGN_OR_RAISE(Pointer bound, Bind(node));
    if (bound->type->id() != arrow::Type::BOOL) {
      return Error(node, fmt::format("{} should be of type BOOL, but is of type {}", where, SqlTypeName(*bound->type)));
    }
    return bound;
  }

 private:
  arrow::Status Error(const SyntaxNode& node, std::string_view message) const { return RestrictionError(text_, node.offset, message); }

  // An error of what has no position of its own gets the node's.
  arrow::Result<Pointer> Placed(const SyntaxNode& node, arrow::Result<Pointer> bound) const {
    if (bound.ok()) return bound;
    if (CodeOf(bound.status()) != Code::kUnimplemented) return Error(node, bound.status().message());
    return Unsupported("row_restriction", fmt::format("{}, at {}.", bound.status().message(), PositionText(text_, node.offset)));
  }

  static Pointer OrFalse(Pointer value) {
    return CallOf("coalesce", {std::move(value), ConstantOf(std::make_shared<arrow::BooleanScalar>(false))}, arrow::boolean());
  }

  // For an operand with several parents: evaluated once a batch, else nesting would multiply the work.
  arrow::Result<Pointer> Shared(const SyntaxNode& node) {
    ARROW_ASSIGN_OR_RAISE(Pointer bound, Bind(node));
    auto shared = std::make_shared<Bound>(*bound);
    shared->shared = true;
    return Pointer(shared);
  }

  arrow::Result<Pointer> Bind(const SyntaxNode& node) {
    switch (node.kind) {
      case Kind::kColumn:
        return Column(node);
      case Kind::kLiteral:
        return OwnValue(node);
      case Kind::kComparison:
        return Compare(node, node.text, *node.children[0], *node.children[1]);
      case Kind::kAnd:
      case Kind::kOr: {
        auto bound = std::make_shared<Bound>();
        bound->op = node.kind == Kind::kAnd ? Bound::Op::kAnd : Bound::Op::kOr;
        bound->type = arrow::boolean();
        for (const auto& child : node.children) {
          ARROW_ASSIGN_OR_RAISE(bound->children.emplace_back(),
                                BindBool(*child, node.kind == Kind::kAnd ? "Operand of AND" : "Operand of OR"));
        }
        return Pointer(bound);
      }
      case Kind::kNot: {
        ARROW_ASSIGN_OR_RAISE(Pointer child, BindBool(*node.children[0], "Operand of NOT"));
        return CallOf("invert", {std::move(child)}, arrow::boolean());
      }
      case Kind::kIn:
        return In(node);
      case Kind::kLike: {
        ARROW_ASSIGN_OR_RAISE(Pointer value, Bind(*node.children[0]));
        ARROW_ASSIGN_OR_RAISE(Pointer pattern, Bind(*node.children[1]));
        return Placed(node, BindLike(std::move(value), pattern));
      }
      case Kind::kDistinct:
        return Distinct(node);
      case Kind::kArithmetic:
        return Arithmetic(node);
      case Kind::kNegate: {
        ARROW_ASSIGN_OR_RAISE(Pointer operand, Bind(*node.children[0]));
        return Placed(node, BindSign(node.text, std::move(operand)));
      }
      case Kind::kFunction: {
        std::vector<Pointer> arguments;
        for (const auto& child : node.children) {
          ARROW_ASSIGN_OR_RAISE(arguments.emplace_back(), Bind(*child));
        }
        return Placed(node, BindFunction(node.text, std::move(arguments)));
      }
      case Kind::kCast:
        return Cast(node);
      case Kind::kBetween: {
        auto both = std::make_shared<Bound>();
        both->op = Bound::Op::kAnd;
        both->type = arrow::boolean();
        ARROW_ASSIGN_OR_RAISE(Pointer value, Shared(*node.children[0]));
        ARROW_ASSIGN_OR_RAISE(both->children.emplace_back(), Compare(node, ">=", *node.children[0], *node.children[1], value));
        ARROW_ASSIGN_OR_RAISE(both->children.emplace_back(), Compare(node, "<=", *node.children[0], *node.children[2], value));
        return Pointer(both);
      }
      case Kind::kIsNull: {
        ARROW_ASSIGN_OR_RAISE(Pointer child, Bind(*node.children[0]));
        return CallOf("is_null", {std::move(child)}, arrow::boolean());
      }
      case Kind::kIsTrue:
      case Kind::kIsFalse: {
        ARROW_ASSIGN_OR_RAISE(Pointer child, BindBool(*node.children[0], "Operand of IS"));
        if (node.kind == Kind::kIsFalse) child = CallOf("invert", {std::move(child)}, arrow::boolean());
        return OrFalse(std::move(child));
      }
    }
    return Error(node, "Syntax error");
  }

  arrow::Result<Pointer> Column(const SyntaxNode& node) {
    auto bound = std::make_shared<Bound>();
    bound->op = Bound::Op::kColumn;
    const arrow::FieldVector* fields = &schema_.fields();
    std::shared_ptr<arrow::Field> field;
    for (const std::string& name : node.path) {
      if (field != nullptr) {
        if (field->type()->id() != arrow::Type::STRUCT || !MarkedType(*field).empty()) {
          return Error(node, fmt::format("Cannot access field {} on a value with type {}", name, TypeName(*field)));
        }
        fields = &field->type()->fields();
      }
      std::optional<int> found;
      for (size_t i = 0; i < fields->size(); ++i) {
        if (EqualNames((*fields)[i]->name(), name)) found = static_cast<int>(i);
      }
      if (!found)
        return Error(node,
                     field == nullptr ? fmt::format("Unrecognized name: {}", name) : fmt::format("Field name {} does not exist", name));
      field = (*fields)[static_cast<size_t>(*found)];
      bound->path.push_back(*found);
    }
    bound->type = field->type();
    bound->sql_type = MarkedType(*field);
    return Pointer(bound);
  }

  // The types that Arrow has only as text or as a struct are told apart by the field's metadata. Empty when it is another.
  static std::string MarkedType(const arrow::Field& field) {
    if (!field.HasMetadata()) return "";
    auto mark = field.metadata()->Get(kExtensionNameKey);
    if (!mark.ok()) return "";
    if (*mark == kTimestampPicosExtension) return "TIMESTAMP";
    for (const char* type : {"json", "geography", "interval", "range"}) {
      if (mark->find(type) == std::string::npos) continue;
      std::string name(type);
      for (char& c : name) c = static_cast<char>(c - 32);
      return name;
    }
    return "";
  }

  static std::string TypeName(const arrow::Field& field) {
    std::string marked = MarkedType(field);
    return marked.empty() ? SqlTypeName(*field.type()) : marked;
  }

  static bool EqualNames(std::string_view a, std::string_view b) {
    auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
  }

  arrow::Result<Pointer> OwnValue(const SyntaxNode& node) { return ValueAs(node, LiteralType(node), true); }

  // Null when the type cannot hold the value and `must` is not set.
  arrow::Result<Pointer> ValueAs(const SyntaxNode& node, const std::shared_ptr<arrow::DataType>& type, bool must) {
    auto value = LiteralValue(node, type);
    if (!value.ok()) return Error(node, value.status().message());
    if (*value != nullptr) return ConstantOf(*value);
    if (must) return Error(node, fmt::format("{} value is out of range or has too many digits", SqlTypeName(*type)));
    return nullptr;
  }

  // Binds both sides to one type.
  arrow::Result<std::pair<Pointer, Pointer>> Unify(const SyntaxNode& node, std::string_view op, const SyntaxNode& a, const SyntaxNode& b,
                                                   Pointer bound_a) {
    bool literal_a = a.kind == Kind::kLiteral;
    bool literal_b = b.kind == Kind::kLiteral;
    // A text or NULL beside another literal is the one that gives way.
    if (literal_a && (!literal_b || a.literal == SyntaxNode::Literal::kString || a.literal == SyntaxNode::Literal::kNull)) {
      ARROW_ASSIGN_OR_RAISE(Pointer right, Bind(b));
      ARROW_ASSIGN_OR_RAISE(auto sides, WithLiteral(node, op, std::move(right), a));
      return std::pair(std::move(sides.second), std::move(sides.first));
    }
    Pointer left = std::move(bound_a);
    if (left == nullptr) {
      ARROW_ASSIGN_OR_RAISE(left, Bind(a));
    }
    if (literal_b) return WithLiteral(node, op, std::move(left), b);
    ARROW_ASSIGN_OR_RAISE(Pointer right, Bind(b));
    return Meet(node, op, std::move(left), std::move(right));
  }

  arrow::Result<std::pair<Pointer, Pointer>> WithLiteral(const SyntaxNode& node, std::string_view op, Pointer value,
                                                         const SyntaxNode& literal) {
    ARROW_RETURN_NOT_OK(CheckComparable(node, op, *value, SqlTypeName(*LiteralType(literal))));
    if (value->IsPicos()) return WithPicos(node, op, std::move(value), literal);
    if (Coerces(literal.literal, *value->type)) {
      bool typed = literal.literal == SyntaxNode::Literal::kNumeric || literal.literal == SyntaxNode::Literal::kBigNumeric;
      if (typed) ARROW_RETURN_NOT_OK(OwnValue(literal).status());  // must be a value of its own type, whatever the column's
      ARROW_ASSIGN_OR_RAISE(Pointer constant, ValueAs(literal, value->type, false));
      if (constant != nullptr) return std::pair(std::move(value), std::move(constant));
      // More digits than the column's type has: both sides go where they are exact.
      auto wide = WideDecimal(literal, static_cast<const arrow::DecimalType&>(*value->type).scale());
      if (!wide.ok()) return Error(literal, wide.status().message());
      if (*wide == nullptr) return Error(literal, "NUMERIC value is out of range or has too many digits");
      return std::pair(CastTo(std::move(value), (*wide)->type), ConstantOf(*wide));
    }
    ARROW_ASSIGN_OR_RAISE(Pointer constant, OwnValue(literal));
    return Meet(node, op, std::move(value), std::move(constant));
  }

  // A TIMESTAMP(12) is text with all of its digits: the literal becomes such a text.
  arrow::Result<std::pair<Pointer, Pointer>> WithPicos(const SyntaxNode& node, std::string_view op, Pointer value,
                                                       const SyntaxNode& literal) {
    if (literal.literal == SyntaxNode::Literal::kNull) return std::pair(std::move(value), ConstantOf(arrow::MakeNullScalar(arrow::utf8())));
    if (literal.literal != SyntaxNode::Literal::kString && literal.literal != SyntaxNode::Literal::kTimestamp) {
      return NoSignature(node, op, SqlTypeOf(*value), SqlTypeName(*LiteralType(literal)));
    }
    auto picos = ParsePicosTimestamp(literal.text);
    if (!picos.ok()) {
      ARROW_ASSIGN_OR_RAISE(Pointer micros, ValueAs(literal, arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"), true));
      int64_t number = static_cast<const arrow::TimestampScalar&>(*micros->constant.scalar()).value;
      int64_t second = number / kMicrosPerSecond - (number % kMicrosPerSecond < 0 ? 1 : 0);
      picos = PicosTimestamp{second, (number - second * kMicrosPerSecond) * 1'000'000};
    }
    std::string text;
    AppendPicosTimestamp(*picos, &text);
    return std::pair(std::move(value), ConstantOf(std::make_shared<arrow::StringScalar>(std::move(text))));
  }

  arrow::Result<std::pair<Pointer, Pointer>> Meet(const SyntaxNode& node, std::string_view op, Pointer left, Pointer right) {
    ARROW_RETURN_NOT_OK(CheckComparable(node, op, *left, SqlTypeOf(*right)));
    ARROW_RETURN_NOT_OK(CheckComparable(node, op, *right, SqlTypeOf(*left)));
    if (left->type->Equals(*right->type) && left->sql_type == right->sql_type) return std::pair(std::move(left), std::move(right));
    if (!IsNumber(*left->type) || !IsNumber(*right->type)) return NoSignature(node, op, SqlTypeOf(*left), SqlTypeOf(*right));
    auto common = CommonNumber(*left->type, *right->type);
    return std::pair(CastTo(std::move(left), common), CastTo(std::move(right), common));
  }

  arrow::Status NoSignature(const SyntaxNode& node, std::string_view op, const std::string& left, const std::string& right) const {
    return Error(node, fmt::format("No matching signature for operator {} for argument types: {}, {}", op, left, right));
  }

  arrow::Status CheckComparable(const SyntaxNode& node, std::string_view op, const Bound& value, const std::string& other) const {
    constexpr std::array kComparable = {arrow::Type::INT64,  arrow::Type::DOUBLE,     arrow::Type::BOOL,       arrow::Type::STRING,
                                        arrow::Type::BINARY, arrow::Type::DECIMAL128, arrow::Type::DECIMAL256, arrow::Type::DATE32,
                                        arrow::Type::TIME64, arrow::Type::TIMESTAMP};
    bool comparable = std::find(kComparable.begin(), kComparable.end(), value.type->id()) != kComparable.end();
    if (comparable && (value.sql_type.empty() || value.IsPicos())) return arrow::Status::OK();
    return NoSignature(node, op, SqlTypeOf(value), other);
  }

  // `bound_a` is `a` bound before, or null.
  arrow::Result<Pointer> Compare(const SyntaxNode& node, std::string_view op, const SyntaxNode& a, const SyntaxNode& b,
                                 Pointer bound_a = nullptr) {
    ARROW_ASSIGN_OR_RAISE(auto sides, Unify(node, op, a, b, std::move(bound_a)));
    constexpr std::array<std::pair<std::string_view, const char*>, 6> kFunctions = {
        {{"=", "equal"}, {"!=", "not_equal"}, {"<", "less"}, {"<=", "less_equal"}, {">", "greater"}, {">=", "greater_equal"}}};
    for (const auto& [symbol, function] : kFunctions) {
      if (symbol == op) return CallOf(function, {std::move(sides.first), std::move(sides.second)}, arrow::boolean());
    }
    return Error(node, "Syntax error");
  }

  // Values of the operand's own type become one look-up, the rest comparisons; an OR over both keeps the three-valued result.
  arrow::Result<Pointer> In(const SyntaxNode& node) {
    const SyntaxNode& operand = *node.children[0];
    ARROW_ASSIGN_OR_RAISE(Pointer value, Shared(operand));
    std::unique_ptr<arrow::ArrayBuilder> set;
    ARROW_ASSIGN_OR_RAISE(set, arrow::MakeBuilder(value->type));
    auto any = std::make_shared<Bound>();
    any->op = Bound::Op::kOr;
    any->type = arrow::boolean();
    for (size_t i = 1; i < node.children.size(); ++i) {
      const SyntaxNode& item = *node.children[i];
      bool looked_up = operand.kind != Kind::kLiteral && item.kind == Kind::kLiteral && !value->IsPicos();
      if (looked_up && Coerces(item.literal, *value->type)) {
        ARROW_RETURN_NOT_OK(CheckComparable(node, "IN", *value, SqlTypeName(*LiteralType(item))));
        ARROW_ASSIGN_OR_RAISE(Pointer constant, ValueAs(item, value->type, false));
        if (constant != nullptr) {
          ARROW_RETURN_NOT_OK(AddToSet(*constant->constant.scalar(), set.get()));
          continue;
        }
      }
      ARROW_ASSIGN_OR_RAISE(any->children.emplace_back(), Compare(node, "=", operand, item, value));
    }
    if (set->length() > 0) {
      ARROW_ASSIGN_OR_RAISE(auto values, set->Finish());
      // INCONCLUSIVE is SQL's: null when the operand is null, or when nothing matches and the list has a null.
      auto options = std::make_shared<cp::SetLookupOptions>(values, cp::SetLookupOptions::INCONCLUSIVE);
      any->children.push_back(CallOf("is_in", {std::move(value)}, arrow::boolean(), std::move(options)));
    }
    return Pointer(any);
  }

  // The look-up tells 0.0 from -0.0, which are equal.
  static arrow::Status AddToSet(const arrow::Scalar& value, arrow::ArrayBuilder* set) {
    ARROW_RETURN_NOT_OK(set->AppendScalar(value));
    if (value.type->id() != arrow::Type::DOUBLE || !value.is_valid) return arrow::Status::OK();
    double number = static_cast<const arrow::DoubleScalar&>(value).value;
    return number == 0 ? set->AppendScalar(arrow::DoubleScalar(-number)) : arrow::Status::OK();
  }

  // Two NULLs are not distinct, NULL and a value are.
  arrow::Result<Pointer> Distinct(const SyntaxNode& node) {
    const SyntaxNode& a = *node.children[0];
    const SyntaxNode& b = *node.children[1];
    ARROW_ASSIGN_OR_RAISE(Pointer equal, Compare(node, "=", a, b));
    auto nulls = std::make_shared<Bound>();
    nulls->op = Bound::Op::kAnd;
    nulls->type = arrow::boolean();
    for (const SyntaxNode* side : {&a, &b}) {
      ARROW_ASSIGN_OR_RAISE(Pointer value, Bind(*side));
      nulls->children.push_back(CallOf("is_null", {std::move(value)}, arrow::boolean()));
    }
    auto same = std::make_shared<Bound>();
    same->op = Bound::Op::kOr;
    same->type = arrow::boolean();
    same->children = {OrFalse(std::move(equal)), nulls};
    return CallOf("invert", {Pointer(same)}, arrow::boolean());
  }

  arrow::Result<Pointer> Arithmetic(const SyntaxNode& node) {
    const SyntaxNode& a = *node.children[0];
    const SyntaxNode& b = *node.children[1];
    ARROW_ASSIGN_OR_RAISE(Pointer left, Bind(a));
    ARROW_ASSIGN_OR_RAISE(Pointer right, Bind(b));
    // A literal beside a NUMERIC is one too: 1.5 is not taken for a FLOAT64 there.
    if (a.kind == Kind::kLiteral && IsDecimal(*right->type) && Coerces(a.literal, *right->type)) {
      ARROW_ASSIGN_OR_RAISE(left, ValueAs(a, right->type, true));
    } else if (b.kind == Kind::kLiteral && IsDecimal(*left->type) && Coerces(b.literal, *left->type)) {
      ARROW_ASSIGN_OR_RAISE(right, ValueAs(b, left->type, true));
    }
    return Placed(node, BindArithmetic(node.text, std::move(left), std::move(right)));
  }

  arrow::Result<Pointer> Cast(const SyntaxNode& node) {
    auto type = CastType(node.text);
    if (type == nullptr) {
      if (!TypeKindFromName(node.text)) return Error(node, fmt::format("Type not found: {}", node.text));
      return Placed(
          node, Unsupported("row_restriction", fmt::format("The local service does not take CAST to {} in a row restriction", node.text)));
    }
    const SyntaxNode& operand = *node.children[0];
    // A literal is read as one of the type: CAST('2014-9-27' AS DATE).
    bool text = operand.kind == Kind::kLiteral && operand.literal == SyntaxNode::Literal::kString;
    if (text && type->id() == arrow::Type::BOOL) {
      auto value = ParseBool(operand.text);
      if (!value.ok()) return Error(node, fmt::format("Bad bool value: {}", operand.text));
      return ConstantOf(std::make_shared<arrow::BooleanScalar>(*value));
    }
    if (text && type->id() != arrow::Type::BINARY) return ValueAs(operand, type, true);
    if (operand.kind == Kind::kLiteral && Coerces(operand.literal, *type)) return ValueAs(operand, type, true);
    ARROW_ASSIGN_OR_RAISE(Pointer value, Bind(operand));
    return Placed(node, BindCast(std::move(value), type));
  }

  const std::string_view text_;
  const arrow::Schema& schema_;
};

}  // namespace

Restriction::Restriction(Bound::Pointer root) : root_(std::move(root)) {}
Restriction::~Restriction() = default;

arrow::Result<std::shared_ptr<const Restriction>> Restriction::Bind(std::string_view text, const arrow::Schema& schema) {
  ARROW_RETURN_NOT_OK(cp::Initialize());
  ARROW_ASSIGN_OR_RAISE(auto syntax, ParseRestriction(text));
  ARROW_ASSIGN_OR_RAISE(auto root, Binder(text, schema).BindBool(*syntax, "Row restriction"));
  return std::shared_ptr<const Restriction>(new Restriction(std::move(root)));
}

arrow::Result<std::shared_ptr<arrow::BooleanArray>> Restriction::Evaluate(const arrow::RecordBatch& batch) const {
  Bound::Known known;
  auto result = root_->Evaluate(batch, &known);
  if (!result.ok()) {  // a sum that is too large, a division by zero, a text that is no number
    return MakeError({.code = Code::kInvalidArgument, .resource = "row_restriction", .reason = "INVALID_RESTRICTION"},
                     fmt::format("request failed: row restriction cannot be evaluated: {}", result.status().message()));
  }
  if (result->is_array()) return std::static_pointer_cast<arrow::BooleanArray>(result->make_array());
  ARROW_ASSIGN_OR_RAISE(auto array, arrow::MakeArrayFromScalar(*result->scalar(), batch.num_rows()));
  return std::static_pointer_cast<arrow::BooleanArray>(array);
}

}  // namespace headrace::local
