// selected_fields as a tree: what is asked of the service, what its schema must then hold, in which order the result's columns come.
//
// A path is a.b.c; a segment may stand in backticks. Names match without regard to case. A column that is named itself and by a field of it
// is read whole. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type.h>

#include "headrace/base/error.h"

namespace headrace::bigquery {

class FieldSelection {
 public:
  /// An error names the path that is blank, malformed, too deep or there twice.
  static arrow::Result<FieldSelection> Parse(const std::vector<std::string>& selected_fields);

  /// Nothing is selected: all columns, as they come.
  bool all() const { return root_.fields.empty(); }
  /// The paths to send: no backticks, none inside another.
  std::vector<std::string> Paths() const;
  /// An error for the first path that `schema`, of `table` as a whole, does not have; it says what is there instead.
  arrow::Status CheckExists(const arrow::Schema& schema, std::string_view table) const;
  /// For each column of the result its place in `wire`, the schema of a session for Paths(): in the order of their first mention; fields
  /// inside a struct keep the service's order. An error when a path is missing, or when the session has more than was asked for.
  arrow::Result<std::vector<uint32_t>> Columns(const arrow::Schema& wire) const;

 private:
  struct Node {
    std::string name{};
    bool whole = false;
    std::vector<Node> fields{};
  };
  static arrow::Status Add(std::string_view path, Node* root);
  static void AppendPaths(const Node& node, const std::string& prefix, std::vector<std::string>* paths);
  static arrow::Status CheckFields(const Node& node, const arrow::FieldVector& fields, const std::string& path, std::string_view table,
                                   bool exactly);

  Node root_;
};

}  // namespace headrace::bigquery
