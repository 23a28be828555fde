#include "bench/table.h"

#include <array>
#include <string>

#include <arrow/api.h>
#include <fmt/format.h>

namespace headrace::bench {
namespace {

/// A number that depends on the row and column alone: the last steps of SplitMix64.
uint64_t Mixed(int64_t row, int64_t column) {
  uint64_t x = (static_cast<uint64_t>(row) << 8) + static_cast<uint64_t>(column) + 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

constexpr std::array<const char*, 8> kStates = {"CA", "NY", "TX", "WA", "OH", "FL", "AK", "ME"};
constexpr std::array<const char*, 12> kNames = {"Mary", "Annie",   "Anna", "Margaret", "Helen",     "Elsie",
                                                "Lucy", "Dorothy", "Bo",   "Ruth",     "Elizabeth", "Alice"};
constexpr int kNarrowColumns = 8;
constexpr int kWideColumns = 40;
constexpr int64_t kNullEvery = 10;

enum class Kind { kInt64, kFloat64, kShortText, kText, kDate, kTimestamp, kBool, kNumeric, kTime, kBytes };
constexpr std::array<Kind, 10> kKinds = {Kind::kInt64,     Kind::kFloat64, Kind::kShortText, Kind::kText, Kind::kDate,
                                         Kind::kTimestamp, Kind::kBool,    Kind::kNumeric,   Kind::kTime, Kind::kBytes};

std::shared_ptr<arrow::DataType> TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kInt64:
      return arrow::int64();
    case Kind::kFloat64:
      return arrow::float64();
    case Kind::kShortText:
    case Kind::kText:
      return arrow::utf8();
    case Kind::kDate:
      return arrow::date32();
    case Kind::kTimestamp:
      return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
    case Kind::kBool:
      return arrow::boolean();
    case Kind::kNumeric:
      return arrow::decimal128(38, 9);
    case Kind::kTime:
      return arrow::time64(arrow::TimeUnit::MICRO);
    case Kind::kBytes:
      return arrow::binary();
  }
  return arrow::int64();
}

/// One column; `value(row)` is what its builder takes.
template <typename Builder, typename Value>
arrow::Result<std::shared_ptr<arrow::Array>> Column(std::unique_ptr<Builder> builder, int64_t first, int64_t count, int64_t nulls_of,
                                                    Value value) {
  ARROW_RETURN_NOT_OK(builder->Reserve(count));
  for (int64_t row = first; row < first + count; ++row) {
    if (nulls_of >= 0 && Mixed(row, 100 + nulls_of) % kNullEvery == 0) {
      ARROW_RETURN_NOT_OK(builder->AppendNull());
    } else {
      ARROW_RETURN_NOT_OK(builder->Append(value(row)));
    }
  }
  return builder->Finish();
}

template <typename Builder>
std::unique_ptr<Builder> New(const std::shared_ptr<arrow::DataType>& type) {
  return std::make_unique<Builder>(type, arrow::default_memory_pool());
}

arrow::Result<std::shared_ptr<arrow::Array>> ColumnOf(Kind kind, int64_t column, int64_t first, int64_t count) {
  const auto type = TypeOf(kind);
  const auto number = [column](int64_t row) { return static_cast<int64_t>(Mixed(row, column)); };
  switch (kind) {
    case Kind::kInt64:
      return Column(New<arrow::Int64Builder>(type), first, count, column, number);
    case Kind::kFloat64:
      return Column(New<arrow::DoubleBuilder>(type), first, count, column,
                    [&](int64_t row) { return static_cast<double>(number(row)) / 1024; });
    case Kind::kShortText:
      return Column(New<arrow::StringBuilder>(type), first, count, column,
                    [&](int64_t row) { return std::string(kNames[Mixed(row, column) % kNames.size()]); });
    case Kind::kText:
      return Column(New<arrow::StringBuilder>(type), first, count, column,
                    [&](int64_t row) { return fmt::format("{:020} of row {:09}", Mixed(row, column), row); });
    case Kind::kDate:
      return Column(New<arrow::Date32Builder>(type), first, count, column,
                    [&](int64_t row) { return static_cast<int32_t>(Mixed(row, column) % 20'000); });
    case Kind::kTimestamp:
      return Column(New<arrow::TimestampBuilder>(type), first, count, column,
                    [&](int64_t row) { return static_cast<int64_t>(Mixed(row, column) % 1'700'000'000'000'000); });
    case Kind::kBool:
      return Column(New<arrow::BooleanBuilder>(type), first, count, column, [&](int64_t row) { return Mixed(row, column) % 2 == 0; });
    case Kind::kNumeric:
      return Column(New<arrow::Decimal128Builder>(type), first, count, column,
                    [&](int64_t row) { return arrow::Decimal128(number(row) / 1'000); });
    case Kind::kTime:
      return Column(New<arrow::Time64Builder>(type), first, count, column,
                    [&](int64_t row) { return static_cast<int64_t>(Mixed(row, column) % 86'400'000'000); });
    case Kind::kBytes:
      return Column(New<arrow::BinaryBuilder>(type), first, count, column,
                    [&](int64_t row) { return fmt::format("{:016x}", Mixed(row, column)); });
  }
  return arrow::Status::NotImplemented("another kind");
}

Kind KindOf(std::string_view table, int column) {
  if (table == "narrow8") return column < kNarrowColumns / 2 ? Kind::kInt64 : Kind::kFloat64;
  return kKinds[static_cast<size_t>(column) % kKinds.size()];
}

arrow::Result<arrow::ArrayVector> Names(int64_t first, int64_t count) {
  arrow::ArrayVector columns(5);
  const auto pick = [](const auto& words, int64_t row, int64_t column) { return std::string(words[Mixed(row, column) % words.size()]); };
  ARROW_ASSIGN_OR_RAISE(
      columns[0], Column(New<arrow::StringBuilder>(arrow::utf8()), first, count, -1, [&](int64_t row) { return pick(kStates, row, 0); }));
  ARROW_ASSIGN_OR_RAISE(columns[1], Column(New<arrow::StringBuilder>(arrow::utf8()), first, count, -1,
                                           [&](int64_t row) { return std::string(Mixed(row, 1) % 2 == 0 ? "F" : "M"); }));
  ARROW_ASSIGN_OR_RAISE(columns[2], Column(New<arrow::Int64Builder>(arrow::int64()), first, count, -1,
                                           [&](int64_t row) { return static_cast<int64_t>(1910 + Mixed(row, 2) % 110); }));
  ARROW_ASSIGN_OR_RAISE(
      columns[3], Column(New<arrow::StringBuilder>(arrow::utf8()), first, count, -1, [&](int64_t row) { return pick(kNames, row, 3); }));
  ARROW_ASSIGN_OR_RAISE(columns[4], Column(New<arrow::Int64Builder>(arrow::int64()), first, count, -1,
                                           [&](int64_t row) { return static_cast<int64_t>(5 + Mixed(row, 4) % 3'000); }));
  return columns;
}

}  // namespace

std::shared_ptr<arrow::Schema> TableSchemaOf(std::string_view table) {
  if (table == "usa_names") {
    return arrow::schema({arrow::field("state", arrow::utf8()), arrow::field("gender", arrow::utf8()), arrow::field("year", arrow::int64()),
                          arrow::field("name", arrow::utf8()), arrow::field("number", arrow::int64())});
  }
  if (table != "narrow8" && table != "wide") return nullptr;
  arrow::FieldVector fields;
  for (int column = 0; column < (table == "wide" ? kWideColumns : kNarrowColumns); ++column)
    fields.push_back(arrow::field(fmt::format("c{:02}", column), TypeOf(KindOf(table, column))));
  return arrow::schema(fields);
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> MakeRows(std::string_view table, int64_t first, int64_t count) {
  const auto schema = TableSchemaOf(table);
  if (schema == nullptr) return arrow::Status::Invalid("there is no table ", table);
  arrow::ArrayVector columns;
  if (table == "usa_names") {
    ARROW_ASSIGN_OR_RAISE(columns, Names(first, count));
  } else {
    for (int column = 0; column < schema->num_fields(); ++column) {
      ARROW_ASSIGN_OR_RAISE(columns.emplace_back(), ColumnOf(KindOf(table, column), column, first, count));
    }
  }
  return arrow::RecordBatch::Make(schema, count, std::move(columns));
}

}  // namespace headrace::bench
