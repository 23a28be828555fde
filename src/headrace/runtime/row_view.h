// One row, read value by value: RowView (a row, or a STRUCT in it), ValueView (one value) and ListView (a REPEATED column).
//
// Views own nothing and copy nothing: they point into the batch that the row is in and hold as long as it does (for a row of ReadRows:
// until the mapper returns), and so does all text and bytes that they give out. Getters allocate nothing. A value of another type than the
// one asked for, a null, and a column that does not exist are errors that name the column. Any thread, as the batch is never changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <arrow/array.h>
#include <arrow/util/decimal.h>

#include "headrace/base/error.h"
#include "headrace/types/schema.h"
#include "headrace/types/value_text.h"

namespace headrace {

namespace internal {
struct ColumnPlan;
struct RowPlan;
}  // namespace internal

class ListView;
class RowView;
struct RangeView;

/// One value: of a column, of a field of a STRUCT, or an element of an array.
class ValueView {
 public:
  /// False also where there is no such column: the getters say so.
  bool is_null() const { return plan_ != nullptr && array_->IsNull(index_); }

  arrow::Result<int64_t> Int64() const;
  arrow::Result<double> Float64() const;
  arrow::Result<bool> Bool() const;
  arrow::Result<std::string_view> String() const;
  arrow::Result<std::string_view> Bytes() const;
  /// In units of 10 to the power of -scale().
  arrow::Result<arrow::Decimal128> Numeric() const;
  arrow::Result<arrow::Decimal256> BigNumeric() const;
  arrow::Result<int32_t> Date() const;       // days since 1970-01-01
  arrow::Result<int64_t> Time() const;       // microseconds since midnight
  arrow::Result<int64_t> Datetime() const;   // microseconds since 1970-01-01T00:00:00, of no zone
  arrow::Result<int64_t> Timestamp() const;  // microseconds since 1970-01-01T00:00:00Z
  arrow::Result<PicosTimestamp> Timestamp12() const;
  arrow::Result<std::string_view> Geography() const;
  arrow::Result<std::string_view> Json() const;
  arrow::Result<IntervalValue> Interval() const;
  arrow::Result<RangeView> Range() const;
  arrow::Result<RowView> Struct() const;
  /// Of a REPEATED column, which is never null.
  arrow::Result<ListView> List() const;

  /// What `get` gives, or nothing for a null: row["amount"].OrNull(&ValueView::Float64).
  template <typename T>
  arrow::Result<std::optional<T>> OrNull(arrow::Result<T> (ValueView::*get)() const) const {
    if (is_null()) return std::optional<T>();
    ARROW_ASSIGN_OR_RAISE(T value, (this->*get)());
    return std::optional<T>(std::move(value));
  }

  /// Appends the value's text, as CSV and NDJSON files have it; STRUCTs and arrays as JSON.
  arrow::Status AppendText(std::string* out) const;
  arrow::Result<std::string> Text() const;

  /// Digits after the point of a NUMERIC or BIGNUMERIC column, else 0.
  int scale() const;

 private:
  friend class RowView;
  friend class ListView;
  ValueView(const internal::ColumnPlan* plan, const arrow::Array* array, int64_t index, int64_t row)
      : plan_(plan), array_(array), index_(index), row_(row) {}
  /// Of something that does not exist: a column by name, or by number when `name` is empty.
  ValueView(std::string_view name, int64_t number, int64_t row) : index_(number), row_(row), missing_(name) {}

  arrow::Status Check(TypeKind kind) const;
  arrow::Status CheckExists() const;
  arrow::Status Refuse(std::string_view wanted) const;
  arrow::Status AppendJson(std::string* out) const;

  const internal::ColumnPlan* plan_ = nullptr;
  const arrow::Array* array_ = nullptr;
  int64_t index_ = 0;
  int64_t row_ = 0;
  std::string_view missing_{};
};

/// [start, end); a null side is unbounded.
struct RangeView {
  ValueView start;
  ValueView end;
};

/// The elements of one array value.
class ListView {
 public:
  int64_t size() const { return size_; }
  /// Out of bounds: a value whose getters are errors.
  ValueView operator[](int64_t element) const;

  class Iterator {
   public:
    ValueView operator*() const { return (*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    friend class ListView;
    Iterator(const ListView* list, int64_t at) : list_(list), at_(at) {}
    const ListView* list_;
    int64_t at_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }

 private:
  friend class ValueView;
  ListView(const internal::ColumnPlan* element, const arrow::Array* values, int64_t first, int64_t size, int64_t row)
      : element_(element), values_(values), first_(first), size_(size), row_(row) {}

  const internal::ColumnPlan* element_;
  const arrow::Array* values_;
  int64_t first_;
  int64_t size_;
  int64_t row_;
};

/// A row, or a STRUCT that is not null.
class RowView {
 public:
  int column_count() const;
  /// The column as BigQuery describes it; `column` is in bounds.
  const Field& field(int column) const;
  /// By index, which is the quickest: RowSchema::Find gives it once for all rows.
  ValueView operator[](int column) const;
  /// By name, whatever its case. What does not exist answers a value whose getters are errors that say so.
  ValueView operator[](std::string_view name) const;
  ValueView operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  /// The row's number in its batch, or where ReadRows made the view, in what was read of its split.
  int64_t number() const { return row_; }

 private:
  friend class RowBatch;
  friend class ValueView;
  RowView(const internal::RowPlan* plan, const arrow::Array* const* columns, const arrow::StructArray* parent, int64_t index, int64_t row)
      : plan_(plan), columns_(columns), parent_(parent), index_(index), row_(row) {}

  const internal::RowPlan* plan_;
  const arrow::Array* const* columns_;  // of a row
  const arrow::StructArray* parent_;    // of a STRUCT
  int64_t index_;
  int64_t row_;
};

}  // namespace headrace
