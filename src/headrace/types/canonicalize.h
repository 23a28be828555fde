// Turns Arrow data of any maker (the service, an emulator, a file) into the canonical types of the type table, exactly or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "headrace/base/error.h"

namespace headrace {

namespace internal {
struct CanonicalNode;
}  // namespace internal

struct CanonicalizeOptions {
  /// Dates, times, decimals and intervals must lie in BigQuery's ranges and text must be UTF-8. Nulls in REQUIRED columns and in arrays are
  /// always errors.
  bool check_values = true;
  arrow::MemoryPool* pool = arrow::default_memory_pool();
};

/// Compiled once for a pair of schemas. Arrays that have the canonical layout already are passed on, not copied. Others are converted:
/// narrower integers and floats, other units, dictionaries, extension, large and view types, lists of any kind, month_day_nano as INTERVAL,
/// and text as the types that some servers send as text. Arrays must be valid Arrow data: what comes from outside is validated (offsets,
/// dictionary indexes) by the caller first. Immutable, any thread.
class Canonicalizer {
 public:
  /// Columns and fields of STRUCTs match by name whatever its case, in any order. FAILED_PRECONDITION (reason SCHEMA_DIFFERS) lists each
  /// column that is missing, unknown or of a type that cannot become the canonical one: name, want, have.
  static arrow::Result<std::unique_ptr<Canonicalizer>> Make(std::shared_ptr<arrow::Schema> wire, std::shared_ptr<arrow::Schema> canonical,
                                                            const CanonicalizeOptions& options = {});
  ~Canonicalizer();

  const std::shared_ptr<arrow::Schema>& schema() const { return canonical_; }

  /// The batch, of the wire schema's types, in the canonical schema. A null array becomes an empty one. A value that does not fit is an
  /// error with column, row (the row in the batch plus `first_row`) and value.
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Convert(const arrow::RecordBatch& batch, int64_t first_row = 0) const;
  /// One column of the canonical schema from its array on the wire.
  arrow::Result<std::shared_ptr<arrow::Array>> ConvertColumn(int column, const std::shared_ptr<arrow::Array>& array,
                                                             int64_t first_row = 0) const;
  /// Where a column of the canonical schema stands on the wire.
  int WireIndex(int column) const { return wire_index_[static_cast<size_t>(column)]; }

 private:
  Canonicalizer(std::shared_ptr<arrow::Schema> canonical, const CanonicalizeOptions& options);

  std::shared_ptr<arrow::Schema> canonical_;
  CanonicalizeOptions options_;
  std::vector<int> wire_index_;
  std::vector<internal::CanonicalNode> nodes_;
};

}  // namespace headrace
