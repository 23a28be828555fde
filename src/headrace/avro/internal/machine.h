// Runs a Program over rows in Avro's binary encoding and leaves the values in Columns.
//
// One thread. The bytes are untrusted: each read is checked against their end, each reservation against the budget and against how many
// values the bytes left can hold at most.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/avro/internal/column.h"
#include "headrace/avro/internal/program.h"

namespace headrace::avro {

class Machine {
 public:
  /// Both are used, not owned, and stay where they are. `max_empty_values` is DecoderLimits's.
  Machine(const Program* program, std::vector<Column>* columns, int64_t max_empty_values);

  /// Rows from 0 to `row_count`; puts the end of each into `row_ends`. The columns that grow by rows have room for all of them.
  arrow::Status Run(std::string_view bytes, int64_t row_count, std::vector<uint32_t>* row_ends);

 private:
  const uint8_t* Steps(size_t step, size_t last, const uint8_t* at);
  const uint8_t* Branch(const Op& op, const uint8_t* at, bool* null);
  const uint8_t* List(size_t step, const uint8_t* at);
  const uint8_t* Fixed(const Op& op, const uint8_t* at, const uint8_t* data, int64_t size);
  const uint8_t* Enum(const Op& op, const uint8_t* at);
  const uint8_t* Decimal(const Op& op, const uint8_t* data, int64_t size);
  const uint8_t* WideDecimal(const Op& op, const uint8_t* data, int64_t size);
  const uint8_t* Civil(size_t step, const uint8_t* at);
  arrow::Status AppendCivil(size_t step, std::string_view text);
  bool AppendText(const Op& op, std::string_view text);
  const uint8_t* Scaled(const Op& op, const uint8_t* at, int64_t value);
  bool Null(size_t step);
  bool AppendNull(const Op& op);
  bool NullInside(size_t step);
  bool ReserveElements(const Op& op, int64_t count);

  // What went wrong, kept until Run makes a Status of it. Answers null, which ends the steps.
  const uint8_t* Fail(const Op& op, std::string_view reason, std::string message);
  const uint8_t* Truncated(const Op& op);
  bool Keep(const Op& op, arrow::Status status);

  size_t StepOf(const Op& op) const { return static_cast<size_t>(&op - ops_.data()); }
  static Column& ColumnOf(const Op& op) { return *op.target; }

  const Program& program_;
  std::vector<Op> ops_;  // the program's, each with its column
  std::vector<Column>& columns_;
  const int64_t max_empty_values_;
  const uint8_t* end_ = nullptr;
  int64_t row_ = 0;
  int64_t empty_values_ = 0;
  arrow::Status status_;
  std::string scratch_;
};

}  // namespace headrace::avro
