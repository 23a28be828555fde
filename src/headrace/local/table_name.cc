#include "headrace/local/table_name.h"

#include <algorithm>

#include <arrow/util/utf8.h>
#include <fmt/format.h>

namespace headrace::local {
namespace {

constexpr size_t kLongestId = 1024;  // quotas: "maximum length of a dataset or table name"

bool IsNamePart(std::string_view part) {
  return !part.empty() &&
         std::none_of(part.begin(), part.end(), [](char c) { return c == '/' || c == '`' || static_cast<unsigned char>(c) < 0x20; });
}

bool IsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

arrow::Status Wrong(std::string_view id, std::string message) {
  return MakeError({.code = Code::kInvalidArgument, .resource = std::string(id), .reason = "invalid"}, std::move(message));
}

}  // namespace

std::string DatasetName::Legacy() const { return fmt::format("{}:{}", project, dataset); }
std::string TableName::Dotted() const { return fmt::format("{}.{}.{}", project, dataset, table); }
std::string TableName::Legacy() const { return fmt::format("{}:{}.{}", project, dataset, table); }

arrow::Result<TableName> ParseDottedTableName(std::string_view text) {
  size_t last = text.rfind('.');
  size_t middle = last == std::string_view::npos || last == 0 ? std::string_view::npos : text.rfind('.', last - 1);
  if (middle != std::string_view::npos) {
    TableName name{std::string(text.substr(0, middle)), std::string(text.substr(middle + 1, last - middle - 1)),
                   std::string(text.substr(last + 1))};
    if (IsNamePart(name.project) && IsNamePart(name.dataset) && IsNamePart(name.table)) return name;
  }
  return InvalidOption(std::string(text), fmt::format("\"{}\" is not a table name. Write project.dataset.table.", text));
}

arrow::Result<TableName> ParseResourceTableName(std::string_view text) {
  constexpr std::string_view kProjects = "projects/";
  constexpr std::string_view kDatasets = "/datasets/";
  constexpr std::string_view kTables = "/tables/";
  size_t datasets = text.find(kDatasets);
  size_t tables = text.find(kTables);
  if (text.starts_with(kProjects) && datasets != std::string_view::npos && tables != std::string_view::npos && tables > datasets) {
    size_t dataset_at = datasets + kDatasets.size();
    if (dataset_at <= tables && datasets >= kProjects.size()) {
      TableName name{std::string(text.substr(kProjects.size(), datasets - kProjects.size())),
                     std::string(text.substr(dataset_at, tables - dataset_at)), std::string(text.substr(tables + kTables.size()))};
      // With a dot in its dataset the dotted form would be another table's.
      bool dotted = name.dataset.find('.') != std::string::npos || name.table.find('.') != std::string::npos;
      if (!dotted && IsNamePart(name.project) && IsNamePart(name.dataset) && IsNamePart(name.table)) return name;
    }
  }
  return MakeError({.code = Code::kInvalidArgument, .resource = std::string(text)},
                   fmt::format("request failed: \"{}\" is not a table name (projects/P/datasets/D/tables/T)", text));
}

arrow::Status CheckDatasetId(std::string_view id) {
  if (!id.empty() && id.size() <= kLongestId && std::all_of(id.begin(), id.end(), IsWord)) return arrow::Status::OK();
  return Wrong(id, fmt::format("Invalid dataset ID \"{}\". Dataset IDs must be alphanumeric (plus underscores) and must be at most 1024 "
                               "characters long.",
                               id));
}

arrow::Status CheckTableId(std::string_view id) {
  // Letters, marks, digits, connectors, dashes and spaces of any script: of ASCII these, and of the rest all that is text.
  auto allowed = [](char c) { return IsWord(c) || c == '-' || c == ' ' || static_cast<unsigned char>(c) >= 0x80; };
  bool text = arrow::util::ValidateUTF8(id);
  if (text && !id.empty() && id.size() <= kLongestId && std::all_of(id.begin(), id.end(), allowed)) return arrow::Status::OK();
  return Wrong(id, fmt::format("Invalid table ID \"{}\". Table IDs must be alphanumeric (plus underscores) and must be at most 1024 "
                               "characters long. Also, Table decorators cannot be used.",
                               id));
}

}  // namespace headrace::local
