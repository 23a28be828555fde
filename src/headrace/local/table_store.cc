#include "headrace/local/table_store.h"

#include <algorithm>
#include <utility>

#include <arrow/util/byte_size.h>
#include <fmt/format.h>

#include "headrace/types/normalize.h"

namespace headrace::local {
namespace {

bool IsNamePart(std::string_view part) {
  return !part.empty() &&
         std::none_of(part.begin(), part.end(), [](char c) { return c == '/' || c == '`' || static_cast<unsigned char>(c) < 0x20; });
}

// FNV-1a, 64 bit: a checksum that stays the same over builds and machines, which std::hash does not promise.
uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 14695981039346656037U;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

}  // namespace

std::string TableName::Dotted() const { return fmt::format("{}.{}.{}", project, dataset, table); }
std::string TableName::Legacy() const { return fmt::format("{}:{}.{}", project, dataset, table); }

arrow::Result<TableName> ParseDottedTableName(std::string_view text) {
  size_t last = text.rfind('.');
  size_t middle = last == std::string_view::npos || last == 0 ? std::string_view::npos : text.rfind('.', last - 1);
  if (middle != std::string_view::npos) {
    TableName name{std::string(text.substr(0, middle)), std::string(text.substr(middle + 1, last - middle - 1)),
                   std::string(text.substr(last + 1))};
    if (IsNamePart(name.project) && IsNamePart(name.dataset) && IsNamePart(name.table)) return name;
  }
  return InvalidOption(std::string(text), fmt::format("\"{}\" is not a table name. Write project.dataset.table.", text));
}

arrow::Result<TableName> ParseResourceTableName(std::string_view text) {
  constexpr std::string_view kProjects = "projects/";
  constexpr std::string_view kDatasets = "/datasets/";
  constexpr std::string_view kTables = "/tables/";
  size_t datasets = text.find(kDatasets);
  size_t tables = text.find(kTables);
  if (text.starts_with(kProjects) && datasets != std::string_view::npos && tables != std::string_view::npos && tables > datasets) {
    size_t dataset_at = datasets + kDatasets.size();
    if (dataset_at <= tables && datasets >= kProjects.size()) {
      TableName name{std::string(text.substr(kProjects.size(), datasets - kProjects.size())),
                     std::string(text.substr(dataset_at, tables - dataset_at)), std::string(text.substr(tables + kTables.size()))};
      // With a dot in its dataset the dotted form would be another table's.
      bool dotted = name.dataset.find('.') != std::string::npos || name.table.find('.') != std::string::npos;
      if (!dotted && IsNamePart(name.project) && IsNamePart(name.dataset) && IsNamePart(name.table)) return name;
    }
  }
  return MakeError({.code = Code::kInvalidArgument, .resource = std::string(text)},
                   fmt::format("request failed: \"{}\" is not a table name (projects/P/datasets/D/tables/T)", text));
}

arrow::Result<RowBatches> RowBatches::Make(std::shared_ptr<arrow::Schema> schema,
                                           std::vector<std::shared_ptr<arrow::RecordBatch>> batches) {
  RowBatches made;
  made.schema = std::move(schema);
  for (auto& batch : batches) {
    if (batch->num_rows() == 0) continue;
    made.starts.push_back(made.rows);
    made.rows += batch->num_rows();
    ARROW_ASSIGN_OR_RAISE(int64_t bytes, arrow::util::ReferencedBufferSize(*batch));
    made.bytes += bytes;
    made.batches.push_back(std::move(batch));
  }
  return made;
}

arrow::Result<RowBatches> RowBatches::Make(const std::shared_ptr<arrow::Table>& table) {
  // Few large batches: a message never spans two of them.
  ARROW_ASSIGN_OR_RAISE(auto combined, table->CombineChunks());
  arrow::TableBatchReader reader(*combined);
  ARROW_ASSIGN_OR_RAISE(auto batches, reader.ToRecordBatches());
  if (table->num_columns() > 0) return Make(table->schema(), std::move(batches));
  batches = {arrow::RecordBatch::Make(table->schema(), table->num_rows(), arrow::ArrayVector{})};
  return Make(table->schema(), std::move(batches));
}

std::shared_ptr<arrow::RecordBatch> RowBatches::Slice(int64_t offset, int64_t length) const {
  auto after = std::upper_bound(starts.begin(), starts.end(), offset);
  auto index = static_cast<size_t>(after - starts.begin()) - 1;
  return batches[index]->Slice(offset - starts[index], length);
}

arrow::Result<RowBatches> RowBatches::Select(const std::vector<int>& indices) const {
  arrow::FieldVector fields;
  for (int index : indices) fields.push_back(schema->field(index));
  auto selected = arrow::schema(std::move(fields), schema->metadata());
  std::vector<std::shared_ptr<arrow::RecordBatch>> projected;
  for (const auto& batch : batches) {
    ARROW_ASSIGN_OR_RAISE(auto columns, batch->SelectColumns(indices));
    projected.push_back(arrow::RecordBatch::Make(selected, batch->num_rows(), columns->columns()));
  }
  return Make(selected, std::move(projected));
}

arrow::Status TableStore::CheckNew(const TableName& name) const {
  if (!tables_.contains(name.Dotted()) && !views_.contains(name.Dotted())) return arrow::Status::OK();
  return InvalidOption(name.Dotted(), fmt::format("The table {} is given twice.", name.Dotted()));
}

arrow::Status TableStore::Add(const std::string& name, const std::shared_ptr<arrow::Table>& rows, SystemTime load_time) {
  auto stored = std::make_shared<StoredTable>();
  ARROW_ASSIGN_OR_RAISE(stored->name, ParseDottedTableName(name));
  ARROW_RETURN_NOT_OK(CheckNew(stored->name));
  auto normal = NormalizeToBigQuery(rows);
  if (!normal.ok()) return WithContext(normal.status(), fmt::format("Table {}", name));
  ARROW_ASSIGN_OR_RAISE(stored->rows, RowBatches::Make(*normal));
  stored->load_time = load_time;
  stored->schema_checksum = Fnv1a(stored->rows.schema->ToString(true));
  tables_.emplace(stored->name.Dotted(), std::move(stored));
  return arrow::Status::OK();
}

arrow::Status TableStore::AddView(const std::string& name) {
  ARROW_ASSIGN_OR_RAISE(TableName parsed, ParseDottedTableName(name));
  ARROW_RETURN_NOT_OK(CheckNew(parsed));
  views_.insert(parsed.Dotted());
  return arrow::Status::OK();
}

std::shared_ptr<const StoredTable> TableStore::Find(const TableName& name) const {
  auto found = tables_.find(name.Dotted());
  return found == tables_.end() ? nullptr : found->second;
}

bool TableStore::IsView(const TableName& name) const { return views_.contains(name.Dotted()); }

}  // namespace headrace::local
