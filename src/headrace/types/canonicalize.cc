#include "headrace/types/canonicalize.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/types/internal/canonical_node.h"
#include "headrace/types/type_table.h"

namespace headrace {

Canonicalizer::Canonicalizer(std::shared_ptr<arrow::Schema> canonical, const CanonicalizeOptions& options)
    : canonical_(std::move(canonical)), options_(options) {}
Canonicalizer::~Canonicalizer() = default;

arrow::Result<std::unique_ptr<Canonicalizer>> Canonicalizer::Make(std::shared_ptr<arrow::Schema> wire,
                                                                  std::shared_ptr<arrow::Schema> canonical,
                                                                  const CanonicalizeOptions& options) {
  ARROW_ASSIGN_OR_RAISE(auto table, FromArrowSchema(*canonical));
  std::unique_ptr<Canonicalizer> result(new Canonicalizer(canonical, options));
  std::vector<std::string> differences;
  result->wire_index_ = internal::MatchFields(wire->fields(), canonical->fields(), "", &differences);
  for (int i = 0; i < canonical->num_fields(); ++i) {
    const int at = result->WireIndex(i);
    if (at < 0) continue;
    result->nodes_.push_back(
        internal::CompileCanonical(*wire->field(at), canonical->field(i), table.fields[static_cast<size_t>(i)], "", &differences));
  }
  if (differences.empty()) return result;
  const std::string column = differences[0].substr(0, differences[0].find(": want "));
  return MakeError({.code = Code::kFailedPrecondition, .reason = "SCHEMA_DIFFERS", .column = column},
                   fmt::format("the data's schema is not the one expected: {}", fmt::join(differences, "; ")));
}

arrow::Result<std::shared_ptr<arrow::Array>> Canonicalizer::ConvertColumn(int column, const std::shared_ptr<arrow::Array>& array,
                                                                          int64_t first_row) const {
  return internal::ApplyCanonical(nodes_[static_cast<size_t>(column)], array, options_, internal::RowPlace(first_row), false);
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> Canonicalizer::Convert(const arrow::RecordBatch& batch, int64_t first_row) const {
  arrow::ArrayVector columns;
  for (int i = 0; i < canonical_->num_fields(); ++i) {
    if (WireIndex(i) >= batch.num_columns()) return arrow::Status::Invalid("the batch has fewer columns than its schema");
    ARROW_ASSIGN_OR_RAISE(auto column, ConvertColumn(i, batch.column(WireIndex(i)), first_row));
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(canonical_, batch.num_rows(), std::move(columns));
}

}  // namespace headrace
