// The text of one value of a canonical array: what ColumnText and the row writers share.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <arrow/array.h>

#include "headrace/types/column_text.h"
#include "headrace/types/schema.h"

namespace headrace::internal {

/// An error that names column and, when known, row, before the text of `status`; OK stays OK.
arrow::Status AtPlace(const arrow::Status& status, std::string_view column, std::optional<int64_t> row);

/// Whether `type` is the canonical Arrow type of a value of `field` (its mode aside); the error names `path`.
arrow::Status CheckCanonical(const Field& field, const arrow::DataType& type, const std::string& path);

/// Immutable, any thread. Errors say what is wrong with the value; the caller knows the place.
class ScalarText {
 public:
  /// `field` is a scalar, INTERVAL or RANGE, `type` its canonical type.
  ScalarText(const Field& field, const arrow::DataType& type, TextForm form);

  /// The value at `index` is not null.
  arrow::Status Append(const arrow::Array& array, int64_t index, std::string* out) const;
  /// The same as JSON: quoted, except for booleans and finite numbers of FLOAT64 in the form kPlain.
  arrow::Status AppendJson(const arrow::Array& array, int64_t index, std::string* out) const;

 private:
  arrow::Status AppendTimestampValue(int64_t micros, std::string* out) const;
  arrow::Status AppendTimestamp12(const arrow::Array& array, int64_t index, std::string* out) const;
  arrow::Status AppendRange(const arrow::StructArray& array, int64_t index, std::string* out) const;
  arrow::Status AppendCivil(const arrow::Array& array, int64_t index, std::string* out) const;

  TypeKind kind_;
  TextForm form_;
  int precision_ = 0;
  int scale_ = 0;
  int64_t units_per_second_ = 0;           // TIMESTAMP(12) that is no text
  std::unique_ptr<ScalarText> element_{};  // RANGE
};

}  // namespace headrace::internal
