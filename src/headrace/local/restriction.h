// Row restrictions: the WHERE-like text of a read session, parsed, bound to a schema and evaluated on columns with three-valued logic.
//
// docs/local-service.md lists what is taken. What is valid for the real service and not taken (subqueries, most functions, bit operators
// ...) is UNIMPLEMENTED by name. All values are immutable and may be shared by threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/array/array_primitive.h>
#include <arrow/record_batch.h>

#include "headrace/base/error.h"

namespace headrace::local {

/// The service's limit for the text (storage.proto: "Restricted to a maximum length for 1 MB").
inline constexpr size_t kMaxRestrictionBytes = 1 << 20;
/// Expressions inside each other; bounds the recursion of parser and evaluator.
inline constexpr int kMaxRestrictionDepth = 200;

struct SyntaxNode {
  enum class Kind {
    kColumn,
    kLiteral,
    kComparison,
    kAnd,
    kOr,
    kNot,
    kIn,
    kBetween,
    kLike,
    kDistinct,
    kIsNull,
    kIsTrue,
    kIsFalse,
    kArithmetic,
    kNegate,
    kFunction,
    kCast
  };
  enum class Literal { kNull, kBool, kInteger, kFloat, kString, kBytes, kNumeric, kBigNumeric, kDate, kTime, kDatetime, kTimestamp };
  Kind kind = Kind::kLiteral;
  size_t offset = 0;                // of its first byte in the text, for messages
  std::string text{};               // a literal's value, an operator, a function's name, the type of a CAST
  std::vector<std::string> path{};  // a column's names
  Literal literal = Literal::kNull;
  std::vector<std::unique_ptr<SyntaxNode>> children{};  // kIn: the operand, then the list; kBetween: operand, low, high
};

/// Never null on success. INVALID_ARGUMENT with the position as [line:column], or UNIMPLEMENTED with the name of what is not taken.
arrow::Result<std::unique_ptr<SyntaxNode>> ParseRestriction(std::string_view text);

/// A restriction bound to the columns of a table.
class Restriction {
 public:
  /// Checks names and types. INVALID_ARGUMENT as above.
  static arrow::Result<std::shared_ptr<const Restriction>> Bind(std::string_view text, const arrow::Schema& schema);
  ~Restriction();

  /// One value a row: true, false or null. `batch` has the schema that was bound.
  arrow::Result<std::shared_ptr<arrow::BooleanArray>> Evaluate(const arrow::RecordBatch& batch) const;

  struct Bound;  // see restriction_bound.h

 private:
  explicit Restriction(std::shared_ptr<const Bound> root);
  std::shared_ptr<const Bound> root_;
};

/// "[2:7]" for a byte offset: line and column counted from 1, columns in bytes.
std::string PositionText(std::string_view text, size_t offset);

}  // namespace headrace::local
