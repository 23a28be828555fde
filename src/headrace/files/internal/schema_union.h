// One schema for all files of a source. One thread.
#pragma once

#include <memory>
#include <string>

#include <arrow/type.h>

#include "headrace/base/error.h"

namespace headrace {

class SchemaUnion {
 public:
  /// The first file's columns are the source's; every other file must have the same ones, in any order, with the same types. A column that
  /// is nullable in one of them is nullable. The error names file and column.
  arrow::Status Add(const std::shared_ptr<arrow::Schema>& schema, const std::string& path);
  /// Null before the first Add.
  std::shared_ptr<arrow::Schema> schema() const { return schema_; }

 private:
  std::shared_ptr<arrow::Schema> schema_;
  std::string first_path_;
};

}  // namespace headrace
