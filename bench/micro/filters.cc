#include <utility>

#include <arrow/array.h>
#include <arrow/array/builder_binary.h>
#include <arrow/compute/api_scalar.h>
#include <arrow/compute/exec.h>
#include <arrow/scalar.h>
#include <arrow/util/decimal.h>
#include <fmt/format.h>

#include "bench/micro/cases.h"
#include "headrace/base/batch_size.h"
#include "headrace/local/restriction.h"

namespace headrace::bench {
namespace {

namespace cp = arrow::compute;
using arrow::Datum;
using Values = arrow::Result<Datum>;

struct Filter {
  std::string_view table{};
  std::string condition{};
  std::vector<int> columns{};                                  // those that the condition reads
  std::function<Values(const arrow::RecordBatch&)> kernels{};  // the same, as calls of Arrow's kernels
};

Values Call(const char* function, const std::vector<Datum>& arguments) { return cp::CallFunction(function, arguments); }
Values Both(const char* function, const Values& a, const Values& b) {
  ARROW_RETURN_NOT_OK(a.status());
  ARROW_RETURN_NOT_OK(b.status());
  return Call(function, {*a, *b});
}
Datum Text(const char* text) { return Datum(std::make_shared<arrow::StringScalar>(text)); }

// No pattern but for a prefix and a part: Arrow's kernels for others are not to be called
// (docs/decisions/0013-patterns-in-restrictions.md).
std::vector<Filter> Filters() {
  using Batch = arrow::RecordBatch;
  std::vector<Filter> filters;
  filters.push_back({"usa_names", "state = 'WA'", {0}, [](const Batch& rows) { return Call("equal", {rows.column(0), Text("WA")}); }});
  filters.push_back({"usa_names", "state = 'WA' AND year >= 1990", {0, 2}, [](const Batch& rows) {
                       return Both("and_kleene", Call("equal", {rows.column(0), Text("WA")}),
                                   Call("greater_equal", {rows.column(2), Datum(int64_t{1990})}));
                     }});
  filters.push_back({"usa_names", "name IN ('Mary', 'Anna', 'Ruth')", {3}, [](const Batch& rows) -> Values {
                       arrow::StringBuilder names;
                       ARROW_RETURN_NOT_OK(names.AppendValues({"Mary", "Anna", "Ruth"}));
                       ARROW_ASSIGN_OR_RAISE(const auto set, names.Finish());
                       const cp::SetLookupOptions options(set, cp::SetLookupOptions::INCONCLUSIVE);
                       return cp::CallFunction("is_in", {rows.column(3)}, &options);
                     }});
  filters.push_back({"usa_names", "name LIKE 'An%'", {3}, [](const Batch& rows) {
                       const cp::MatchSubstringOptions options("An");
                       return cp::CallFunction("starts_with", {rows.column(3)}, &options);
                     }});
  filters.push_back({"narrow8", "c00 BETWEEN -1000000 AND 9000000000000000000", {0}, [](const Batch& rows) {
                       return Both("and_kleene", Call("greater_equal", {rows.column(0), Datum(int64_t{-1'000'000})}),
                                   Call("less_equal", {rows.column(0), Datum(int64_t{9'000'000'000'000'000'000})}));
                     }});
  filters.push_back({"narrow8", "c01 IS NULL OR c04 < 0.5", {1, 4}, [](const Batch& rows) {
                       return Both("or_kleene", Call("is_null", {rows.column(1)}), Call("less", {rows.column(4), Datum(0.5)}));
                     }});
  filters.push_back({"wide", "c04 >= DATE '2000-01-01'", {4}, [](const Batch& rows) {
                       constexpr int32_t kDay = 10'957;  // after 1970-01-01
                       return Call("greater_equal", {rows.column(4), Datum(std::make_shared<arrow::Date32Scalar>(kDay))});
                     }});
  filters.push_back({"wide", "c07 >= NUMERIC '1000000.5'", {7}, [](const Batch& rows) {
                       const arrow::Decimal128 value(int64_t{1'000'000'500'000'000});
                       return Call("greater_equal",
                                   {rows.column(7), Datum(std::make_shared<arrow::Decimal128Scalar>(value, rows.column(7)->type()))});
                     }});
  filters.push_back({"wide", "c03 LIKE '%of row 0000%'", {3}, [](const Batch& rows) {
                       const cp::MatchSubstringOptions options("of row 0000");
                       return cp::CallFunction("match_substring", {rows.column(3)}, &options);
                     }});
  return filters;
}

arrow::Result<std::vector<Amount>> AmountsOf(const Filter& filter, const arrow::RecordBatchVector& batches) {
  std::vector<Amount> amounts;
  for (const auto& batch : batches) {
    ARROW_ASSIGN_OR_RAISE(const auto read, batch->SelectColumns(filter.columns));
    amounts.push_back({.rows = batch->num_rows(), .bytes = ReferencedBytes(*read)});
  }
  return amounts;
}

Client FilterWithHeadrace(Prepared* prepared, const Filter& filter) {
  return {"headrace", [=](benchmark::State& state) -> arrow::Status {
            ARROW_ASSIGN_OR_RAISE(const auto* batches, prepared->BatchesOf(filter.table));
            ARROW_ASSIGN_OR_RAISE(const auto amounts, AmountsOf(filter, *batches));
            ARROW_ASSIGN_OR_RAISE(const auto restriction, local::Restriction::Bind(filter.condition, *batches->front()->schema()));
            ARROW_ASSIGN_OR_RAISE(const auto seen, restriction->Evaluate(*batches->front()));
            ARROW_ASSIGN_OR_RAISE(const Datum wanted, filter.kernels(*batches->front()));
            if (!seen->Equals(wanted.make_array())) return arrow::Status::Invalid("the two do not choose the same rows");
            return Measure(state, amounts, [&](size_t i) { return restriction->Evaluate(*(*batches)[i]).status(); });
          }};
}

Client FilterWithArrow(Prepared* prepared, const Filter& filter) {
  return {"arrow", [=](benchmark::State& state) -> arrow::Status {
            ARROW_ASSIGN_OR_RAISE(const auto* batches, prepared->BatchesOf(filter.table));
            ARROW_ASSIGN_OR_RAISE(const auto amounts, AmountsOf(filter, *batches));
            return Measure(state, amounts, [&](size_t i) { return filter.kernels(*(*batches)[i]).status(); });
          }};
}

}  // namespace

std::vector<Case> FilterCases(Prepared* prepared) {
  std::vector<Case> cases;
  for (const Filter& filter : Filters()) {
    cases.push_back({.name = fmt::format("{}, {}", filter.table, filter.condition),
                     .clients = {FilterWithHeadrace(prepared, filter), FilterWithArrow(prepared, filter)}});
  }
  return cases;
}

}  // namespace headrace::bench
