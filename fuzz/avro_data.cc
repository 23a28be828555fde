// Avro rows and container files: decoded into columns, every value looked at, encoded and decoded again.
#include <memory>

#include <arrow/array.h>
#include <arrow/io/memory.h>
#include <arrow/json/from_string.h>
#include <arrow/record_batch.h>

#include "fuzz/fuzz_target.h"
#include "headrace/avro/container_reader.h"
#include "headrace/avro/container_writer.h"
#include "headrace/avro/decoder.h"
#include "headrace/avro/encoder.h"
#include "headrace/avro/table_schema.h"
#include "headrace/types/type_table.h"

namespace headrace::fuzz {
namespace {

constexpr avro::DecoderLimits kLimits{.max_batch_bytes = int64_t{64} << 20, .max_empty_values = 10'000};
constexpr avro::ContainerLimits kFileLimits{.max_header_bytes = int64_t{1} << 20, .max_block_bytes = int64_t{16} << 20};

Field Of(std::string name, TypeKind kind, Mode mode = Mode::kNullable) { return {.name = std::move(name), .kind = kind, .mode = mode}; }

TableSchema Table() {
  return {{Of("i", TypeKind::kInt64, Mode::kRequired),
           Of("f", TypeKind::kFloat64),
           Of("b", TypeKind::kBool),
           Of("s", TypeKind::kString),
           Of("y", TypeKind::kBytes, Mode::kRepeated),
           Of("n", TypeKind::kNumeric),
           Of("bn", TypeKind::kBigNumeric),
           Of("d", TypeKind::kDate),
           Of("t", TypeKind::kTime),
           Of("dt", TypeKind::kDatetime),
           Of("ts", TypeKind::kTimestamp),
           Of("p", TypeKind::kTimestamp12),
           Of("iv", TypeKind::kInterval, Mode::kRepeated),
           {.name = "r", .kind = TypeKind::kRange, .range_element = TypeKind::kDatetime},
           {.name = "l",
            .kind = TypeKind::kStruct,
            .mode = Mode::kRepeated,
            .fields = {Of("x", TypeKind::kInt64),
                       {.name = "q", .kind = TypeKind::kStruct, .fields = {Of("z", TypeKind::kString, Mode::kRepeated)}}}}}};
}

std::shared_ptr<const avro::Schema> AvroOf(const TableSchema& table) {
  auto text = avro::ToAvroSchema(table, {.dialect = avro::Dialect::kStorageRead}).ValueOrDie();
  return avro::Schema::Parse(text).ValueOrDie();
}

// What no table holds is only walked over here: unions of several types, a map of arrays, a record that contains itself, nulls.
std::shared_ptr<const avro::Schema> Skipped() {
  return avro::Schema::Parse(R"({"type":"record","name":"r","fields":[
      {"name":"u","type":["null","string","double",{"type":"map","values":{"type":"array","items":"int"}}]},
      {"name":"node","type":{"type":"record","name":"node","fields":[{"name":"v","type":"long"},{"name":"next","type":["null","node"]}]}},
      {"name":"nulls","type":{"type":"array","items":"null"}},{"name":"last","type":{"type":"array","items":"null"}}]})")
      .ValueOrDie();
}

void CheckRows(const std::shared_ptr<const avro::Schema>& schema, const TableSchema& table, std::string_view rows, int64_t row_count) {
  auto columns = ToArrowSchema(table).ValueOrDie();
  auto decoder = avro::Decoder::Make(schema, columns, arrow::default_memory_pool(), kLimits);
  if (!decoder.ok()) return;
  int64_t used = 0;
  auto batch = (*decoder)->Decode(rows, row_count, &used);
  if (!batch.ok()) return;
  if (used > static_cast<int64_t>(rows.size()) || (*batch)->num_rows() != row_count) __builtin_trap();
  // Not in full: Arrow refuses BIGNUMERIC's greatest values.
  if (!(*batch)->Validate().ok() || (*batch)->ToString().empty()) __builtin_trap();
  const auto own = AvroOf(table);
  auto encoder = avro::Encoder::Make(own, columns);
  if (!encoder.ok()) __builtin_trap();
  std::string again;
  if (!(*encoder)->Append(**batch, 0, row_count, &again).ok()) return;  // null elements of arrays of others
  auto back = avro::Decoder::Make(own, columns, arrow::default_memory_pool()).ValueOrDie()->Decode(again, row_count);
  if (!back.ok() || !(*back)->Equals(**batch, false, arrow::EqualOptions::Defaults().nans_equal(true))) __builtin_trap();
}

void CheckFile(std::string_view bytes) {
  auto reader = avro::ContainerReader::Open(arrow::io::BufferReader::FromString(std::string(bytes)), kFileLimits);
  if (!reader.ok()) return;
  auto table = avro::FromAvroSchema(*(*reader)->schema());
  while (true) {
    auto block = (*reader)->Next();
    if (!block.ok() || !block->has_value()) return;
    if (!table.ok()) continue;
    // Names that Avro cannot hold are another target's matter.
    if (avro::ToAvroSchema(*table, {.dialect = avro::Dialect::kStorageRead}).ok())
      CheckRows((*reader)->schema(), *table, (*block)->rows, (*block)->row_count);
  }
}

std::shared_ptr<arrow::RecordBatch> Rows(const TableSchema& table) {
  auto columns = ToArrowSchema(table).ValueOrDie();
  constexpr const char* kRows = R"rows([
      {"i": -5, "f": null, "b": null, "s": null, "y": [], "n": null, "bn": null, "d": null, "t": null, "dt": null, "ts": null, "p": null, "iv": [],
       "r": null, "l": []},
      {"i": 5, "f": 1.5, "b": true, "s": "hi", "y": ["y", ""], "n": "-0.000000001", "bn": "1.00000000000000000000000000000000000000", "d": 1, "t": 1,
       "dt": "2024-02-29 23:59:59", "ts": "2024-02-29", "p": "2024-01-02T03:04:05.123456789012Z",
       "iv": [{"months": 1, "days": -2, "microseconds": 3}], "r": {"start": null, "end": "2024-02-29 23:59:59.5"},
       "l": [{"x": 1, "q": {"z": ["z", ""]}}, {"x": null, "q": null}]}])rows";
  auto rows = arrow::json::ArrayFromJSONString(arrow::struct_(columns->fields()), kRows).ValueOrDie();
  return arrow::RecordBatch::Make(columns, rows->length(), arrow::RecordBatch::FromStructArray(rows).ValueOrDie()->columns());
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  if (bytes.size() < 2) return;
  // The first byte chooses, the second is the number of rows.
  static const TableSchema table = Table();
  static const auto schema = AvroOf(table);
  static const auto skipped = Skipped();
  const auto rows = static_cast<int64_t>(static_cast<unsigned char>(bytes[1]));
  switch (bytes[0] & 3) {
    case 0:
      CheckFile(bytes.substr(1));
      return;
    case 1:
      CheckRows(schema, table, bytes.substr(2), rows);
      return;
    case 2:
      CheckRows(schema, {{table.fields[3], table.fields[14], table.fields[0]}}, bytes.substr(2), rows);
      return;
    default:
      CheckRows(skipped, {{{.name = "last", .kind = TypeKind::kInt64, .mode = Mode::kRepeated}}}, bytes.substr(2), rows);
  }
}

