// Requests to the local service's REST API: bodies of datasets and tables, and paths, queries and conditions.
//
// An input is the method, a space, the path with its query; If-Match; then the body, a line each.
#include <arrow/api.h>
#include <nlohmann/json.hpp>

#include "fuzz/fuzz_target.h"
#include "headrace/base/clock.h"
#include "headrace/local/rest_api.h"

namespace headrace::fuzz {
namespace {

std::string_view TakeBefore(char end, std::string_view* rest) {
  const size_t at = rest->find(end);
  const std::string_view taken = rest->substr(0, at);
  rest->remove_prefix(at == std::string_view::npos ? rest->size() : at + 1);
  return taken;
}

local::RestRequest Request(std::string_view bytes) {
  std::string_view target = TakeBefore('\n', &bytes);
  local::RestRequest request{
      .method = std::string(TakeBefore(' ', &target)), .path = std::string(TakeBefore('?', &target)), .host = "localhost"};
  while (!target.empty()) {
    std::string_view parameter = TakeBefore('&', &target);
    const std::string name(TakeBefore('=', &parameter));
    request.query[name] = std::string(parameter);
  }
  request.if_match = std::string(TakeBefore('\n', &bytes));
  request.body = std::string(bytes);
  return request;
}

std::shared_ptr<arrow::Table> Rows() {
  arrow::Int64Builder n;
  arrow::StringBuilder s;
  if (!n.AppendValues({1, 2, 3}).ok() || !s.AppendValues(std::vector<std::string>{"a", "b", "c"}).ok()) __builtin_trap();
  const auto schema = arrow::schema({arrow::field("n", arrow::int64()), arrow::field("s", arrow::utf8())});
  return arrow::Table::Make(schema, {n.Finish().ValueOrDie(), s.Finish().ValueOrDie()});
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  static const auto rows = Rows();
  ManualClock clock;
  local::TableStore tables(&clock);
  if (!tables.Add("p.d.t", rows).ok()) __builtin_trap();
  local::RestApi api(&tables, &clock);
  const auto request = Request(bytes);
  // What has no path of BigQuery's does not come here.
  if (!local::RestApi::Serves(request.path)) return;
  const auto answer = api.Handle(request);
  // No request may be the service's own failure, and every answer is JSON.
  if (answer.status == 500) __builtin_trap();
  if (!answer.body.empty() && !nlohmann::json::accept(answer.body)) __builtin_trap();
  // What was made can be described.
  for (const char* path : {"/bigquery/v2/projects/p/datasets", "/bigquery/v2/projects/p/datasets/d/tables",
                           "/bigquery/v2/projects/p/datasets/d/tables/t", "/bigquery/v2/projects/p/datasets/d/tables/t/data"}) {
    const auto described = api.Handle({.method = "GET", .path = path, .host = "localhost"});
    if (described.status == 500 || !nlohmann::json::accept(described.body)) __builtin_trap();
  }
}

std::vector<std::string> Seeds() {
  const std::string datasets = "/bigquery/v2/projects/p/datasets";
  return {
      "GET " + datasets + "?maxResults=1&pageToken=&all=true&filter=labels.a:b\n\n",
      "POST " + datasets + "\n\n" +
          R"({"datasetReference":{"datasetId":"e","projectId":"p"},"location":"EU","labels":{"a":"b"},"defaultTableExpirationMs":"3600000"})",
      "PATCH " + datasets + "/d\n\n" + R"({"description":"x","friendlyName":null,"labels":{"a":null}})",
      "DELETE " + datasets + "/d?deleteContents=true\n\n",
      "POST " + datasets + "/d/tables\n\n" +
          R"({"tableReference":{"projectId":"p","datasetId":"d","tableId":"u"},"schema":{"fields":[{"name":"at","type":"TIMESTAMP"},)"
          R"({"name":"r","type":"RECORD","mode":"REPEATED","fields":[{"name":"x","type":"NUMERIC","precision":"20","scale":"4"}]},)"
          R"({"name":"g","type":"RANGE","rangeElementType":{"type":"DATE"}}]},"timePartitioning":{"type":"DAY","field":"at"},"expirationTime":"9900000000000"})",
      "POST " + datasets + "/d/tables\n\n" +
          R"({"tableReference":{"projectId":"p","datasetId":"d","tableId":"v"},"view":{"query":"SELECT 1","useLegacySql":false}})",
      "PATCH " + datasets + "/d/tables/t\n\n" +
          R"({"schema":{"fields":[{"name":"n","type":"INTEGER"},{"name":"s","type":"STRING","maxLength":"9"},{"name":"z","type":"DATE"}]}})",
      "PUT " + datasets + "/d/tables/t\n\"etag\"\n{}",
      "POST " + datasets + "/d/tables\n\n" +
          R"({"tableReference":{"projectId":"p","datasetId":"d","tableId":"w"},"schema":{"fields":[{"name":"n","type":"INT64"},{"name":"s","type":"STRING"}]},)"
          R"("clustering":{"fields":["s"]},"rangePartitioning":{"field":"n","range":{"start":"0","end":"9","interval":"1"}}})",
      "GET " + datasets + "/d/tables/t/data?startIndex=1&maxResults=1&selectedFields=n,s&formatOptions.useInt64Timestamp=true\n\n",
      "POST " + datasets + "/d/tables/t/insertAll\n\n{}",
  };
}

}  // namespace headrace::fuzz
