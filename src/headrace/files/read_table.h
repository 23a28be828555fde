// Reads a whole file, or a directory result, into memory as a table with BigQuery's types. Free function, any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/table.h>

#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/files/file_format.h"

namespace headrace {

struct ReadTableOptions {
  /// Fields of a CSV file that are null. The default is the empty field alone; a quoted field is never null.
  std::vector<std::string> csv_null_values{""};
  /// CSV and NDJSON: the table's schema as BigQuery's JSON. Empty = found from the values.
  std::string schema{};
};

/// `path` is what FileSource takes: a file of any format, a directory (with a manifest: the files that it names, which must have the sizes
/// that it says), a pattern. A directory that a job of ours has not finished is refused with the reason NOT_A_RESULT. Types are found as
/// FileSource finds them.
arrow::Result<std::shared_ptr<arrow::Table>> ReadTable(FileSystem* files, const std::string& path, const ReadTableOptions& options = {});

/// The schema that ReadTable would give. Rows are read for it only where a file does not say its types (CSV, NDJSON), and none is kept, so
/// sizes are no matter.
arrow::Result<std::shared_ptr<arrow::Schema>> ReadTableSchema(FileSystem* files, const std::string& path,
                                                              const ReadTableOptions& options = {});

/// Of the files that `path` names, as far as their names or a manifest tell; none is opened.
arrow::Result<FileFormat> FormatOfFiles(FileSystem* files, const std::string& path);

}  // namespace headrace
