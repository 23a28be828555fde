// The name of a BigQuery table in its three parts. Plain value.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace::bigquery {

struct TableName {
  std::string project{};
  std::string dataset{};
  std::string table{};

  /// "projects/P/datasets/D/tables/T".
  std::string ResourcePath() const;
  /// "project.dataset.table".
  std::string ToString() const;
  bool operator==(const TableName&) const = default;
};

/// "project.dataset.table", "project:dataset.table", "dataset.table" (in `default_project`), "projects/P/datasets/D/tables/T"; legacy
/// domain projects ("example.com:project:dataset.table", "example.com:project.dataset.table"); letters of any script. A part that is blank,
/// has space at an edge or holds a slash is refused by name, and so is a "$" or "@" decorator. All other rules are the service's.
arrow::Result<TableName> ParseTableName(std::string_view text, std::string_view default_project = {});

/// Checks one part of a resource path: not blank, no space at an edge, no slash. `what` names it in the error.
arrow::Status CheckPathComponent(std::string_view what, std::string_view value);

}  // namespace headrace::bigquery
