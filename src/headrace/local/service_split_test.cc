// SplitReadStream as its clients see it. The rule, of storage.proto: "original[0-j] = primary[0-j] and original[j-n] = residual[0-m] once
// the streams have been read to completion".
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/local/service_testing.h"

namespace headrace::local {
namespace {

using ::testing::HasSubstr;

class SplitTest : public ServiceTest {
 protected:
  // The names of both parts; empty ones where the stream is not split.
  std::pair<std::string, std::string> Parts(const std::string& stream, double fraction) {
    storage::SplitReadStreamResponse response;
    grpc::Status status = Split(stream, fraction, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.primary_stream().name(), response.remainder_stream().name()};
  }
  grpc::StatusCode SplitCode(const std::string& stream, double fraction) {
    storage::SplitReadStreamResponse response;
    return Split(stream, fraction, &response).error_code();
  }
  // Both formats: the rows of messages are their bytes without a frame in Avro.
  std::string AvroBytes(const std::string& stream, int64_t offset = 0) {
    std::string bytes;
    storage::ReadRowsRequest request;
    request.set_read_stream(stream);
    request.set_offset(offset);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    auto reader = stub_->ReadRows(&context, request);
    storage::ReadRowsResponse response;
    while (reader->Read(&response)) bytes += response.avro_rows().serialized_binary_rows();
    EXPECT_TRUE(reader->Finish().ok());
    return bytes;
  }
};

TEST_F(SplitTest, TheFractionIsOfTheWholeStream) {
  Start(Options(20));
  std::string stream = Session(Request()).streams(0).name();
  struct Case {
    double fraction;
    int64_t cut;  // 0 = not split
  };
  const Case kCases[] = {
      {0.5, 10}, {0, 10}, {0.25, 5}, {0.05, 1}, {0.049, 0}, {0.95, 19}, {0.999, 19}, {std::numeric_limits<double>::min(), 0},
  };
  for (const Case& c : kCases) {
    auto [primary, remainder] = Parts(stream, c.fraction);
    EXPECT_EQ(primary.empty(), c.cut == 0) << c.fraction;
    EXPECT_EQ(remainder.empty(), c.cut == 0) << c.fraction;
    if (c.cut == 0) continue;
    EXPECT_EQ(Read(primary).ids, Range(0, c.cut)) << c.fraction;
    EXPECT_EQ(Read(remainder).ids, Range(c.cut, 20)) << c.fraction;
  }
  EXPECT_EQ(Read(stream).ids, Range(0, 20));  // "can still be read from in the same manner as before"
}

TEST_F(SplitTest, WrongCallsAreRefused) {
  Start(Options(20));
  std::string session = Session(Request()).name();
  std::string stream = session + "/streams/0";
  for (double fraction :
       {1.0, -0.1, 1.5, std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    storage::SplitReadStreamResponse response;
    grpc::Status status = Split(stream, fraction, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << fraction;
    EXPECT_THAT(status.error_message(), HasSubstr("fraction"));
  }
  auto primary = Parts(stream, 0.5).first;
  EXPECT_EQ(SplitCode("", 0.5), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SplitCode(session, 0.5), grpc::StatusCode::INVALID_ARGUMENT);
  for (const std::string& unknown :
       {session + "/streams/1", session + "x/streams/0", primary + "A", primary.substr(0, primary.size() - 1)}) {
    EXPECT_EQ(SplitCode(unknown, 0.5), grpc::StatusCode::NOT_FOUND) << unknown;
    EXPECT_EQ(Read(unknown).status.error_code(), grpc::StatusCode::NOT_FOUND) << unknown;
  }
  clock_.Advance(std::chrono::hours(7));
  EXPECT_EQ(SplitCode(stream, 0.5), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Read(primary).status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

// Offsets in the primary are those of the original; in the remainder they start again.
TEST_F(SplitTest, OffsetsOfTheParts) {
  Start(Options(20));
  std::string stream = Session(Request()).streams(0).name();
  auto [primary, remainder] = Parts(stream, 0.6);
  for (int64_t offset = 0; offset <= 12; ++offset) {
    Outcome outcome = Read(primary, offset);
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_EQ(outcome.ids, Range(offset, 12)) << offset;
  }
  EXPECT_EQ(Read(primary, 13).status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Read(remainder, 3).ids, Range(15, 20));
  EXPECT_TRUE(Read(remainder, 8).status.ok());
  EXPECT_EQ(Read(remainder, 9).status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(SplitTest, ChildrenSplitDownToSingleRows) {
  Start(Options(20));
  auto session = Session(Request(3));
  std::vector<std::string> open;
  for (const auto& stream : session.streams()) open.push_back(stream.name());
  int64_t splits = 0;
  for (size_t i = 0; i < open.size() && splits < 100;) {
    auto [primary, remainder] = Parts(open[i], 0.5);
    if (primary.empty()) {
      EXPECT_EQ(Read(open[i]).ids.size(), 1U);  // "can no longer be split"
      ++i;
      continue;
    }
    ++splits;
    open[i] = primary;
    open.insert(open.begin() + static_cast<int64_t>(i) + 1, remainder);
  }
  EXPECT_EQ(splits, 17);
  ASSERT_EQ(open.size(), 20U);
  for (size_t i = 0; i < open.size(); ++i) EXPECT_EQ(Read(open[i]).ids, Range(static_cast<int64_t>(i), static_cast<int64_t>(i) + 1));
}

// The cut is made before the restriction: a part may have none of the rows, and the progress shows where the rows lie.
TEST_F(SplitTest, ARestrictionDoesNotMoveTheCut) {
  Start(Options(20));
  auto request = Request();
  request.mutable_read_session()->mutable_read_options()->set_row_restriction("id >= 12 AND name IS NOT NULL");
  std::string stream = Session(request).streams(0).name();
  std::vector<int64_t> kept = {12, 13, 14, 16, 17, 18, 19};
  auto [primary, remainder] = Parts(stream, 0.5);
  EXPECT_TRUE(Read(primary).ids.empty());
  EXPECT_TRUE(Read(primary).status.ok());
  EXPECT_EQ(Read(remainder).ids, kept);
  EXPECT_EQ(Read(primary, 1).status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  auto [left, right] = Parts(remainder, 0.5);  // of its ten rows in storage
  EXPECT_EQ(Read(left).ids, (std::vector<int64_t>{12, 13, 14}));
  EXPECT_EQ(Read(right).ids, (std::vector<int64_t>{16, 17, 18, 19}));

  Outcome whole = Read(stream);
  ASSERT_EQ(whole.messages.size(), 2U);
  auto progress = [&](size_t i) { return whole.messages[i].stats().progress(); };
  EXPECT_DOUBLE_EQ(progress(0).at_response_start(), 12 / 20.0);
  EXPECT_DOUBLE_EQ(progress(0).at_response_end(), 17 / 20.0);
  EXPECT_DOUBLE_EQ(progress(1).at_response_start(), 17 / 20.0);
  EXPECT_DOUBLE_EQ(progress(1).at_response_end(), 1);
  Outcome part = Read(left);  // of the rows of the part
  EXPECT_DOUBLE_EQ(part.messages[0].stats().progress().at_response_start(), 2 / 5.0);
  EXPECT_DOUBLE_EQ(part.messages[0].stats().progress().at_response_end(), 1);
}

TEST_F(SplitTest, SamplesAndAvro) {
  auto options = Options(20'000);
  options.message_rows = 1000;
  options.seed = 3;
  Start(options);
  auto request = Request(2);
  auto* read = request.mutable_read_session()->mutable_read_options();
  read->set_sample_percentage(40);
  read->set_row_restriction("name IS NOT NULL");
  std::string stream = Session(request).streams(1).name();
  auto whole = Read(stream).ids;
  ASSERT_GT(whole.size(), 1000U);
  for (double fraction : {0.1, 0.5, 0.77}) {
    auto [primary, remainder] = Parts(stream, fraction);
    auto ids = Read(primary).ids;
    auto cut = 10'000 + static_cast<int64_t>(10'000 * fraction);
    EXPECT_LT(ids.back(), cut);
    auto rest = Read(remainder).ids;
    EXPECT_GE(rest.front(), cut);
    ids.insert(ids.end(), rest.begin(), rest.end());
    EXPECT_EQ(ids, whole);
  }
  request.mutable_read_session()->set_data_format(storage::AVRO);
  stream = Session(request).streams(1).name();
  auto [primary, remainder] = Parts(stream, 0.3);
  std::string bytes = AvroBytes(stream);
  EXPECT_FALSE(AvroBytes(primary).empty());
  EXPECT_EQ(AvroBytes(primary) + AvroBytes(remainder), bytes);
  EXPECT_EQ(AvroBytes(primary, 100), AvroBytes(stream, 100).substr(0, AvroBytes(primary, 100).size()));
}

TEST_F(SplitTest, AnEmptyTableAndASingleRowAreNotSplit) {
  for (int64_t rows : {0, 1}) {
    auto options = Options(rows);
    options.empty_table_streams = 1;
    Start(options);
    std::string stream = Session(Request()).streams(0).name();
    for (double fraction : {0.0, 0.5, 0.999}) {
      storage::SplitReadStreamResponse response;
      EXPECT_TRUE(Split(stream, fraction, &response).ok());
      EXPECT_FALSE(response.has_primary_stream());
      EXPECT_FALSE(response.has_remainder_stream());
    }
    service_.reset();
  }
}

TEST_F(SplitTest, PartsSurviveARestart) {
  Start(Options(20));
  auto request = Request(2);
  request.mutable_read_session()->mutable_read_options()->set_row_restriction("name IS NOT NULL");
  auto [primary, remainder] = Parts(Session(request).streams(1).name(), 0.5);
  auto near = Read(primary, 1).ids;
  auto far = Read(remainder).ids;
  auto options = Options(20);
  service_->Shutdown();
  Start(options);
  EXPECT_EQ(Read(primary, 1).ids, near);
  EXPECT_EQ(Read(remainder).ids, far);
  EXPECT_FALSE(Parts(remainder, 0.5).first.empty());
  service_->Shutdown();
  Start(Options(21));  // another table of the same name
  EXPECT_EQ(Read(primary).status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(SplitCode(primary, 0.5), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(SplitTest, Counters) {
  Start(Options(20));
  SetFaults(R"({"method":"SplitReadStream","call":1,"action":{"status":{"code":"UNAVAILABLE"}}})");
  std::string stream = Session(Request()).streams(0).name();
  EXPECT_EQ(SplitCode(stream, 0.5), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(SplitCode(stream, 2), grpc::StatusCode::INVALID_ARGUMENT);
  auto [primary, remainder] = Parts(stream, 0.5);
  EXPECT_EQ(Parts(stream, 0.5).first, primary);  // the same call gives the same names
  EXPECT_TRUE(Parts(primary, 0.01).first.empty());
  EXPECT_EQ(SplitCode("nonsense", 0.5), grpc::StatusCode::INVALID_ARGUMENT);  // no stream to count it for
  Read(remainder, 4);
  auto counters = ServiceTest::Counters();
  EXPECT_EQ(counters["split_calls"], 5);
  EXPECT_EQ(counters["splits_accepted"], 2);
  ASSERT_EQ(counters["streams"].size(), 3U);
  const auto& original = counters["streams"][0];
  EXPECT_EQ(original["name"], stream);
  EXPECT_EQ(original["part"], "original");
  EXPECT_EQ(original["splits"], nlohmann::json::parse(R"([{"fraction":0.5,"accepted":false,"status":"UNAVAILABLE"},
      {"fraction":2.0,"accepted":false,"status":"INVALID_ARGUMENT"},
      {"fraction":0.5,"accepted":true,"status":"OK"},{"fraction":0.5,"accepted":true,"status":"OK"}])"));
  EXPECT_EQ(counters["streams"][1]["name"], primary);
  EXPECT_EQ(counters["streams"][1]["part"], "primary");
  EXPECT_EQ(counters["streams"][1]["splits"], nlohmann::json::parse(R"([{"fraction":0.01,"accepted":false,"status":"OK"}])"));
  EXPECT_EQ(counters["streams"][2]["part"], "remainder");
  EXPECT_EQ(counters["streams"][2]["index"], 0);
  EXPECT_EQ(counters["streams"][2]["opens"][0]["offset"], 4);
  EXPECT_TRUE(counters["streams"][2]["splits"].empty());
}

TEST_F(SplitTest, AServerThatIgnoresOffsets) {
  for (auto ignored : {IgnoredOffsets::kNone, IgnoredOffsets::kChildren, IgnoredOffsets::kAll}) {
    auto options = Options(20);
    options.ignore_offsets = ignored;
    Start(options);
    std::string stream = Session(Request()).streams(0).name();
    auto [primary, remainder] = Parts(stream, 0.5);
    EXPECT_EQ(Read(stream, 3).ids, Range(ignored == IgnoredOffsets::kAll ? 0 : 3, 20));
    bool child = ignored != IgnoredOffsets::kNone;
    for (int64_t offset : {3, 10, 11}) {
      Outcome outcome = Read(primary, offset);
      EXPECT_EQ(outcome.status.ok(), child || offset <= 10);
      EXPECT_EQ(outcome.ids, Range(child ? 0 : std::min<int64_t>(offset, 10), 10)) << offset;
      // It says so itself, to those who look.
      if (!child) continue;
      EXPECT_EQ(outcome.messages[0].stats().progress().at_response_start(), 0);
    }
    EXPECT_EQ(Read(remainder, 3).ids, Range(child ? 10 : 13, 20));
    service_.reset();
  }
}

}  // namespace
}  // namespace headrace::local
