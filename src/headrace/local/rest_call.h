// One request to the REST API, taken apart, and what the answers of several resources share. Belongs to the thread of the request.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/local/rest_api.h"

namespace headrace::local {

struct RestApi::Call {
  const RestRequest& request;
  std::vector<std::string> path{};  // from "projects" on

  std::string Project() const { return path[1]; }
  DatasetName Dataset() const { return {path[1], path[3]}; }
  TableName Table() const { return {path[1], path[3], path[5]}; }
  /// A parameter of the query; empty when it is missing.
  std::string Parameter(const std::string& name) const;
  arrow::Result<bool> Flag(const std::string& name) const;
  /// Nothing when it is missing; INVALID_ARGUMENT when it is no number from 0 on.
  arrow::Result<std::optional<uint64_t>> Number(const std::string& name) const;
  /// "http://127.0.0.1:41235/bigquery/v2" and the path.
  std::string Link(std::string_view path) const;
};

/// The words of an error about the request itself: 400, reason "invalid".
arrow::Status BadRequest(std::string message);
/// 501: `what` is valid for the real service.
arrow::Status NotServed(std::string_view what);
RestAnswer AnswerJson(const Json& json, std::string etag = "");
int64_t MillisOf(SystemTime time);

/// The part [first, first + count) of a list that follows the item named in `pageToken`, and the token of the next part.
struct Page {
  size_t first = 0;
  size_t count = 0;
  bool more = false;
};
/// `names` are sorted. A page has `maxResults` items, else all.
arrow::Result<Page> PageOf(const RestApi::Call& call, const std::vector<std::string>& names);

}  // namespace headrace::local
