// The tables of the REST API.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headrace/local/rest_api.h"
#include "headrace/local/rest_call.h"
#include "headrace/types/schema_json.h"

namespace headrace::local {
namespace {

Json ReferenceOf(const TableName& name) { return {{"projectId", name.project}, {"datasetId", name.dataset}, {"tableId", name.table}}; }

const char* TypeOf(const TableInfo& table) { return table.view ? "VIEW" : "TABLE"; }

Json TableResource(const RestApi::Call& call, const TableInfo& table, const std::string& location) {
  const TableName& name = table.name;
  Json json = {{"kind", "bigquery#table"},
               {"etag", table.etag},
               {"id", name.Legacy()},
               {"selfLink", call.Link(fmt::format("projects/{}/datasets/{}/tables/{}", name.project, name.dataset, name.table))},
               {"tableReference", ReferenceOf(name)}};
  for (const auto& [key, value] : table.properties->items()) json[key] = value;
  if (!table.schema.fields.empty()) json["schema"] = {{"fields", Json::parse(SchemaToJson(table.schema), nullptr, false)}};
  json["creationTime"] = std::to_string(MillisOf(table.created));
  json["lastModifiedTime"] = std::to_string(MillisOf(table.modified));
  json["type"] = TypeOf(table);
  json["location"] = location;
  int64_t rows = table.content == nullptr ? 0 : table.content->rows.rows;
  int64_t bytes = table.content == nullptr ? 0 : table.content->rows.bytes;
  json["numRows"] = std::to_string(rows);
  json["numBytes"] = std::to_string(bytes);
  json["numLongTermBytes"] = "0";
  if (table.view) return json;
  json["numTotalLogicalBytes"] = std::to_string(bytes);
  json["numActiveLogicalBytes"] = std::to_string(bytes);
  json["numLongTermLogicalBytes"] = "0";
  return json;
}

arrow::Status CheckKind(const Json& properties, bool view) {
  if (!view) return arrow::Status::OK();
  auto query = properties["view"].find("query");
  if (query != properties["view"].end() && !query->get_ref<const std::string&>().empty()) return arrow::Status::OK();
  return BadRequest("A view needs a query");
}

// What a table is, and how it lies on disk, stays as it was made.
arrow::Status CheckUnchanged(const TableInfo& before, const Json& after) {
  if (before.view != after.contains("view")) return BadRequest("Cannot change a table into a view or a view into a table");
  auto spec = [](const Json& properties, const char* key) {
    auto found = properties.find(key);
    Json value = found == properties.end() ? Json() : *found;
    if (value.is_object()) {
      value.erase("expirationMs");
      value.erase("requirePartitionFilter");
    }
    return value;
  };
  for (const char* key : {"timePartitioning", "rangePartitioning"}) {
    Json had = spec(*before.properties, key);
    if (had == spec(after, key)) continue;
    if (had.is_null()) return BadRequest("Cannot convert non partitioned/clustered table to partitioned/clustered table.");
    return BadRequest(fmt::format("Cannot change partitioning specification of table {}", before.name.Legacy()));
  }
  return arrow::Status::OK();
}

}  // namespace

RestApi::Answered RestApi::Tables(const Call& call) {
  if (call.request.method == "GET") return ListTables(call);
  if (call.request.method == "POST") return InsertTable(call);
  return MakeError({.code = Code::kNotFound, .reason = "notFound"},
                   fmt::format("Not found: {} {}", call.request.method, call.request.path));
}

RestApi::Answered RestApi::InsertTable(const Call& call) {
  ARROW_ASSIGN_OR_RAISE(Json body, ParseBody(call.request.body));
  DatasetName dataset = call.Dataset();
  ARROW_ASSIGN_OR_RAISE(auto in, tables_->GetDataset(dataset));
  TableInfo table;
  table.name = {dataset.project, dataset.dataset, ""};
  auto reference = body.find("tableReference");
  if (reference != body.end() && reference->is_object() && reference->contains("tableId") && (*reference)["tableId"].is_string()) {
    table.name.table = (*reference)["tableId"].get<std::string>();
  }
  if (table.name.table.empty())
    return MakeError({.code = Code::kInvalidArgument, .reason = "required"}, "Required parameter is missing: tableId");
  ARROW_RETURN_NOT_OK(CheckTableId(table.name.table));
  ARROW_ASSIGN_OR_RAISE(Json given, CheckProperties(ResourceKind::kTable, body));
  ARROW_ASSIGN_OR_RAISE(table.schema, SchemaOf(body));
  Json properties = Json::object();
  MergePatch(given, &properties);  // without what is null
  table.view = properties.contains("view");
  ARROW_RETURN_NOT_OK(CheckKind(properties, table.view));
  ARROW_RETURN_NOT_OK(CheckColumnsOfProperties(properties, table.schema));
  auto lifetime = in.properties->find("defaultTableExpirationMs");
  if (lifetime != in.properties->end() && !properties.contains("expirationTime")) {
    constexpr int64_t kYear9999 = 253402300799999;  // no expiration is later
    int64_t millis = std::clamp<int64_t>(std::stoll(lifetime->get<std::string>()), 0, kYear9999);
    properties["expirationTime"] = std::to_string(MillisOf(clock_->Now()) + millis);
  }
  table.properties = std::make_shared<const Json>(std::move(properties));
  ARROW_ASSIGN_OR_RAISE(table, tables_->InsertTable(std::move(table)));
  return AnswerJson(TableResource(call, table, LocationOf(dataset)), table.etag);
}

RestApi::Answered RestApi::ListTables(const Call& call) {
  ARROW_ASSIGN_OR_RAISE(auto tables, tables_->ListTables(call.Dataset()));
  std::vector<std::string> names;
  for (const TableInfo& table : tables) names.push_back(table.name.table);
  ARROW_ASSIGN_OR_RAISE(Page page, PageOf(call, names));
  Json json = {{"kind", "bigquery#tableList"}};
  if (page.more) json["nextPageToken"] = names[page.first + page.count - 1];
  for (size_t i = page.first; i < page.first + page.count; ++i) {
    const TableInfo& table = tables[i];
    Json item = {{"kind", "bigquery#table"},
                 {"id", table.name.Legacy()},
                 {"tableReference", ReferenceOf(table.name)},
                 {"type", TypeOf(table)},
                 {"creationTime", std::to_string(MillisOf(table.created))}};
    for (const char* key : {"friendlyName", "labels", "timePartitioning", "rangePartitioning", "clustering", "expirationTime"}) {
      if (table.properties->contains(key)) item[key] = (*table.properties)[key];
    }
    if (table.view) item["view"] = {{"useLegacySql", table.properties->value("/view/useLegacySql"_json_pointer, false)}};
    json["tables"].push_back(std::move(item));
  }
  json["totalItems"] = tables.size();
  return AnswerJson(json);
}

RestApi::Answered RestApi::OneTable(const Call& call) {
  const std::string& method = call.request.method;
  TableName name = call.Table();
  if (method == "GET") {
    ARROW_ASSIGN_OR_RAISE(auto table, tables_->GetTable(name));
    return AnswerJson(TableResource(call, table, LocationOf(name.Dataset())), table.etag);
  }
  if (method == "DELETE") {
    ARROW_RETURN_NOT_OK(tables_->DeleteTable(name, call.request.if_match));
    return RestAnswer{.status = 204};
  }
  if (method == "PATCH" || method == "PUT") return ChangeTable(call, name);
  return MakeError({.code = Code::kNotFound, .reason = "notFound"}, fmt::format("Not found: {} {}", method, call.request.path));
}

RestApi::Answered RestApi::ChangeTable(const Call& call, const TableName& name) {
  ARROW_ASSIGN_OR_RAISE(Json body, ParseBody(call.request.body));
  ARROW_ASSIGN_OR_RAISE(Json given, CheckProperties(ResourceKind::kTable, body));
  ARROW_ASSIGN_OR_RAISE(TableSchema wanted, SchemaOf(body));
  auto change = [&](TableInfo* table) -> arrow::Status {
    Json properties = call.request.method == "PATCH" ? *table->properties : Json::object();
    // What a table is cannot be taken away by leaving it out.
    for (const char* key : {"view", "timePartitioning", "rangePartitioning"}) {
      if (!properties.contains(key) && table->properties->contains(key)) properties[key] = (*table->properties)[key];
    }
    MergePatch(given, &properties);
    ARROW_RETURN_NOT_OK(CheckUnchanged(*table, properties));
    ARROW_RETURN_NOT_OK(CheckKind(properties, table->view));
    if (!wanted.fields.empty()) {
      if (table->view) {
        table->schema = wanted;
      } else {
        ARROW_ASSIGN_OR_RAISE(table->schema, ChangedSchema(name, table->schema, wanted));
      }
    }
    ARROW_RETURN_NOT_OK(CheckColumnsOfProperties(properties, table->schema));
    table->properties = std::make_shared<const Json>(std::move(properties));
    return arrow::Status::OK();
  };
  ARROW_ASSIGN_OR_RAISE(auto table, tables_->UpdateTable(name, call.request.if_match, change));
  return AnswerJson(TableResource(call, table, LocationOf(name.Dataset())), table.etag);
}

}  // namespace headrace::local
