// Reads one text or JSON value into an Arrow builder by the coercion table: what ColumnParser and JsonRowReader share.
#pragma once

#include <string>
#include <string_view>

#include <arrow/builder.h>

#include "headrace/types/coercion.h"
#include "headrace/types/json_text.h"
#include "headrace/types/schema.h"

namespace headrace::internal {

/// One column of scalars, INTERVALs or RANGEs. The builder is the caller's, of the canonical type, and outlives this. One thread.
class ScalarAppender {
 public:
  ScalarAppender(const Field& field, const ParseOptions& options, arrow::ArrayBuilder* builder);

  /// `text` is the string's content, or the value as it is written. An error says what is wrong with the value (the caller knows the place)
  /// and leaves the builder as it was.
  arrow::Status Append(ValueSource source, std::string_view text);
  arrow::Status AppendNull();
  /// What stands in a REQUIRED column below a null STRUCT.
  arrow::Status AppendNothing();

 private:
  arrow::Status AppendAllowed(ValueSource source, std::string_view text);
  arrow::Status AppendInt64(std::string_view text);
  arrow::Status AppendDecimal(std::string_view text);
  arrow::Status AppendText(ValueSource source, std::string_view text);
  arrow::Status AppendBytes(std::string_view text);
  arrow::Status AppendTimestamp(ValueSource source, std::string_view text);
  arrow::Status AppendTimestamp12(ValueSource source, std::string_view text);
  arrow::Status AppendInterval(std::string_view text);
  arrow::Status AppendRange(std::string_view text);
  arrow::Status AppendDate(std::string_view text);

  arrow::Result<int64_t> Datetime(std::string_view text) const;
  arrow::Result<int64_t> Timestamp(std::string_view text) const;
  arrow::Result<int64_t> Epoch(std::string_view text) const;
  /// Days or microseconds of one side.
  arrow::Result<int64_t> RangeSide(std::string_view text) const;

  TypeKind kind_;
  TypeKind range_element_;
  ParseOptions options_;
  arrow::ArrayBuilder* builder_;
  int precision_ = 0;
  int scale_ = 0;
  std::string buffer_;
  JsonChecker json_;  // JSON
};

}  // namespace headrace::internal
