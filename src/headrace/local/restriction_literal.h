// The values of a row restriction's literals. Free functions, any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <arrow/scalar.h>

#include "headrace/local/restriction.h"

namespace headrace::local {

/// The name of a column's type as GoogleSQL says it.
std::string SqlTypeName(const arrow::DataType& type);

/// The type of a literal that nothing coerces. Not for NULL.
std::shared_ptr<arrow::DataType> LiteralType(const SyntaxNode& literal);

/// Whether GoogleSQL coerces a literal of this kind to a column of that type.
bool Coerces(SyntaxNode::Literal literal, const arrow::DataType& type);

/// The literal as a scalar of exactly `type`, which Coerces allows or LiteralType gave. Null when the value is a valid one but `type`
/// cannot hold it (more digits than the column's). INVALID_ARGUMENT without a position when the text is no value of its own kind.
arrow::Result<std::shared_ptr<arrow::Scalar>> LiteralValue(const SyntaxNode& literal, const std::shared_ptr<arrow::DataType>& type);

/// The smallest decimal256(76, s) that holds a numeric literal exactly; null when there is none.
arrow::Result<std::shared_ptr<arrow::Scalar>> WideDecimal(const SyntaxNode& literal, int32_t scale_at_least);

}  // namespace headrace::local
