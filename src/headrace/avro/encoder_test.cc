#include "headrace/avro/encoder.h"

#include <arrow/array.h>
#include <arrow/array/builder_decimal.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/avro/decoder.h"
#include "headrace/avro/table_schema.h"
#include "headrace/types/type_table.h"

namespace headrace::avro {
namespace {

using arrow::json::ArrayFromJSONString;
using testing::HasSubstr;

std::shared_ptr<const Schema> AvroOf(const TableSchema& table, Dialect dialect) {
  auto text = ToAvroSchema(table, {.dialect = dialect, .display_names = true}).ValueOrDie();
  return Schema::Parse(text).ValueOrDie();
}

std::shared_ptr<arrow::RecordBatch> BatchOf(const TableSchema& table, const std::string& json) {
  auto schema = ToArrowSchema(table).ValueOrDie();
  auto rows = ArrayFromJSONString(arrow::struct_(schema->fields()), json).ValueOrDie();
  auto batch = arrow::RecordBatch::FromStructArray(rows).ValueOrDie();
  return arrow::RecordBatch::Make(schema, batch->num_rows(), batch->columns());
}

Field Of(std::string name, TypeKind kind, Mode mode = Mode::kNullable) { return {.name = std::move(name), .kind = kind, .mode = mode}; }

// All types at once, with null, extremes, and inside structs and arrays.
const TableSchema kTable{{Of("i", TypeKind::kInt64),
                          Of("f", TypeKind::kFloat64),
                          Of("b", TypeKind::kBool),
                          Of("s", TypeKind::kString, Mode::kRequired),
                          Of("y", TypeKind::kBytes),
                          Of("n", TypeKind::kNumeric),
                          Of("big", TypeKind::kBigNumeric, Mode::kRepeated),
                          Of("d", TypeKind::kDate),
                          Of("t", TypeKind::kTime),
                          Of("dt", TypeKind::kDatetime, Mode::kRepeated),
                          Of("ts", TypeKind::kTimestamp),
                          Of("g", TypeKind::kGeography),
                          Of("größe", TypeKind::kJson),
                          Of("iv", TypeKind::kInterval),
                          Of("tp", TypeKind::kTimestamp12),
                          {.name = "r", .kind = TypeKind::kRange, .range_element = TypeKind::kDatetime},
                          {.name = "l",
                           .kind = TypeKind::kStruct,
                           .mode = Mode::kRepeated,
                           .fields = {Of("x", TypeKind::kInt64),
                                      {.name = "q", .kind = TypeKind::kStruct, .fields = {Of("z", TypeKind::kString, Mode::kRepeated)}}}}}};

const char* const kRows = R"rows([
  {"i": -9223372036854775808, "f": 0.1, "b": true, "s": "", "y": "ab", "n": "-99999999999999999999999999999.999999999", "big": [], "d": -719162,
   "t": 86399999999, "dt": ["0001-01-01", "9999-12-31 23:59:59.999999"], "ts": "0001-01-01", "g": "POINT(1 2)", "größe": "{}",
   "iv": {"months": -120000, "days": 3660000, "microseconds": -1}, "tp": "2024-01-02T03:04:05.123456789012Z",
   "r": {"start": null, "end": "2020-01-01"}, "l": [{"x": 1, "q": {"z": ["a", ""]}}, {"x": null, "q": null}]},
  {"i": null, "f": null, "b": null, "s": "é", "y": null, "n": null,
   "big": ["1.50000000000000000000000000000000000000", "-0.00000000000000000000000000000000000001"], "d": null, "t": null,
   "dt": [], "ts": null, "g": null, "größe": null, "iv": null, "tp": null, "r": null, "l": []},
  {"i": 9223372036854775807, "f": -0.0, "b": false, "s": "zz", "y": "", "n": "0.000000128", "big": ["0.00000000000000000000000000000000000000"],
   "d": 2932896, "t": 0, "dt": ["1969-12-31 23:59:59.999999"], "ts": "9999-12-31 23:59:59.999999", "g": "", "größe": "null",
   "iv": {"months": 0, "days": 0, "microseconds": 0}, "tp": "0001-01-01T00:00:00.000000000000Z",
   "r": {"start": null, "end": null}, "l": [{"x": 2, "q": {"z": []}}]}])rows";

