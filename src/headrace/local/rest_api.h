// BigQuery's REST API (v2) without its transport: datasets, tables, rows of a table. What the local service does not do is answered 501.
//
// The answers have the service's shape: resources, lists with page tokens, errors as {"error": {code, message, errors, status}}. Any
// thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/local/rest_resource.h"
#include "headrace/local/table_store.h"

namespace headrace::local {

struct RestRequest {
  std::string method{};  // "GET"
  std::string path{};    // decoded, without the query
  std::map<std::string, std::string> query{};
  std::string if_match{};
  std::string if_none_match{};
  std::string host{};  // of the request, for selfLink
  std::string body{};
};

struct RestAnswer {
  int status = 200;
  std::string body{};  // JSON, or empty
  std::string etag{};
};

class RestApi {
 public:
  RestApi(TableStore* tables, Clock* clock) : tables_(tables), clock_(clock) {}

  /// Whether the path is one of BigQuery's: /bigquery/v2/..., /projects/..., uploads.
  static bool Serves(std::string_view path);
  RestAnswer Handle(const RestRequest& request);

  struct Call;  // see rest_call.h

 private:
  using Answered = arrow::Result<RestAnswer>;
  Answered Route(const RestRequest& request);
  Answered Datasets(const Call& call);
  Answered InsertDataset(const Call& call);
  Answered ListDatasets(const Call& call);
  Answered OneDataset(const Call& call);
  Answered Tables(const Call& call);
  Answered InsertTable(const Call& call);
  Answered ListTables(const Call& call);
  Answered OneTable(const Call& call);
  Answered ChangeTable(const Call& call, const TableName& name);
  Answered ListRows(const Call& call);
  std::string LocationOf(const DatasetName& name);

  TableStore* const tables_;
  Clock* const clock_;
};

}  // namespace headrace::local
