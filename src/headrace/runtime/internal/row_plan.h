// What RowSchema compiles and the views look up: one ColumnPlan a column, field or array element. Immutable once made.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type.h>

#include "headrace/base/error.h"
#include "headrace/types/column_text.h"
#include "headrace/types/schema.h"

namespace headrace::internal {

struct ColumnPlan;

/// The columns of a row, the fields of a STRUCT, or start and end of a RANGE.
struct RowPlan {
  std::vector<ColumnPlan> columns;
  std::vector<int> by_name;  // indexes in the order of their names, capitals as small letters

  /// Negative when there is none of that name.
  int Find(std::string_view name) const;
};

struct ColumnPlan {
  std::string path{};  // a.b.c
  Field field{};       // of an element: with mode NULLABLE
  std::shared_ptr<arrow::DataType> type{};
  bool repeated = false;
  std::unique_ptr<ColumnPlan> element{};  // where repeated
  RowPlan fields{};                       // STRUCT and RANGE
  std::optional<ColumnText> text{};       // of scalars, INTERVAL and RANGE
  int64_t units_per_second = 0;           // TIMESTAMP(12) that is no text
};

/// `canonical` has a canonical type; anything else is an error, as the views cast arrays by what stands here.
arrow::Result<RowPlan> CompileRow(const std::vector<std::shared_ptr<arrow::Field>>& canonical, const std::string& parent);

}  // namespace headrace::internal
