// What becomes of an Arrow session's columns: through the decoder, as a response would go.
#include "headrace/bigquery/read/internal/canonical_schema.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/json/from_string.h>
#include <arrow/util/decimal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/bigquery/read/internal/decoder.h"

namespace headrace::bigquery {
namespace {

using arrow::field;
using testing::AllOf;
using testing::HasSubstr;

std::shared_ptr<arrow::Array> FromJson(const std::shared_ptr<arrow::DataType>& type, std::string_view json) {
  return arrow::json::ArrayFromJSONString(type, json).ValueOrDie();
}

std::shared_ptr<arrow::Field> Marked(const std::string& name, std::shared_ptr<arrow::DataType> type, std::string_view extension) {
  return field(name, std::move(type))->WithMetadata(arrow::key_value_metadata({std::string(kExtensionNameKey)}, {std::string(extension)}));
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> Convert(const std::shared_ptr<arrow::Field>& wire,
                                                           const std::shared_ptr<arrow::Array>& array,
                                                           TimestampPrecision precision = TimestampPrecision::kPicos) {
  const auto schema = arrow::schema({wire});
  ARROW_ASSIGN_OR_RAISE(const auto canonical, CanonicalSchema(*schema, precision));
  const auto schema_bytes = *arrow::ipc::SerializeSchema(*schema);
  ARROW_ASSIGN_OR_RAISE(const auto decoder, ArrowDecoder::Make(canonical, {}, std::string_view(*schema_bytes)));
  const auto rows = arrow::RecordBatch::Make(schema, array->length(), {array});
  auto sink = *arrow::io::BufferOutputStream::Create();
  auto writer = *arrow::ipc::MakeStreamWriter(sink, schema);
  ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(*rows));
  const auto stream = *sink->Finish();
  return decoder->Decode(arrow::SliceBuffer(stream, schema_bytes->size()));
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> Convert(const std::shared_ptr<arrow::Array>& array) {
  return Convert(field("c", array->type()), array);
}

// Each form of a column beside the canonical one that it must become.
TEST(CanonicalColumns, FormsOfTheWire) {
  const auto plain = field("item", arrow::int64());
  struct Case {
    std::string name;
    std::shared_ptr<arrow::DataType> wire;
    std::string wire_json;
    std::string canonical_json;  // empty = the same
  };
  const Case cases[] = {
      {"as the service sends it", arrow::utf8(), R"(["a", null, ""])", ""},
      {"large text", arrow::large_utf8(), R"(["a", null, ""])", ""},
      {"a view of text", arrow::utf8_view(), R"(["a", null, "a text that does not stand in the view itself"])", ""},
      {"large bytes", arrow::large_binary(), R"(["a", null, ""])", ""},
      {"narrow integers", arrow::int8(), "[1, null, -128]", ""},
      {"a dictionary", arrow::dictionary(arrow::int8(), arrow::utf8()), R"(["a", null, "b", "a"])", ""},
      {"a large list", arrow::large_list(arrow::int64()), "[[1, 2], [], [3]]", ""},
      {"a list with a null array", arrow::list(plain), "[[1, 2], null, [3]]", "[[1, 2], [], [3]]"},
      {"an element of another name", arrow::list(field("array_element", arrow::int64())), "[[1, 2], [], [3]]", ""},
      {"a struct of large text", arrow::struct_({field("x", arrow::large_utf8()), field("y", arrow::int64())}), R"([["a", 1], null])", ""},
      {"a list of structs of lists", arrow::list(arrow::struct_({field("l", arrow::list(field("e", arrow::utf8())))})),
       R"([[[["a"]], [["b", "c"]]], [], [[[]]]])", ""},
      {"a date of milliseconds", arrow::date64(), "[86400000, null, -86400000]", "[1, null, -1]"},
      {"a time of milliseconds", arrow::time32(arrow::TimeUnit::MILLI), "[1, null]", "[1000, null]"},
      {"seconds", arrow::timestamp(arrow::TimeUnit::SECOND, "UTC"), "[-1, null]", "[-1000000, null]"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    auto converted = Convert(FromJson(c.wire, c.wire_json));
    ASSERT_TRUE(converted.ok()) << converted.status();
    EXPECT_TRUE((*converted)->ValidateFull().ok()) << (*converted)->ValidateFull();
    const auto& type = (*converted)->schema()->field(0)->type();
    EXPECT_TRUE((*converted)->column(0)->type()->Equals(*type));
    auto json = c.canonical_json;
    if (json.empty()) json = c.wire_json;
    EXPECT_TRUE((*converted)->column(0)->Equals(*FromJson(type, json))) << (*converted)->column(0)->ToString();
  }
}

TEST(CanonicalColumns, MarksAndModes) {
  const auto wire = arrow::schema({Marked("j", arrow::utf8(), "google:sqlType:json"), field("r", arrow::int64(), false),
                                   field("l", arrow::list(Marked("item", arrow::utf8(), "google:sqlType:json")))});
  const auto canonical = *CanonicalSchema(*wire, TimestampPrecision::kPicos);
  EXPECT_EQ(KindOfCanonical(*canonical->field(0)), TypeKind::kJson);
  EXPECT_FALSE(canonical->field(1)->nullable());
  EXPECT_FALSE(canonical->field(2)->nullable());
  EXPECT_EQ(KindOfCanonical(*canonical->field(2)->type()->field(0)), TypeKind::kJson);
}

TEST(CanonicalColumns, ColumnsThatAreRefused) {
  struct Case {
    std::shared_ptr<arrow::Schema> wire;
    std::string says;
  };
  const auto wkb = Marked("g", arrow::binary(), kGeographyExtension);
  for (const Case& c : {Case{arrow::schema({wkb}), "column g: GEOGRAPHY in binary form"},
                        Case{arrow::schema({Marked("g", arrow::binary(), "geoarrow.wkb")}), "column g: GEOGRAPHY"},
                        Case{arrow::schema({field("s", arrow::struct_({wkb}))}), "column s.g: GEOGRAPHY"},
                        Case{arrow::schema({field("l", arrow::list(wkb))}), "column l: GEOGRAPHY"},
                        Case{arrow::schema({field("a", arrow::int64()), field("A", arrow::utf8())}), "A"},
                        Case{arrow::schema({field("s", arrow::struct_({field("x", arrow::int64()), field("X", arrow::utf8())}))}), "s.X"},
                        Case{arrow::schema({field("u", arrow::sparse_union({field("x", arrow::int64())}))}), "column u"},
                        Case{arrow::schema({field("l", arrow::list(arrow::list(arrow::int64())))}), "column l"}}) {
    EXPECT_THAT(CanonicalSchema(*c.wire, TimestampPrecision::kPicos).status().message(), HasSubstr(c.says));
  }
}

// Never another value: an error that names column, row and value.
TEST(CanonicalColumns, ValuesThatBigQueryCannotHold) {
  const auto utc = arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
  arrow::StringBuilder broken;
  ASSERT_TRUE(broken.Append("good").ok() && broken.Append("\xC3").ok() && broken.Append("\xA4 is no rest of it").ok());
  const auto text = *broken.Finish();
  arrow::Decimal128Builder decimals(arrow::decimal128(38, 9));
  ASSERT_TRUE(decimals.Append(arrow::Decimal128("99999999999999999999999999999999999999")).ok() &&
              decimals.Append(arrow::Decimal128(arrow::BasicDecimal128(INT64_MAX, UINT64_MAX))).ok());
  struct Case {
    std::shared_ptr<arrow::Array> array;
    std::string value;
    int64_t row;
  };
  for (const Case& c : {
           Case{FromJson(arrow::date32(), "[0, null, 2932897]"), "10000-01-01", 2},
           Case{FromJson(arrow::date32(), "[-719163]"), "0000-12-31", 0},
           Case{FromJson(utc, "[253402300799999999, 253402300800000000]"), "10000-01-01", 1},
           Case{FromJson(utc, "[-62135596800000000, -62135596800000001]"), "0000-12-31", 1},
           Case{FromJson(arrow::time64(arrow::TimeUnit::MICRO), "[86399999999, 86400000000]"), "86400000000", 1},
           Case{FromJson(arrow::time64(arrow::TimeUnit::MICRO), "[-1]"), "", 0},
           Case{text, "C3", 1},
           Case{*decimals.Finish(), "170141183460469231731687303715.884105727", 1},
       }) {
    const auto status = Convert(c.array).status();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("column c, row " + std::to_string(c.row)), HasSubstr(c.value)));
    ASSERT_NE(GetErrorInfo(status), nullptr);
    EXPECT_EQ(GetErrorInfo(status)->column, "c");
    EXPECT_EQ(GetErrorInfo(status)->row, c.row);
  }
  EXPECT_TRUE(Convert(FromJson(arrow::date32(), "[-719162, 2932896]")).ok());
  EXPECT_TRUE(Convert(FromJson(utc, "[-62135596800000000, 253402300799999999]")).ok());
}

TEST(CanonicalColumns, ValuesUnderANullAreNobodysBusiness) {
  auto dates = FromJson(arrow::date32(), "[1, null, 3]");
  auto data = dates->data()->Copy();
  auto values = *data->buffers[1]->CopySlice(0, data->buffers[1]->size(), arrow::default_memory_pool());
  reinterpret_cast<int32_t*>(values->mutable_data())[1] = INT32_MAX;
  data->buffers[1] = std::move(values);
  EXPECT_TRUE(Convert(arrow::MakeArray(data)).ok());
}

TEST(CanonicalColumns, ValuesInsideStructsAndArrays) {
  const auto inner = arrow::struct_({field("d", arrow::date32())});
  EXPECT_THAT(Convert(FromJson(inner, "[[1], [2932897]]")).status().message(), HasSubstr("column c.d, row 1"));
  EXPECT_THAT(Convert(FromJson(arrow::list(inner), "[[], [[1]], [[1], [2932897]]]")).status().message(), HasSubstr("column c.d, row 2"));
  const auto deep = arrow::list(arrow::struct_({field("l", arrow::list(inner))}));
  EXPECT_THAT(Convert(FromJson(deep, "[[[[[1]]]], [[[[1], [2]]], [[[3], [2932897]]]]]")).status().message(),
              HasSubstr("column c.l.d, row 1"));
  EXPECT_THAT(Convert(FromJson(deep, "[[], [], [[[[1]]]], [[[[1], [2932897]]]]]")->Slice(2)).status().message(),
              HasSubstr("column c.l.d, row 1"));
  EXPECT_THAT(Convert(FromJson(arrow::list(arrow::int64()), "[[1], [2, null]]")).status().message(),
              AllOf(HasSubstr("column c, row 1"), HasSubstr("null")));
}

TEST(CanonicalColumns, NullsInRequiredColumns) {
  EXPECT_THAT(Convert(field("c", arrow::int64(), false), FromJson(arrow::int64(), "[1, null]")).status().message(),
              AllOf(HasSubstr("column c, row 1"), HasSubstr("null")));
  // Under a null struct there is nothing to require.
  const auto type = arrow::struct_({field("r", arrow::int64(), false)});
  const auto rows = std::make_shared<arrow::StructArray>(type, 2, arrow::ArrayVector{FromJson(arrow::int64(), "[1, null]")},
                                                         FromJson(arrow::boolean(), "[true, false]")->data()->buffers[1], 1);
  EXPECT_TRUE(Convert(field("c", type), rows).ok());
}

// BIGNUMERIC has 77 digits, of which the last bit counts too.
TEST(CanonicalColumns, TheLargestBignumeric) {
  arrow::Decimal256Builder builder(arrow::decimal256(76, 38));
  const arrow::Decimal256 largest(arrow::BasicDecimal256::WordArray{UINT64_MAX, UINT64_MAX, UINT64_MAX, uint64_t{INT64_MAX}});
  ASSERT_TRUE(builder.Append(largest).ok());
  const auto array = *builder.Finish();
  auto converted = Convert(array);
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_TRUE((*converted)->column(0)->Equals(*array));
}

// Fact: the service sends INTERVAL as month_day_nano in Arrow.
TEST(CanonicalColumns, Intervals) {
  auto converted = Convert(FromJson(arrow::month_day_nano_interval(), "[[14, 3, 14706789999000], null, [-1, 0, -1000]]"));
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_EQ(KindOfCanonical(*(*converted)->schema()->field(0)), TypeKind::kInterval);
  const auto expected = FromJson((*converted)->schema()->field(0)->type(), "[[14, 3, 14706789999], null, [-1, 0, -1]]");
  EXPECT_TRUE((*converted)->column(0)->Equals(*expected)) << (*converted)->column(0)->ToString();
  EXPECT_THAT(Convert(FromJson(arrow::month_day_nano_interval(), "[[0, 0, 0], [0, 0, 1]]")).status().message(),
              HasSubstr("column c, row 1"));
}

// timestamp_precision: what the service sends for a TIMESTAMP(12) when it was asked for so many digits.
TEST(CanonicalColumns, TimestampPrecision) {
  const auto utc = [](arrow::TimeUnit::type unit) { return arrow::timestamp(unit, "UTC"); };
  const auto nanos = FromJson(utc(arrow::TimeUnit::NANO), "[1, null, -1]");
  auto converted = Convert(field("c", nanos->type()), nanos, TimestampPrecision::kNanos);
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_TRUE((*converted)->column(0)->Equals(*nanos));
  const auto micros = FromJson(utc(arrow::TimeUnit::MICRO), "[1, null, -1]");
  converted = Convert(field("c", micros->type()), micros, TimestampPrecision::kMicros);
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_TRUE((*converted)->column(0)->Equals(*micros));
  const auto picos = Marked("c", arrow::utf8(), kTimestampPicosExtension);
  const auto text = FromJson(arrow::utf8(), R"(["2024-01-02T03:04:05.123456789012Z", null])");
  converted = Convert(picos, text);
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_TRUE((*converted)->column(0)->Equals(*text));
  EXPECT_EQ(KindOfCanonical(*(*converted)->schema()->field(0)), TypeKind::kTimestamp12);
  // Of a server that was not asked: nanoseconds that a TIMESTAMP has not.
  EXPECT_THAT(Convert(nanos).status().message(), HasSubstr("column c, row 0"));
}

}  // namespace
}  // namespace headrace::bigquery
