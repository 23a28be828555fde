#include "headrace/runtime/row_view.h"

#include <functional>
#include <set>

#include <arrow/builder.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/runtime/row_schema.h"
#include "headrace/types/json_row.h"
#include "headrace/types/schema_json.h"
#include "headrace/types/type_table.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<arrow::Schema> SchemaOf(const std::string& json, TimestampPrecision precision = TimestampPrecision::kPicos) {
  return ToArrowSchema(SchemaFromJson(json).ValueOrDie(), precision).ValueOrDie();
}

std::shared_ptr<arrow::RecordBatch> Lines(const std::shared_ptr<arrow::Schema>& schema, const std::vector<std::string>& lines) {
  auto reader = JsonRowReader::Make(schema, {}).ValueOrDie();
  for (size_t i = 0; i < lines.size(); ++i) {
    auto status = reader->Append(lines[i], static_cast<int64_t>(i));
    EXPECT_TRUE(status.ok()) << status;
  }
  return reader->Finish().ValueOrDie();
}

RowBatch Rows(const std::string& schema, const std::vector<std::string>& lines) {
  auto arrow = SchemaOf(schema);
  return RowSchema::Make(arrow).ValueOrDie()->Bind(Lines(arrow, lines)).ValueOrDie();
}

std::string Unsigned128(const arrow::Decimal128& value, int scale) { return value.ToString(scale); }

/// One getter as text, so that every pair of column and getter can be tried.
struct Getter {
  TypeKind kind;
  std::function<arrow::Result<std::string>(const ValueView&)> get;
};

template <typename T>
arrow::Result<std::string> Shown(const arrow::Result<T>& value) {
  if (!value.ok()) return value.status();
  if constexpr (std::is_same_v<T, std::string_view>) {
    return std::string(*value);
  } else {
    return std::to_string(*value);
  }
}

std::vector<Getter> Getters() {
  return {
      {TypeKind::kInt64, [](const ValueView& v) { return Shown(v.Int64()); }},
      {TypeKind::kFloat64, [](const ValueView& v) { return Shown(v.Float64()); }},
      {TypeKind::kBool, [](const ValueView& v) { return Shown(v.Bool()); }},
      {TypeKind::kString, [](const ValueView& v) { return Shown(v.String()); }},
      {TypeKind::kBytes, [](const ValueView& v) { return Shown(v.Bytes()); }},
      {TypeKind::kNumeric,
       [](const ValueView& v) -> arrow::Result<std::string> {
         ARROW_ASSIGN_OR_RAISE(auto decimal, v.Numeric());
         return Unsigned128(decimal, v.scale());
       }},
      {TypeKind::kBigNumeric,
       [](const ValueView& v) -> arrow::Result<std::string> {
         ARROW_ASSIGN_OR_RAISE(auto decimal, v.BigNumeric());
         return decimal.ToString(v.scale());
       }},
      {TypeKind::kDate, [](const ValueView& v) { return Shown(v.Date()); }},
      {TypeKind::kTime, [](const ValueView& v) { return Shown(v.Time()); }},
      {TypeKind::kDatetime, [](const ValueView& v) { return Shown(v.Datetime()); }},
      {TypeKind::kTimestamp, [](const ValueView& v) { return Shown(v.Timestamp()); }},
      {TypeKind::kTimestamp12,
       [](const ValueView& v) -> arrow::Result<std::string> {
         ARROW_ASSIGN_OR_RAISE(auto picos, v.Timestamp12());
         return std::to_string(picos.seconds) + "s " + std::to_string(picos.picoseconds);
       }},
      {TypeKind::kGeography, [](const ValueView& v) { return Shown(v.Geography()); }},
      {TypeKind::kJson, [](const ValueView& v) { return Shown(v.Json()); }},
      {TypeKind::kInterval,
       [](const ValueView& v) -> arrow::Result<std::string> {
         ARROW_ASSIGN_OR_RAISE(auto value, v.Interval());
         return std::to_string(value.months) + " " + std::to_string(value.days) + " " + std::to_string(value.microseconds);
       }},
      {TypeKind::kRange,
       [](const ValueView& v) -> arrow::Result<std::string> {
         ARROW_ASSIGN_OR_RAISE(auto range, v.Range());
         ARROW_ASSIGN_OR_RAISE(auto start, range.start.OrNull(&ValueView::Date));
         ARROW_ASSIGN_OR_RAISE(auto end, range.end.OrNull(&ValueView::Date));
         return (start ? std::to_string(*start) : "none") + " " + (end ? std::to_string(*end) : "none");
       }},
      {TypeKind::kStruct,
       [](const ValueView& v) -> arrow::Result<std::string> {
         ARROW_ASSIGN_OR_RAISE(auto fields, v.Struct());
         return Shown(fields["X"].Int64());
       }},
  };
}