std::vector<std::string> Seeds() {
  const TableSchema table = Table();
  const auto schema = AvroOf(table);
  const auto batch = Rows(table);
  std::string rows;
  if (!avro::Encoder::Make(schema, batch->schema()).ValueOrDie()->Append(*batch, 0, 2, &rows).ok()) __builtin_trap();
  std::vector<std::string> seeds = {"\x01\x02" + rows, "\x02\x02" + rows,
                                    std::string("\x03\x01\x06\x02\x02k\x02\x02\0\0\x02\x02\x04\0\x06\0\x02\0", 18)};
  // Files of a small table: their headers would be most of what is changed.
  const TableSchema small{{table.fields[3], table.fields[13]}};
  const auto small_batch = batch->SelectColumns({3, 13}).ValueOrDie();
  const auto small_schema = AvroOf(small);
  for (auto compression : {avro::BlockCompression::kNull, avro::BlockCompression::kDeflate, avro::BlockCompression::kSnappy,
                           avro::BlockCompression::kZstandard}) {
    SeededRandom random(1);
    auto writer = avro::ContainerWriter::Make(small_schema, small_batch->schema(), {.compression = compression, .block_bytes = 1}, &random)
                      .ValueOrDie();
    std::string file(1, '\0');
    if (!writer->Append(*small_batch, 0, 2, &file).ok() || !writer->Finish(&file).ok()) __builtin_trap();
    seeds.push_back(std::move(file));
  }
  return seeds;
}

}  // namespace headrace::fuzz
