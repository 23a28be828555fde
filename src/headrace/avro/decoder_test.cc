#include "headrace/avro/decoder.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/types/type_table.h"

namespace headrace::avro {
namespace {

using arrow::json::ArrayFromJSONString;
using testing::ElementsAre;
using testing::HasSubstr;

const auto kMicros = arrow::TimeUnit::MICRO;

// Avro's encoding, written by hand.
std::string Long(int64_t value) {
  std::string out;
  auto coded = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  for (; coded >= 0x80; coded >>= 7) out += static_cast<char>(coded | 0x80);
  return out + static_cast<char>(coded);
}
std::string Text(const std::string& text) { return Long(static_cast<int64_t>(text.size())) + text; }
template <typename T>
std::string Raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}
const std::string kNull = Long(0);
const std::string kValue = Long(1);

std::string RecordOf(const std::string& fields) { return R"({"type":"record","name":"__root__","fields":[)" + fields + "]}"; }
std::string FieldOf(const std::string& name, const std::string& type) { return fmt::format(R"({{"name":"{}","type":{}}})", name, type); }

arrow::Result<std::shared_ptr<arrow::RecordBatch>> Decode(const std::string& schema_json, const arrow::FieldVector& fields,
                                                          const std::string& bytes, int64_t rows, int64_t* used = nullptr,
                                                          DecoderLimits limits = {}) {
  ARROW_ASSIGN_OR_RAISE(auto schema, Schema::Parse(schema_json));
  ARROW_ASSIGN_OR_RAISE(auto decoder, Decoder::Make(schema, arrow::schema(fields), arrow::default_memory_pool(), limits));
  ARROW_ASSIGN_OR_RAISE(auto batch, decoder->Decode(bytes, rows, used));
  ARROW_RETURN_NOT_OK(batch->Validate());
  return batch;
}

std::shared_ptr<arrow::KeyValueMetadata> Mark(std::string_view extension) {
  return arrow::key_value_metadata({std::string(kExtensionNameKey)}, {std::string(extension)});
}

// One column c, each row's bytes as given: by themselves, and again with so many bytes behind them that no value is near the end.
arrow::Result<std::shared_ptr<arrow::Array>> DecodeColumn(const std::string& type, const std::shared_ptr<arrow::Field>& field,
                                                          const std::vector<std::string>& rows) {
  std::string bytes;
  for (const std::string& row : rows) bytes += row;
  ARROW_ASSIGN_OR_RAISE(auto batch, Decode(RecordOf(FieldOf("c", type)), {field}, bytes, static_cast<int64_t>(rows.size())));
  ARROW_RETURN_NOT_OK(batch->column(0)->ValidateFull());
  auto longer = Decode(RecordOf(FieldOf("c", type)), {field}, bytes + std::string(200, '\x55'), static_cast<int64_t>(rows.size()));
  EXPECT_TRUE(longer.ok()) << longer.status();
  if (longer.ok()) {
    EXPECT_TRUE((*longer)->Equals(*batch));
  }
  return batch->column(0);
}

struct ValueCase {
  std::string avro;
  std::shared_ptr<arrow::DataType> type;
  std::vector<std::string> rows;
  std::string want;
};

TEST(DecoderTest, EveryTypeOfTheTable) {
  const std::string max_micros = Long(253402300799999999);
  const std::string min_micros = Long(-62135596800000000);
  const ValueCase cases[] = {
      {R"("boolean")", arrow::boolean(), {"\x01", std::string(1, '\0')}, "[true, false]"},
      {R"("int")", arrow::int64(), {Long(-5), Long(INT32_MAX), Long(INT32_MIN)}, "[-5, 2147483647, -2147483648]"},
      {R"("long")",
       arrow::int64(),
       {Long(INT64_MIN), Long(INT64_MAX), Long(-1), Long(64)},
       "[-9223372036854775808, 9223372036854775807, -1, 64]"},
      {R"("double")", arrow::float64(), {Raw(0.1), Raw(-0.0)}, "[0.1, -0.0]"},
      {R"("float")", arrow::float64(), {Raw(0.5F)}, "[0.5]"},
      {R"("string")",
       arrow::utf8(),
       {Text(""), Text("a text of more than sixteen bytes"), Text("s")},
       R"(["", "a text of more than sixteen bytes", "s"])"},
      {R"("bytes")", arrow::binary(), {Text("ab"), Text("")}, R"(["ab", ""])"},
      {R"({"type":"fixed","name":"f","size":3})", arrow::binary(), {"abc", "def"}, R"(["abc", "def"])"},
      {R"({"type":"enum","name":"e","symbols":["RED","GREEN"]})", arrow::utf8(), {Long(1), Long(0)}, R"(["GREEN", "RED"])"},
      {R"({"type":"string","logicalType":"uuid"})", arrow::utf8(), {Text("x")}, R"(["x"])"},
      {R"({"type":"int","logicalType":"date"})", arrow::date32(), {Long(-719162), Long(2932896)}, "[-719162, 2932896]"},
      {R"({"type":"string","sqlType":"DATE"})", arrow::date32(), {Text("1969-12-31"), Text("2024-02-29")}, "[-1, 19782]"},
      {R"({"type":"long","logicalType":"time-micros"})", arrow::time64(kMicros), {Long(0), Long(86399999999)}, "[0, 86399999999]"},
      {R"({"type":"int","logicalType":"time-millis"})", arrow::time64(kMicros), {Long(86399999)}, "[86399999000]"},
      {R"("string")", arrow::time64(kMicros), {Text("23:59:59.5"), Text("00:00:00")}, "[86399500000, 0]"},
      {R"({"type":"string","logicalType":"datetime"})",
       arrow::timestamp(kMicros),
       {Text("1969-12-31T23:59:59.999999"), Text("1970-01-01 00:00:01"), Text("0001-01-01T00:00:00"), Text("2000-1-2 3:4:5.06")},
       R"(["1969-12-31 23:59:59.999999", "1970-01-01 00:00:01", "0001-01-01 00:00:00", "2000-01-02 03:04:05.06"])"},
      {R"({"type":"long","logicalType":"local-timestamp-micros"})",
       arrow::timestamp(kMicros),
       {min_micros, max_micros},
       R"(["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"])"},
      {R"({"type":"long","logicalType":"local-timestamp-millis"})",
       arrow::timestamp(kMicros),
       {Long(-1)},
       R"(["1969-12-31 23:59:59.999"])"},
      {R"({"type":"long","logicalType":"timestamp-micros"})", arrow::timestamp(kMicros), {Long(-1)}, R"(["1969-12-31 23:59:59.999999"])"},
      {R"({"type":"long","logicalType":"timestamp-micros"})",
       arrow::timestamp(kMicros, "UTC"),
       {min_micros, max_micros},
       R"(["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"])"},
      {R"({"type":"long","logicalType":"timestamp-millis"})",
       arrow::timestamp(kMicros, "UTC"),
       {Long(1)},
       R"(["1970-01-01 00:00:00.001"])"},
      {R"({"type":"long","logicalType":"timestamp-nanos"})",
       arrow::timestamp(kMicros, "UTC"),
       {Long(-1000)},
       R"(["1969-12-31 23:59:59.999999"])"},
      {R"({"type":"long","logicalType":"timestamp-nanos"})",
       arrow::timestamp(arrow::TimeUnit::NANO, "UTC"),
       {Long(-1)},
       R"(["1969-12-31 23:59:59.999999999"])"},
      {R"({"type":"long","logicalType":"timestamp-micros"})",
       arrow::timestamp(arrow::TimeUnit::NANO, "UTC"),
       {Long(-1)},
       R"(["1969-12-31 23:59:59.999999"])"},
      {R"({"type":"bytes","logicalType":"decimal","precision":38,"scale":9})",
       arrow::decimal128(38, 9),
       {Text("\x01"), Text("\xff"), Text(""), Text(std::string("\x00\x80", 2))},
       R"(["0.000000001", "-0.000000001", "0.000000000", "0.000000128"])"},
      {R"({"type":"fixed","name":"d","size":2,"logicalType":"decimal","precision":4,"scale":2})",
       arrow::decimal128(38, 9),
       {std::string("\x00\x01", 2), "\xff\xff"},
       R"(["0.010000000", "-0.010000000"])"},
      {R"(["null","long"])", arrow::int64(), {kNull, kValue + Long(7), kNull}, "[null, 7, null]"},
      {R"(["long","null"])", arrow::int64(), {Long(0) + Long(7), Long(1)}, "[7, null]"},
      {R"(["long"])", arrow::int64(), {Long(0) + Long(7)}, "[7]"},
      {R"(["null","boolean"])", arrow::boolean(), {kValue + "\x01", kNull, kValue + "\x01"}, "[true, null, true]"},
      {R"(["null","string"])", arrow::utf8(), {kNull, kValue + Text("é")}, R"([null, "é"])"},
      {R"("null")", arrow::utf8(), {"", ""}, "[null, null]"},
      {R"({"type":"array","items":"long"})",
       arrow::list(arrow::int64()),
       {Long(2) + Long(1) + Long(2) + Long(0), Long(0), Long(1) + Long(3) + Long(-2) + Long(2) + Long(4) + Long(5) + Long(0)},
       "[[1, 2], [], [3, 4, 5]]"},
      {R"(["null",{"type":"array","items":["null","string"]}])",
       arrow::list(arrow::utf8()),
       {kNull, kValue + Long(2) + kNull + kValue + Text("x") + Long(0)},
       R"([[], [null, "x"]])"},
      {R"({"type":"array","items":"null"})", arrow::list(arrow::int64()), {Long(3) + Long(0)}, "[[null, null, null]]"},
      {R"({"type":"map","values":"int"})",
       arrow::list(arrow::struct_({arrow::field("value", arrow::int64()), arrow::field("key", arrow::utf8(), false)})),
       {Long(2) + Text("a") + Long(1) + Text("b") + Long(2) + Long(0), Long(0)},
       R"([[{"value": 1, "key": "a"}, {"value": 2, "key": "b"}], []])"},
      {R"({"type":"record","name":"INTERVAL","namespace":"google.sqlType","sqlType":"INTERVAL","fields":[{"name":"months","type":"int"},)"
       R"({"name":"days","type":"int"},{"name":"microseconds","type":"long"}]})",
       arrow::struct_(
           {arrow::field("months", arrow::int32()), arrow::field("days", arrow::int32()), arrow::field("microseconds", arrow::int64())}),
       {Long(14) + Long(3) + Long(14706789999)},
       R"([{"months": 14, "days": 3, "microseconds": 14706789999}])"},
      {R"(["null",{"type":"record","name":"r","fields":[{"name":"start","type":["null",{"type":"int","logicalType":"date"}]},)"
       R"({"name":"end","type":["null",{"type":"int","logicalType":"date"}]}]}])",
       arrow::struct_({arrow::field("start", arrow::date32()), arrow::field("end", arrow::date32())}),
       {kNull, kValue + kNull + kNull, kValue + kNull + kValue + Long(1)},
       R"([null, {"start": null, "end": null}, {"start": null, "end": 1}])"},
  };
  for (const ValueCase& c : cases) {
    SCOPED_TRACE(c.avro + " as " + c.type->ToString());
    auto got = DecodeColumn(c.avro, arrow::field("c", c.type), c.rows);
    ASSERT_TRUE(got.ok()) << got.status();
    auto want = ArrayFromJSONString(c.type, c.want).ValueOrDie();
    EXPECT_TRUE((*got)->Equals(want)) << (*got)->ToString() << want->ToString();
  }
}

TEST(DecoderTest, TimestampsOfTwelveDigitsAreText) {
  auto field = arrow::field("c", arrow::utf8(), true, Mark(kTimestampPicosExtension));
  const std::tuple<std::string, std::string, const char*> cases[] = {
      {R"("string")", Text("2024-01-02T03:04:05.123456789012Z"), "2024-01-02T03:04:05.123456789012Z"},
      {R"("string")", Text("2024-01-02 03:04:05+01:30"), "2024-01-02T01:34:05.000000000000Z"},
      {R"({"type":"long","logicalType":"timestamp-micros"})", Long(-1), "1969-12-31T23:59:59.999999000000Z"},
      {R"({"type":"long","logicalType":"timestamp-nanos"})", Long(1), "1970-01-01T00:00:00.000000001000Z"},
  };
  for (const auto& [avro, bytes, want] : cases) {
    auto got = DecodeColumn(avro, field, {bytes});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(static_cast<const arrow::StringArray&>(**got).GetString(0), want);
  }
}

TEST(DecoderTest, IntervalsAsRecordOrAsText) {
  auto type = arrow::struct_({arrow::field("months", arrow::int32(), false), arrow::field("days", arrow::int32(), false),
                              arrow::field("microseconds", arrow::int64(), false)});
  auto field = arrow::field("c", type, true, Mark(kIntervalExtension));
  const std::string record = R"(["null",{"type":"record","name":"google.sqlType.INTERVAL","fields":[{"name":"months","type":"int"},)"
                             R"({"name":"days","type":"int"},{"name":"microseconds","type":"long"}]}])";
  auto want = ArrayFromJSONString(type, R"([{"months": 14, "days": -3, "microseconds": 14706789999}, null])").ValueOrDie();
  auto got = DecodeColumn(record, field, {kValue + Long(14) + Long(-3) + Long(14706789999), kNull});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE((*got)->Equals(want));
  got = DecodeColumn(R"(["null","string"])", field, {kValue + Text("1-2 -3 4:5:6.789999"), kNull});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE((*got)->Equals(want)) << (*got)->ToString();
  EXPECT_THAT(DecodeColumn(R"(["null","string"])", field, {kNull, kValue + Text("1-2")}).status().ToString(),
              HasSubstr("column c, row 1: "));
  EXPECT_THAT(DecodeColumn(record, field, {kNull, kValue + Long(120001) + Long(0) + Long(0)}).status().ToString(),
              HasSubstr("column c, row 1: 120001 months, 0 days, 0 microseconds are no interval"));
}

// 2^255 - 1 and -2^255 at scale 38 are BIGNUMERIC's greatest and least, of 39 digits before the point.
TEST(DecoderTest, TheWholeRangeOfBignumericSurvives) {
  const std::string greatest = "\x7f" + std::string(31, '\xff');
  const std::string least = "\x80" + std::string(31, '\0');
  auto type = arrow::decimal256(76, 38);
  const std::string avro = R"({"type":"bytes","logicalType":"decimal","precision":77,"scale":38})";
  auto got = DecodeColumn(avro, arrow::field("c", type), {Text(greatest), Text(least), Text(std::string(3, '\xff') + greatest)});
  EXPECT_THAT(got.status().ToString(), HasSubstr("column c, row 2: the decimal 0xffffff7f"));
  auto batch = Decode(RecordOf(FieldOf("c", avro)), {arrow::field("c", type)}, Text(greatest) + Text(std::string(2, '\xff') + least), 2);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto& values = static_cast<const arrow::Decimal256Array&>(*(*batch)->column(0));
  EXPECT_EQ(arrow::Decimal256(values.GetValue(0)).ToString(38),
            "578960446186580977117854925043439539266.34992332820282019728792003956564819967");
  EXPECT_EQ(arrow::Decimal256(values.GetValue(1)).ToString(38),
            "-578960446186580977117854925043439539266.34992332820282019728792003956564819968");
}

TEST(DecoderTest, ColumnsAreFoundByNameWithoutRegardToCaseAndTheOthersAreNotBuilt) {
  const std::string inner =
      R"({"type":"record","name":"i","fields":[{"name":"P","type":"long"},{"name":"q","type":{"type":"array","items":"string"}},)"
      R"({"name":"r","type":["null","string"]}]})";
  const std::string schema = RecordOf(FieldOf("skip1", R"({"type":"map","values":["null","long","string"]})") + "," + FieldOf("S", inner) +
                                      "," + FieldOf("skip2", R"(["null","i"])") + "," + FieldOf("Name", R"("string")") + "," +
                                      R"({"name":"_f1","displayName":"größe in m","type":"double"})" + "," + FieldOf("tail", R"("float")"));
  const std::string row = Long(2) + Text("k") + Long(2) + Text("v") + Text("l") + Long(1) + Long(9) + Long(0) + Long(7) + Long(-1) +
                          Long(3) + Text("aa") + Long(0) + kValue + Text("r!") + kValue + Long(8) + Long(0) + kNull + Text("n") + Raw(2.5) +
                          Raw(1.5F);
  auto fields =
      arrow::FieldVector{arrow::field("größe in m", arrow::float64()), arrow::field("name", arrow::utf8()),
                         arrow::field("s", arrow::struct_({arrow::field("R", arrow::utf8()), arrow::field("p", arrow::int64())}))};
  int64_t used = 0;
  auto batch = Decode(schema, fields, row + row + "trailing", 2, &used);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(used, static_cast<int64_t>(2 * row.size()));
  EXPECT_TRUE((*batch)->column(0)->Equals(ArrayFromJSONString(arrow::float64(), "[2.5, 2.5]").ValueOrDie()));
  EXPECT_TRUE((*batch)->column(1)->Equals(ArrayFromJSONString(arrow::utf8(), R"(["n", "n"])").ValueOrDie()));
  EXPECT_TRUE(
      (*batch)->column(2)->Equals(ArrayFromJSONString(fields[2]->type(), R"([{"R": "r!", "p": 7}, {"R": "r!", "p": 7}])").ValueOrDie()))
      << (*batch)->column(2)->ToString();
  EXPECT_EQ((*batch)->schema()->field(1)->name(), "name");

  batch = Decode(schema, {}, row + row, 2, &used);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ((*batch)->num_rows(), 2);
  EXPECT_EQ(used, static_cast<int64_t>(2 * row.size()));
}

TEST(DecoderTest, ANullStructHasNullsInsideAtEveryDepth) {
  const std::string avro =
      R"(["null",{"type":"record","name":"a","fields":[{"name":"n","type":["null","long"]},{"name":"b","type":{"type":"record","name":"b","fields":[)"
      R"({"name":"l","type":{"type":"array","items":"string"}},{"name":"required","type":"string"}]}}]}])";
  auto type = arrow::struct_(
      {arrow::field("n", arrow::int64()), arrow::field("b", arrow::struct_({arrow::field("l", arrow::list(arrow::utf8()), false),
                                                                            arrow::field("required", arrow::utf8(), false)}))});
  auto got =
      DecodeColumn(avro, arrow::field("c", type), {kNull, kValue + kValue + Long(1) + Long(1) + Text("x") + Long(0) + Text("y"), kNull});
  ASSERT_TRUE(got.ok()) << got.status();
  const auto& a = static_cast<const arrow::StructArray&>(**got);
  EXPECT_EQ(a.null_count(), 2);
  EXPECT_EQ(a.field(0)->null_count(), 2);
  EXPECT_EQ(a.field(1)->null_count(), 2);
  EXPECT_EQ(static_cast<const arrow::StructArray&>(*a.field(1)).field(1)->null_count(), 0);
  EXPECT_TRUE((*got)->Slice(1, 1)->Equals(ArrayFromJSONString(type, R"([{"n": 1, "b": {"l": ["x"], "required": "y"}}])").ValueOrDie()));
}

TEST(DecoderTest, FieldsOfADecoderAreReusedForManyBatches) {
  auto schema = Schema::Parse(RecordOf(FieldOf("c", R"(["null","string"])") + "," + FieldOf("l", R"({"type":"array","items":"boolean"})")))
                    .ValueOrDie();
  auto target = arrow::schema({arrow::field("c", arrow::utf8()), arrow::field("l", arrow::list(arrow::boolean()))});
  auto decoder = Decoder::Make(schema, target, arrow::default_memory_pool()).ValueOrDie();
  const std::string first = kValue + Text("abc") + Long(0);
  const std::string second = kNull + Long(1) + "\x01" + Long(0);
  for (int i = 0; i < 3; ++i) {
    auto batch = decoder->Decode(first + second, 2).ValueOrDie();
    ASSERT_TRUE(batch->ValidateFull().ok());
    EXPECT_TRUE(batch->column(0)->Equals(ArrayFromJSONString(arrow::utf8(), R"(["abc", null])").ValueOrDie()));
    EXPECT_THAT(decoder->row_ends(), ElementsAre(first.size(), first.size() + second.size()));
    EXPECT_EQ(decoder->Decode("", 0).ValueOrDie()->num_rows(), 0);
    EXPECT_FALSE(decoder->Decode(first, 2).ok());
  }
}

// Far from the end of the input the usual values are read without looking for it: the same values as near the end, where rows by themselves
// are. Memory ends where the input does, for the sanitizers.
TEST(DecoderTest, RowsTogetherAndByThemselvesAreTheSame) {
  std::string fields;
  arrow::FieldVector columns;
  const auto add = [&](const std::string& type, const std::shared_ptr<arrow::DataType>& column) {
    for (const bool nullable : {false, true}) {
      const std::string name = fmt::format("c{}", columns.size());
      fields += (columns.empty() ? "" : ",") + FieldOf(name, nullable ? R"(["null",)" + type + "]" : type);
      columns.push_back(arrow::field(name, column, nullable));
    }
  };
  add(R"("boolean")", arrow::boolean());
  add(R"({"type":"int","logicalType":"date"})", arrow::date32());
  add(R"("long")", arrow::int64());
  add(R"("double")", arrow::float64());
  add(R"("string")", arrow::utf8());
  add(R"({"type":"array","items":"string"})", arrow::list(arrow::utf8()));
  columns.back() = columns.back()->WithNullable(false);
  auto decoder =
      Decoder::Make(Schema::Parse(RecordOf(fields)).ValueOrDie(), arrow::schema(columns), arrow::default_memory_pool()).ValueOrDie();
  std::mt19937_64 random(3);
  const auto text = [&] { return Text(std::string(random() % (random() % 4 == 0 ? 140 : 20), 'x')); };
  std::vector<std::string> rows;
  std::string all;
  for (int i = 0; i < 2'000; ++i) {
    const std::string values[] = {std::string(1, static_cast<char>(random() % 2)),
                                  Long(static_cast<int64_t>(random() % 20'000)),
                                  Long(static_cast<int64_t>(random() >> (random() % 64))),
                                  Raw(static_cast<double>(random())),
                                  text(),
                                  Long(2) + text() + text() + Long(0)};
    std::string row;
    for (const auto& value : values) {
      row += value;
      const bool null = i > 20 && random() % 4 == 0;
      row += null ? kNull : kValue;
      if (!null) row += value;
    }
    rows.push_back(row);
    all += row;
  }
  const auto decode = [&](const std::string& bytes, int64_t count) {
    const std::vector<char> exact(bytes.begin(), bytes.end());
    auto batch = decoder->Decode({exact.data(), exact.size()}, count).ValueOrDie();
    EXPECT_TRUE(batch->ValidateFull().ok());
    return batch;
  };
  const auto together = decode(all, std::ssize(rows));
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    ASSERT_TRUE(together->Slice(i, 1)->Equals(*decode(rows[static_cast<size_t>(i)], 1))) << i;
  }
  // Every place where the input may end.
  for (size_t size = 0; size < rows[30].size(); ++size) {
    const std::vector<char> cut(rows[30].begin(), rows[30].begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(decoder->Decode({cut.data(), cut.size()}, 1).ok()) << size;
  }
}

struct BadCase {
  std::string avro;
  std::shared_ptr<arrow::Field> field;
  std::string bytes;
  const char* want;
};

TEST(DecoderTest, WrongBytesAndValuesNameColumnAndRow) {
  auto nullable = [](std::shared_ptr<arrow::DataType> type) { return arrow::field("c", std::move(type)); };
  const BadCase cases[] = {
      {R"("long")", nullable(arrow::int64()), std::string(10, '\xff') + "\x01", "column c, row 0: the Avro bytes are cut off"},
      {R"("long")", nullable(arrow::int64()), std::string(9, '\xff') + "\x02", "column c, row 0: the Avro bytes are cut off"},
      {R"("int")", nullable(arrow::int64()), Long(int64_t{1} << 31), "column c, row 0: 2147483648 is no 32-bit integer"},
      {R"("boolean")", nullable(arrow::boolean()), "\x02", "2 is no boolean"},
      {R"("double")", nullable(arrow::float64()), "1234567", "7 bytes cannot hold 1 rows"},
      {R"(["null","double"])", nullable(arrow::float64()),
       "\x02"
       "1234567",
       "cut off"},
      {R"("string")", nullable(arrow::utf8()), Long(3) + "ab", "cut off"},
      {R"("string")", nullable(arrow::utf8()), Long(-3) + "abc", "cut off"},
      {R"("string")", nullable(arrow::utf8()), Text("\xc3"), "column c, row 0: no valid UTF-8"},
      {R"({"type":"array","items":"string"})", nullable(arrow::list(arrow::utf8())), Long(2) + Text("\xc3") + Text("\xa9") + Long(0),
       "column c, row 0: no valid UTF-8"},
      {R"({"type":"enum","name":"e","symbols":["A"]})", nullable(arrow::utf8()), Long(1), "the enum e has no symbol 1"},
      {R"(["null","long"])", nullable(arrow::int64()), Long(2), "the union has no branch 2"},
      {R"(["null","long"])", arrow::field("c", arrow::int64(), false), kNull, "column c, row 0: null, but the column is REQUIRED"},
      {R"({"type":"int","logicalType":"date"})", nullable(arrow::date32()), Long(2932897), "outside 0001-01-01 to 9999-12-31"},
      {R"({"type":"long","logicalType":"time-micros"})", nullable(arrow::time64(kMicros)), Long(86400000000),
       "86400000000 microseconds are no time"},
      {R"({"type":"long","logicalType":"timestamp-micros"})", nullable(arrow::timestamp(kMicros, "UTC")), Long(253402300800000000),
       "outside"},
      {R"({"type":"long","logicalType":"timestamp-millis"})", nullable(arrow::timestamp(kMicros, "UTC")), Long(INT64_MAX), "outside"},
      {R"({"type":"long","logicalType":"timestamp-nanos"})", nullable(arrow::timestamp(kMicros, "UTC")), Long(1),
       "more digits after the point"},
      {R"("string")", nullable(arrow::timestamp(kMicros)), Text("2026-02-30T00:00:00"), "2026-02-30T00:00:00"},
      {R"("string")", nullable(arrow::timestamp(kMicros)), Text("2026-02-20T24:00:00"), "column c, row 0: "},
      {R"("string")", nullable(arrow::timestamp(kMicros)), Text("0000-02-20T00:00:00"), "column c, row 0: "},
      {R"({"type":"bytes","logicalType":"decimal","precision":2,"scale":0})", nullable(arrow::decimal128(38, 9)), Text("\x64"),
       "column c, row 0: the decimal 0x64 has more digits"},
      {R"({"type":"bytes","logicalType":"decimal","precision":38,"scale":9})", nullable(arrow::decimal128(38, 9)),
       Text("\x7f" + std::string(15, '\0')), "has more digits"},
      {R"({"type":"array","items":"long"})", nullable(arrow::list(arrow::int64())), Long(int64_t{1} << 60) + Long(0), "cut off"},
      {R"({"type":"array","items":"long"})", nullable(arrow::list(arrow::int64())), Long(INT64_MIN) + Long(0), "cut off"},
      {R"({"type":"array","items":"null"})", nullable(arrow::list(arrow::int64())), Long(int64_t{1} << 60) + Long(0),
       "array elements that take no bytes"},
  };
  for (const BadCase& c : cases) {
    SCOPED_TRACE(c.avro + " " + c.want);
    auto got = Decode(RecordOf(FieldOf("c", c.avro)), {c.field}, c.bytes, 1);
    EXPECT_THAT(got.status().ToString(), HasSubstr(c.want));
    // The same far from the end, but for bytes that are only too few.
    if (std::string_view(c.want).find("cut off") != std::string::npos || std::string_view(c.want).find("cannot hold") != std::string::npos)
      continue;
    got = Decode(RecordOf(FieldOf("c", c.avro)), {c.field}, c.bytes + std::string(200, '\0'), 1);
    EXPECT_THAT(got.status().ToString(), HasSubstr(c.want));
  }
}

TEST(DecoderTest, TheRowOfAWrongValueInsideListsIsFound) {
  const std::string avro = R"({"type":"array","items":{"type":"record","name":"r","fields":[{"name":"x","type":{"type":"array","items":)"
                           R"({"type":"int","logicalType":"date"}}}]}})";
  auto type = arrow::list(arrow::struct_({arrow::field("x", arrow::list(arrow::date32()))}));
  const std::string good = Long(2) + Long(0) + Long(2) + Long(1) + Long(2) + Long(0) + Long(0);
  const std::string bad = Long(1) + Long(2) + Long(1) + Long(99999999) + Long(0) + Long(0);
  auto got = DecodeColumn(avro, arrow::field("c", type), {good, Long(0), good, Long(0), bad, good});
  EXPECT_THAT(got.status().ToString(), HasSubstr("column c.x, row 4: the date 99999999 days"));
  EXPECT_EQ(GetErrorInfo(got.status())->row, 4);
  EXPECT_EQ(CodeOf(got.status()), Code::kDataLoss);
}

TEST(DecoderTest, WhatCannotBeReadIsRefusedByColumn) {
  const std::string recursive =
      R"({"type":"record","name":"node","fields":[{"name":"v","type":"long"},{"name":"next","type":["null","node"]}]})";
  auto next = arrow::struct_({arrow::field("v", arrow::int64())});
  const std::tuple<std::string, std::shared_ptr<arrow::DataType>, const char*> cases[] = {
      {R"(["null","long","string"])", arrow::int64(), "column c: a union of several types is no column"},
      {R"("long")", arrow::utf8(), "column c: Avro's long cannot be read as string"},
      {R"({"type":"long","logicalType":"local-timestamp-micros"})", arrow::timestamp(kMicros, "UTC"),
       "cannot be read as timestamp[us, tz=UTC]"},
      {R"({"type":"bytes","logicalType":"decimal","precision":38,"scale":10})", arrow::decimal128(38, 9), "10 digits after the point"},
      {R"("bytes")", arrow::decimal128(38, 9), "cannot be read as decimal128"},
      {recursive, arrow::struct_({arrow::field("next", next)}), "column c.next: the record node contains itself"},
      {recursive, arrow::struct_({arrow::field("w", arrow::int64())}), "column c.w: the Avro schema has no such field"},
  };
  for (const auto& [avro, type, want] : cases) {
    EXPECT_THAT(DecodeColumn(avro, arrow::field("c", type), {}).status().ToString(), HasSubstr(want));
  }
  auto twice = Decode(RecordOf(FieldOf("a", R"("long")") + "," + FieldOf("A", R"("long")")), {arrow::field("A", arrow::int64())},
                      Long(1) + Long(2), 1);
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_TRUE((*twice)->column(0)->Equals(ArrayFromJSONString(arrow::int64(), "[2]").ValueOrDie()));
  twice = Decode(RecordOf(FieldOf("ab", R"("long")") + "," + FieldOf("AB", R"("long")")), {arrow::field("aB", arrow::int64())}, "", 0);
  EXPECT_THAT(twice.status().ToString(), HasSubstr("column aB: the Avro schema has several fields"));
}

TEST(DecoderTest, ARecordThatContainsItselfIsSkippedToABoundedDepth) {
  const std::string recursive =
      R"({"type":"record","name":"node","fields":[{"name":"v","type":"long"},{"name":"next","type":["null","node"]}]})";
  auto read = [&](int depth) {
    std::string bytes;
    for (int i = 0; i < depth; ++i) bytes += Long(i) + kValue;
    return Decode(RecordOf(FieldOf("c", recursive) + "," + FieldOf("d", R"("long")")), {arrow::field("d", arrow::int64())},
                  bytes + Long(0) + kNull + Long(5), 1);
  };
  EXPECT_TRUE(read(20).ok()) << read(20).status();
  EXPECT_THAT(read(100'000).status().ToString(), HasSubstr("row 0: the Avro bytes are cut off or no values"));
}

TEST(DecoderTest, LimitsHoldBeforeMemoryIsReserved) {
  EXPECT_THAT(Decode(RecordOf(FieldOf("c", R"("long")")), {arrow::field("c", arrow::int64())}, "abc", int64_t{1} << 60).status().ToString(),
              HasSubstr("3 bytes cannot hold 1152921504606846976 rows"));
  EXPECT_THAT(Decode(RecordOf(FieldOf("c", R"("null")")), {arrow::field("c", arrow::int64())}, "", int64_t{1} << 60).status().ToString(),
              HasSubstr("1152921504606846976 rows at once"));
  // 1,000 nulls of one byte each would be 32,000 bytes of decimals.
  EXPECT_THAT(Decode(RecordOf(FieldOf("c", R"(["null",{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}])")),
                     {arrow::field("c", arrow::decimal256(76, 38))}, std::string(1000, '\0'), 1000, nullptr, {.max_batch_bytes = 31'000})
                  .status()
                  .ToString(),
              HasSubstr("more memory"));
  EXPECT_EQ(Decode(RecordOf(""), {}, "", 100).ValueOrDie()->num_rows(), 100);
}

}  // namespace
}  // namespace headrace::avro