struct TypeCase {
  TypeKind kind;
  std::string field;  // of the schema's JSON, without its name
  std::string json;   // the value in a JSON row
  std::string value;  // from its getter
  std::string text;
};

const std::vector<TypeCase>& TypeCases() {
  static const std::vector<TypeCase> cases = {
      {TypeKind::kInt64, R"("type":"INT64")", R"("-9223372036854775808")", "-9223372036854775808", "-9223372036854775808"},
      {TypeKind::kFloat64, R"("type":"FLOAT64")", "0.5", "0.500000", "0.5"},
      {TypeKind::kBool, R"("type":"BOOL")", "true", "1", "true"},
      {TypeKind::kString, R"("type":"STRING")", R"("\u00e6 \"q\"")", "\u00e6 \"q\"", "\u00e6 \"q\""},
      {TypeKind::kBytes, R"("type":"BYTES")", R"("AAH/")", std::string("\0\x01\xff", 3), "AAH/"},
      {TypeKind::kNumeric, R"("type":"NUMERIC")", R"("-1.5")", "-1.500000000", "-1.5"},
      {TypeKind::kBigNumeric, R"("type":"BIGNUMERIC")", R"("1e-38")", "1E-38", "0.00000000000000000000000000000000000001"},
      {TypeKind::kDate, R"("type":"DATE")", R"("1969-12-31")", "-1", "1969-12-31"},
      {TypeKind::kTime, R"("type":"TIME")", R"("00:00:01.5")", "1500000", "00:00:01.500000"},
      {TypeKind::kDatetime, R"("type":"DATETIME")", R"("1969-12-31T23:59:59")", "-1000000", "1969-12-31T23:59:59"},
      {TypeKind::kTimestamp, R"("type":"TIMESTAMP")", R"("1970-01-01T00:00:00.000001Z")", "1", "1970-01-01T00:00:00.000001Z"},
      {TypeKind::kTimestamp12, R"("type":"TIMESTAMP","timestampPrecision":"12")", R"("1969-12-31T23:59:59.000000000001Z")", "-1s 1",
       "1969-12-31T23:59:59.000000000001Z"},
      {TypeKind::kGeography, R"("type":"GEOGRAPHY")", R"j("POINT(1 2)")j", "POINT(1 2)", "POINT(1 2)"},
      {TypeKind::kJson, R"("type":"JSON")", R"("{\"a\":1}")", R"({"a":1})", R"({"a":1})"},
      {TypeKind::kInterval, R"("type":"INTERVAL")", R"("1-2 3 0:0:4")", "14 3 4000000", "1-2 3 0:0:4"},
      {TypeKind::kRange, R"("type":"RANGE","rangeElementType":{"type":"DATE"})", R"j("[1970-01-02, UNBOUNDED)")j", "1 none",
       "[1970-01-02, UNBOUNDED)"},
      {TypeKind::kStruct, R"("type":"STRUCT","fields":[{"name":"x","type":"INT64"}])", R"({"x":"7"})", "7", R"({"x":"7"})"},
  };
  return cases;
}

