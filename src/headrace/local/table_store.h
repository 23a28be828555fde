// The datasets, tables and views of the service. They change while they are read: a reader holds an immutable version of a table.
//
// A TableStore owns everything in it and may be used from any thread. The properties of a resource (description, labels, partitioning ...)
// are its REST JSON, checked by who sets them; the store knows of them only the expiration time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "headrace/base/clock.h"
#include "headrace/base/error.h"
#include "headrace/local/row_batches.h"
#include "headrace/local/table_name.h"
#include "headrace/types/schema.h"

namespace headrace::local {

/// How far back a snapshot may lie, and how long replaced versions are kept (fact R8).
inline constexpr auto kTimeTravel = std::chrono::hours(168);

/// One version of a table: its schema and its rows.
struct StoredTable {
  TableName name{};
  SystemTime load_time{};  // since when it was the current one
  TableSchema schema{};
  RowBatches rows{};
  uint64_t schema_checksum = 0;
  uint64_t content_checksum = 0;
};

/// A JSON object, never changed in place.
using Properties = std::shared_ptr<const nlohmann::ordered_json>;

struct DatasetInfo {
  DatasetName name{};
  Properties properties{};
  SystemTime created{};
  SystemTime modified{};
  std::string etag{};
};

struct TableInfo {
  TableName name{};
  bool view = false;
  TableSchema schema{};  // of a view: as it was given
  Properties properties{};
  SystemTime created{};
  SystemTime modified{};
  std::string etag{};
  std::shared_ptr<const StoredTable> content{};  // null for a view
};

/// Every error has the service's words, and the reason of the REST API as ErrorInfo::reason: notFound, duplicate, resourceInUse,
/// conditionNotMet, invalid. `if_match` is an etag, or empty for none.
class TableStore {
 public:
  explicit TableStore(Clock* clock) : clock_(clock) {}

  /// Seeds. The dataset is made when it is not there. Casts to BigQuery's types; an error names the table and the column that has none.
  /// With a schema, the columns get its modes and descriptions, and must have its types.
  arrow::Status Add(const std::string& name, const std::shared_ptr<arrow::Table>& rows, const std::optional<TableSchema>& schema = {});
  arrow::Status AddView(const std::string& name);

  /// The current version; null when there is none, or it is a view.
  std::shared_ptr<const StoredTable> Find(const TableName& name);
  bool IsView(const TableName& name);
  /// The version that was the current one at `when`. INVALID_ARGUMENT when none is kept of that time.
  arrow::Result<std::shared_ptr<const StoredTable>> FindAt(const TableName& name, SystemTime when);
  /// The newest kept version with these checksums and rows, also of a table that is gone; null when there is none.
  std::shared_ptr<const StoredTable> FindVersion(const TableName& name, uint64_t schema_checksum, uint64_t content_checksum, int64_t rows);

  arrow::Result<DatasetInfo> InsertDataset(const DatasetName& name, Properties properties);
  arrow::Result<DatasetInfo> GetDataset(const DatasetName& name);
  std::vector<DatasetInfo> ListDatasets(const std::string& project);
  /// `change` gets the dataset as it is and sets what is to be: properties only.
  arrow::Result<DatasetInfo> UpdateDataset(const DatasetName& name, std::string_view if_match,
                                           const std::function<arrow::Status(DatasetInfo*)>& change);
  arrow::Status DeleteDataset(const DatasetName& name, std::string_view if_match, bool delete_contents);

  /// Takes name, view, schema and properties; a new table has no rows.
  arrow::Result<TableInfo> InsertTable(TableInfo table);
  arrow::Result<TableInfo> GetTable(const TableName& name);
  arrow::Result<std::vector<TableInfo>> ListTables(const DatasetName& dataset);
  /// `change` gets the table as it is and sets what is to be: properties and schema. Another schema makes another version with the same
  /// values; it must be one that RowBatches::Reshape can give.
  arrow::Result<TableInfo> UpdateTable(const TableName& name, std::string_view if_match,
                                       const std::function<arrow::Status(TableInfo*)>& change);
  arrow::Status DeleteTable(const TableName& name, std::string_view if_match);

 private:
  struct Past {
    std::shared_ptr<const StoredTable> content;
    SystemTime until;
  };
  std::string NextEtag();
  arrow::Result<std::shared_ptr<const StoredTable>> NewVersion(const TableName& name, TableSchema schema, const RowBatches* rows) const;
  void Retire(const TableInfo& table);
  void RemoveExpired();
  arrow::Result<TableInfo*> FindTable(const TableName& name);
  arrow::Result<DatasetInfo*> FindDataset(const DatasetName& name);
  arrow::Result<TableInfo> Seed(const std::string& name);

  Clock* const clock_;
  std::mutex mutex_;
  std::map<DatasetName, DatasetInfo> datasets_;
  std::map<TableName, TableInfo> tables_;
  std::map<TableName, std::vector<Past>> past_;  // oldest first
  uint64_t changes_ = 0;
};

}  // namespace headrace::local