TEST(EncoderTest, WhatIsWrittenIsReadBackAsTheSame) {
  auto batch = BatchOf(kTable, kRows);
  for (Dialect dialect : {Dialect::kStorageRead, Dialect::kExport}) {
    auto avro = AvroOf(kTable, dialect);
    auto encoder = Encoder::Make(avro, batch->schema());
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    std::string bytes;
    auto status = (*encoder)->Append(*batch, 0, 3, &bytes);
    ASSERT_TRUE(status.ok()) << status;
    auto decoder = Decoder::Make(avro, batch->schema(), arrow::default_memory_pool()).ValueOrDie();
    auto back = decoder->Decode(bytes, 3);
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_TRUE((*back)->Equals(*batch, true)) << (*back)->ToString() << batch->ToString();
    // Slices at every level, and a part of the rows.
    std::string part;
    ASSERT_TRUE((*encoder)->Append(*batch->Slice(1), 1, 1, &part).ok());
    EXPECT_EQ(part, bytes.substr(decoder->row_ends()[1]));
    auto rest = decoder->Decode(part, 1);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_TRUE((*rest)->Equals(*batch->Slice(2)));
  }
}

TEST(EncoderTest, LoadFiles) {
  const TableSchema table{{Of("dt", TypeKind::kDatetime), {.name = "n", .kind = TypeKind::kNumeric, .precision = 3, .scale = 1}}};
  auto batch = BatchOf(table, R"([{"dt": "1969-12-31 23:59:59.999999", "n": "99.9"}, {"dt": null, "n": "-12.8"}])");
  auto avro = AvroOf(table, Dialect::kLoadFile);
  std::string bytes;
  ASSERT_TRUE(Encoder::Make(avro, batch->schema()).ValueOrDie()->Append(*batch, 0, 2, &bytes).ok());
  EXPECT_EQ(bytes, std::string("\x02\x01\x02\x04\x03\xe7"
                               "\x00\x02\x02\x80",
                               10));
}

TEST(EncoderTest, TheGreatestBignumericHasThirtyTwoBytes) {
  const TableSchema table{{Of("n", TypeKind::kBigNumeric, Mode::kRequired)}};
  auto schema = ToArrowSchema(table).ValueOrDie();
  arrow::Decimal256Builder builder(schema->field(0)->type());
  const arrow::Decimal256 greatest(arrow::BasicDecimal256::LittleEndianArray, {~0ULL, ~0ULL, ~0ULL, ~0ULL >> 1});
  ASSERT_TRUE(builder.Append(greatest).ok());
  ASSERT_TRUE(builder.Append(arrow::Decimal256(arrow::BasicDecimal256::LittleEndianArray, {0, 0, 0, 1ULL << 63})).ok());
  auto batch = arrow::RecordBatch::Make(schema, 2, {builder.Finish().ValueOrDie()});
  auto avro = AvroOf(table, Dialect::kExport);
  std::string bytes;
  ASSERT_TRUE(Encoder::Make(avro, schema).ValueOrDie()->Append(*batch, 0, 2, &bytes).ok());
  EXPECT_EQ(bytes, "\x40\x7f" + std::string(31, '\xff') + "\x40\x80" + std::string(31, '\0'));
  EXPECT_TRUE(Decoder::Make(avro, schema, arrow::default_memory_pool()).ValueOrDie()->Decode(bytes, 2).ValueOrDie()->Equals(*batch));
}

TEST(EncoderTest, WhatCannotBeWrittenIsNamed) {
  const TableSchema table{{Of("a", TypeKind::kInt64), Of("l", TypeKind::kInt64, Mode::kRepeated)}};
  auto batch = BatchOf(table, R"([{"a": 1, "l": [1]}, {"a": null, "l": [2147483648]}])");
  auto make = [&](const char* fields) {
    return Encoder::Make(Schema::Parse(std::string(R"({"type":"record","name":"r","fields":[)") + fields + "]}").ValueOrDie(),
                         batch->schema());
  };
  auto append = [&](const char* fields) {
    std::string out = "before";
    auto status = make(fields).ValueOrDie()->Append(*batch, 0, 2, &out);
    EXPECT_EQ(out, "before");
    return status.ToString();
  };
  EXPECT_THAT(append(R"({"name":"A","type":"long"},{"name":"l","type":{"type":"array","items":"long"}})"),
              HasSubstr("column A, row 1: null, but the Avro schema has no null there"));
  EXPECT_THAT(append(R"({"name":"a","type":["null","long"]},{"name":"l","type":{"type":"array","items":"int"}})"),
              HasSubstr("column l, row 1: 2147483648 is no 32-bit integer"));
  EXPECT_THAT(make(R"({"name":"a","type":"long"})").status().ToString(),
              HasSubstr("column l: the Avro schema has no field for this column"));
  EXPECT_THAT(make(R"({"name":"a","type":"long"},{"name":"l","type":{"type":"array","items":"long"}},{"name":"z","type":"int"})")
                  .status()
                  .ToString(),
              HasSubstr("column z: the rows have no column for this field"));
  EXPECT_THAT(make(R"({"name":"a","type":"string"},{"name":"l","type":{"type":"array","items":"long"}})").status().ToString(),
              HasSubstr("column a: int64 cannot be written as Avro's string"));
}

}  // namespace
}  // namespace headrace::avro
