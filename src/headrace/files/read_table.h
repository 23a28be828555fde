// Reads a whole file, or a directory result, into memory as a table with BigQuery's types. Free function, any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/table.h>

#include "headrace/base/error.h"
#include "headrace/base/file_system.h"

namespace headrace {

struct ReadTableOptions {
  /// Fields of a CSV file that are null. The default is the empty field alone; a quoted field is never null.
  std::vector<std::string> csv_null_values{""};
};

/// `path` is a .parquet, .csv or .csv.gz file, or a directory that a Headrace job wrote (its files are those that the manifest names, which
/// must have the sizes that it says). Other directories are refused with the reason NOT_A_RESULT.
///
/// CSV: the first line names the columns; a column's type is the narrowest of INT64, FLOAT64, BOOL, DATE, TIME, DATETIME, TIMESTAMP (text
/// with an offset or Z) and STRING that every one of its values in the whole file has.
arrow::Result<std::shared_ptr<arrow::Table>> ReadTable(FileSystem* files, const std::string& path, const ReadTableOptions& options = {});

/// The schema that ReadTable would give. No row of a Parquet file or a directory is read for it, so their size is no matter; a CSV file is
/// read whole, since its types are those of all its values.
arrow::Result<std::shared_ptr<arrow::Schema>> ReadTableSchema(FileSystem* files, const std::string& path,
                                                              const ReadTableOptions& options = {});

}  // namespace headrace
