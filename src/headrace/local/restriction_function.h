// The functions, operators and casts of a row restriction, bound to arguments. Free functions, any thread.
//
// Errors carry no position: arrow::Status::Invalid for arguments that do not fit, in GoogleSQL's words, UNIMPLEMENTED for what is not
// taken.
#pragma once

#include <string>
#include <vector>

#include "headrace/local/restriction_bound.h"

namespace headrace::local {

/// `name` in upper case. NULL arguments have the type that the others ask for.
arrow::Result<BoundPointer> BindFunction(const std::string& name, std::vector<BoundPointer> arguments);

/// + - * / between two sides that were brought to one type; `decimals` when one of them was a BIGNUMERIC before.
arrow::Result<BoundPointer> BindArithmetic(const std::string& op, BoundPointer left, BoundPointer right);
/// Unary - and +.
arrow::Result<BoundPointer> BindSign(const std::string& op, BoundPointer operand);
arrow::Result<BoundPointer> BindLike(BoundPointer value, const BoundPointer& pattern);

/// The type that CAST names; null when there is none of that name.
std::shared_ptr<arrow::DataType> CastType(const std::string& name);
arrow::Result<BoundPointer> BindCast(BoundPointer operand, const std::shared_ptr<arrow::DataType>& type);

}  // namespace headrace::local
