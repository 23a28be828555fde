// Rows of CSV files: fields of any text, quotes that do not end, values that do not fit.
#include "headrace/files/internal/csv_rows.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>

#include "fuzz/fuzz_target.h"
#include "headrace/types/type_table.h"

namespace headrace::fuzz {
namespace {

TableSchema Table() {
  return {{{.name = "i", .kind = TypeKind::kInt64},
           {.name = "s", .kind = TypeKind::kString},
           {.name = "n", .kind = TypeKind::kBigNumeric},
           {.name = "t", .kind = TypeKind::kTimestamp},
           {.name = "v", .kind = TypeKind::kInterval},
           {.name = "r", .kind = TypeKind::kInt64, .mode = Mode::kRepeated}}};
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  static const auto schema = ToArrowSchema(Table()).ValueOrDie();
  auto buffer = std::make_shared<arrow::Buffer>(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int64_t>(bytes.size()));
  CsvTokenizer tokenizer(std::make_shared<arrow::io::BufferReader>(buffer), "fuzzed");
  auto header = CsvHeader::Read(&tokenizer, "fuzzed");
  if (!header.ok()) return;
  auto places = header->PlacesOf(*schema, "fuzzed");
  if (!places.ok()) return;
  auto columns = TextColumns::Make(schema, {}, 0).ValueOrDie();
  while (tokenizer.Next().ValueOr(false)) {
    if (header->IsNoRecord(tokenizer)) continue;
    if (!header->CheckRecord(tokenizer, "fuzzed").ok()) return;
    for (int i = 0; i < columns.column_count(); ++i) {
      const auto& field = tokenizer.fields()[(*places)[static_cast<size_t>(i)]];
      if (!(field.text.empty() ? columns.AppendNull(i) : columns.Append(i, field.text)).ok()) return;
    }
    columns.EndRow();
  }
  auto batch = columns.Finish();
  if (!batch.ok() || !(*batch)->Validate().ok()) __builtin_trap();
}

std::vector<std::string> Seeds() {
  return {"i,s,n,t,v,r\n1,x,1.5,2024-01-02T03:04:05Z,1-2 3 4:5:6,\"[1,2]\"\n,\"\",,,,\n",
          "r,v,t,n,s,i\r\n[],0-0 0 0:0:0,0001-01-01 00:00:00+00:00,-0.1,\"a\"\"b\nc\",-9\r\n", "i,s,n,t,v,r\n\"1"};
}

}  // namespace headrace::fuzz
