// Row restrictions: parsed, bound to a table of several types, evaluated on its rows.
#include "headrace/local/restriction.h"

#include <arrow/builder.h>
#include <arrow/compute/initialize.h>

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
  auto schema = arrow::schema({arrow::field("n", arrow::int64()), arrow::field("f", arrow::float64()), arrow::field("s", arrow::utf8()),
                               arrow::field("b", arrow::boolean()), arrow::field("d", arrow::date32()), arrow::field("ts", timestamp),
                               arrow::field("r", record->type())});
  return arrow::RecordBatch::Make(schema, 2,
                                  {inner, ValueAndNull(arrow::DoubleBuilder(), 0.5), ValueAndNull(arrow::StringBuilder(), "a"),
                                   ValueAndNull(arrow::BooleanBuilder(), true), ValueAndNull(arrow::Date32Builder(), 19'000),
                                   ValueAndNull(arrow::TimestampBuilder(timestamp, pool), int64_t{0}), record});
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
          "r.x <> -3 OR n NOT IN (1, 2, NULL)"};
}

}  // namespace headrace::fuzz
