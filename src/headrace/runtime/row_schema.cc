#include "headrace/runtime/row_schema.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/runtime/internal/row_plan.h"
#include "headrace/types/canonicalize.h"
#include "headrace/types/json_row.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

/// The field itself when its type is canonical at every depth.
arrow::Result<std::shared_ptr<arrow::Field>> CanonicalField(const std::shared_ptr<arrow::Field>& given) {
  auto alone = arrow::schema({given});
  ARROW_ASSIGN_OR_RAISE(auto table, FromArrowSchema(*alone));
  if (JsonRowWriter::Make(alone).ok()) return given;
  return ToArrowField(table.fields[0]);
}

}  // namespace

RowSchema::RowSchema() = default;
RowSchema::~RowSchema() = default;

arrow::Result<std::shared_ptr<const RowSchema>> RowSchema::Make(const std::shared_ptr<arrow::Schema>& schema) {
  std::shared_ptr<RowSchema> made(new RowSchema());
  made->given_ = schema;
  bool canonical = true;
  arrow::FieldVector fields;
  for (const auto& given : schema->fields()) {
    ARROW_ASSIGN_OR_RAISE(auto field, CanonicalField(given));
    canonical = canonical && field == given;
    fields.push_back(std::move(field));
  }
  made->canonical_ = canonical ? schema : arrow::schema(std::move(fields));
  if (!canonical) {
    ARROW_ASSIGN_OR_RAISE(made->canonicalizer_, Canonicalizer::Make(schema, made->canonical_));
  }
  ARROW_ASSIGN_OR_RAISE(auto plan, internal::CompileRow(made->canonical_->fields(), ""));
  made->plan_ = std::make_unique<internal::RowPlan>(std::move(plan));
  return made;
}

int RowSchema::column_count() const { return static_cast<int>(plan_->columns.size()); }

const Field& RowSchema::field(int column) const { return plan_->columns[static_cast<size_t>(column)].field; }

arrow::Result<int> RowSchema::Find(std::string_view name) const {
  const int found = plan_->Find(name);
  if (found >= 0) return found;
  constexpr size_t kMostNamed = 20;
  std::string names;
  for (size_t i = 0; i < plan_->columns.size() && i < kMostNamed; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", plan_->columns[i].field.name);
  }
  if (plan_->columns.size() > kMostNamed) names += fmt::format(" and {} more", plan_->columns.size() - kMostNamed);
  return MakeError({.code = Code::kNotFound, .resource = "rows", .reason = "NO_SUCH_COLUMN", .column = std::string(name)},
                   fmt::format("there is no column {}: there are {}", Quoted(name), names));
}

arrow::Result<RowBatch> RowSchema::Bind(std::shared_ptr<arrow::RecordBatch> batch, int64_t first_row) const {
  // The views cast arrays by what the schema says, so that must hold of each batch.
  bool same = batch->num_columns() == given_->num_fields();
  for (int i = 0; same && i < batch->num_columns(); ++i) same = batch->column(i)->type()->Equals(*given_->field(i)->type());
  if (!same) {
    return MakeError(
        {.code = Code::kInternal, .resource = "rows", .reason = "SCHEMA_DIFFERS"},
        fmt::format("a batch has the columns {}, but the source's schema is {}", batch->schema()->ToString(), given_->ToString()));
  }
  if (canonicalizer_ != nullptr) {
    ARROW_ASSIGN_OR_RAISE(batch, canonicalizer_->Convert(*batch, first_row));
  }
  RowBatch rows;
  rows.schema_ = shared_from_this();
  rows.plan_ = plan_.get();
  rows.batch_ = std::move(batch);
  rows.first_row_ = first_row;
  for (int i = 0; i < rows.batch_->num_columns(); ++i) rows.columns_.push_back(rows.batch_->column(i).get());
  return rows;
}

}  // namespace headrace
