// Rows of NDJSON files, of every kind of column.
#include <arrow/buffer.h>
#include <arrow/io/memory.h>

#include "fuzz/fuzz_target.h"
#include "headrace/files/internal/line_reader.h"
#include "headrace/types/json_row.h"
#include "headrace/types/type_table.h"

namespace headrace::fuzz {
namespace {

TableSchema Table() {
  const Field inner{.name = "o",
                    .kind = TypeKind::kStruct,
                    .mode = Mode::kRepeated,
                    .fields = {{.name = "b", .kind = TypeKind::kBytes}, {.name = "d", .kind = TypeKind::kDate, .mode = Mode::kRepeated}}};
  return {{{.name = "i", .kind = TypeKind::kInt64},
           {.name = "s", .kind = TypeKind::kString},
           {.name = "f", .kind = TypeKind::kFloat64},
           {.name = "n", .kind = TypeKind::kNumeric},
           {.name = "j", .kind = TypeKind::kJson},
           {.name = "g", .kind = TypeKind::kRange},
           inner}};
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  static const auto schema = ToArrowSchema(Table()).ValueOrDie();
  auto buffer = std::make_shared<arrow::Buffer>(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int64_t>(bytes.size()));
  LineReader lines(std::make_shared<arrow::io::BufferReader>(buffer), "fuzzed");
  auto rows = JsonRowReader::Make(schema, {}).ValueOrDie();
  auto writer = JsonRowWriter::Make(schema).ValueOrDie();
  int64_t row = 0;
  while (lines.Next().ValueOr(false)) {
    if (!rows->Append(lines.line(), row++).ok()) return;
  }
  auto batch = rows->Finish();
  if (!batch.ok() || !(*batch)->Validate().ok()) __builtin_trap();
  // What was read can be written, and reads as the same again.
  std::string text;
  if (!writer->Append(**batch, 0, (*batch)->num_rows(), &text).ok()) __builtin_trap();
  auto again = JsonRowReader::Make(schema, {}).ValueOrDie();
  LineReader copies(std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(text)), "again");
  while (copies.Next().ValueOr(false)) {
    if (!again->Append(copies.line(), 0).ok()) __builtin_trap();
  }
  if (!(*again->Finish())->Equals(**batch, false, arrow::EqualOptions().nans_equal(true))) __builtin_trap();
}

std::vector<std::string> Seeds() {
  return {R"x({"i": "1", "s": "x", "f": 1.5, "n": "0.1", "j": {"a": [1]}, "g": "[2024-01-01, UNBOUNDED)", "o": [{"b": "AA==", "d": []}]})x",
          "{\"i\": 1, \"f\": \"NaN\", \"o\": []}\n\n{\"j\": null}\n", "{}\n{\"o\": [{\"d\": [\"0001-01-01\"]}]}"};
}

}  // namespace headrace::fuzz
