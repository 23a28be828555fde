#include "headrace/bigquery/read/internal/field_selection.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "headrace/types/schema.h"

namespace headrace::bigquery {
namespace {

constexpr char kOption[] = "selected_fields";
constexpr char kService[] = "BigQuery Storage Read";
constexpr size_t kMostNamed = 30;  // columns that an error lists

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

/// Takes the first segment off `path`; nothing when it is blank or its backticks do not close.
std::optional<std::string_view> TakeSegment(std::string_view* path) {
  std::string_view segment;
  if (path->starts_with('`')) {
    const size_t end = path->find('`', 1);
    if (end == std::string_view::npos) return std::nullopt;
    segment = path->substr(1, end - 1);
    path->remove_prefix(end + 1);
    if (!path->empty() && !path->starts_with('.')) return std::nullopt;
  } else {
    segment = path->substr(0, path->find('.'));
    path->remove_prefix(segment.size());
  }
  if (path->size() == 1) return std::nullopt;  // a dot with nothing behind it
  if (!path->empty()) path->remove_prefix(1);
  if (IsBlank(segment)) return std::nullopt;
  return segment;
}

/// The field of that name, an exact match first; -1 when there is none.
int FindField(const arrow::FieldVector& fields, std::string_view name) {
  int found = -1;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i]->name() == name) return static_cast<int>(i);
    if (found < 0 && SameColumnName(fields[i]->name(), name)) found = static_cast<int>(i);
  }
  return found;
}

/// The fields of a STRUCT, or of the STRUCTs in an ARRAY; null for another type.
const arrow::FieldVector* FieldsOf(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::STRUCT:
      return &type.fields();
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
      return FieldsOf(*type.field(0)->type());
    default:
      return nullptr;
  }
}

std::string NamesOf(const arrow::FieldVector& fields) {
  std::string names;
  for (size_t i = 0; i < std::min(fields.size(), kMostNamed); ++i) names += (i == 0 ? "" : ", ") + fields[i]->name();
  return fields.size() > kMostNamed ? fmt::format("{} and {} more", names, fields.size() - kMostNamed) : names;
}

arrow::Status NoSuchField(const std::string& path, std::string_view where, const arrow::FieldVector& fields) {
  return MakeError({.code = Code::kInvalidArgument, .service = kService, .resource = kOption, .reason = "INVALID_OPTION", .column = path},
                   fmt::format("selected_fields names \"{}\", but {} has no such column; it has {}", path, where, NamesOf(fields)));
}

}  // namespace

arrow::Status FieldSelection::Add(std::string_view path, Node* root) {
  if (IsBlank(path)) return InvalidOption(kOption, "selected_fields holds a blank name");
  Node* node = root;
  bool added = false;
  std::string_view rest = path;
  for (int depth = 0; !rest.empty(); ++depth) {
    if (depth > kMaxNesting) {
      return InvalidOption(kOption, fmt::format("selected_fields names \"{}\", which is deeper than any column of BigQuery", path));
    }
    const auto segment = TakeSegment(&rest);
    if (!segment.has_value()) {
      return InvalidOption(kOption, fmt::format("selected_fields names \"{}\", which is no path of the form a.b.c", path));
    }
    auto found =
        std::find_if(node->fields.begin(), node->fields.end(), [&](const Node& field) { return SameColumnName(field.name, *segment); });
    if (found == node->fields.end()) {
      added = true;
      node->fields.push_back({.name = std::string(*segment)});
      found = node->fields.end() - 1;
    }
    node = &*found;
  }
  // Names match without regard to case, so two spellings are one path.
  if (node->whole && !added) return InvalidOption(kOption, fmt::format("selected_fields names \"{}\" twice", path));
  node->whole = true;
  return arrow::Status::OK();
}

arrow::Result<FieldSelection> FieldSelection::Parse(const std::vector<std::string>& selected_fields) {
  FieldSelection selection;
  for (const std::string& path : selected_fields) ARROW_RETURN_NOT_OK(Add(path, &selection.root_));
  return selection;
}

void FieldSelection::AppendPaths(const Node& node, const std::string& prefix, std::vector<std::string>* paths) {
  for (const Node& field : node.fields) {
    if (field.whole) {
      paths->push_back(prefix + field.name);
    } else {
      AppendPaths(field, prefix + field.name + ".", paths);
    }
  }
}

std::vector<std::string> FieldSelection::Paths() const {
  std::vector<std::string> paths;
  AppendPaths(root_, "", &paths);
  return paths;
}

arrow::Status FieldSelection::CheckFields(const Node& node, const arrow::FieldVector& fields, const std::string& path,
                                          std::string_view table, bool exactly) {
  const std::string where = path.empty() ? std::string(table) : fmt::format("\"{}\" of {}", path, table);
  for (const Node& selected : node.fields) {
    const std::string below = path.empty() ? selected.name : path + "." + selected.name;
    const int index = FindField(fields, selected.name);
    if (index < 0) return NoSuchField(below, where, fields);
    if (selected.fields.empty()) continue;
    const auto& found = fields[static_cast<size_t>(index)];
    const arrow::FieldVector* inside = FieldsOf(*found->type());
    if (inside == nullptr) {
      return MakeError(
          {.code = Code::kInvalidArgument, .service = kService, .resource = kOption, .reason = "INVALID_OPTION", .column = below},
          fmt::format("selected_fields names a field inside \"{}\", but that is no STRUCT: it is {}", below, found->type()->ToString()));
    }
    ARROW_RETURN_NOT_OK(CheckFields(selected, *inside, below, table, exactly && !selected.whole));
  }
  if (exactly && fields.size() != node.fields.size()) {
    return MakeError(
        {.code = Code::kInternal, .service = kService, .resource = kOption, .column = path},
        fmt::format("{} columns {}were asked for, but the session has {} ({}): the server ignored selected_fields", node.fields.size(),
                    path.empty() ? "" : fmt::format("inside \"{}\" ", path), fields.size(), NamesOf(fields)));
  }
  return arrow::Status::OK();
}

arrow::Status FieldSelection::CheckExists(const arrow::Schema& schema, std::string_view table) const {
  return CheckFields(root_, schema.fields(), "", table, /*exactly=*/false);
}

arrow::Result<std::vector<uint32_t>> FieldSelection::Columns(const arrow::Schema& wire) const {
  std::vector<uint32_t> columns;
  if (all()) {
    for (int i = 0; i < wire.num_fields(); ++i) columns.push_back(static_cast<uint32_t>(i));
    return columns;
  }
  ARROW_RETURN_NOT_OK(CheckFields(root_, wire.fields(), "", "the session's schema", /*exactly=*/true));
  for (const Node& selected : root_.fields) columns.push_back(static_cast<uint32_t>(FindField(wire.fields(), selected.name)));
  return columns;
}

}  // namespace headrace::bigquery