TEST(RowView, EveryTypeIsReadByItsOwnGetterAndRefusedByEachOther) {
  std::set<TypeKind> tried;
  for (const TypeCase& test : TypeCases()) {
    SCOPED_TRACE(test.field);
    tried.insert(test.kind);
    auto rows = Rows(R"([{"name":"V",)" + test.field + "}]", {R"({"V":)" + test.json + "}", R"({"V":null})"});
    ValueView value = rows[0]["v"];
    EXPECT_FALSE(value.is_null());
    EXPECT_EQ(value.Text().ValueOrDie(), test.text);
    for (const Getter& getter : Getters()) {
      auto got = getter.get(value);
      if (getter.kind == test.kind) {
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_EQ(*got, test.value);
        auto null = getter.get(rows[1]["V"]);
        ASSERT_FALSE(null.ok());
        EXPECT_EQ(GetErrorInfo(null.status())->reason, "NULL_VALUE");
        EXPECT_EQ(GetErrorInfo(null.status())->column, "V");
        EXPECT_EQ(GetErrorInfo(null.status())->row, 1);
      } else {
        ASSERT_FALSE(got.ok()) << "read as " << TypeName(getter.kind);
        EXPECT_EQ(GetErrorInfo(got.status())->reason, "WRONG_TYPE");
        EXPECT_EQ(GetErrorInfo(got.status())->column, "V");
        EXPECT_THAT(got.status().message(), HasSubstr(std::string(TypeName(test.kind))));
      }
    }
    EXPECT_FALSE(value.List().ok());
    EXPECT_TRUE(rows[1][0].is_null());
    EXPECT_FALSE(rows[1][0].Text().ok());
  }
  for (const TypeRow& type : TypeTable()) {
    EXPECT_TRUE(!type.kind || tried.contains(*type.kind)) << type.name << " has no case";
  }
}

