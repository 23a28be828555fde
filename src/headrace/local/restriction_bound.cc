#include "headrace/local/restriction_bound.h"

#include <algorithm>
#include <utility>

#include <arrow/array/array_binary.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/compute/api_scalar.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/exec.h>

#include "headrace/local/restriction_literal.h"

namespace headrace::local {

namespace cp = arrow::compute;

namespace {

arrow::Result<arrow::Datum> Match(const arrow::Datum& value, const std::function<bool(std::string_view)>& matches) {
  if (value.is_scalar()) {
    if (!value.scalar()->is_valid) return arrow::Datum(arrow::MakeNullScalar(arrow::boolean()));
    return arrow::Datum(matches(static_cast<const arrow::BaseBinaryScalar&>(*value.scalar()).view()));
  }
  auto array = value.make_array();
  const auto& texts = static_cast<const arrow::BinaryArray&>(*array);  // a StringArray is one too
  arrow::BooleanBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Reserve(texts.length()));
  for (int64_t i = 0; i < texts.length(); ++i) {
    if (texts.IsNull(i)) {
      builder.UnsafeAppendNull();
    } else {
      builder.UnsafeAppend(matches(texts.GetView(i)));
    }
  }
  ARROW_ASSIGN_OR_RAISE(auto matched, builder.Finish());
  return arrow::Datum(std::move(matched));
}

}  // namespace

arrow::Result<arrow::Datum> Restriction::Bound::Evaluate(const arrow::RecordBatch& batch, Known* known) const {
  if (shared) {
    auto found = known->find(this);
    if (found != known->end()) return found->second;
  }
  auto compute = [&]() -> arrow::Result<arrow::Datum> {
    if (op == Op::kConstant) return constant;
    if (op == Op::kColumn) {
      arrow::Datum value(batch.column(path[0]));
      if (path.size() == 1) return value;
      // A null struct has null fields.
      return cp::CallFunction("struct_field", {value},
                              std::make_unique<cp::StructFieldOptions>(std::vector<int>(path.begin() + 1, path.end())).get());
    }
    std::vector<arrow::Datum> arguments;
    for (const Pointer& child : children) {
      ARROW_ASSIGN_OR_RAISE(auto argument, child->Evaluate(batch, known));
      if ((op == Op::kAnd || op == Op::kOr) && !arguments.empty()) {
        ARROW_ASSIGN_OR_RAISE(arguments[0], cp::CallFunction(op == Op::kAnd ? "and_kleene" : "or_kleene", {arguments[0], argument}));
      } else {
        arguments.push_back(std::move(argument));
      }
    }
    if (op == Op::kCall) return cp::CallFunction(function, arguments, options.get());
    if (op == Op::kMatch) return Match(arguments[0], matches);
    return arguments[0];
  };
  ARROW_ASSIGN_OR_RAISE(arrow::Datum value, compute());
  if (shared) known->emplace(this, value);
  return value;
}

bool Restriction::Bound::IsPicos() const { return sql_type == "TIMESTAMP"; }
bool Restriction::Bound::IsNull() const { return op == Op::kConstant && constant.is_scalar() && !constant.scalar()->is_valid; }

BoundPointer ConstantOf(std::shared_ptr<arrow::Scalar> value) {
  auto bound = std::make_shared<Restriction::Bound>();
  bound->type = value->type;
  bound->constant = arrow::Datum(std::move(value));
  return bound;
}

BoundPointer CallOf(std::string function, std::vector<BoundPointer> children, std::shared_ptr<arrow::DataType> type,
                    std::shared_ptr<cp::FunctionOptions> options) {
  auto bound = std::make_shared<Restriction::Bound>();
  bound->op = Restriction::Bound::Op::kCall;
  bound->function = std::move(function);
  bound->children = std::move(children);
  bound->type = std::move(type);
  bound->options = std::move(options);
  return bound;
}

BoundPointer MatchOf(BoundPointer child, std::function<bool(std::string_view)> matches) {
  auto bound = std::make_shared<Restriction::Bound>();
  bound->op = Restriction::Bound::Op::kMatch;
  bound->type = arrow::boolean();
  bound->matches = std::move(matches);
  bound->children = {std::move(child)};
  return bound;
}

BoundPointer CastTo(BoundPointer child, const std::shared_ptr<arrow::DataType>& type) {
  if (child->type->Equals(*type)) return child;
  auto options = std::make_shared<cp::CastOptions>(cp::CastOptions::Safe(type));
  // An INT64 beyond 2^53 compares with a FLOAT64 as its nearest double, as in GoogleSQL.
  if (type->id() == arrow::Type::DOUBLE) options->allow_float_truncate = true;
  return CallOf("cast", {std::move(child)}, type, std::move(options));
}

std::string SqlTypeOf(const Restriction::Bound& value) { return value.sql_type.empty() ? SqlTypeName(*value.type) : value.sql_type; }

bool IsDecimal(const arrow::DataType& type) { return type.id() == arrow::Type::DECIMAL128 || type.id() == arrow::Type::DECIMAL256; }

bool IsNumber(const arrow::DataType& type) {
  return type.id() == arrow::Type::INT64 || type.id() == arrow::Type::DOUBLE || IsDecimal(type);
}

std::shared_ptr<arrow::DataType> CommonNumber(const arrow::DataType& a, const arrow::DataType& b) {
  if (a.id() == arrow::Type::DOUBLE || b.id() == arrow::Type::DOUBLE) return arrow::float64();
  if (a.id() == arrow::Type::INT64 && b.id() == arrow::Type::INT64) return arrow::int64();
  auto scale = [](const arrow::DataType& type) { return IsDecimal(type) ? static_cast<const arrow::DecimalType&>(type).scale() : 0; };
  return arrow::decimal256(76, std::max(scale(a), scale(b)));
}

}  // namespace headrace::local
