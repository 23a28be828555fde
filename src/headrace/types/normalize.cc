#include "headrace/types/normalize.h"

#include <utility>

#include "headrace/types/canonicalize.h"
#include "headrace/types/type_table.h"

namespace headrace {

arrow::Result<std::shared_ptr<arrow::Table>> NormalizeToBigQuery(const std::shared_ptr<arrow::Table>& table) {
  ARROW_ASSIGN_OR_RAISE(auto bigquery, FromArrowSchema(*table->schema()));
  ARROW_ASSIGN_OR_RAISE(auto schema, ToArrowSchema(bigquery));
  ARROW_ASSIGN_OR_RAISE(auto canonicalizer, Canonicalizer::Make(table->schema(), schema));
  std::vector<std::shared_ptr<arrow::ChunkedArray>> columns;
  for (int i = 0; i < schema->num_fields(); ++i) {
    arrow::ArrayVector chunks;
    int64_t row = 0;
    for (const auto& chunk : table->column(canonicalizer->WireIndex(i))->chunks()) {
      ARROW_ASSIGN_OR_RAISE(auto converted, canonicalizer->ConvertColumn(i, chunk, row));
      row += chunk->length();
      chunks.push_back(std::move(converted));
    }
    columns.push_back(std::make_shared<arrow::ChunkedArray>(std::move(chunks), schema->field(i)->type()));
  }
  return arrow::Table::Make(std::move(schema), std::move(columns), table->num_rows());
}

}  // namespace headrace
