// Columns of canonical type and their text: ColumnText writes, ColumnParser reads. Scalars, INTERVAL and RANGE; columns of STRUCTs and
// arrays are refused by name (json_row.h and rest_row.h have forms for them).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <arrow/array.h>
#include <arrow/memory_pool.h>
#include <arrow/type.h>

#include "headrace/base/error.h"
#include "headrace/types/coercion.h"

namespace headrace {

namespace internal {
class ScalarText;
class ScalarAppender;
class RowText;
}  // namespace internal

/// Which of the type table's text columns. kPlain is CSV text and what stands in the strings of JSON rows; the two REST forms differ from
/// it in TIMESTAMP only: seconds since 1970 as a plain decimal, or microseconds.
enum class TextForm { kPlain, kRest, kRestMicros };

/// The text of the values of one column. Immutable, any thread.
class ColumnText {
 public:
  /// Unimplemented for STRUCT and REPEATED, INVALID_ARGUMENT for a type that is not canonical; both name the column.
  static arrow::Result<ColumnText> Make(const arrow::Field& canonical, TextForm form = TextForm::kPlain);
  ColumnText(ColumnText&&) noexcept;
  ColumnText& operator=(ColumnText&&) noexcept;
  ~ColumnText();

  /// Appends the text of a value that is not null. A value that BigQuery has not (a date after 9999, text that is no UTF-8 ...) is an error
  /// that names column, row (`first_row` + `index`) and value; `out` may then hold a part of it.
  arrow::Status Append(const arrow::Array& column, int64_t index, std::string* out, int64_t first_row = 0) const;

 private:
  ColumnText(std::string name, std::unique_ptr<internal::ScalarText> text);

  std::string name_;
  std::unique_ptr<internal::ScalarText> text_;
};

/// Reads texts into a column by the coercion table. One thread.
class ColumnParser {
 public:
  /// Refuses what ColumnText::Make refuses. Rows are counted from `first_row` on in errors.
  static arrow::Result<std::unique_ptr<ColumnParser>> Make(const Field& field, const ParseOptions& options, int64_t first_row = 0,
                                                           arrow::MemoryPool* pool = arrow::default_memory_pool());
  ~ColumnParser();

  /// An error (bad value: names column, row and value) leaves the column as it was.
  arrow::Status Append(std::string_view text);
  /// An error in a REQUIRED column.
  arrow::Status AppendNull();
  int64_t row_count() const;
  /// The column, of ToArrowField(field)'s type; the parser goes on with an empty one and counts its rows on.
  arrow::Result<std::shared_ptr<arrow::Array>> Finish();

 private:
  ColumnParser(Field field, int64_t first_row, std::unique_ptr<arrow::ArrayBuilder> builder,
               std::unique_ptr<internal::ScalarAppender> appender);

  arrow::Status AtRow(const arrow::Status& status) const;

  Field field_;
  int64_t first_row_;
  std::unique_ptr<arrow::ArrayBuilder> builder_;
  std::unique_ptr<internal::ScalarAppender> appender_;
};

}  // namespace headrace
