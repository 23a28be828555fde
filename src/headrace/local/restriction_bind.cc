#include <array>
#include <optional>
#include <utility>

#include <arrow/array/builder_base.h>
#include <arrow/array/util.h>
#include <arrow/compute/api_scalar.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/exec.h>
#include <arrow/compute/initialize.h>
#include <arrow/datum.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include "headrace/local/restriction.h"
#include "headrace/local/restriction_lexer.h"
#include "headrace/local/restriction_literal.h"

namespace headrace::local {

namespace cp = arrow::compute;

// An expression whose columns are found and whose sides have one type. Evaluated bottom up with Arrow's kernels.
struct Restriction::Bound {
  enum class Op { kColumn, kConstant, kCall, kAnd, kOr };
  using Pointer = std::shared_ptr<const Bound>;
  Op op = Op::kConstant;
  std::shared_ptr<arrow::DataType> type{};
  std::string incomparable{};                      // GEOGRAPHY, JSON: a type that Arrow has only as text
  std::vector<int> path{};                         // kColumn
  arrow::Datum constant{};                         // kConstant
  std::string function{};                          // kCall
  std::shared_ptr<cp::FunctionOptions> options{};  // kCall
  std::vector<Pointer> children{};

  arrow::Result<arrow::Datum> Evaluate(const arrow::RecordBatch& batch) const {
    switch (op) {
      case Op::kConstant:
        return constant;
      case Op::kColumn: {
        arrow::Datum value(batch.column(path[0]));
        if (path.size() == 1) return value;
        // A null struct has null fields.
        return cp::CallFunction("struct_field", {value},
                                std::make_unique<cp::StructFieldOptions>(std::vector<int>(path.begin() + 1, path.end())).get());
      }
      case Op::kCall: {
        std::vector<arrow::Datum> arguments;
        for (const Pointer& child : children) {
          ARROW_ASSIGN_OR_RAISE(arguments.emplace_back(), child->Evaluate(batch));
        }
        return cp::CallFunction(function, arguments, options.get());
      }
      case Op::kAnd:
      case Op::kOr:
        break;
    }
    ARROW_ASSIGN_OR_RAISE(arrow::Datum left, children[0]->Evaluate(batch));
    for (size_t i = 1; i < children.size(); ++i) {
      ARROW_ASSIGN_OR_RAISE(arrow::Datum right, children[i]->Evaluate(batch));
      ARROW_ASSIGN_OR_RAISE(left, cp::CallFunction(op == Op::kAnd ? "and_kleene" : "or_kleene", {left, right}));
    }
    return left;
  }
};

namespace {

using Bound = Restriction::Bound;
using Pointer = Bound::Pointer;
using Kind = SyntaxNode::Kind;

bool IsDecimal(const arrow::DataType& type) { return type.id() == arrow::Type::DECIMAL128 || type.id() == arrow::Type::DECIMAL256; }
bool IsNumber(const arrow::DataType& type) {
  return type.id() == arrow::Type::INT64 || type.id() == arrow::Type::DOUBLE || IsDecimal(type);
}

Pointer Constant(std::shared_ptr<arrow::Scalar> value) {
  auto bound = std::make_shared<Bound>();
  bound->type = value->type;
  bound->constant = arrow::Datum(std::move(value));
  return bound;
}

Pointer Call(std::string function, std::vector<Pointer> children, std::shared_ptr<arrow::DataType> type,
             std::shared_ptr<cp::FunctionOptions> options = nullptr) {
  auto bound = std::make_shared<Bound>();
  bound->op = Bound::Op::kCall;
  bound->function = std::move(function);
  bound->children = std::move(children);
  bound->type = std::move(type);
  bound->options = std::move(options);
  return bound;
}

Pointer CastTo(Pointer child, const std::shared_ptr<arrow::DataType>& type) {
  if (child->type->Equals(*type)) return child;
  auto options = std::make_shared<cp::CastOptions>(cp::CastOptions::Safe(type));
  // An INT64 beyond 2^53 compares with a FLOAT64 as its nearest double, as in GoogleSQL.
  if (type->id() == arrow::Type::DOUBLE) options->allow_float_truncate = true;
  return Call("cast", {std::move(child)}, type, std::move(options));
}

// The type in which two numbers meet (GoogleSQL's supertypes): FLOAT64 when one is FLOAT64, else a decimal with the larger scale.
std::shared_ptr<arrow::DataType> CommonNumber(const arrow::DataType& a, const arrow::DataType& b) {
  if (a.id() == arrow::Type::DOUBLE || b.id() == arrow::Type::DOUBLE) return arrow::float64();
  auto scale = [](const arrow::DataType& type) { return IsDecimal(type) ? static_cast<const arrow::DecimalType&>(type).scale() : 0; };
  return arrow::decimal256(76, std::max(scale(a), scale(b)));
}

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
        return Call("invert", {std::move(child)}, arrow::boolean());
      }
      case Kind::kIn:
        return In(node);
      case Kind::kBetween: {
        auto both = std::make_shared<Bound>();
        both->op = Bound::Op::kAnd;
        both->type = arrow::boolean();
        ARROW_ASSIGN_OR_RAISE(both->children.emplace_back(), Compare(node, ">=", *node.children[0], *node.children[1]));
        ARROW_ASSIGN_OR_RAISE(both->children.emplace_back(), Compare(node, "<=", *node.children[0], *node.children[2]));
        return Pointer(both);
      }
      case Kind::kIsNull: {
        ARROW_ASSIGN_OR_RAISE(Pointer child, Bind(*node.children[0]));
        return Call("is_null", {std::move(child)}, arrow::boolean());
      }
      case Kind::kIsTrue:
      case Kind::kIsFalse: {
        ARROW_ASSIGN_OR_RAISE(Pointer child, BindBool(*node.children[0], "Operand of IS"));
        if (node.kind == Kind::kIsFalse) child = Call("invert", {std::move(child)}, arrow::boolean());
        return Call("coalesce", {std::move(child), Constant(std::make_shared<arrow::BooleanScalar>(false))}, arrow::boolean());
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
        if (field->type()->id() != arrow::Type::STRUCT) {
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
    if (field->HasMetadata() && field->metadata()->Contains("ARROW:extension:name")) bound->incomparable = TypeName(*field);
    return Pointer(bound);
  }

  // GEOGRAPHY and JSON are text to Arrow, told apart by the field's metadata; GoogleSQL compares neither.
  static std::string TypeName(const arrow::Field& field) {
    if (field.HasMetadata()) {
      auto name = field.metadata()->Get("ARROW:extension:name");
      if (name.ok())
        return name->find("json") != std::string::npos ? "JSON" : name->find("geography") != std::string::npos ? "GEOGRAPHY" : *name;
    }
    return SqlTypeName(*field.type());
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
    if (*value != nullptr) return Constant(*value);
    if (must) return Error(node, fmt::format("{} value is out of range or has too many digits", SqlTypeName(*type)));
    return nullptr;
  }

  // Binds both sides to one type.
  arrow::Result<std::pair<Pointer, Pointer>> Unify(const SyntaxNode& node, std::string_view op, const SyntaxNode& a, const SyntaxNode& b) {
    bool literal_a = a.kind == Kind::kLiteral;
    bool literal_b = b.kind == Kind::kLiteral;
    // A text or NULL beside another literal is the one that gives way.
    if (literal_a && (!literal_b || a.literal == SyntaxNode::Literal::kString || a.literal == SyntaxNode::Literal::kNull)) {
      ARROW_ASSIGN_OR_RAISE(Pointer right, Bind(b));
      ARROW_ASSIGN_OR_RAISE(auto sides, WithLiteral(node, op, std::move(right), a));
      return std::pair(std::move(sides.second), std::move(sides.first));
    }
    ARROW_ASSIGN_OR_RAISE(Pointer left, Bind(a));
    if (literal_b) return WithLiteral(node, op, std::move(left), b);
    ARROW_ASSIGN_OR_RAISE(Pointer right, Bind(b));
    return Meet(node, op, std::move(left), std::move(right));
  }

  arrow::Result<std::pair<Pointer, Pointer>> WithLiteral(const SyntaxNode& node, std::string_view op, Pointer value,
                                                         const SyntaxNode& literal) {
    ARROW_RETURN_NOT_OK(CheckComparable(node, op, *value, *LiteralType(literal)));
    if (Coerces(literal.literal, *value->type)) {
      bool typed = literal.literal == SyntaxNode::Literal::kNumeric || literal.literal == SyntaxNode::Literal::kBigNumeric;
      if (typed) ARROW_RETURN_NOT_OK(OwnValue(literal).status());  // must be a value of its own type, whatever the column's
      ARROW_ASSIGN_OR_RAISE(Pointer constant, ValueAs(literal, value->type, false));
      if (constant != nullptr) return std::pair(std::move(value), std::move(constant));
      // More digits than the column's type has: both sides go where they are exact.
      auto wide = WideDecimal(literal, static_cast<const arrow::DecimalType&>(*value->type).scale());
      if (!wide.ok()) return Error(literal, wide.status().message());
      if (*wide == nullptr) return Error(literal, "NUMERIC value is out of range or has too many digits");
      return std::pair(CastTo(std::move(value), (*wide)->type), Constant(*wide));
    }
    ARROW_ASSIGN_OR_RAISE(Pointer constant, OwnValue(literal));
    return Meet(node, op, std::move(value), std::move(constant));
  }

  arrow::Result<std::pair<Pointer, Pointer>> Meet(const SyntaxNode& node, std::string_view op, Pointer left, Pointer right) {
    ARROW_RETURN_NOT_OK(CheckComparable(node, op, *left, *right->type));
    ARROW_RETURN_NOT_OK(CheckComparable(node, op, *right, *left->type));
    if (left->type->Equals(*right->type)) return std::pair(std::move(left), std::move(right));
    if (!IsNumber(*left->type) || !IsNumber(*right->type))
      return NoSignature(node, op, SqlTypeName(*left->type), SqlTypeName(*right->type));
    auto common = CommonNumber(*left->type, *right->type);
    return std::pair(CastTo(std::move(left), common), CastTo(std::move(right), common));
  }

  arrow::Status NoSignature(const SyntaxNode& node, std::string_view op, const std::string& left, const std::string& right) const {
    return Error(node, fmt::format("No matching signature for operator {} for argument types: {}, {}", op, left, right));
  }

  arrow::Status CheckComparable(const SyntaxNode& node, std::string_view op, const Bound& value, const arrow::DataType& other) const {
    constexpr std::array kComparable = {arrow::Type::INT64,  arrow::Type::DOUBLE,     arrow::Type::BOOL,       arrow::Type::STRING,
                                        arrow::Type::BINARY, arrow::Type::DECIMAL128, arrow::Type::DECIMAL256, arrow::Type::DATE32,
                                        arrow::Type::TIME64, arrow::Type::TIMESTAMP};
    bool comparable = std::find(kComparable.begin(), kComparable.end(), value.type->id()) != kComparable.end();
    if (comparable && value.incomparable.empty()) return arrow::Status::OK();
    return NoSignature(node, op, value.incomparable.empty() ? SqlTypeName(*value.type) : value.incomparable, SqlTypeName(other));
  }

  arrow::Result<Pointer> Compare(const SyntaxNode& node, std::string_view op, const SyntaxNode& a, const SyntaxNode& b) {
    ARROW_ASSIGN_OR_RAISE(auto sides, Unify(node, op, a, b));
    constexpr std::array<std::pair<std::string_view, const char*>, 6> kFunctions = {
        {{"=", "equal"}, {"!=", "not_equal"}, {"<", "less"}, {"<=", "less_equal"}, {">", "greater"}, {">=", "greater_equal"}}};
    for (const auto& [symbol, function] : kFunctions) {
      if (symbol == op) return Call(function, {std::move(sides.first), std::move(sides.second)}, arrow::boolean());
    }
    return Error(node, "Syntax error");
  }

  // Values of the operand's own type become one look-up, the rest comparisons; an OR over both keeps the three-valued result.
  arrow::Result<Pointer> In(const SyntaxNode& node) {
    const SyntaxNode& operand = *node.children[0];
    ARROW_ASSIGN_OR_RAISE(Pointer value, Bind(operand));
    std::unique_ptr<arrow::ArrayBuilder> set;
    ARROW_ASSIGN_OR_RAISE(set, arrow::MakeBuilder(value->type));
    auto any = std::make_shared<Bound>();
    any->op = Bound::Op::kOr;
    any->type = arrow::boolean();
    for (size_t i = 1; i < node.children.size(); ++i) {
      const SyntaxNode& item = *node.children[i];
      if (operand.kind != Kind::kLiteral && item.kind == Kind::kLiteral && Coerces(item.literal, *value->type)) {
        ARROW_RETURN_NOT_OK(CheckComparable(node, "IN", *value, *LiteralType(item)));
        ARROW_ASSIGN_OR_RAISE(Pointer constant, ValueAs(item, value->type, false));
        if (constant != nullptr) {
          ARROW_RETURN_NOT_OK(AddToSet(*constant->constant.scalar(), set.get()));
          continue;
        }
      }
      ARROW_ASSIGN_OR_RAISE(any->children.emplace_back(), Compare(node, "=", operand, item));
    }
    if (set->length() > 0) {
      ARROW_ASSIGN_OR_RAISE(auto values, set->Finish());
      // INCONCLUSIVE is SQL's: null when the operand is null, or when nothing matches and the list has a null.
      auto options = std::make_shared<cp::SetLookupOptions>(values, cp::SetLookupOptions::INCONCLUSIVE);
      any->children.push_back(Call("is_in", {std::move(value)}, arrow::boolean(), std::move(options)));
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
  ARROW_ASSIGN_OR_RAISE(arrow::Datum result, root_->Evaluate(batch));
  if (result.is_array()) return std::static_pointer_cast<arrow::BooleanArray>(result.make_array());
  ARROW_ASSIGN_OR_RAISE(auto array, arrow::MakeArrayFromScalar(*result.scalar(), batch.num_rows()));
  return std::static_pointer_cast<arrow::BooleanArray>(array);
}

}  // namespace headrace::local
