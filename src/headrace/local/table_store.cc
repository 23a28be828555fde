#include "headrace/local/table_store.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/types/normalize.h"
#include "headrace/types/type_table.h"

namespace headrace::local {
namespace {

using Json = nlohmann::ordered_json;

// Versions kept of one table: a program that changes a schema in a loop must not fill the memory.
constexpr size_t kMostPast = 100;

// FNV-1a, 64 bit: a checksum that stays the same over builds and machines, which std::hash does not promise.
uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 14695981039346656037U;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

int64_t Micros(SystemTime time) { return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count(); }

arrow::Status Refuse(Code code, const char* reason, std::string resource, std::string message) {
  return MakeError({.code = code, .resource = std::move(resource), .reason = reason}, std::move(message));
}

arrow::Status NoSuchTable(const TableName& name) {
  return Refuse(Code::kNotFound, "notFound", name.Legacy(), fmt::format("Not found: Table {}", name.Legacy()));
}

arrow::Status CheckMatch(std::string_view if_match, const std::string& etag, const std::string& resource) {
  if (if_match.empty() || if_match == "*" || if_match == etag) return arrow::Status::OK();
  return Refuse(Code::kFailedPrecondition, "conditionNotMet", resource, "Precondition check failed.");
}

Properties NoProperties() { return std::make_shared<const Json>(Json::object()); }

// expirationTime in milliseconds; nothing when there is none.
std::optional<int64_t> ExpirationOf(const TableInfo& table) {
  auto found = table.properties->find("expirationTime");
  if (found == table.properties->end() || !found->is_string()) return std::nullopt;
  const auto& text = found->get_ref<const std::string&>();
  int64_t millis = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), millis);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return millis;
}

}  // namespace

std::string TableStore::NextEtag() {
  // Of the time too: a service that starts again must not give the etags of the one before to other resources.
  return fmt::format("{:016x}", Fnv1a(fmt::format("{} {}", Micros(clock_->Now()), ++changes_)));
}

arrow::Result<std::shared_ptr<const StoredTable>> TableStore::NewVersion(const TableName& name, TableSchema schema,
                                                                         const RowBatches* rows) const {
  auto version = std::make_shared<StoredTable>();
  version->name = name;
  version->load_time = clock_->Now();
  auto arrow_schema = ToArrowSchema(schema);
  if (!arrow_schema.ok()) return WithContext(arrow_schema.status(), fmt::format("Table {}", name.Dotted()));
  if (rows == nullptr) {
    version->rows.schema = *arrow_schema;
  } else {
    ARROW_ASSIGN_OR_RAISE(version->rows, rows->Reshape(*arrow_schema));
  }
  version->schema = std::move(schema);
  version->schema_checksum = Fnv1a(version->rows.schema->ToString(true));
  version->content_checksum = ContentChecksum(version->rows);
  return version;
}

void TableStore::Retire(const TableInfo& table) {
  if (table.content == nullptr) return;
  auto& past = past_[table.name];
  SystemTime now = clock_->Now();
  past.push_back({table.content, now});
  std::erase_if(past, [&](const Past& one) { return one.until + kTimeTravel < now; });
  if (past.size() > kMostPast) past.erase(past.begin());
}

void TableStore::RemoveExpired() {
  int64_t now = Micros(clock_->Now()) / 1000;
  std::erase_if(tables_, [&](const auto& entry) {
    auto expiration = ExpirationOf(entry.second);
    if (!expiration || *expiration > now) return false;
    Retire(entry.second);
    return true;
  });
}

arrow::Result<TableInfo*> TableStore::FindTable(const TableName& name) {
  RemoveExpired();
  auto found = tables_.find(name);
  if (found != tables_.end()) return &found->second;
  ARROW_RETURN_NOT_OK(FindDataset(name.Dataset()).status());
  return NoSuchTable(name);
}

arrow::Result<DatasetInfo*> TableStore::FindDataset(const DatasetName& name) {
  auto found = datasets_.find(name);
  if (found != datasets_.end()) return &found->second;
  return Refuse(Code::kNotFound, "notFound", name.Legacy(), fmt::format("Not found: Dataset {}", name.Legacy()));
}

arrow::Result<TableInfo> TableStore::Seed(const std::string& name) {
  TableInfo table;
  ARROW_ASSIGN_OR_RAISE(table.name, ParseDottedTableName(name));
  if (tables_.contains(table.name)) return InvalidOption(name, fmt::format("The table {} is given twice.", name));
  table.properties = NoProperties();
  table.created = table.modified = clock_->Now();
  table.etag = NextEtag();
  DatasetInfo dataset{table.name.Dataset(), NoProperties(), table.created, table.created, NextEtag()};
  datasets_.emplace(dataset.name, dataset);
  return table;
}

