#include "headrace/bigquery/read/internal/avro_decoder.h"

#include <arrow/array.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/bigquery/read/internal/session_schema.h"

namespace headrace::bigquery {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kSession[] = R"({"type": "record", "name": "__root__", "fields": [
    {"name": "id", "type": ["null", "long"]}, {"name": "name", "type": ["null", "string"]}]})";

std::shared_ptr<arrow::Schema> Result() { return *SessionSchema(SourceFormat::kAvro, kSession); }

arrow::Result<std::shared_ptr<arrow::RecordBatch>> Decode(AvroDecoder* decoder, const std::string& bytes, int64_t rows) {
  return decoder->DecodeRows(arrow::Buffer::FromString(bytes), rows);
}

// Rows by hand: the branch of the union, then zigzag longs; text after its length.
const std::string kRows = std::string("\x02\x02\x02\x02", 4) + "a" + std::string("\x02\x03\x00", 3) + std::string("\x00\x02\x00", 3);

TEST(AvroDecoder, RowsInTheResultsOrder) {
  auto result = arrow::schema({Result()->field(1), Result()->field(0)});
  auto decoder = *AvroDecoder::Make(result, kSession);
  auto rows = Decode(decoder.get(), kRows, 3);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE((*rows)->schema()->Equals(*result));
  const auto& names = static_cast<const arrow::StringArray&>(*(*rows)->column(0));
  const auto& ids = static_cast<const arrow::Int64Array&>(*(*rows)->column(1));
  EXPECT_EQ(ids.Value(0), 1);
  EXPECT_EQ(ids.Value(1), -2);
  EXPECT_TRUE(ids.IsNull(2));
  EXPECT_EQ(names.GetString(0), "a");
  EXPECT_TRUE(names.IsNull(1));
  EXPECT_EQ(names.GetString(2), "");
  EXPECT_THAT(decoder->row_ends(), ElementsAre(5, 8, 11));
}

// Bytes behind the rows mean nothing, unless they are more rows: those would be lost without a word.
TEST(AvroDecoder, RowsBehindTheLastOneAreAnError) {
  auto decoder = *AvroDecoder::Make(Result(), kSession);
  for (const int64_t said : {0, 1, 2}) {
    auto rows = Decode(decoder.get(), kRows, said);
    EXPECT_EQ(CodeOf(rows.status()), Code::kDataLoss);
    EXPECT_THAT(rows.status().message(), HasSubstr(fmt::format("has {} rows, but {} more", said, 3 - said)));
  }
  for (const std::string& rest : {std::string("anything"), std::string(8, '\0'), kRows + "x", std::string("\x02")}) {
    auto rows = Decode(decoder.get(), kRows + rest, 3);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ((*rows)->num_rows(), 3);
    EXPECT_THAT(decoder->row_ends(), ElementsAre(5, 8, 11));
  }
}

// What comes with the rows decides how they are written, as long as they are the same columns.
TEST(AvroDecoder, SchemasOfResponses) {
  auto decoder = *AvroDecoder::Make(Result(), kSession);
  EXPECT_TRUE(decoder->SetWireSchema(kSession).ok());
  constexpr char kTurned[] = R"({"type": "record", "name": "other", "fields": [
      {"name": "id", "type": ["long", "null"]}, {"name": "name", "type": "string"}]})";
  ASSERT_TRUE(decoder->SetWireSchema(kTurned).ok());
  auto rows = Decode(decoder.get(), std::string("\x00\x02\x02", 3) + "a" + std::string("\x02\x00", 2), 2);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(static_cast<const arrow::Int64Array&>(*(*rows)->column(0)).Value(0), 1);
  EXPECT_TRUE((*rows)->column(0)->IsNull(1));
  ASSERT_TRUE(decoder->SetWireSchema(kSession).ok());
  EXPECT_TRUE(Decode(decoder.get(), kRows, 3).ok());

  struct Case {
    std::string schema;
    std::vector<std::string> says;
  };
  for (const Case& c : {
           Case{R"({"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]})", {"name: want string, have nothing"}},
           Case{R"({"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}, {"name": "name", "type": "string"}]})",
                {"id: want int64, have string"}},
           Case{"{}", {"Avro schema"}},
           Case{"", {"Avro schema"}},
           Case{"garbage", {"Avro schema"}},
       }) {
    const auto status = decoder->SetWireSchema(c.schema);
    for (const auto& says : c.says) EXPECT_THAT(status.message(), HasSubstr(says));
    EXPECT_EQ(CodeOf(status), Code::kDataLoss);
    EXPECT_TRUE(Decode(decoder.get(), kRows, 3).ok()) << "the decoder is as it was";
  }
}

TEST(AvroDecoder, WrongBytesAreDataLoss) {
  auto decoder = *AvroDecoder::Make(Result(), kSession);
  struct Case {
    std::string bytes;
    int64_t rows;
  };
  for (const Case& c :
       {Case{kRows, 4}, Case{kRows.substr(0, kRows.size() - 1), 3}, Case{"", 1}, Case{"\x04", 1}, Case{std::string(20, '\xff'), 1},
        Case{std::string("\x00\x02\xfe\xff\xff\xff\x0f", 7), 1}, Case{kRows, INT32_MAX}}) {
    EXPECT_EQ(CodeOf(Decode(decoder.get(), c.bytes, c.rows).status()), Code::kDataLoss);
  }
  EXPECT_TRUE(Decode(decoder.get(), "", 0).ok());
}

TEST(AvroDecoder, ASessionWithoutReadableSchemaIsRefused) {
  for (const char* text : {"", "{}", "[", R"("long")"}) {
    EXPECT_FALSE(SessionSchema(SourceFormat::kAvro, text).ok()) << text;
    EXPECT_FALSE(AvroDecoder::Make(Result(), text).ok()) << text;
  }
  EXPECT_THAT(SessionSchema(SourceFormat::kAvro, R"({"type": "record", "name": "r", "fields": [
      {"name": "a", "type": "long"}, {"name": "A", "type": "long"}]})")
                  .status()
                  .message(),
              HasSubstr("A"));
}

}  // namespace
}  // namespace headrace::bigquery
