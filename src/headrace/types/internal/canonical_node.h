// One column or field of a Canonicalizer: what is done to its arrays. Private to types/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <arrow/array.h>
#include <arrow/type.h>

#include "headrace/types/canonicalize.h"
#include "headrace/types/schema.h"

namespace headrace::internal {

enum class CanonicalStep {
  kCast,          // Arrow's own cast, where the layout differs at all
  kStruct,        // field by field; INTERVAL and RANGE too
  kList,          // element by element
  kMonthDayNano,  // into INTERVAL
  kPicos,         // TIMESTAMP(12): text and timestamps into each other
  kParse,         // text by the coercion table, strictly
};

struct CanonicalNode {
  std::string path;
  Field field;                              // what the canonical field is
  std::shared_ptr<arrow::DataType> source;  // dictionaries and extensions taken off
  std::shared_ptr<arrow::Field> target;
  CanonicalStep step = CanonicalStep::kCast;
  bool same_layout = false;             // `source` differs from the target in names at most
  std::vector<CanonicalNode> children;  // of a STRUCT: in the target's order; of a list: the element
  std::vector<int> child_index;         // where each stands in the source
};

/// The row that an index in a (nested) array belongs to. The parent outlives it.
class RowPlace {
 public:
  explicit RowPlace(int64_t first_row) : first_row_(first_row) {}
  /// Of the elements of `lists`, counted from the first that is used.
  RowPlace(const RowPlace* parent, const int32_t* offsets, int64_t count) : parent_(parent), offsets_(offsets), count_(count) {}

  int64_t RowOf(int64_t index) const;

 private:
  const RowPlace* parent_ = nullptr;
  const int32_t* offsets_ = nullptr;
  int64_t count_ = 0;
  int64_t first_row_ = 0;
};

/// Whether buffers of `a` are those of `b`: the same but for names, nullability and metadata of fields.
bool SameLayout(const arrow::DataType& a, const arrow::DataType& b);

/// Compiles a node; adds a line to `differences` for each column that cannot be converted.
CanonicalNode CompileCanonical(const arrow::Field& wire, const std::shared_ptr<arrow::Field>& target, const Field& field,
                               const std::string& parent, std::vector<std::string>* differences);
/// The indexes in `wire` of the fields of `target` by name; lines for what is missing and what is unknown.
std::vector<int> MatchFields(const arrow::FieldVector& wire, const arrow::FieldVector& target, const std::string& parent,
                             std::vector<std::string>* differences);

/// `array` itself where nothing is to be done. `below_null`: a STRUCT above has nulls, under which REQUIRED does not count.
arrow::Result<std::shared_ptr<arrow::Array>> ApplyCanonical(const CanonicalNode& node, std::shared_ptr<arrow::Array> array,
                                                            const CanonicalizeOptions& options, const RowPlace& place, bool below_null);

/// Values of a leaf outside BigQuery's ranges, text that is no UTF-8.
arrow::Status CheckValues(const CanonicalNode& node, const arrow::Array& array, const RowPlace& place);

/// The value as an error shows it.
std::string ShownValue(const arrow::Array& array, int64_t index);

}  // namespace headrace::internal
