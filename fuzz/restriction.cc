// Row restrictions: parsed, bound to a table of several types, evaluated on its rows.
#include "headrace/local/restriction.h"

#include <arrow/array/util.h>
#include <arrow/builder.h>
#include <arrow/compute/initialize.h>
#include <arrow/util/key_value_metadata.h>

#include "fuzz/fuzz_target.h"

namespace headrace::fuzz {
namespace {

template <typename Builder, typename Value>
std::shared_ptr<arrow::Array> ValueAndNull(Builder&& builder, const Value& value) {
  if (!builder.Append(value).ok() || !builder.AppendNull().ok()) __builtin_trap();
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::RecordBatch> Rows() {
  if (!arrow::compute::Initialize().ok()) __builtin_trap();
  auto pool = arrow::default_memory_pool();
  auto timestamp = arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
  auto inner = ValueAndNull(arrow::Int64Builder(), int64_t{1});
  auto record = arrow::StructArray::Make({inner}, {arrow::field("x", arrow::int64())}).ValueOrDie();
  auto schema = arrow::schema(
      {arrow::field("n", arrow::int64()), arrow::field("f", arrow::float64()), arrow::field("s", arrow::utf8()),
       arrow::field("b", arrow::boolean()), arrow::field("d", arrow::date32()), arrow::field("ts", timestamp),
       arrow::field("r", record->type()), arrow::field("y", arrow::binary()), arrow::field("q", arrow::decimal128(38, 9)),
       arrow::field("m", arrow::decimal256(76, 38)), arrow::field("l", arrow::list(arrow::int64())),
       arrow::field("pico", arrow::utf8(), true, arrow::key_value_metadata({"ARROW:extension:name"}, {"google:sqlType:timestamp_picos"}))});
  auto null = [](const std::shared_ptr<arrow::DataType>& type) { return arrow::MakeArrayOfNull(type, 2).ValueOrDie(); };
  return arrow::RecordBatch::Make(
      schema, 2,
      {inner, ValueAndNull(arrow::DoubleBuilder(), 0.5), ValueAndNull(arrow::StringBuilder(), "a"),
       ValueAndNull(arrow::BooleanBuilder(), true), ValueAndNull(arrow::Date32Builder(), 19'000),
       ValueAndNull(arrow::TimestampBuilder(timestamp, pool), int64_t{0}), record, ValueAndNull(arrow::BinaryBuilder(), "a"),
       ValueAndNull(arrow::Decimal128Builder(arrow::decimal128(38, 9)), arrow::Decimal128(1'500'000'000)), null(arrow::decimal256(76, 38)),
       null(arrow::list(arrow::int64())), ValueAndNull(arrow::StringBuilder(), "2020-01-01T00:00:00.000000000000Z")});
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  static const auto rows = Rows();
  auto restriction = local::Restriction::Bind(bytes, *rows->schema());
  if (!restriction.ok()) return;
  auto kept = (*restriction)->Evaluate(*rows);
  if (kept.ok() && (*kept)->length() != rows->num_rows()) __builtin_trap();
}

std::vector<std::string> Seeds() {
  return {"n = 1",
          "n > 5 AND NOT f < 0.5e3",
          "s IN ('a', \"b\") OR b IS NULL",
          "d >= DATE '2020-01-01' AND ts < TIMESTAMP '2021-01-01 00:00:00+00'",
          "(n BETWEEN 1 AND 2) OR `s` != r'\\x' OR b IS NOT TRUE",
          "r.x <> -3 OR n NOT IN (1, 2, NULL)",
          "s LIKE 'a_%' AND n + 1 * 2 - -3 / 4 = 5 AND s || r'x' <> \"\"\"y\"\"\"",
          "STARTS_WITH(s, 'a') OR REGEXP_CONTAINS(s, r'^[a-c]+$') OR LENGTH(CONCAT(s, 'b')) > 1",
          "d = CAST('2014-9-27' AS DATE) AND CAST(n AS STRING) IS DISTINCT FROM NULL",
          "IF(b, COALESCE(n, 1), NULLIF(n, 2)) BETWEEN ABS(-1) AND 3 AND y = b'\\xff' AND q > m",
          "pico > '2020-01-01T00:00:00.000000000001Z' AND ARRAY_LENGTH(l) = 0"};
}

}  // namespace headrace::fuzz
