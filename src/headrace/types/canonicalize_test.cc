#include "headrace/types/canonicalize.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/compute/cast.h>
#include <arrow/extension/json.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/types/type_table.h"
#include "headrace/types/value_text.h"

namespace headrace {
namespace {

using testing::HasSubstr;

using ArrayPtr = std::shared_ptr<arrow::Array>;
using TypePtr = std::shared_ptr<arrow::DataType>;

ArrayPtr FromJson(const TypePtr& type, const std::string& json) { return arrow::json::ArrayFromJSONString(type, json).ValueOrDie(); }

Field Of(TypeKind kind) { return {.name = "c", .kind = kind}; }
Field ListOf(TypeKind kind) { return {.name = "c", .kind = kind, .mode = Mode::kRepeated}; }
const auto kMicro = arrow::TimeUnit::MICRO;

std::unique_ptr<Canonicalizer> MakeFor(const TypePtr& wire, const Field& field, TimestampPrecision precision = TimestampPrecision::kPicos) {
  auto made = Canonicalizer::Make(arrow::schema({arrow::field("C", wire)}), ToArrowSchema({{field}}, precision).ValueOrDie());
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

struct ConvertCase {
  TypePtr wire;
  const char* values;
  Field field;
  const char* want;  // in the canonical type
};

TEST(CanonicalizeTest, OtherTypesAreConvertedExactly) {
  const auto dictionary = arrow::dictionary(arrow::int8(), arrow::utf8());
  const ConvertCase cases[] = {
      {arrow::int16(), "[-5, null, 7]", Of(TypeKind::kInt64), "[-5, null, 7]"},
      {arrow::uint64(), "[9223372036854775807]", Of(TypeKind::kInt64), "[9223372036854775807]"},
      {arrow::float32(), "[1.5, null]", Of(TypeKind::kFloat64), "[1.5, null]"},
      {arrow::float16(), "[1.5, null]", Of(TypeKind::kFloat64), "[1.5, null]"},
      {dictionary, R"(["a", null, "b", "a"])", Of(TypeKind::kString), R"(["a", null, "b", "a"])"},
      {arrow::large_utf8(), R"(["a", null, ""])", Of(TypeKind::kJson), R"(["a", null, ""])"},
      {arrow::utf8_view(), R"(["POINT EMPTY", null])", Of(TypeKind::kGeography), R"(["POINT EMPTY", null])"},
      {arrow::binary_view(), R"(["a", null, ""])", Of(TypeKind::kBytes), R"(["a", null, ""])"},
      {arrow::date64(), "[86400000, null]", Of(TypeKind::kDate), "[1, null]"},
      {arrow::time64(arrow::TimeUnit::NANO), "[1000, null]", Of(TypeKind::kTime), "[1, null]"},
      {arrow::timestamp(arrow::TimeUnit::NANO, "Asia/Kathmandu"), "[-1000, null]", Of(TypeKind::kTimestamp), "[-1, null]"},
      {arrow::timestamp(arrow::TimeUnit::SECOND), "[-1]", Of(TypeKind::kDatetime), "[-1000000]"},
      {arrow::utf8(), R"(["1969-12-31T23:59:59.999999", null])", Of(TypeKind::kDatetime), "[-1, null]"},
      {arrow::large_utf8(), R"(["23:59:59.999999"])", Of(TypeKind::kTime), "[86399999999]"},
      {arrow::utf8(), R"(["0001-01-01", null])", Of(TypeKind::kDate), "[-719162, null]"},
      {arrow::decimal128(38, 9), R"(["1.500000000", null])", Of(TypeKind::kBigNumeric),
       R"(["1.50000000000000000000000000000000000000", null])"},
      {arrow::utf8(), R"(["1.5", null])", Of(TypeKind::kNumeric), R"(["1.500000000", null])"},
      {arrow::list(arrow::field("element", arrow::int64(), false)), "[[1], [], null, [2, 3]]", ListOf(TypeKind::kInt64),
       "[[1], [], [], [2, 3]]"},
      {arrow::large_list(dictionary), R"([["a"], null, ["b", "a"]])", ListOf(TypeKind::kString), R"([["a"], [], ["b", "a"]])"},
      {arrow::list_view(arrow::int32()), "[[1], null, [2, 3]]", ListOf(TypeKind::kInt64), "[[1], [], [2, 3]]"},
      {arrow::fixed_size_list(arrow::date64(), 1), "[[86400000], null]", ListOf(TypeKind::kDate), "[[1], []]"},
      {arrow::timestamp(kMicro, "UTC"), "[-1, null]", Of(TypeKind::kTimestamp12), R"(["1969-12-31T23:59:59.999999000000Z", null])"},
      {arrow::timestamp(arrow::TimeUnit::NANO, "UTC"), "[-1]", Of(TypeKind::kTimestamp12), R"(["1969-12-31T23:59:59.999999999000Z"])"},
      {arrow::utf8(), R"(["1970-01-01 00:00:00.5+00", null])", Of(TypeKind::kTimestamp12),
       R"(["1970-01-01T00:00:00.500000000000Z", null])"},
      {arrow::null(), "[null, null]", Of(TypeKind::kInt64), "[null, null]"},
  };
  for (const auto& item : cases) {
    SCOPED_TRACE(item.wire->ToString());
    auto canonicalizer = MakeFor(item.wire, item.field);
    const auto& type = canonicalizer->schema()->field(0)->type();
    auto array = FromJson(item.wire, item.values);
    auto want = FromJson(type, item.want);
    auto converted = canonicalizer->ConvertColumn(0, array);
    ASSERT_TRUE(converted.ok()) << converted.status();
    ASSERT_TRUE((*converted)->ValidateFull().ok()) << (*converted)->ValidateFull();
    EXPECT_TRUE((*converted)->type()->Equals(*type, true)) << (*converted)->type()->ToString(true);
    EXPECT_TRUE((*converted)->Equals(want)) << (*converted)->ToString();
    // Every slice as well.
    for (int64_t first = 0; first <= array->length(); ++first) {
      auto slice = canonicalizer->ConvertColumn(0, array->Slice(first));
      ASSERT_TRUE(slice.ok()) << slice.status();
      EXPECT_TRUE((*slice)->Equals(want->Slice(first))) << first << (*slice)->ToString();
    }
  }
}

TEST(CanonicalizeTest, CanonicalDataIsPassedOnNotCopied) {
  TableSchema table;
  arrow::ArrayVector columns;
  const std::pair<Field, const char*> cases[] = {
      {Of(TypeKind::kInt64), "[1, null]"},
      {Of(TypeKind::kString), R"(["a", null])"},
      {Of(TypeKind::kNumeric), R"(["1.000000000", null])"},
      {Of(TypeKind::kTimestamp), "[1, null]"},
      {ListOf(TypeKind::kString), R"([["a"], []])"},
      {Field{.name = "c", .kind = TypeKind::kStruct, .fields = {{.name = "x", .kind = TypeKind::kDate}}}, R"([{"x": 1}, null])"},
      {Field{.name = "c", .kind = TypeKind::kRange}, R"([{"start": 1, "end": null}, null])"},
  };
  for (auto [field, values] : cases) {
    field.name = "c" + std::to_string(columns.size());
    table.fields.push_back(field);
    columns.push_back(FromJson(ToArrowField(field).ValueOrDie()->type(), values));
  }
  auto schema = ToArrowSchema(table).ValueOrDie();
  auto batch = arrow::RecordBatch::Make(schema, 2, columns);
  for (const auto& from : {batch, batch->Slice(1)}) {
    auto converted = Canonicalizer::Make(schema, schema).ValueOrDie()->Convert(*from).ValueOrDie();
    EXPECT_TRUE(converted->Equals(*from));
    for (int i = 0; i < from->num_columns(); ++i) {
      const auto& was = *from->column(i)->data();
      const auto& is = *converted->column(i)->data();
      for (size_t b = 0; b < was.buffers.size(); ++b) EXPECT_EQ(is.buffers[b], was.buffers[b]) << table.fields[static_cast<size_t>(i)].name;
    }
  }
}

// Arrow's readers make arrow.json arrays of what is marked so; an array of STRUCTs of them without one element needed a builder that there
// is not.
TEST(CanonicalizeTest, ListsOfStructsOfExtensionValuesWithoutAnyElement) {
  const auto json = arrow::extension::json();
  const Field field{.name = "c", .kind = TypeKind::kStruct, .mode = Mode::kRepeated, .fields = {{.name = "j", .kind = TypeKind::kJson}}};
  for (const char* text : {"[null, null]", "[[0], null]", "[[], []]", "[null, [0, 1]]"}) {
    const auto indexes = FromJson(arrow::list(arrow::int32()), text);
    const auto& lists = static_cast<const arrow::ListArray&>(*indexes);
    const auto texts = FromJson(arrow::utf8(), R"(["1", "{}"])")->Slice(0, lists.values()->length());
    const auto values = arrow::StructArray::Make({arrow::ExtensionType::WrapArray(json, texts)}, {"j"}).ValueOrDie();
    auto data = lists.data()->Copy();
    data->type = arrow::list(values->type());
    data->child_data = {values->data()};
    const auto array = arrow::MakeArray(data);
    ASSERT_TRUE(array->ValidateFull().ok()) << array->ValidateFull();
    auto got = MakeFor(array->type(), field)->ConvertColumn(0, array);
    ASSERT_TRUE(got.ok()) << text << got.status();
    const auto& column = static_cast<const arrow::ListArray&>(**got);
    ASSERT_TRUE(column.ValidateFull().ok()) << column.ValidateFull();
    EXPECT_EQ(column.null_count(), 0) << text;
    for (int64_t i = 0; i < column.length(); ++i) EXPECT_EQ(column.value_length(i), lists.IsNull(i) ? 0 : lists.value_length(i)) << text;
  }
}

TEST(CanonicalizeTest, StructsByNameInAnyOrderAndCase) {
  Field field{.name = "c",
              .kind = TypeKind::kStruct,
              .mode = Mode::kRepeated,
              .fields = {{.name = "x", .kind = TypeKind::kInt64}, {.name = "l", .kind = TypeKind::kString, .mode = Mode::kRepeated}}};
  auto wire = arrow::list(arrow::struct_({arrow::field("L", arrow::large_list(arrow::large_utf8())), arrow::field("X", arrow::int8())}));
  auto canonicalizer = MakeFor(wire, field);
  auto array = FromJson(wire, R"([[{"L": ["a"], "X": 1}], null, [{"L": null, "X": 2}, {"L": [], "X": null}]])");
  auto converted = canonicalizer->ConvertColumn(0, array).ValueOrDie();
  ASSERT_TRUE(converted->ValidateFull().ok());
  const auto& lists = static_cast<const arrow::ListArray&>(*converted);
  EXPECT_EQ(lists.null_count(), 0);
  EXPECT_EQ(lists.value_length(1), 0);
  const auto& rows = static_cast<const arrow::StructArray&>(*lists.values());
  EXPECT_TRUE(rows.field(0)->Equals(FromJson(arrow::int64(), "[1, 2, null]")));
  EXPECT_TRUE(rows.field(1)->Equals(FromJson(arrow::list(arrow::utf8()), R"([["a"], [], []])")));
}

ArrayPtr MonthDayNano(std::vector<arrow::MonthDayNanoIntervalType::MonthDayNanos> values) {
  arrow::MonthDayNanoIntervalBuilder builder;
  for (const auto& value : values) EXPECT_TRUE(builder.Append(value).ok());
  EXPECT_TRUE(builder.AppendNull().ok());
  return builder.Finish().ValueOrDie();
}

TEST(CanonicalizeTest, MonthDayNanoIsAnInterval) {
  auto canonicalizer = MakeFor(arrow::month_day_nano_interval(), Of(TypeKind::kInterval));
  auto converted = canonicalizer->ConvertColumn(0, MonthDayNano({{14, 3, 14'706'789'999'000}, {-1, -2, -1'000}})->Slice(1)).ValueOrDie();
  ASSERT_TRUE(converted->ValidateFull().ok());
  const auto& rows = static_cast<const arrow::StructArray&>(*converted);
  EXPECT_EQ(static_cast<const arrow::Int32Array&>(*rows.field(0)).Value(0), -1);
  EXPECT_EQ(static_cast<const arrow::Int32Array&>(*rows.field(1)).Value(0), -2);
  EXPECT_EQ(static_cast<const arrow::Int64Array&>(*rows.field(2)).Value(0), -1);
  EXPECT_TRUE(rows.IsNull(1));
  auto inexact = canonicalizer->ConvertColumn(0, MonthDayNano({{0, 0, 0}, {0, 0, 1}}), 40);
  EXPECT_EQ(GetErrorInfo(inexact.status())->row, 41);
  EXPECT_EQ(GetErrorInfo(inexact.status())->column, "c");
  auto wide = canonicalizer->ConvertColumn(0, MonthDayNano({{kMaxIntervalMonths + 1, 0, 0}}));
  EXPECT_THAT(wide.status().message(), HasSubstr("10000-1 0 0:0:0"));
}

TEST(CanonicalizeTest, UnmarkedStructsBecomeIntervalsAndRanges) {
  auto interval = arrow::struct_(
      {arrow::field("months", arrow::int64()), arrow::field("days", arrow::int32()), arrow::field("microseconds", arrow::int64())});
  auto converted = MakeFor(interval, Of(TypeKind::kInterval))
                       ->ConvertColumn(0, FromJson(interval, R"([null, {"months": 1, "days": 2, "microseconds": 3}])"));
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_TRUE((*converted)->ValidateFull().ok());
  auto broken = MakeFor(interval, Of(TypeKind::kInterval))
                    ->ConvertColumn(0, FromJson(interval, R"([{"months": 1, "days": null, "microseconds": 3}])"));
  EXPECT_EQ(GetErrorInfo(broken.status())->column, "c.days");
  auto range = arrow::struct_({arrow::field("start", arrow::date64()), arrow::field("end", arrow::date32())});
  auto ranges = MakeFor(range, Of(TypeKind::kRange))->ConvertColumn(0, FromJson(range, R"([{"start": 86400000, "end": null}, null])"));
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_TRUE((*ranges)->Equals(FromJson(ToArrowField(Of(TypeKind::kRange)).ValueOrDie()->type(), R"([{"start": 1, "end": null}, null])")));
}

TEST(CanonicalizeTest, PicosecondsAreNeverCut) {
  auto text = FromJson(
      arrow::utf8(), R"(["1970-01-01T00:00:00.123456000000Z", "1970-01-01T00:00:00.123456000001Z", "1970-01-01T00:00:00.123456789000Z"])");
  auto marked = ToArrowSchema({{Of(TypeKind::kTimestamp12)}}).ValueOrDie();
  auto micros = Canonicalizer::Make(marked, ToArrowSchema({{Of(TypeKind::kTimestamp)}}).ValueOrDie()).ValueOrDie();
  EXPECT_TRUE(micros->ConvertColumn(0, text->Slice(0, 1)).ValueOrDie()->Equals(FromJson(arrow::timestamp(kMicro, "UTC"), "[123456]")));
  EXPECT_EQ(GetErrorInfo(micros->ConvertColumn(0, text).status())->row, 1);
  auto nanos = MakeFor(arrow::utf8(), Of(TypeKind::kTimestamp12), TimestampPrecision::kNanos);
  EXPECT_TRUE(nanos->ConvertColumn(0, text->Slice(2))
                  .ValueOrDie()
                  ->Equals(FromJson(arrow::timestamp(arrow::TimeUnit::NANO, "UTC"), "[123456789]")));
  EXPECT_EQ(GetErrorInfo(nanos->ConvertColumn(0, text).status())->row, 1);
}

struct BadCase {
  TypePtr wire;
  const char* values;
  Field field;
  int64_t row;
  const char* text;
};

TEST(CanonicalizeTest, ErrorsNameColumnRowAndValue) {
  const auto nanos = arrow::timestamp(arrow::TimeUnit::NANO, "UTC");
  const BadCase cases[] = {
      {arrow::uint64(), "[1, null, 9223372036854775808]", Of(TypeKind::kInt64), 2, "9223372036854775808"},
      {arrow::date32(), "[0, 2932897]", Of(TypeKind::kDate), 1, "10000-01-01"},
      {arrow::timestamp(kMicro), "[0, null, -62135596800000001]", Of(TypeKind::kDatetime), 2, "0000-12-31T23:59:59.999999"},
      {nanos, "[1000, 1001]", Of(TypeKind::kTimestamp), 1, "'1001'"},
      {arrow::utf8(), R"(["2024-02-29", "2024-02-30"])", Of(TypeKind::kDate), 1, "'2024-02-30'"},
      {arrow::list(arrow::int64()), "[[], [1, 2], null, [], [3, null]]", ListOf(TypeKind::kInt64), 4, "null"},
      {arrow::large_list(arrow::uint64()), "[null, [], [1], [], [2, 9223372036854775808]]", ListOf(TypeKind::kInt64), 4,
       "9223372036854775808"},
      {arrow::list(arrow::date32()), "[[1], [], [2, 3, -719163]]", ListOf(TypeKind::kDate), 2, "0000-12-31"},
  };
  for (const auto& item : cases) {
    auto status = MakeFor(item.wire, item.field)->ConvertColumn(0, FromJson(item.wire, item.values), 100).status();
    ASSERT_FALSE(status.ok()) << item.wire->ToString();
    const auto* info = GetErrorInfo(status);
    ASSERT_NE(info, nullptr) << status;
    EXPECT_EQ(info->column, "c");
    EXPECT_EQ(info->row, 100 + item.row) << status;
    EXPECT_THAT(status.message(), HasSubstr(item.text));
  }
}

TEST(CanonicalizeTest, DigitsTimesAndTextAreCheckedWhenAsked) {
  arrow::Decimal128Builder decimals(arrow::decimal128(5, 2));
  ASSERT_TRUE(decimals.Append(arrow::Decimal128(99'999)).ok());
  ASSERT_TRUE(decimals.Append(arrow::Decimal128(100'000)).ok());
  arrow::BinaryBuilder bytes;
  ASSERT_TRUE(bytes.AppendValues({"a", "\xFF"}).ok());
  const std::pair<Field, ArrayPtr> cases[] = {
      {Field{.name = "c", .kind = TypeKind::kNumeric, .precision = 5, .scale = 2}, decimals.Finish().ValueOrDie()},
      {Of(TypeKind::kTime), FromJson(arrow::int64(), "[0, 86400000000]")->View(arrow::time64(kMicro)).ValueOrDie()},
      {Of(TypeKind::kString), bytes.Finish().ValueOrDie()->View(arrow::utf8()).ValueOrDie()},
  };
  for (const auto& [field, array] : cases) {
    auto schema = ToArrowSchema({{field}}).ValueOrDie();
    auto checked = Canonicalizer::Make(schema, schema).ValueOrDie()->ConvertColumn(0, array);
    EXPECT_EQ(GetErrorInfo(checked.status())->row, 1) << checked.status();
    EXPECT_TRUE(Canonicalizer::Make(schema, schema, {.check_values = false}).ValueOrDie()->ConvertColumn(0, array).ok());
  }
  // BIGNUMERIC's ends use all 256 bits.
  arrow::Decimal256Builder big(arrow::decimal256(76, 38));
  ASSERT_TRUE(
      big.Append(ParseDecimal("-578960446186580977117854925043439539266.34992332820282019728792003956564819968", 76, 38).ValueOrDie())
          .ok());
  auto schema = ToArrowSchema({{Of(TypeKind::kBigNumeric)}}).ValueOrDie();
  EXPECT_TRUE(Canonicalizer::Make(schema, schema).ValueOrDie()->ConvertColumn(0, big.Finish().ValueOrDie()).ok());
}

TEST(CanonicalizeTest, ADifferenceListsEveryColumn) {
  auto canonical = ToArrowSchema({{{.name = "a", .kind = TypeKind::kInt64},
                                   {.name = "b", .kind = TypeKind::kDate},
                                   {.name = "s", .kind = TypeKind::kStruct, .fields = {{.name = "x", .kind = TypeKind::kBool}}},
                                   {.name = "l", .kind = TypeKind::kInt64, .mode = Mode::kRepeated}}})
                       .ValueOrDie();
  auto wire = arrow::schema({arrow::field("A", arrow::utf8()),
                             arrow::field("s", arrow::struct_({arrow::field("x", arrow::int8()), arrow::field("y", arrow::int8())})),
                             arrow::field("l", arrow::int64()), arrow::field("z", arrow::int64())});
  auto made = Canonicalizer::Make(wire, canonical);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(CodeOf(made.status()), Code::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(made.status())->reason, "SCHEMA_DIFFERS");
  for (const char* text : {"a: want int64, have string", "b: want date32[day], have nothing", "s.x: want bool, have int8",
                           "s.y: want nothing, have int8", "l: want list<item: int64>, have int64", "z: want nothing, have int64"}) {
    EXPECT_THAT(made.status().message(), HasSubstr(text));
  }
  const std::pair<TypePtr, TypeKind> wrong[] = {{arrow::float64(), TypeKind::kInt64},
                                                {arrow::int64(), TypeKind::kFloat64},
                                                {arrow::int64(), TypeKind::kTimestamp},
                                                {arrow::binary(), TypeKind::kString},
                                                {arrow::timestamp(kMicro), TypeKind::kTimestamp},
                                                {arrow::timestamp(kMicro, "UTC"), TypeKind::kDatetime},
                                                {arrow::duration(kMicro), TypeKind::kTime},
                                                {arrow::utf8(), TypeKind::kBytes},
                                                {arrow::timestamp(kMicro), TypeKind::kTimestamp12}};
  for (const auto& [type, kind] : wrong) {
    EXPECT_FALSE(Canonicalizer::Make(arrow::schema({arrow::field("c", type)}), ToArrowSchema({{Of(kind)}}).ValueOrDie()).ok())
        << type->ToString() << " " << TypeName(kind);
  }
}

// The null of one row hid behind the null STRUCT of another.
TEST(CanonicalizeTest, ANullInARequiredFieldBesideANullStruct) {
  const Field field{.name = "c",
                    .kind = TypeKind::kStruct,
                    .fields = {{.name = "w", .kind = TypeKind::kInt64, .mode = Mode::kRequired},
                               {.name = "l", .kind = TypeKind::kInt64, .mode = Mode::kRepeated}}};
  const auto full = arrow::struct_({arrow::field("w", arrow::int64()), arrow::field("l", arrow::list(arrow::int64()))});
  const auto good = FromJson(full, R"([null, {"w": 1, "l": null}, null, {"w": 3, "l": [1]}])");
  const auto got = MakeFor(full, field)->ConvertColumn(0, good);
  ASSERT_TRUE(got.ok()) << got.status();
  const auto bad = FromJson(full, R"([null, {"w": 1, "l": []}, {"w": null, "l": []}, {"w": 3, "l": []}])");
  for (const int64_t first : {0, 1}) {
    const auto status = MakeFor(full, field)->ConvertColumn(0, bad->Slice(first), 10).status();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(GetErrorInfo(status)->column, "c.w");
    EXPECT_EQ(GetErrorInfo(status)->row, 12 - first);
  }
}

TEST(CanonicalizeTest, DataThatIsNotOfItsSchemaIsRefused) {
  auto schema = ToArrowSchema({{Of(TypeKind::kInt64)}}).ValueOrDie();
  auto canonicalizer = Canonicalizer::Make(schema, schema).ValueOrDie();
  EXPECT_EQ(GetErrorInfo(canonicalizer->ConvertColumn(0, FromJson(arrow::utf8(), R"(["x"])")).status())->column, "c");
  EXPECT_FALSE(canonicalizer->Convert(*arrow::RecordBatch::Make(arrow::schema({}), 1, arrow::ArrayVector{})).ok());
  auto none = Canonicalizer::Make(arrow::schema({}), arrow::schema({})).ValueOrDie();
  EXPECT_EQ(none->Convert(*arrow::RecordBatch::Make(arrow::schema({}), 7, arrow::ArrayVector{})).ValueOrDie()->num_rows(), 7);
}

}  // namespace
}  // namespace headrace
