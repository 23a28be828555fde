#include "headrace/local/rest_api.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "headrace/local/rest_call.h"

namespace headrace::local {
namespace {

constexpr std::string_view kPrefix = "/bigquery/v2/";
constexpr std::string_view kUpload = "/upload/bigquery/v2/";
constexpr std::string_view kResumable = "/resumable/upload/bigquery/v2/";

std::vector<std::string> Split(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    size_t slash = path.find('/');
    parts.emplace_back(path.substr(0, slash));
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return parts;
}

int HttpStatus(const arrow::Status& status) {
  const ErrorInfo* info = GetErrorInfo(status);
  if (info != nullptr && info->reason == "conditionNotMet") return 412;
  switch (CodeOf(status)) {
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
      return 409;
    case Code::kUnimplemented:
      return 501;
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
      return 400;
    default:
      return 500;
  }
}

std::string ReasonOf(const arrow::Status& status) {
  // The service's reasons begin with a small letter; ours, for programs, are upper case.
  const ErrorInfo* info = GetErrorInfo(status);
  if (info != nullptr && !info->reason.empty() && info->reason[0] >= 'a' && info->reason[0] <= 'z') return info->reason;
  switch (CodeOf(status)) {
    case Code::kNotFound:
      return "notFound";
    case Code::kUnimplemented:
      return "notImplemented";
    case Code::kInvalidArgument:
      return "invalid";
    default:
      return "internalError";
  }
}

RestAnswer AnswerError(const arrow::Status& status) {
  int code = HttpStatus(status);
  Json item = {{"message", status.message()}, {"domain", "global"}, {"reason", ReasonOf(status)}};
  Json error = {{"code", code}, {"message", status.message()}, {"errors", Json::array({item})}, {"status", CodeName(CodeOf(status))}};
  RestAnswer answer = AnswerJson({{"error", error}});
  answer.status = code;
  return answer;
}

arrow::Status NoSuchPath(const RestRequest& request) {
  return MakeError({.code = Code::kNotFound, .resource = request.path, .reason = "notFound"},
                   fmt::format("Not found: {} {}", request.method, request.path));
}

// What stands behind the table or project in the path and belongs to a later part of the service.
std::string_view LaterPart(const std::vector<std::string>& path) {
  auto at = [&](size_t i) { return i < path.size() ? std::string_view(path[i]) : std::string_view(); };
  if (at(2) == "jobs") return "jobs (load, query, extract, copy)";
  if (at(2) == "queries") return "queries";
  if (at(4) == "routines") return "routines";
  if (at(4) == "models") return "models";
  if (at(6) == "insertAll") return "tabledata.insertAll";
  if (at(6) == "rowAccessPolicies") return "row access policies";
  for (const std::string& part : path) {
    size_t colon = part.find(':');
    if (colon == std::string::npos || &part == &path[1]) continue;  // a project's name may have one
    std::string_view verb = std::string_view(part).substr(colon);
    if (verb == ":getIamPolicy" || verb == ":setIamPolicy" || verb == ":testIamPermissions") return "IAM policies";
    if (verb == ":undelete") return "datasets.undelete";
  }
  return "";
}

Json DefaultAccess() {
  return Json::array({{{"role", "WRITER"}, {"specialGroup", "projectWriters"}},
                      {{"role", "OWNER"}, {"specialGroup", "projectOwners"}},
                      {{"role", "READER"}, {"specialGroup", "projectReaders"}}});
}

Json DatasetResource(const RestApi::Call& call, const DatasetInfo& dataset) {
  const DatasetName& name = dataset.name;
  Json json = {{"kind", "bigquery#dataset"},
               {"etag", dataset.etag},
               {"id", name.Legacy()},
               {"selfLink", call.Link(fmt::format("projects/{}/datasets/{}", name.project, name.dataset))},
               {"datasetReference", {{"projectId", name.project}, {"datasetId", name.dataset}}}};
  for (const auto& [key, value] : dataset.properties->items()) json[key] = value;
  if (!json.contains("location")) json["location"] = "US";
  if (!json.contains("access")) json["access"] = DefaultAccess();
  if (!json.contains("maxTimeTravelHours")) json["maxTimeTravelHours"] = "168";
  json["creationTime"] = std::to_string(MillisOf(dataset.created));
  json["lastModifiedTime"] = std::to_string(MillisOf(dataset.modified));
  json["type"] = "DEFAULT";
  return json;
}

// labels.KEY or labels.KEY:VALUE, several with a space between.
arrow::Result<bool> MatchesFilter(const std::string& filter, const Json& properties) {
  constexpr std::string_view kLabels = "labels.";
  std::string_view left = filter;
  auto labels = properties.find("labels");
  while (!left.empty()) {
    size_t space = left.find(' ');
    std::string_view term = left.substr(0, space);
    left.remove_prefix(space == std::string_view::npos ? left.size() : space + 1);
    if (term.empty()) continue;
    if (!term.starts_with(kLabels))
      return BadRequest(fmt::format("Invalid filter \"{}\": labels.KEY or labels.KEY:VALUE is wanted", filter));
    term.remove_prefix(kLabels.size());
    size_t colon = term.find(':');
    if (labels == properties.end() || !labels->contains(std::string(term.substr(0, colon)))) return false;
    if (colon != std::string_view::npos && (*labels)[std::string(term.substr(0, colon))] != std::string(term.substr(colon + 1)))
      return false;
  }
  return true;
}

}  // namespace

std::string RestApi::Call::Parameter(const std::string& name) const {
  auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

arrow::Result<bool> RestApi::Call::Flag(const std::string& name) const {
  std::string text = Parameter(name);
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (text.empty() || text == "false") return false;
  if (text == "true") return true;
  return BadRequest(fmt::format("Invalid value for {}: \"{}\" is neither true nor false", name, text));
}

arrow::Result<std::optional<uint64_t>> RestApi::Call::Number(const std::string& name) const {
  std::string text = Parameter(name);
  if (text.empty()) return std::optional<uint64_t>();
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return BadRequest(fmt::format("Invalid value for {}: \"{}\" is not a valid value", name, text));
  }
  return std::optional<uint64_t>(value);
}

std::string RestApi::Call::Link(std::string_view resource) const { return fmt::format("http://{}{}{}", request.host, kPrefix, resource); }

arrow::Status BadRequest(std::string message) {
  return MakeError({.code = Code::kInvalidArgument, .reason = "invalid"}, std::move(message));
}

arrow::Status NotServed(std::string_view what) {
  return MakeError({.code = Code::kUnimplemented, .reason = "notImplemented"},
                   fmt::format("The local service does not serve {} yet.", what));
}

RestAnswer AnswerJson(const Json& json, std::string etag) {
  // Names of loaded tables may hold any bytes: what is not UTF-8 is replaced, never thrown about.
  return {.status = 200, .body = json.dump(-1, ' ', false, Json::error_handler_t::replace), .etag = std::move(etag)};
}

int64_t MillisOf(SystemTime time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count(); }

arrow::Result<Page> PageOf(const RestApi::Call& call, const std::vector<std::string>& names) {
  ARROW_ASSIGN_OR_RAISE(auto most, call.Number("maxResults"));
  Page page;
  std::string token = call.Parameter("pageToken");
  // The token names the last item of the page before, so that items that come and go in between do no harm.
  if (!token.empty()) page.first = static_cast<size_t>(std::upper_bound(names.begin(), names.end(), token) - names.begin());
  page.count = names.size() - page.first;
  if (most && *most > 0 && *most < page.count) {
    page.count = static_cast<size_t>(*most);
    page.more = true;
  }
  return page;
}

bool RestApi::Serves(std::string_view path) {
  return path.starts_with(kPrefix) || path.starts_with("/projects/") || path.starts_with(kUpload) || path.starts_with(kResumable);
}

RestAnswer RestApi::Handle(const RestRequest& request) {
  auto answer = Route(request);
  if (!answer.ok()) return AnswerError(answer.status());
  if (request.method == "GET" && !answer->etag.empty() && answer->etag == request.if_none_match) {
    return {.status = 304, .body = "", .etag = answer->etag};
  }
  return *answer;
}

RestApi::Answered RestApi::Route(const RestRequest& request) {
  std::string_view path = request.path;
  if (path.starts_with(kUpload) || path.starts_with(kResumable)) return NotServed("uploads of load jobs");
  path.remove_prefix(path.starts_with(kPrefix) ? kPrefix.size() : 1);
  Call call{request, Split(path)};
  const auto& parts = call.path;
  if (parts.empty() || parts[0] != "projects") return NoSuchPath(request);
  if (parts.size() == 1) return NotServed("the list of projects");
  if (std::any_of(parts.begin(), parts.end(), [](const std::string& part) { return part.empty(); })) return NoSuchPath(request);
  if (auto later = LaterPart(parts); !later.empty()) return NotServed(later);
  if (parts.size() == 3 && parts[2] == "serviceAccount" && request.method == "GET") {
    return AnswerJson({{"kind", "bigquery#getServiceAccountResponse"}, {"email", "bq-local@bigquery-encryption.iam.gserviceaccount.com"}});
  }
  if (parts.size() < 3 || parts[2] != "datasets") return NoSuchPath(request);
  if (parts.size() == 3) return Datasets(call);
  if (parts.size() == 4) return OneDataset(call);
  if (parts[4] != "tables") return NoSuchPath(request);
  if (parts.size() == 5) return Tables(call);
  if (parts.size() == 6) return OneTable(call);
  if (parts.size() == 7 && parts[6] == "data" && request.method == "GET") return ListRows(call);
  return NoSuchPath(request);
}

RestApi::Answered RestApi::Datasets(const Call& call) {
  if (call.request.method == "GET") return ListDatasets(call);
  if (call.request.method == "POST") return InsertDataset(call);
  return NoSuchPath(call.request);
}

RestApi::Answered RestApi::InsertDataset(const Call& call) {
  ARROW_ASSIGN_OR_RAISE(Json body, ParseBody(call.request.body));
  DatasetName name{call.Project(), ""};
  auto reference = body.find("datasetReference");
  if (reference != body.end() && reference->is_object()) {
    name.dataset = reference->value("datasetId", Json()).is_string() ? (*reference)["datasetId"].get<std::string>() : "";
  }
  if (name.dataset.empty()) return MakeError({.code = Code::kInvalidArgument, .reason = "required"}, "Required parameter is missing");
  ARROW_RETURN_NOT_OK(CheckDatasetId(name.dataset));
  ARROW_ASSIGN_OR_RAISE(Json given, CheckProperties(ResourceKind::kDataset, body));
  Json properties = Json::object();
  MergePatch(given, &properties);  // without what is null
  ARROW_ASSIGN_OR_RAISE(auto dataset, tables_->InsertDataset(name, std::make_shared<const Json>(std::move(properties))));
  return AnswerJson(DatasetResource(call, dataset), dataset.etag);
}

RestApi::Answered RestApi::ListDatasets(const Call& call) {
  std::string filter = call.Parameter("filter");
  ARROW_ASSIGN_OR_RAISE(bool hidden, call.Flag("all"));
  std::vector<DatasetInfo> datasets;
  std::vector<std::string> names;
  for (DatasetInfo& dataset : tables_->ListDatasets(call.Project())) {
    ARROW_ASSIGN_OR_RAISE(bool matches, MatchesFilter(filter, *dataset.properties));
    if (!matches || (!hidden && dataset.name.dataset.starts_with('_'))) continue;
    names.push_back(dataset.name.dataset);
    datasets.push_back(std::move(dataset));
  }
  ARROW_ASSIGN_OR_RAISE(Page page, PageOf(call, names));
  Json json = {{"kind", "bigquery#datasetList"}};
  std::string etags;
  if (page.more) json["nextPageToken"] = names[page.first + page.count - 1];
  for (size_t i = page.first; i < page.first + page.count; ++i) {
    const DatasetInfo& dataset = datasets[i];
    Json item = {{"kind", "bigquery#dataset"},
                 {"id", dataset.name.Legacy()},
                 {"datasetReference", {{"projectId", dataset.name.project}, {"datasetId", dataset.name.dataset}}},
                 {"location", dataset.properties->value("location", "US")}};
    for (const char* key : {"labels", "friendlyName"}) {
      if (dataset.properties->contains(key)) item[key] = (*dataset.properties)[key];
    }
    json["datasets"].push_back(std::move(item));
  }
  return AnswerJson(json);
}

RestApi::Answered RestApi::OneDataset(const Call& call) {
  const std::string& method = call.request.method;
  DatasetName name = call.Dataset();
  if (method == "DELETE") {
    ARROW_ASSIGN_OR_RAISE(bool contents, call.Flag("deleteContents"));
    ARROW_RETURN_NOT_OK(tables_->DeleteDataset(name, call.request.if_match, contents));
    return RestAnswer{.status = 204};
  }
  if (method == "GET") {
    ARROW_ASSIGN_OR_RAISE(auto dataset, tables_->GetDataset(name));
    return AnswerJson(DatasetResource(call, dataset), dataset.etag);
  }
  if (method != "PATCH" && method != "PUT") return NoSuchPath(call.request);
  ARROW_ASSIGN_OR_RAISE(Json body, ParseBody(call.request.body));
  ARROW_ASSIGN_OR_RAISE(Json given, CheckProperties(ResourceKind::kDataset, body));
  auto change = [&](DatasetInfo* dataset) -> arrow::Status {
    std::string location = dataset->properties->value("location", "US");
    Json properties = method == "PATCH" ? *dataset->properties : Json::object();
    MergePatch(given, &properties);
    if (!properties.contains("location") && dataset->properties->contains("location")) properties["location"] = location;
    if (properties.value("location", "US") != location) return BadRequest("Cannot change dataset location after creation");
    dataset->properties = std::make_shared<const Json>(std::move(properties));
    return arrow::Status::OK();
  };
  ARROW_ASSIGN_OR_RAISE(auto dataset, tables_->UpdateDataset(name, call.request.if_match, change));
  return AnswerJson(DatasetResource(call, dataset), dataset.etag);
}

std::string RestApi::LocationOf(const DatasetName& name) {
  auto dataset = tables_->GetDataset(name);
  return dataset.ok() ? dataset->properties->value("location", "US") : "US";
}

}  // namespace headrace::local
