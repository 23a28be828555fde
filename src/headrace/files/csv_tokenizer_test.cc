#include "headrace/files/internal/csv_tokenizer.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

using testing::HasSubstr;

/// Gives at most `piece` bytes a read, so that every byte is once the last of what is held.
class SmallReads final : public arrow::io::InputStream {
 public:
  SmallReads(std::string text, int64_t piece) : text_(std::move(text)), piece_(piece) {}
  arrow::Result<int64_t> Read(int64_t size, void* out) override {
    const int64_t count = std::min({size, piece_, static_cast<int64_t>(text_.size()) - at_});
    std::copy_n(text_.data() + at_, count, static_cast<char*>(out));
    at_ += count;
    return count;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t) override { return arrow::Status::NotImplemented("unused"); }
  arrow::Result<int64_t> Tell() const override { return at_; }
  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }

 private:
  const std::string text_;
  const int64_t piece_;
  int64_t at_ = 0;
};

/// Records as text: fields joined by '|', quoted ones in <>, "@LINE" in front.
arrow::Result<std::string> Tokens(const std::string& text, int64_t piece) {
  CsvTokenizer tokenizer(std::make_shared<SmallReads>(text, piece), "f.csv");
  std::string all;
  int64_t end = -1;
  while (true) {
    ARROW_ASSIGN_OR_RAISE(bool more, tokenizer.Next());
    if (!more) return all;
    EXPECT_TRUE(end < 0 || tokenizer.record_offset() == end) << "records lie one behind the other";
    end = tokenizer.end_offset();
    all += fmt::format("@{} ", tokenizer.line());
    for (size_t i = 0; i < tokenizer.fields().size(); ++i) {
      const auto& field = tokenizer.fields()[i];
      all += fmt::format("{}{}", i == 0 ? "" : "|", field.quoted ? fmt::format("<{}>", field.text) : std::string(field.text));
    }
    all += " ";
  }
}

TEST(CsvTokenizerTest, Records) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"a,b\n1,2\n", "@1 a|b @2 1|2 "},
      {"a,b\r\n1,2\r\n", "@1 a|b @2 1|2 "},
      {"a,b\n1,2", "@1 a|b @2 1|2 "},
      {"a\n\n1\n", "@1 a @2  @3 1 "},
      {",\n,", "@1 | @2 | "},
      {"\"\",\n", "@1 <>| "},
      {"\"a,b\",c\n", "@1 <a,b>|c "},
      {"\"a\nb\",c\nd\n", "@1 <a\nb>|c @3 d "},
      {"\"a\"\"b\",\"\"\"\"\n", "@1 <a\"b>|<\"> "},
      {"\"a\"\r\n\"b\"\r\n", "@1 <a> @2 <b> "},
      {"\"a\"", "@1 <a> "},
      {"5\" pipe,x\n", "@1 5\" pipe|x "},
      {"a\rb,c\n", "@1 a\rb|c "},
      {"\xef\xbb\xbf"
       "a,b\n",
       "@1 a|b "},
      {"a,\xef\xbb\xbf"
       "b\n",
       "@1 a|\xef\xbb\xbf"
       "b "},
      {"\"x\r\ny\"\r\nz", "@1 <x\r\ny> @3 z "},
  };
  for (const auto& [text, expected] : cases) {
    for (int64_t piece : {1, 2, 3, 1000}) {
      if (std::string_view(text).starts_with("\xef") && piece < 3) continue;  // a mark comes whole: files are read in large pieces
      auto tokens = Tokens(text, piece);
      ASSERT_TRUE(tokens.ok()) << tokens.status();
      EXPECT_EQ(*tokens, expected) << text << " in pieces of " << piece;
    }
  }
}

TEST(CsvTokenizerTest, QuotesThatDoNotEnd) {
  const std::pair<const char*, const char*> cases[] = {
      {"a,b\n1,\"x\n2,y\n", "line 2, field 2: the quote that opens here is never closed"},
      {"a,b\n1,\"x\n2,y\n3,\"z\"\n", "line 2, field 2: there is text behind"},
      {"\"a\"b\n", "line 1, field 1: there is text behind"},
      {"\"a\" ,b\n", "line 1, field 1: there is text behind"},
      {"\"a\"\rb\n", "line 1, field 1: there is text behind"},
      {"\"", "line 1, field 1: the quote"},
      {"\"l\nm\",\"n\n", "line 2, field 2: the quote"},
  };
  for (const auto& [text, expected] : cases) {
    for (int64_t piece : {1, 1000}) {
      auto tokens = Tokens(text, piece);
      ASSERT_FALSE(tokens.ok()) << text;
      EXPECT_EQ(GetErrorInfo(tokens.status())->reason, "BAD_ROW");
      EXPECT_THAT(tokens.status().message(), HasSubstr(fmt::format("f.csv, {}", expected)));
    }
  }
}

TEST(CsvTokenizerTest, RecordsLongerThanAPiece) {
  const std::string large(3'000'000, 'x');
  auto tokens = Tokens(fmt::format("a,\"{0}\n{0}\"\nb\n", large), 1 << 20);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(*tokens, fmt::format("@1 a|<{0}\n{0}> @3 b ", large));
}

TEST(CsvTokenizerTest, AQuoteThatSwallowsTheFileIsFoundOut) {
  std::string text = "a\n\"";
  text.append(static_cast<size_t>(kMaxRecordBytes) + 10'000'000, '\n');
  auto tokens = Tokens(text, int64_t{1} << 30);
  ASSERT_FALSE(tokens.ok());
  EXPECT_THAT(tokens.status().message(), HasSubstr("line 2: the row that begins here is longer"));
}

}  // namespace
}  // namespace headrace
