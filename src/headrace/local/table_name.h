// The names of projects, datasets and tables as the service's interfaces write them. Values and free functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace::local {

struct DatasetName {
  std::string project{};
  std::string dataset{};
  std::string Legacy() const;  // p:d, as the service's errors and ids say it
  auto operator<=>(const DatasetName&) const = default;
};

struct TableName {
  std::string project{};
  std::string dataset{};
  std::string table{};
  std::string Dotted() const;  // p.d.t
  std::string Legacy() const;  // p:d.t, as the service's errors and ids say it
  DatasetName Dataset() const { return {project, dataset}; }
  auto operator<=>(const TableName&) const = default;
};

/// "project.dataset.table"; the project may have dots and a colon (domain-scoped projects), the other two not.
arrow::Result<TableName> ParseDottedTableName(std::string_view text);
/// "projects/p/datasets/d/tables/t"
arrow::Result<TableName> ParseResourceTableName(std::string_view text);

/// What the service asks of the ids of new datasets and tables; INVALID_ARGUMENT in its words.
arrow::Status CheckDatasetId(std::string_view id);
arrow::Status CheckTableId(std::string_view id);

}  // namespace headrace::local