arrow::Status TableStore::Add(const std::string& name, const std::shared_ptr<arrow::Table>& rows,
                              const std::optional<TableSchema>& schema) {
  std::lock_guard lock(mutex_);
  ARROW_ASSIGN_OR_RAISE(TableInfo table, Seed(name));
  auto normal = NormalizeToBigQuery(rows);
  if (!normal.ok()) return WithContext(normal.status(), fmt::format("Table {}", name));
  ARROW_ASSIGN_OR_RAISE(RowBatches batches, RowBatches::Make(*normal));
  if (schema) {
    table.schema = *schema;
  } else {
    ARROW_ASSIGN_OR_RAISE(table.schema, FromArrowSchema(*batches.schema));
  }
  ARROW_ASSIGN_OR_RAISE(table.content, NewVersion(table.name, table.schema, &batches));
  tables_.emplace(table.name, std::move(table));
  return arrow::Status::OK();
}

arrow::Status TableStore::AddView(const std::string& name) {
  std::lock_guard lock(mutex_);
  ARROW_ASSIGN_OR_RAISE(TableInfo table, Seed(name));
  table.view = true;
  table.properties = std::make_shared<const Json>(Json{{"view", {{"query", "-- given with --view"}, {"useLegacySql", false}}}});
  tables_.emplace(table.name, std::move(table));
  return arrow::Status::OK();
}

std::shared_ptr<const StoredTable> TableStore::Find(const TableName& name) {
  std::lock_guard lock(mutex_);
  RemoveExpired();
  auto found = tables_.find(name);
  return found == tables_.end() ? nullptr : found->second.content;
}

bool TableStore::IsView(const TableName& name) {
  std::lock_guard lock(mutex_);
  RemoveExpired();
  auto found = tables_.find(name);
  return found != tables_.end() && found->second.view;
}

arrow::Result<std::shared_ptr<const StoredTable>> TableStore::FindAt(const TableName& name, SystemTime when) {
  std::lock_guard lock(mutex_);
  ARROW_ASSIGN_OR_RAISE(TableInfo * table, FindTable(name));
  if (table->content == nullptr) return NoSuchTable(name);  // a view took its place
  // In microseconds, the precision of the service's time stamps.
  if (Micros(when) >= Micros(table->content->load_time)) return table->content;
  SystemTime earliest = table->content->load_time;
  auto past = past_.find(name);
  if (past != past_.end()) {
    for (auto one = past->second.rbegin(); one != past->second.rend(); ++one) {
      earliest = one->content->load_time;
      if (Micros(when) >= Micros(earliest) && Micros(when) < Micros(one->until)) return one->content;
    }
  }
  int64_t millis = Micros(when) / 1000;
  return Refuse(Code::kInvalidArgument, "invalid", name.Legacy(),
                fmt::format("request failed: Invalid snapshot time {} for Table {}@{}. Cannot read before {}", millis, name.Legacy(),
                            millis, Micros(earliest) / 1000));
}

std::shared_ptr<const StoredTable> TableStore::FindVersion(const TableName& name, uint64_t schema_checksum, uint64_t content_checksum,
                                                           int64_t rows) {
  std::lock_guard lock(mutex_);
  RemoveExpired();
  auto same = [&](const std::shared_ptr<const StoredTable>& version) {
    return version != nullptr && version->schema_checksum == schema_checksum && version->content_checksum == content_checksum &&
           version->rows.rows == rows;
  };
  auto found = tables_.find(name);
  if (found != tables_.end() && same(found->second.content)) return found->second.content;
  auto past = past_.find(name);
  if (past == past_.end()) return nullptr;
  auto one = std::find_if(past->second.rbegin(), past->second.rend(), [&](const Past& version) { return same(version.content); });
  return one == past->second.rend() ? nullptr : one->content;
}

arrow::Result<DatasetInfo> TableStore::InsertDataset(const DatasetName& name, Properties properties) {
  std::lock_guard lock(mutex_);
  if (datasets_.contains(name)) {
    return Refuse(Code::kAlreadyExists, "duplicate", name.Legacy(), fmt::format("Already Exists: Dataset {}", name.Legacy()));
  }
  SystemTime now = clock_->Now();
  return datasets_.emplace(name, DatasetInfo{name, std::move(properties), now, now, NextEtag()}).first->second;
}

arrow::Result<DatasetInfo> TableStore::GetDataset(const DatasetName& name) {
  std::lock_guard lock(mutex_);
  ARROW_ASSIGN_OR_RAISE(DatasetInfo * dataset, FindDataset(name));
  return *dataset;
}

