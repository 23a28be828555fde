// The tables that the service serves, immutable once loaded: any thread may read them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/record_batch.h>
#include <arrow/table.h>

#include "headrace/base/clock.h"
#include "headrace/base/error.h"

namespace headrace::local {

struct TableName {
  std::string project{};
  std::string dataset{};
  std::string table{};
  std::string Dotted() const;  // p.d.t
  std::string Legacy() const;  // p:d.t, as the service's errors say it
};

/// "project.dataset.table"; the project may have dots and a colon (domain-scoped projects), the other two not.
arrow::Result<TableName> ParseDottedTableName(std::string_view text);
/// "projects/p/datasets/d/tables/t"
arrow::Result<TableName> ParseResourceTableName(std::string_view text);

/// Consecutive record batches with the rows before each.
struct RowBatches {
  std::shared_ptr<arrow::Schema> schema{};
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches{};
  std::vector<int64_t> starts{};
  int64_t rows = 0;
  int64_t bytes = 0;  // of the buffers' parts that the rows refer to

  static arrow::Result<RowBatches> Make(const std::shared_ptr<arrow::Table>& table);
  static arrow::Result<RowBatches> Make(std::shared_ptr<arrow::Schema> schema, std::vector<std::shared_ptr<arrow::RecordBatch>> batches);
  /// The rows [offset, offset + at most `length`) that lie in one batch; `offset` < rows.
  std::shared_ptr<arrow::RecordBatch> Slice(int64_t offset, int64_t length) const;
  /// The columns at `indices`, without copying.
  arrow::Result<RowBatches> Select(const std::vector<int>& indices) const;
};

struct StoredTable {
  TableName name{};
  SystemTime load_time{};
  RowBatches rows{};
  uint64_t schema_checksum = 0;
};

class TableStore {
 public:
  /// Casts to BigQuery's types; an error names the table and the column that has none.
  arrow::Status Add(const std::string& name, const std::shared_ptr<arrow::Table>& rows, SystemTime load_time);
  arrow::Status AddView(const std::string& name);

  std::shared_ptr<const StoredTable> Find(const TableName& name) const;  // null when there is none
  bool IsView(const TableName& name) const;

 private:
  arrow::Status CheckNew(const TableName& name) const;
  std::map<std::string, std::shared_ptr<const StoredTable>> tables_;
  std::set<std::string> views_;
};

}  // namespace headrace::local
