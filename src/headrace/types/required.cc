#include "headrace/types/required.h"

#include <algorithm>
#include <string>
#include <vector>

#include <arrow/array.h>
#include <arrow/buffer_builder.h>
#include <fmt/format.h>

namespace headrace {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

// Which of an array's slots are seen: not below a null, and within the lists that are rows of the batch. Empty: all of them.
using Seen = std::vector<bool>;
// The batch's row of an array's slot.
using RowOf = std::vector<int64_t>;

bool HoldsForbiddenNull(const arrow::Field& field, const arrow::Array& array) {
  if (!field.nullable() && array.null_count() > 0) return true;
  if (array.type_id() == arrow::Type::STRUCT) {
    const auto& rows = static_cast<const arrow::StructArray&>(array);
    for (int i = 0; i < rows.num_fields(); ++i) {
      if (HoldsForbiddenNull(*field.type()->field(i), *rows.field(i))) return true;
    }
  }
  return array.type_id() == arrow::Type::LIST &&
         HoldsForbiddenNull(*field.type()->field(0), *static_cast<const arrow::ListArray&>(array).values());
}

arrow::Result<ArrayPtr> Drop(const arrow::Field& field, const ArrayPtr& array, const Seen& seen, const RowOf& row_of,
                             const std::string& path);

arrow::Result<std::shared_ptr<arrow::ArrayData>> DropInStruct(const arrow::StructArray& rows, const Seen& seen, const RowOf& row_of,
                                                              const std::string& path) {
  Seen below(static_cast<size_t>(rows.length()));
  for (int64_t i = 0; i < rows.length(); ++i) {
    const auto slot = static_cast<size_t>(i);
    below[slot] = rows.IsValid(i) && (seen.empty() || seen[slot]);
  }
  // The children are cut to the struct's own rows, so the struct begins at its first one: its null marks move there.
  auto data = rows.data()->Copy();
  data->null_count = rows.null_count();  // a slice does not know it, and would count the marks from the array's beginning
  if (rows.null_count() == 0) {
    data->buffers[0] = nullptr;
  } else if (rows.offset() > 0) {
    arrow::TypedBufferBuilder<bool> marks;
    ARROW_RETURN_NOT_OK(marks.Reserve(rows.length()));
    for (int64_t i = 0; i < rows.length(); ++i) marks.UnsafeAppend(rows.IsValid(i));
    ARROW_ASSIGN_OR_RAISE(data->buffers[0], marks.Finish());
  }
  data->offset = 0;
  for (int i = 0; i < rows.num_fields(); ++i) {
    const auto& field = *rows.type()->field(i);
    ARROW_ASSIGN_OR_RAISE(const auto child, Drop(field, rows.field(i), below, row_of, path + "." + field.name()));
    data->child_data[static_cast<size_t>(i)] = child->data();
  }
  return data;
}

arrow::Result<std::shared_ptr<arrow::ArrayData>> DropInList(const arrow::ListArray& lists, const Seen& seen, const RowOf& row_of,
                                                            const std::string& path) {
  const auto& elements = lists.values();
  Seen below(static_cast<size_t>(elements->length()), false);
  RowOf rows(static_cast<size_t>(elements->length()), 0);
  for (int64_t i = 0; i < lists.length(); ++i) {
    const auto slot = static_cast<size_t>(i);
    for (int64_t j = lists.value_offset(i); j < lists.value_offset(i + 1); ++j) {
      below[static_cast<size_t>(j)] = lists.IsValid(i) && (seen.empty() || seen[slot]);
      rows[static_cast<size_t>(j)] = row_of[slot];
    }
  }
  auto data = lists.data()->Copy();
  ARROW_ASSIGN_OR_RAISE(const auto child, Drop(*lists.type()->field(0), elements, below, rows, path));
  data->child_data[0] = child->data();
  return data;
}

arrow::Result<ArrayPtr> Drop(const arrow::Field& field, const ArrayPtr& array, const Seen& seen, const RowOf& row_of,
                             const std::string& path) {
  if (!HoldsForbiddenNull(field, *array)) return array;
  auto data = array->data();
  if (array->type_id() == arrow::Type::STRUCT) {
    ARROW_ASSIGN_OR_RAISE(data, DropInStruct(static_cast<const arrow::StructArray&>(*array), seen, row_of, path));
  } else if (array->type_id() == arrow::Type::LIST) {
    ARROW_ASSIGN_OR_RAISE(data, DropInList(static_cast<const arrow::ListArray&>(*array), seen, row_of, path));
  }
  if (!field.nullable() && array->null_count() > 0) {
    for (int64_t i = 0; i < array->length(); ++i) {
      const auto slot = static_cast<size_t>(i);
      if (array->IsValid(i) || (!seen.empty() && !seen[slot])) continue;
      return MakeError({.code = Code::kInvalidArgument, .reason = "NULL_IN_REQUIRED", .row = row_of[slot], .column = path},
                       fmt::format("column {}, row {}: null, but the column is REQUIRED", path, row_of[slot]));
    }
    if (data == array->data()) data = data->Copy();
    data->buffers[0] = nullptr;
    data->null_count = 0;
  }
  return arrow::MakeArray(data);
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::RecordBatch>> DropNullsBelowNull(const std::shared_ptr<arrow::RecordBatch>& batch, int64_t first_row) {
  const auto& fields = batch->schema()->fields();
  const auto forbidden = [&](int i) { return HoldsForbiddenNull(*fields[static_cast<size_t>(i)], *batch->column(i)); };
  arrow::ArrayVector columns = batch->columns();
  RowOf row_of;
  for (int i = 0; i < batch->num_columns(); ++i) {
    if (!forbidden(i)) continue;
    for (auto row = static_cast<int64_t>(row_of.size()); row < batch->num_rows(); ++row) row_of.push_back(first_row + row);
    const auto& field = *fields[static_cast<size_t>(i)];
    ARROW_ASSIGN_OR_RAISE(columns[static_cast<size_t>(i)], Drop(field, batch->column(i), {}, row_of, field.name()));
  }
  return row_of.empty() ? batch : arrow::RecordBatch::Make(batch->schema(), batch->num_rows(), std::move(columns));
}

}  // namespace headrace
