// Timestamps as Hive, Impala and Spark write them into Parquet files.
#include <cstring>

#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/column_writer.h>
#include <parquet/file_writer.h>
#include <parquet/schema.h>

#include "headrace/files/file_sink_testing.h"
#include "headrace/files/file_source.h"
#include "headrace/runtime/read.h"
#include "headrace/types/value_text.h"

namespace headrace {
namespace {

using testing::HasSubstr;

// What INT96 holds: days since 4713 BC, and nanoseconds.
struct Moment {
  uint32_t julian_day = 0;
  uint64_t nanos = 0;
};

constexpr uint32_t kEpoch = 2'440'588;  // 1970-01-01
constexpr uint64_t kNanosOfHour = uint64_t{3'600} * 1'000'000'000;

parquet::Int96 ToInt96(const Moment& moment) {
  parquet::Int96 value{};
  std::memcpy(&value, &moment.nanos, sizeof(moment.nanos));
  value.value[2] = moment.julian_day;
  return value;
}

/// Row groups with an optional column t, each a null and then the moments; and, where asked for, a list of them.
void Write(const std::string& path, const std::vector<std::vector<Moment>>& groups, bool list) {
  using parquet::Repetition;
  using parquet::schema::GroupNode;
  const auto leaf = parquet::schema::PrimitiveNode::Make(list ? "element" : "t", Repetition::OPTIONAL, parquet::Type::INT96);
  const auto repeated = GroupNode::Make("list", Repetition::REPEATED, {leaf});
  const auto top = list ? GroupNode::Make("t", Repetition::OPTIONAL, {repeated}, parquet::LogicalType::List()) : leaf;
  const auto schema = std::static_pointer_cast<GroupNode>(GroupNode::Make("schema", Repetition::REQUIRED, {top}));
  auto file = parquet::ParquetFileWriter::Open(arrow::io::FileOutputStream::Open(path).ValueOrDie(), schema);
  for (const auto& moments : groups) {
    std::vector<int16_t> definitions = {0};
    std::vector<int16_t> repetitions = {0};
    std::vector<parquet::Int96> values;
    for (const auto& moment : moments) {
      definitions.push_back(list ? 3 : 1);
      repetitions.push_back(list && !values.empty() ? 1 : 0);
      values.push_back(ToInt96(moment));
    }
    auto* column = static_cast<parquet::Int96Writer*>(file->AppendRowGroup()->NextColumn());
    column->WriteBatch(static_cast<int64_t>(definitions.size()), definitions.data(), repetitions.data(), values.data());
    column->Close();
  }
  file->Close();
}

arrow::Result<std::shared_ptr<arrow::Table>> ReadAll(const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto source, FileSource::Make({.paths = {path}}));
  ARROW_ASSIGN_OR_RAISE(auto reader, Read(source, {.ordered = true}));
  return reader->ToTable();
}

std::string TextOf(const arrow::Array& array) {
  std::string text;
  const auto& values = static_cast<const arrow::TimestampArray&>(array);
  for (int64_t i = 0; i < values.length(); ++i) {
    if (i > 0) text += " ";
    if (values.IsNull(i)) text += "null";
    if (values.IsValid(i)) AppendDatetime(values.Value(i), &text);
  }
  return text;
}

struct Case {
  Moment moment;
  const char* text;  // empty = refused, with ...
  const char* error;
};

const Case kCases[] = {
    {{kEpoch, 0}, "1970-01-01T00:00:00", ""},
    {{kEpoch - 1, 24 * kNanosOfHour - 1'000}, "1969-12-31T23:59:59.999999", ""},
    {{1'721'426, 0}, "0001-01-01T00:00:00", ""},
    {{2'232'400, 0}, "1400-01-01T00:00:00", ""},
    {{2'561'118, 12 * kNanosOfHour}, "2300-01-01T12:00:00", ""},
    {{5'373'484, 24 * kNanosOfHour - 1'000}, "9999-12-31T23:59:59.999999", ""},
    {{kEpoch, 1}, "", "column t, row 1: the INT96 1970-01-01T00:00:00.000000001 has digits below a microsecond"},
    {{kEpoch - 1, 999}, "", "1969-12-31T00:00:00.000000999 has"},
    // As nanoseconds of 64 bits this is a moment of 1715 with no digits below a microsecond.
    {{2'561'118, 616}, "", "2300-01-01T00:00:00.000000616 has"},
    {{1'721'425, 0}, "", "column t, row 1: an INT96 of the Julian day 1721425 and 0 nanoseconds is outside"},
    {{5'373'485, 0}, "", "outside"},
    {{5'373'484, 24 * kNanosOfHour}, "", "10000-01-01"},
    {{0, 0}, "", "outside"},
    {{0xFFFFFFFF, 0}, "", "outside"},
    {{kEpoch, ~uint64_t{0}}, "", "outside"},
    // 2^64 microseconds after 1970, which 64 bits take for 1970.
    {{kEpoch + 213'503'982, 28'909'551'616'000}, "", "outside"},
};

TEST(ParquetInt96Test, EveryMomentOfBigQueryAndNoOther) {
  TemporaryDirectory root;
  const std::string path = root / "x.parquet";
  for (const auto& item : kCases) {
    for (bool list : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {} {} {}", item.moment.julian_day, item.moment.nanos, item.text, list));
      Write(path, {{item.moment}}, list);
      auto table = ReadAll(path);
      if (*item.text == '\0') {
        ASSERT_FALSE(table.ok()) << (*table)->ToString();
        EXPECT_EQ(GetErrorInfo(table.status())->row, 1) << table.status();
        if (!list) {
          EXPECT_THAT(table.status().message(), HasSubstr(item.error));
        }
        EXPECT_THAT(table.status().message(), HasSubstr(path));
        continue;
      }
      ASSERT_TRUE(table.ok()) << table.status();
      const auto& column = *(*table)->column(0)->chunk(0);
      const auto& type = *(*table)->field(0)->type();
      EXPECT_EQ(type.ToString(), list ? "list<item: timestamp[us]>" : "timestamp[us]");
      EXPECT_EQ(TextOf(list ? *static_cast<const arrow::ListArray&>(column).values() : column),
                fmt::format("{}{}", list ? "" : "null ", item.text));
    }
  }
}

TEST(ParquetInt96Test, TheRowOfAnErrorIsThatOfTheFile) {
  TemporaryDirectory root;
  const std::string path = root / "x.parquet";
  const std::vector<Moment> good(10'000, Moment{kEpoch, 0});
  auto bad = good;
  bad.back().nanos = 5;
  Write(path, {good, bad}, false);
  for (int64_t split_bytes : {1, 1 << 20}) {
    auto reader = Read(FileSource::Make({.paths = {path}, .split_bytes = split_bytes}).ValueOrDie(), {.ordered = true}).ValueOrDie();
    EXPECT_EQ(GetErrorInfo(reader->ToTable().status())->row, 20'001);
  }
  Write(path, {good, good}, false);
  EXPECT_EQ(ReadAll(path).ValueOrDie()->num_rows(), 20'002);
}

}  // namespace
}  // namespace headrace