TEST(RowView, Timestamp12OfFewerDigits) {
  auto only = [](TimestampPrecision precision, int64_t units) {
    auto schema = SchemaOf(R"([{"name":"t","type":"TIMESTAMP","timestampPrecision":"12"}])", precision);
    arrow::TimestampBuilder builder(schema->field(0)->type(), arrow::default_memory_pool());
    EXPECT_TRUE(builder.Append(units).ok());
    auto batch = arrow::RecordBatch::Make(schema, 1, {builder.Finish().ValueOrDie()});
    return RowSchema::Make(schema).ValueOrDie()->Bind(batch).ValueOrDie();
  };
  auto nanos = only(TimestampPrecision::kNanos, -1);
  EXPECT_EQ(nanos[0]["t"].Timestamp12().ValueOrDie(), (PicosTimestamp{.seconds = -1, .picoseconds = 999'999'999'000}));
  // A session of microseconds is one of plain TIMESTAMPs.
  auto micros = only(TimestampPrecision::kMicros, 1'000'001);
  EXPECT_EQ(micros[0]["t"].Timestamp().ValueOrDie(), 1'000'001);
}

TEST(RowView, StructsAndArraysAtAnyDepth) {
  const std::string schema = R"([
      {"name":"tags","type":"STRING","mode":"REPEATED"},
      {"name":"place","type":"STRUCT","fields":[
          {"name":"label","type":"STRING"},
          {"name":"stops","type":"STRUCT","mode":"REPEATED","fields":[
              {"name":"at","type":"INT64","mode":"REPEATED"},{"name":"who","type":"STRUCT","fields":[{"name":"name","type":"STRING"}]}]}]}])";
  auto rows =
      Rows(schema, {R"({"tags":["a","b"],"place":{"label":null,"stops":[{"at":["1","2"],"who":{"name":"w"}},{"at":[],"who":null}]}})",
                    R"({"tags":[],"place":null})", R"({"tags":["c"],"place":{"label":"l","stops":[]}})"});
  auto strings = [](const ListView& list) {
    std::vector<std::string> all;
    for (ValueView value : list) all.emplace_back(value.String().ValueOrDie());
    return all;
  };
  EXPECT_THAT(strings(rows[0]["tags"].List().ValueOrDie()), ::testing::ElementsAre("a", "b"));
  EXPECT_THAT(strings(rows[1]["tags"].List().ValueOrDie()), ::testing::IsEmpty());
  EXPECT_THAT(strings(rows[2]["TAGS"].List().ValueOrDie()), ::testing::ElementsAre("c"));
  auto place = rows[0]["place"].Struct().ValueOrDie();
  EXPECT_TRUE(place["label"].is_null());
  auto stops = place["stops"].List().ValueOrDie();
  ASSERT_EQ(stops.size(), 2);
  auto first = stops[0].Struct().ValueOrDie();
  EXPECT_EQ(first["at"].List().ValueOrDie()[1].Int64().ValueOrDie(), 2);
  EXPECT_EQ(first["who"].Struct().ValueOrDie()["name"].String().ValueOrDie(), "w");
  EXPECT_TRUE(stops[1].Struct().ValueOrDie()["who"].is_null());
  EXPECT_EQ(stops[1].Struct().ValueOrDie()["at"].List().ValueOrDie().size(), 0);
  EXPECT_TRUE(rows[1]["place"].is_null());
  EXPECT_EQ(rows[2]["place"].Struct().ValueOrDie()["label"].String().ValueOrDie(), "l");

  auto wrong = first["who"].Struct().ValueOrDie()["name"].Int64().status();
  EXPECT_EQ(GetErrorInfo(wrong)->column, "place.stops.who.name");
  EXPECT_EQ(GetErrorInfo(stops[1].Struct().ValueOrDie()["who"].Struct().status())->column, "place.stops.who");
  for (const auto& status :
       {stops[2].Struct().status(), stops[-1].Struct().status(), rows[0][7].Text().status(), rows[0][-1].Int64().status()}) {
    EXPECT_EQ(GetErrorInfo(status)->reason, "OUT_OF_BOUNDS");
  }
  EXPECT_EQ(rows[0]["place"].Text().ValueOrDie(), R"({"label":null,"stops":[{"at":["1","2"],"who":{"name":"w"}},{"at":[],"who":null}]})");
  EXPECT_EQ(rows[0]["tags"].Text().ValueOrDie(), R"(["a","b"])");
}

TEST(RowView, TheTextOfAWholeRowIsThatOfAnNdjsonFile) {
  std::string fields;
  std::string line;
  for (const TypeCase& test : TypeCases()) {
    auto name = "c" + std::to_string(static_cast<int>(test.kind));
    fields += (fields.empty() ? "" : ",") + (R"({"name":")" + name + R"(",)" + test.field + "}");
    line += (line.empty() ? "" : ",") + ("\"" + name + "\":" + test.json);
  }
  const std::string json = R"([{"name":"all","type":"STRUCT","fields":[)" + fields + "]}]";
  auto schema = SchemaOf(json);
  auto batch = Lines(schema, {R"({"all":{)" + line + "}}"});
  auto rows = RowSchema::Make(schema).ValueOrDie()->Bind(batch).ValueOrDie();
  std::string want;
  ASSERT_TRUE(JsonRowWriter::Make(schema).ValueOrDie()->Append(*batch, 0, 1, &want).ok());
  EXPECT_EQ(R"({"all":)" + rows[0]["all"].Text().ValueOrDie() + "}\n", want);
}

TEST(RowView, AColumnThatDoesNotExistIsAnErrorThatNamesIt) {
  auto rows = Rows(R"([{"name":"id","type":"INT64"}])", {R"({"id":"1"})"});
  ValueView nothing = rows[0]["idd"];
  EXPECT_FALSE(nothing.is_null());
  for (const auto& status : {nothing.Int64().status(), nothing.Text().status(), nothing.List().status(), nothing.Struct().status(),
                             nothing.OrNull(&ValueView::Float64).status()}) {
    EXPECT_EQ(GetErrorInfo(status)->reason, "NO_SUCH_COLUMN");
    EXPECT_EQ(GetErrorInfo(status)->column, "idd");
  }
  EXPECT_EQ(nothing.scale(), 0);
}

TEST(RowView, NullOrAValue) {
  auto rows = Rows(R"([{"name":"x","type":"FLOAT64"}])", {R"({"x":1.5})", R"({"x":null})"});
  EXPECT_EQ(rows[0]["x"].OrNull(&ValueView::Float64).ValueOrDie(), std::optional<double>(1.5));
  EXPECT_EQ(rows[1]["x"].OrNull(&ValueView::Float64).ValueOrDie(), std::nullopt);
  EXPECT_FALSE(rows[0]["x"].OrNull(&ValueView::Int64).ok());
}

TEST(RowSchema, ColumnsAreFoundByNameWhateverTheCase) {
  auto schema = RowSchema::Make(SchemaOf(R"([{"name":"b","type":"INT64"},{"name":"A_1","type":"INT64"},{"name":"\u00c6","type":"INT64"},
      {"name":"a","type":"STRING"}])"))
                    .ValueOrDie();
  EXPECT_EQ(schema->column_count(), 4);
  EXPECT_EQ(schema->Find("B").ValueOrDie(), 0);
  EXPECT_EQ(schema->Find("a_1").ValueOrDie(), 1);
  EXPECT_EQ(schema->Find("\u00c6").ValueOrDie(), 2);
  EXPECT_EQ(schema->Find("A").ValueOrDie(), 3);
  EXPECT_EQ(schema->field(3).kind, TypeKind::kString);
  for (const char* name : {"", "c", "a_", "a_11", "\u00e6"}) {
    auto status = schema->Find(name).status();
    EXPECT_EQ(CodeOf(status), Code::kNotFound) << name;
    EXPECT_THAT(status.message(), HasSubstr("b, A_1, \u00c6, a"));
  }
}

TEST(RowSchema, OtherArrowTypesAreConverted) {
  auto schema =
      arrow::schema({arrow::field("n", arrow::int32()), arrow::field("s", arrow::large_utf8()), arrow::field("id", arrow::int64())});
  arrow::Int32Builder numbers;
  arrow::LargeStringBuilder texts;
  arrow::Int64Builder ids;
  ASSERT_TRUE(numbers.AppendValues({5, 6}).ok() && texts.AppendValues({"x", "y"}).ok() && ids.AppendValues({1, 2}).ok());
  auto batch = arrow::RecordBatch::Make(schema, 2, {numbers.Finish().ValueOrDie(), texts.Finish().ValueOrDie(), ids.Finish().ValueOrDie()});
  auto rows = RowSchema::Make(schema).ValueOrDie()->Bind(batch, 10).ValueOrDie();
  EXPECT_EQ(rows[1]["n"].Int64().ValueOrDie(), 6);
  EXPECT_EQ(rows[1]["s"].String().ValueOrDie(), "y");
  EXPECT_EQ(rows[1]["id"].Int64().ValueOrDie(), 2);
  EXPECT_EQ(rows[1].number(), 11);
  auto refused = RowSchema::Make(arrow::schema({arrow::field("u", arrow::duration(arrow::TimeUnit::SECOND))}));
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("u"));
}

