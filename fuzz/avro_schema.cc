// Avro schemas: parsed, written, parsed again, made a table's schema, and a table's schema made Avro's again.
#include "fuzz/fuzz_target.h"
#include "headrace/avro/schema.h"
#include "headrace/avro/table_schema.h"
#include "headrace/types/type_table.h"

namespace headrace::fuzz {

void FuzzOne(std::string_view bytes) {
  auto schema = avro::Schema::Parse(bytes);
  if (!schema.ok()) return;
  const std::string text = (*schema)->ToJson();
  auto again = avro::Schema::Parse(text);
  if (!again.ok() || (*again)->ToJson() != text) __builtin_trap();
  auto table = avro::FromAvroSchema(**schema);
  if (!table.ok()) return;
  if (!ToArrowSchema(*table).ok()) __builtin_trap();
  for (auto dialect : {avro::Dialect::kStorageRead, avro::Dialect::kLoadFile, avro::Dialect::kExport}) {
    auto own = avro::ToAvroSchema(*table, {.dialect = dialect, .display_names = true});
    if (!own.ok()) continue;
    auto parsed = avro::Schema::Parse(*own);
    if (!parsed.ok() || !avro::FromAvroSchema(**parsed).ok()) __builtin_trap();
  }
}

std::vector<std::string> Seeds() {
  return {
      R"("string")",
      R"(["null",{"type":"array","items":{"type":"map","values":"long"}}])",
      R"({"type":"record","name":"a.b","fields":[{"name":"x","type":["null","a.b"],"default":null}]})",
      R"({"type":"record","name":"__root__","fields":[{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":77,"scale":38}},)"
      R"({"name":"e","displayName":"\u00e9","type":{"type":"enum","name":"e","symbols":["A"],"default":"A"}},)"
      R"({"name":"f","type":{"type":"fixed","name":"f","size":16,"logicalType":"uuid"}},{"name":"j","type":{"type":"string","sqlType":"JSON"}}]})",
      R"({"type":"record","name":"r","namespace":"n","aliases":["q"],"doc":"d","fields":[{"name":"i","type":{"type":"record",)"
      R"("name":"google.sqlType.INTERVAL","fields":[{"name":"months","type":"int"},{"name":"days","type":"int"},{"name":"microseconds","type":"long"}]}},)"
      R"({"name":"k","type":"google.sqlType.INTERVAL"},{"name":"s","type":{"type":"record","name":"s","sqlType":"RANGE<DATE>","fields":[)"
      R"({"name":"start","type":["null",{"type":"int","logicalType":"date"}]},{"name":"end","type":["null",{"type":"int","logicalType":"date"}]}]}}]})",
      R"({"type":"record","name":"t","fields":[{"name":"a","type":{"type":"long","logicalType":"timestamp-nanos"}},)"
      R"({"name":"b","type":{"type":"int","logicalType":"time-millis"}},{"name":"c","type":{"type":"string","logicalType":"datetime"}},)"
      R"({"name":"d","type":{"type":"long","logicalType":"local-timestamp-millis"}},{"name":"g","type":"float"},{"name":"h","type":"boolean"}]})",
  };
}

}  // namespace headrace::fuzz
