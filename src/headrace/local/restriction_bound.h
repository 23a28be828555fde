// The bound form of a row restriction: an expression whose columns are found and whose parts have one type each, evaluated bottom up with
// Arrow's kernels. Internal to the restriction's sources; nodes are immutable once built and may be shared by threads and by several
// parents.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <arrow/compute/function_options.h>
#include <arrow/datum.h>

#include "headrace/local/restriction.h"

namespace headrace::local {

struct Restriction::Bound {
  enum class Op { kColumn, kConstant, kCall, kAnd, kOr, kMatch };
  using Pointer = std::shared_ptr<const Bound>;
  /// Values of nodes with several parents, of one batch.
  using Known = std::unordered_map<const Bound*, arrow::Datum>;

  Op op = Op::kConstant;
  std::shared_ptr<arrow::DataType> type{};
  std::string sql_type{};   // of a type that Arrow has only as text or struct: GEOGRAPHY, JSON, INTERVAL ...
  bool shared = false;      // has several parents
  std::vector<int> path{};  // kColumn
  arrow::Datum constant{};  // kConstant
  std::string function{};   // kCall
  std::shared_ptr<arrow::compute::FunctionOptions> options{};  // kCall
  std::function<bool(std::string_view)> matches{};             // kMatch: of each value of the one child, STRING or BYTES
  std::vector<Pointer> children{};

  arrow::Result<arrow::Datum> Evaluate(const arrow::RecordBatch& batch, Known* known) const;
  bool IsPicos() const;  // a TIMESTAMP(12): text that sorts as the times do
  bool IsNull() const;   // the literal NULL
};

using BoundPointer = Restriction::Bound::Pointer;

BoundPointer ConstantOf(std::shared_ptr<arrow::Scalar> value);
BoundPointer CallOf(std::string function, std::vector<BoundPointer> children, std::shared_ptr<arrow::DataType> type,
                    std::shared_ptr<arrow::compute::FunctionOptions> options = nullptr);
BoundPointer MatchOf(BoundPointer child, std::function<bool(std::string_view)> matches);
BoundPointer CastTo(BoundPointer child, const std::shared_ptr<arrow::DataType>& type);
/// GoogleSQL's name of the type.
std::string SqlTypeOf(const Restriction::Bound& value);

bool IsDecimal(const arrow::DataType& type);
bool IsNumber(const arrow::DataType& type);
/// The type in which two numbers meet (GoogleSQL's supertypes): FLOAT64 when one is FLOAT64, else a decimal with the larger scale.
std::shared_ptr<arrow::DataType> CommonNumber(const arrow::DataType& a, const arrow::DataType& b);

}  // namespace headrace::local
