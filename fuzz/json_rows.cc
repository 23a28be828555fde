// Rows of JSON and the texts of single values: what is read is written and read again to the same.
#include <memory>
#include <string>

#include <arrow/array.h>
#include <arrow/record_batch.h>

#include "fuzz/fuzz_target.h"
#include "headrace/types/column_text.h"
#include "headrace/types/json_row.h"
#include "headrace/types/json_schema_inference.h"
#include "headrace/types/rest_row.h"
#include "headrace/types/type_table.h"

namespace headrace::fuzz {
namespace {

// A column of each scalar type, named by its number, and nested ones.
TableSchema Table() {
  TableSchema table;
  for (const auto& row : TypeTable()) {
    if (!row.kind || row.kind == TypeKind::kStruct) continue;
    table.fields.push_back({.name = "c" + std::to_string(table.fields.size()), .kind = *row.kind});
  }
  Field inner{.name = "q", .kind = TypeKind::kStruct, .fields = {{.name = "z", .kind = TypeKind::kString, .mode = Mode::kRepeated}}};
  table.fields.push_back({.name = "l",
                          .kind = TypeKind::kStruct,
                          .mode = Mode::kRepeated,
                          .fields = {{.name = "x", .kind = TypeKind::kInt64, .mode = Mode::kRequired}, inner}});
  return table;
}

void WriteAndReadAgain(const std::shared_ptr<arrow::Schema>& schema, const arrow::RecordBatch& batch) {
  static const auto writer = JsonRowWriter::Make(schema).ValueOrDie();
  static const auto rest = RestRowWriter::Make(schema, TextForm::kRest).ValueOrDie();
  std::string out;
  if (!rest->Append(batch, 0, batch.num_rows(), &out).ok()) __builtin_trap();
  out.clear();
  if (!writer->Append(batch, 0, batch.num_rows(), &out).ok()) __builtin_trap();
  auto reader = JsonRowReader::Make(schema, {.strict = true}).ValueOrDie();
  if (!reader->Append(std::string_view(out).substr(0, out.size() - 1), 0).ok()) __builtin_trap();
  auto again = reader->Finish().ValueOrDie();
  // Not in full: that refuses the 77 digits of BIGNUMERIC's ends.
  if (!again->Validate().ok() || !again->Equals(batch, arrow::EqualOptions::Defaults().nans_equal(true))) __builtin_trap();
}

void ReadRow(std::string_view bytes) {
  static const auto schema = ToArrowSchema(Table()).ValueOrDie();
  const ParseOptions options{.rounding = DecimalRounding::kHalfEven, .epoch_unit = EpochUnit::kMillis, .ignore_unknown_keys = true};
  auto reader = JsonRowReader::Make(schema, options).ValueOrDie();
  if (!reader->Append(bytes, 0).ok()) return;
  WriteAndReadAgain(schema, *reader->Finish().ValueOrDie());
}

// Rows line by line: what the inference takes, the reader takes.
void Infer(std::string_view bytes) {
  JsonSchemaInference inference;
  for (std::string_view rest = bytes; !rest.empty();) {
    const size_t end = rest.find('\n');
    if (!inference.Add(rest.substr(0, end), 0).ok()) return;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  (void)inference.Finish();
}

void ReadTexts(std::string_view bytes) {
  for (const auto& field : Table().fields) {
    if (field.kind == TypeKind::kStruct) continue;
    auto parser = ColumnParser::Make(field, {}).ValueOrDie();
    if (!parser->Append(bytes).ok()) continue;
    auto column = parser->Finish().ValueOrDie();
    auto text = ColumnText::Make(*ToArrowField(field).ValueOrDie()).ValueOrDie();
    std::string out;
    if (!text.Append(*column, 0, &out).ok()) __builtin_trap();
    auto strict = ColumnParser::Make(field, {.strict = true}).ValueOrDie();
    if (!strict->Append(out).ok()) __builtin_trap();
    if (!strict->Finish().ValueOrDie()->Equals(column, arrow::EqualOptions::Defaults().nans_equal(true))) __builtin_trap();
  }
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  ReadRow(bytes);
  Infer(bytes);
  ReadTexts(bytes);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {
      R"x({"c0":"-9223372036854775808","c1":1.5e-3,"c2":true,"c3":"gr\u00f6\u00dfe\n","c4":"AP/+","c5":"0.000000001","c6":1e-38})x",
      R"x({"c7":"0001-01-01","c8":"23:59:59.999999","c9":"2024-02-29 01:02:03.5","c10":"2024-02-29T01:02:03+05:45","c11":"1970-01-01T00:00:00.000000000001Z"})x",
      R"x({"c12":"POINT EMPTY","c13":{"k":[1,null,"x"]},"c14":"-1-2 3 -4:5:6.789999","c15":"[2024-01-01, UNBOUNDED)","l":[{"x":1,"q":null},{"X":2,"q":{"z":["",""]}}]})x",
      R"x({"c1":"NaN","c10":1700000000000,"c13":"null","unknown":{"a":[[]]},"l":null})x",
      "{\"a\":1}\n{\"a\":1.5,\"b\":[]}\n{\"b\":[{\"c\":\"2024-01-01\"}]}",
      "-578960446186580977117854925043439539266.34992332820282019728792003956564819968",
  };
  for (const char* text : {"12.0", "TRUE", "Infinity", "1969-12-31T23:59:59.999999Z", "12:30:00", "0-0 0 0:0:0", "[null, 9999-12-31)"})
    seeds.emplace_back(text);
  return seeds;
}

}  // namespace headrace::fuzz