std::vector<DatasetInfo> TableStore::ListDatasets(const std::string& project) {
  std::lock_guard lock(mutex_);
  std::vector<DatasetInfo> listed;
  for (auto at = datasets_.lower_bound({project, ""}); at != datasets_.end() && at->first.project == project; ++at) {
    listed.push_back(at->second);
  }
  return listed;
}

arrow::Result<DatasetInfo> TableStore::UpdateDataset(const DatasetName& name, std::string_view if_match,
                                                     const std::function<arrow::Status(DatasetInfo*)>& change) {
  std::lock_guard lock(mutex_);
  ARROW_ASSIGN_OR_RAISE(DatasetInfo * dataset, FindDataset(name));
  ARROW_RETURN_NOT_OK(CheckMatch(if_match, dataset->etag, name.Legacy()));
  DatasetInfo changed = *dataset;
  ARROW_RETURN_NOT_OK(change(&changed));
  dataset->properties = std::move(changed.properties);
  dataset->modified = clock_->Now();
  dataset->etag = NextEtag();
  return *dataset;
}

arrow::Status TableStore::DeleteDataset(const DatasetName& name, std::string_view if_match, bool delete_contents) {
  std::lock_guard lock(mutex_);
  RemoveExpired();
  ARROW_ASSIGN_OR_RAISE(DatasetInfo * dataset, FindDataset(name));
  ARROW_RETURN_NOT_OK(CheckMatch(if_match, dataset->etag, name.Legacy()));
  auto in_it = [&](const auto& entry) { return entry.first.Dataset() == name; };
  if (!delete_contents && std::any_of(tables_.begin(), tables_.end(), in_it)) {
    return Refuse(Code::kFailedPrecondition, "resourceInUse", name.Legacy(), fmt::format("Dataset {} is still in use", name.Legacy()));
  }
  std::erase_if(tables_, [&](const auto& entry) {
    if (!in_it(entry)) return false;
    Retire(entry.second);
    return true;
  });
  datasets_.erase(name);
  return arrow::Status::OK();
}

arrow::Result<TableInfo> TableStore::InsertTable(TableInfo table) {
  std::lock_guard lock(mutex_);
  RemoveExpired();
  ARROW_RETURN_NOT_OK(FindDataset(table.name.Dataset()).status());
  if (tables_.contains(table.name)) {
    return Refuse(Code::kAlreadyExists, "duplicate", table.name.Legacy(), fmt::format("Already Exists: Table {}", table.name.Legacy()));
  }
  table.created = table.modified = clock_->Now();
  table.etag = NextEtag();
  if (!table.view) {
    ARROW_ASSIGN_OR_RAISE(table.content, NewVersion(table.name, table.schema, nullptr));
  }
  TableName name = table.name;
  return tables_.emplace(std::move(name), std::move(table)).first->second;
}

arrow::Result<TableInfo> TableStore::GetTable(const TableName& name) {
  std::lock_guard lock(mutex_);
  ARROW_ASSIGN_OR_RAISE(TableInfo * table, FindTable(name));
  return *table;
}

arrow::Result<std::vector<TableInfo>> TableStore::ListTables(const DatasetName& dataset) {
  std::lock_guard lock(mutex_);
  RemoveExpired();
  ARROW_RETURN_NOT_OK(FindDataset(dataset).status());
  std::vector<TableInfo> listed;
  for (auto at = tables_.lower_bound({dataset.project, dataset.dataset, ""}); at != tables_.end() && at->first.Dataset() == dataset; ++at) {
    listed.push_back(at->second);
  }
  return listed;
}

arrow::Result<TableInfo> TableStore::UpdateTable(const TableName& name, std::string_view if_match,
                                                 const std::function<arrow::Status(TableInfo*)>& change) {
  std::lock_guard lock(mutex_);
  ARROW_ASSIGN_OR_RAISE(TableInfo * table, FindTable(name));
  ARROW_RETURN_NOT_OK(CheckMatch(if_match, table->etag, name.Legacy()));
  TableInfo changed = *table;
  ARROW_RETURN_NOT_OK(change(&changed));
  if (!table->view && changed.schema != table->schema) {
    ARROW_ASSIGN_OR_RAISE(changed.content, NewVersion(name, changed.schema, &table->content->rows));
    Retire(*table);
  }
  changed.modified = clock_->Now();
  changed.etag = NextEtag();
  *table = std::move(changed);
  return *table;
}

arrow::Status TableStore::DeleteTable(const TableName& name, std::string_view if_match) {
  std::lock_guard lock(mutex_);
  ARROW_ASSIGN_OR_RAISE(TableInfo * table, FindTable(name));
  ARROW_RETURN_NOT_OK(CheckMatch(if_match, table->etag, name.Legacy()));
  Retire(*table);
  tables_.erase(name);
  return arrow::Status::OK();
}

}  // namespace headrace::local