TEST(RowSchema, ABatchOfOtherColumnsIsRefused) {
  auto schema = RowSchema::Make(SchemaOf(R"([{"name":"id","type":"INT64"}])")).ValueOrDie();
  auto other = SchemaOf(R"([{"name":"id","type":"STRING"}])");
  EXPECT_EQ(CodeOf(schema->Bind(Lines(other, {R"({"id":"1"})"})).status()), Code::kInternal);
  EXPECT_FALSE(schema->Bind(arrow::RecordBatch::Make(arrow::schema({}), 1, arrow::ArrayVector{})).ok());
}

TEST(RowSchema, WithoutColumnsTheRowsAreCounted) {
  auto schema = RowSchema::Make(arrow::schema({})).ValueOrDie();
  auto rows = schema->Bind(arrow::RecordBatch::Make(arrow::schema({}), 3, arrow::ArrayVector{})).ValueOrDie();
  EXPECT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[2].column_count(), 0);
}

TEST(RowSchema, SlicedBatchesKeepTheirPlace) {
  auto schema =
      SchemaOf(R"([{"name":"s","type":"STRUCT","fields":[{"name":"x","type":"INT64"}]},{"name":"l","type":"INT64","mode":"REPEATED"}])");
  auto batch = Lines(schema, {R"({"s":{"x":"1"},"l":["1"]})", R"({"s":{"x":"2"},"l":["2","3"]})", R"({"s":{"x":"3"},"l":["4"]})"});
  auto rows = RowSchema::Make(schema).ValueOrDie()->Bind(batch->Slice(1, 2)).ValueOrDie();
  EXPECT_EQ(rows[0]["s"].Struct().ValueOrDie()["x"].Int64().ValueOrDie(), 2);
  EXPECT_EQ(rows[1]["s"].Struct().ValueOrDie()["x"].Int64().ValueOrDie(), 3);
  EXPECT_EQ(rows[0]["l"].List().ValueOrDie()[1].Int64().ValueOrDie(), 3);
  EXPECT_EQ(rows[1]["l"].List().ValueOrDie()[0].Int64().ValueOrDie(), 4);
}

}  // namespace
}  // namespace headrace::testing
