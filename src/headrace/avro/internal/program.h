// What a Decoder runs: one flat list of steps, compiled from a writer's schema and the wanted columns. A step reads (or skips) one field of
// the writer; the steps of a struct's or list's inside follow it, up to `end`. Values; a program is immutable once compiled.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type.h>
#include <arrow/util/decimal.h>

#include "headrace/avro/internal/column.h"
#include "headrace/avro/schema.h"

namespace headrace::avro {

enum class OpCode : uint8_t {
  kAbsent,  // the writer's type is null: every value is null, no byte is read
  kBool,
  kInt32,        // int into int32 and date32
  kInt64OfInt,   // int into 64 bits, times `factor`
  kInt64,        // long as it is
  kInt64Times,   // long times `factor`, which must fit
  kInt64Divide,  // long by `factor`, which must leave nothing
  kDoubleOfFloat,
  kDouble,
  kText,  // string and bytes
  kTextOfFixed,
  kTextOfEnum,
  kDecimal,  // bytes
  kDecimalOfFixed,
  kDateOfText,
  kTimeOfText,
  kDatetimeOfText,
  kTimestampOfText,
  kPicosOfText,
  kPicosOfLong,     // in units of 1 s / `factor`
  kIntervalOfText,  // three steps without bytes follow for months, days and microseconds
  kStruct,
  kList,
  kSkipNumber,  // boolean aside, whatever is one varint
  kSkipSized,   // length and bytes
  kSkipBytes,   // `factor` bytes
  kSkipValue,   // `node`
};

/// What the values of a finished column must be, beyond having been decoded.
enum class Check : uint8_t { kNone, kUtf8, kDate, kTime, kInstant, kInterval };

/// How a decimal is checked and brought to the column's scale.
struct DecimalPlan {
  bool check_precision = false;
  bool rescale = false;
  int64_t small_limit = 0;               // the greatest value that fits 64 bits and the precision, when it is not rescaled
  arrow::BasicDecimal256 limit{};        // the greatest unscaled value
  arrow::BasicDecimal256 multiplier{1};  // to the column's scale
};

struct Op {
  OpCode code = OpCode::kAbsent;
  int8_t null_branch = -1;      // in the writer's union; -1 = none
  int8_t value_branch = -1;     // -1 = no union
  bool nullable = true;         // the column may hold null
  bool empty_elements = false;  // list: elements take no byte
  bool list_of_null = false;    // list: null is read as empty
  bool null_is_plain = false;   // one byte, `null_byte`, is a null of this column alone
  uint8_t value_byte = 0;       // the value's branch as one byte has it
  uint8_t null_byte = 0;
  uint8_t width = 0;            // decimal: 16 or 32
  int32_t column = -1;          // into the columns; -1 for a skip
  int32_t end = 0;              // the step after this one and all that is inside it
  int32_t group = -1;           // list: the columns that grow by its elements
  int32_t element_column = -1;  // list
  int64_t factor = 1;           // fixed: bytes
  int64_t min_bytes = 0;        // list: of an element
  const Node* node = nullptr;
  int32_t decimal = -1;      // into the decimals
  Column* target = nullptr;  // the column itself, once a machine has the program
};

/// What is needed of a column outside the loop.
struct ColumnPlan {
  std::string path{};  // "a.b.c", for errors
  std::shared_ptr<arrow::DataType> type{};
  std::vector<int> children{};  // columns inside, in the target's order
  Shape shape = Shape::kValidity;
  int width = 0;
  int parent_list = -1;  // the column of the innermost list around it
  Check check = Check::kNone;
};

struct Program {
  std::vector<Op> ops{};
  std::vector<ColumnPlan> columns{};
  std::vector<DecimalPlan> decimals{};
  std::vector<std::vector<int>> groups{};  // columns that have one value for each element of a list
  std::vector<int> row_columns{};          // columns that have one value for each row
  std::vector<int> top_columns{};          // those of the target's fields, in its order
  int64_t min_row_bytes = 0;
  bool rows_are_empty = false;
};

/// UNIMPLEMENTED or INVALID_ARGUMENT names the column that cannot be read, and why.
arrow::Result<Program> Compile(const Schema& writer, const arrow::Schema& target);

}  // namespace headrace::avro
