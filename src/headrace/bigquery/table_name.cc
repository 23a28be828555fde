#include "headrace/bigquery/table_name.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace headrace::bigquery {
namespace {

constexpr std::string_view kForms = "write project.dataset.table, project:dataset.table, dataset.table or projects/P/datasets/D/tables/T";

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator, start)) {
    parts.push_back(text.substr(start, at - start));
    start = at + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

arrow::Status WrongTable(std::string_view text, std::string_view why) {
  return InvalidOption("table", fmt::format("table \"{}\" {}; {}", text, why, kForms));
}

/// Length of the white space character that `text` starts with, or 0: ASCII's, and Unicode's in UTF-8.
size_t LeadingSpace(std::string_view text) {
  if (text.empty()) return 0;
  const auto c = static_cast<unsigned char>(text.front());
  if (c <= 0x20 || c == 0x7F) return 1;
  if (text.starts_with("\xC2\xA0") || text.starts_with("\xC2\x85")) return 2;
  if (text.starts_with("\xE3\x80\x80") || text.starts_with("\xE1\x9A\x80") || text.starts_with("\xE2\x81\x9F")) return 3;
  if (text.size() >= 3 && text.starts_with("\xE2\x80")) {
    const auto last = static_cast<unsigned char>(text[2]);
    if ((last >= 0x80 && last <= 0x8A) || last == 0xA8 || last == 0xA9 || last == 0xAF) return 3;
  }
  return 0;
}

bool EndsWithSpace(std::string_view text) {
  for (size_t length = 1; length <= 3 && length <= text.size(); ++length) {
    if (LeadingSpace(text.substr(text.size() - length)) == length) return true;
  }
  return false;
}

/// The parts of the dotted and coloned forms; checked later.
arrow::Result<TableName> SplitDotted(std::string_view text, std::string_view default_project) {
  const size_t colon = text.rfind(':');
  const bool has_colon = colon != std::string_view::npos;
  const auto parts = Split(has_colon ? text.substr(colon + 1) : text, '.');
  const std::string_view left = has_colon ? text.substr(0, colon) : std::string_view();
  if (parts.size() == 3) {
    // "example.com:project.dataset.table": a legacy domain project.
    std::string project = has_colon ? fmt::format("{}:{}", left, parts[0]) : std::string(parts[0]);
    if (has_colon && left.empty()) return WrongTable(text, "has an empty domain before its colon");
    return TableName{std::move(project), std::string(parts[1]), std::string(parts[2])};
  }
  if (parts.size() != 2) return WrongTable(text, parts.size() == 1 ? "names no dataset" : "has too many parts");
  if (has_colon) return TableName{std::string(left), std::string(parts[0]), std::string(parts[1])};
  if (default_project.empty()) return WrongTable(text, "names no project, and billing_project is not set either");
  return TableName{std::string(default_project), std::string(parts[0]), std::string(parts[1])};
}

arrow::Result<TableName> SplitPath(std::string_view text) {
  const auto parts = Split(text, '/');
  if (parts.size() != 6 || parts[0] != "projects" || parts[2] != "datasets" || parts[4] != "tables") {
    return WrongTable(text, "has a slash but is no resource path, and no part of a name may hold one");
  }
  return TableName{std::string(parts[1]), std::string(parts[3]), std::string(parts[5])};
}

}  // namespace

std::string TableName::ResourcePath() const { return fmt::format("projects/{}/datasets/{}/tables/{}", project, dataset, table); }

std::string TableName::ToString() const { return fmt::format("{}.{}.{}", project, dataset, table); }

arrow::Status CheckPathComponent(std::string_view what, std::string_view value) {
  std::string_view rest = value;
  while (const size_t space = LeadingSpace(rest)) rest.remove_prefix(space);
  if (rest.empty()) return InvalidOption(std::string(what), fmt::format("{} is blank", what));
  if (rest.size() != value.size() || EndsWithSpace(value)) {
    return InvalidOption(std::string(what), fmt::format("{} \"{}\" has white space at an edge", what, value));
  }
  // A slash would silently name another resource (ADR-0127's rule of names).
  if (value.find('/') != std::string_view::npos)
    return InvalidOption(std::string(what), fmt::format("{} \"{}\" holds a slash", what, value));
  return arrow::Status::OK();
}

arrow::Result<TableName> ParseTableName(std::string_view text, std::string_view default_project) {
  const bool is_path = text.starts_with("projects/");
  ARROW_ASSIGN_OR_RAISE(TableName name, is_path ? SplitPath(text) : SplitDotted(text, default_project));
  // The part is named; the whole text is shown as well, since an empty part alone says little.
  const std::pair<std::string_view, const std::string*> parts[] = {
      {"project of table", &name.project}, {"dataset of table", &name.dataset}, {"table part of table", &name.table}};
  for (const auto& [what, value] : parts) {
    if (auto wrong = CheckPathComponent(what, *value); !wrong.ok()) {
      return InvalidOption("table", fmt::format("{} (in \"{}\")", wrong.message(), text));
    }
  }
  const size_t decorator = name.table.find_first_of("$@");
  if (decorator != std::string::npos) {
    return Unsupported(
        "table", fmt::format("table \"{}\" has the decorator \"{}\", which is not supported; use row_restriction on the partition column{}",
                             text, name.table.substr(decorator), name.table[decorator] == '@' ? " or snapshot_time" : ""));
  }
  return name;
}

}  // namespace headrace::bigquery
