// Which datasets a source reads or a sink writes, from the configuration alone: no credential, connection or file is touched to answer.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace headrace {

struct Dataset {
  std::string namespace_name{};                                        // "bigquery", "bigtable", "file"
  std::string name{};                                                  // "project.dataset.table", an absolute path ...
  std::map<std::string, std::map<std::string, std::string>> facets{};  // "gcp" -> {type, project, dataset, table}
};

enum class Boundedness { kBounded, kContinuous };

struct Lineage {
  std::vector<Dataset> datasets{};
  Boundedness boundedness = Boundedness::kBounded;
};

}  // namespace headrace
