// The service as its clients see it: a gRPC stub and plain HTTP over loopback.
#include "headrace/local/service.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <gtest/gtest.h>

#include "headrace/local/service_testing.h"

namespace headrace::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ServiceTest, SessionSaysWhatItIs) {
  Start(Options(20));
  auto session = Session(Request(3));
  EXPECT_TRUE(session.name().starts_with("projects/billing/locations/local/sessions/"));
  ASSERT_EQ(session.streams_size(), 3);
  EXPECT_EQ(session.streams(2).name(), session.name() + "/streams/2");
  EXPECT_EQ(session.table(), "projects/p/datasets/d/tables/t");
  EXPECT_EQ(session.data_format(), storage::ARROW);
  // Fact R7: exactly six hours.
  EXPECT_EQ(session.expire_time().seconds(), 1'700'000'000 + 6 * 3600);
  EXPECT_EQ(session.estimated_row_count(), 20);
  EXPECT_GT(session.estimated_total_bytes_scanned(), 20 * 16);
  EXPECT_FALSE(session.arrow_schema().serialized_schema().empty());
  EXPECT_NE(Session(Request(3)).name(), session.name());
}

// Facts R1, R2, R3: every offset of a stream, its end, and beyond.
TEST_F(ServiceTest, OffsetsAtEveryRow) {
  Start(Options(20));
  std::string stream = Session(Request()).streams(0).name();
  for (int64_t offset = 0; offset <= 20; ++offset) {
    Outcome outcome = Read(stream, offset);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    EXPECT_EQ(outcome.ids, Range(offset, 20)) << offset;
    EXPECT_EQ(outcome.messages.empty(), offset == 20);
  }
  Outcome beyond = Read(stream, 21);
  EXPECT_EQ(beyond.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(beyond.status.error_message(), HasSubstr("offset 21 has not been allocated yet"));
  EXPECT_EQ(Read(stream, -1).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, MessagesCarrySchemaOnceProgressAndCounts) {
  Start(Options(20));
  Outcome outcome = Read(Session(Request()).streams(0).name(), 10);
  ASSERT_GE(outcome.messages.size(), 3U);
  double at = 0.5;
  int64_t rows = 0;
  for (size_t i = 0; i < outcome.messages.size(); ++i) {
    const auto& message = outcome.messages[i];
    EXPECT_EQ(message.has_arrow_schema(), i == 0);
    EXPECT_DOUBLE_EQ(message.stats().progress().at_response_start(), at);
    at = message.stats().progress().at_response_end();
    EXPECT_TRUE(message.has_throttle_state());
    EXPECT_EQ(message.throttle_state().throttle_percent(), 0);
    EXPECT_FALSE(message.has_uncompressed_byte_size());
    EXPECT_LE(message.row_count(), 4);
    rows += message.row_count();
  }
  EXPECT_DOUBLE_EQ(at, 1.0);
  EXPECT_EQ(rows, 10);
}

TEST_F(ServiceTest, StreamsAreConsecutivePartsOfTheTable) {
  Start(Options(20));
  for (int count : {1, 2, 3, 7, 20, 50}) {
    auto session = Session(Request(count));
    EXPECT_EQ(session.streams_size(), std::min(count, 20));
    std::vector<int64_t> all;
    for (const auto& stream : session.streams()) {
      Outcome outcome = Read(stream.name());
      EXPECT_FALSE(outcome.ids.empty());
      all.insert(all.end(), outcome.ids.begin(), outcome.ids.end());
    }
    EXPECT_EQ(all, Range(0, 20)) << count;
  }
  auto request = Request(0);
  EXPECT_EQ(Session(request).streams_size(), 1);  // fact R11: a small table
  request.set_preferred_min_stream_count(4);
  EXPECT_EQ(Session(request).streams_size(), 4);
}

// Facts R4, R5, R11: without streams_as_asked a small table has one stream, whatever is asked for.
TEST_F(ServiceTest, ASmallTableHasOneStream) {
  auto options = Options(20);
  options.streams_as_asked = false;
  Start(options);
  for (int most : {0, 1, 8}) EXPECT_EQ(Session(Request(most)).streams_size(), 1) << most;
  auto request = Request(0);
  request.set_preferred_min_stream_count(4);
  EXPECT_EQ(Session(request).streams_size(), 1);
}

// The same shape and other values: the session must not go on with them.
TEST_F(ServiceTest, OtherValuesOfTheSameShapeAreNoticed) {
  Start(Options(20));
  std::string stream = Session(Request()).streams(0).name();
  auto options = Options(20);
  auto rows = Numbers(21)->Slice(1);
  options.tables = {{"p.d.t", rows}};
  service_->Shutdown();
  Start(options);
  Outcome other = Read(stream);
  EXPECT_EQ(other.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(other.status.error_message(), HasSubstr("loaded again with other content"));
}

TEST_F(ServiceTest, EmptyTable) {
  for (int streams : {0, 1}) {
    auto options = Options(0);
    options.empty_table_streams = streams;
    Start(options);
    auto session = Session(Request(5));
    ASSERT_EQ(session.streams_size(), streams);
    EXPECT_FALSE(session.arrow_schema().serialized_schema().empty());
    for (const auto& stream : session.streams()) EXPECT_TRUE(Read(stream.name()).status.ok());
    service_.reset();
  }
}

TEST_F(ServiceTest, ProjectionKeepsTableOrderAndSpelling) {
  Start(Options(20));
  auto request = Request();
  auto* options = request.mutable_read_session()->mutable_read_options();
  for (const char* name : {"VALUE", "id", "value"}) options->add_selected_fields(name);
  Outcome outcome = Read(Session(request).streams(0).name());
  EXPECT_EQ(outcome.ids, Range(0, 20));
  EXPECT_THAT(schema_->field_names(), ElementsAre("id", "Value"));
}

TEST_F(ServiceTest, RestrictionAndOffsetsAfterIt) {
  Start(Options(20));
  auto request = Request();
  auto* options = request.mutable_read_session()->mutable_read_options();
  options->set_row_restriction("name IS NOT NULL AND value >= 3.0");  // of columns that are not selected
  options->add_selected_fields("id");
  std::vector<int64_t> kept = {6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19};
  std::string stream = Session(request).streams(0).name();
  for (size_t offset = 0; offset <= kept.size(); ++offset) {
    EXPECT_EQ(Read(stream, static_cast<int64_t>(offset)).ids,
              std::vector<int64_t>(kept.begin() + static_cast<int64_t>(offset), kept.end()));
  }
  EXPECT_EQ(Read(stream, 13).status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  // Over several streams, one of which has no row (case U45).
  request.set_max_stream_count(4);
  std::vector<int64_t> all;
  auto session = Session(request);
  for (const auto& part : session.streams()) {
    Outcome outcome = Read(part.name());
    EXPECT_TRUE(outcome.status.ok());
    all.insert(all.end(), outcome.ids.begin(), outcome.ids.end());
  }
  EXPECT_EQ(all, kept);
  options->set_row_restriction("id < 0");
  session = Session(request);
  for (const auto& part : session.streams()) EXPECT_TRUE(Read(part.name()).messages.empty());
}

TEST_F(ServiceTest, CompressionsGiveTheSameRows) {
  auto options = Options(2000);
  options.message_rows = 700;
  Start(options);
  for (auto codec : {storage::ArrowSerializationOptions::LZ4_FRAME, storage::ArrowSerializationOptions::ZSTD}) {
    auto request = Request();
    request.mutable_read_session()->mutable_read_options()->mutable_arrow_serialization_options()->set_buffer_compression(codec);
    Outcome compressed = Read(Session(request).streams(0).name(), 1);
    EXPECT_EQ(compressed.ids, Range(1, 2000));
    Outcome plain = Read(Session(Request()).streams(0).name(), 1);
    EXPECT_LT(compressed.messages[0].ByteSizeLong(), plain.messages[0].ByteSizeLong());
  }
}

TEST_F(ServiceTest, MessagesKeepToTheirBytes) {
  auto options = Options(20'000);
  options.message_rows = 1'000'000;
  options.message_bytes = 32 << 10;
  Start(options);
  Outcome outcome = Read(Session(Request()).streams(0).name());
  EXPECT_EQ(outcome.ids, Range(0, 20'000));
  EXPECT_GT(outcome.messages.size(), 10U);
  for (const auto& message : outcome.messages) EXPECT_LT(message.ByteSizeLong(), 70U << 10);
}

TEST_F(ServiceTest, SampleIsDeterministicBySeed) {
  auto ids = [&](uint64_t seed, double percentage) {
    auto options = Options(20'000);
    options.message_rows = 65536;
    options.seed = seed;
    Start(options);
    auto request = Request();
    request.mutable_read_session()->mutable_read_options()->set_sample_percentage(percentage);
    return Read(Session(request).streams(0).name()).ids;
  };
  auto half = ids(1, 50);
  EXPECT_GT(half.size(), 8000U);
  EXPECT_LT(half.size(), 12000U);
  EXPECT_EQ(ids(1, 50), half);
  EXPECT_NE(ids(2, 50), half);
  EXPECT_TRUE(ids(1, 0).empty());
  EXPECT_EQ(ids(1, 100).size(), 20'000U);
}

struct RequestCase {
  const char* what;
  std::function<void(storage::CreateReadSessionRequest*)> change;
  grpc::StatusCode code;
  const char* text;
};

TEST_F(ServiceTest, WrongRequestsInTheServicesWords) {
  Start(Options(20));
  using grpc::StatusCode;
  auto session = [](storage::CreateReadSessionRequest* request) { return request->mutable_read_session(); };
  auto read = [](storage::CreateReadSessionRequest* request) { return request->mutable_read_session()->mutable_read_options(); };
  using R = storage::CreateReadSessionRequest;
  const RequestCase kCases[] = {
      {"no parent", [](R* r) { r->set_parent(""); }, StatusCode::INVALID_ARGUMENT, "not of the form projects/PROJECT"},
      {"parent", [](R* r) { r->set_parent("projects/a/b"); }, StatusCode::INVALID_ARGUMENT, "not of the form projects/PROJECT"},
      {"table form", [=](R* r) { session(r)->set_table("p.d.t"); }, StatusCode::INVALID_ARGUMENT, "is not a table name"},
      {"no table", [=](R* r) { session(r)->set_table("projects/p/datasets/d/tables/x"); }, StatusCode::NOT_FOUND, "Not found: Table p:d.x"},
      {"view (R14)", [=](R* r) { session(r)->set_table("projects/p/datasets/d/tables/v"); }, StatusCode::INVALID_ARGUMENT,
       "request failed: non-table entities cannot be read with the storage API"},
      {"R6",
       [](R* r) {
         r->set_preferred_min_stream_count(5);
         r->set_max_stream_count(3);
       },
       StatusCode::INVALID_ARGUMENT, "preferred_min_stream_count 5"},
      {"negative", [](R* r) { r->set_max_stream_count(-1); }, StatusCode::INVALID_ARGUMENT, "must not be negative"},
      {"no format", [=](R* r) { session(r)->clear_data_format(); }, StatusCode::INVALID_ARGUMENT, "data_format"},
      {"Arrow options of Avro",
       [=](R* r) {
         session(r)->set_data_format(storage::AVRO);
         read(r)->mutable_arrow_serialization_options();
       },
       StatusCode::INVALID_ARGUMENT, "ARROW"},
      {"Avro options", [=](R* r) { read(r)->mutable_avro_serialization_options(); }, StatusCode::INVALID_ARGUMENT, "AVRO"},
      {"whole response",
       [=](R* r) {
         read(r)->set_response_compression_codec(storage::ReadSession::TableReadOptions::RESPONSE_COMPRESSION_CODEC_LZ4);
         read(r)->mutable_arrow_serialization_options()->set_buffer_compression(storage::ArrowSerializationOptions::ZSTD);
       },
       StatusCode::INVALID_ARGUMENT, "cannot be set both"},
      {"field", [=](R* r) { read(r)->add_selected_fields("nope"); }, StatusCode::INVALID_ARGUMENT,
       "The following selected fields do not exist in the table schema: nope"},
      {"nested", [=](R* r) { read(r)->add_selected_fields("name.x"); }, StatusCode::INVALID_ARGUMENT, "table schema: name.x"},
      {"restriction", [=](R* r) { read(r)->set_row_restriction("id = "); }, StatusCode::INVALID_ARGUMENT, "at [1:6]"},
      {"function", [=](R* r) { read(r)->set_row_restriction("SQRT(id) = 1"); }, StatusCode::UNIMPLEMENTED, "the function SQRT"},
      {"sample", [=](R* r) { read(r)->set_sample_percentage(101); }, StatusCode::INVALID_ARGUMENT, "sample_percentage"},
      {"trace", [=](R* r) { session(r)->set_trace_id(std::string(257, 'x')); }, StatusCode::INVALID_ARGUMENT, "trace_id"},
  };
  for (const auto& c : kCases) {
    auto request = Request();
    c.change(&request);
    storage::ReadSession made;
    grpc::Status status = Create(request, &made);
    EXPECT_EQ(status.error_code(), c.code) << c.what;
    EXPECT_THAT(status.error_message(), HasSubstr(c.text)) << c.what;
  }
  EXPECT_EQ(Counters()["sessions_created"], 0);
}

TEST_F(ServiceTest, SnapshotTime) {
  Start(Options(20));
  int64_t load = 1'700'000'000;
  clock_.Advance(std::chrono::hours(1));
  struct Case {
    int64_t seconds;
    int64_t advance_hours;
    const char* text;
  };
  const Case kCases[] = {
      {load, 0, ""},
      {load + 3600, 0, ""},
      {load - 1, 0, "Invalid snapshot time 1699999999000 for Table p:d.t@1699999999000. Cannot read before 1700000000000"},
      {load + 3601, 0, "in the future"},
      {load - int64_t{168} * 3600, 0, "time travel timestamp exceeds the maximum time travel duration of 168h"},  // fact R8
      {load, 168, "time travel timestamp exceeds"},
  };
  for (const Case& c : kCases) {
    clock_.Advance(std::chrono::hours(c.advance_hours));
    auto request = Request();
    request.mutable_read_session()->mutable_table_modifiers()->mutable_snapshot_time()->set_seconds(c.seconds);
    storage::ReadSession session;
    grpc::Status status = Create(request, &session);
    EXPECT_EQ(status.error_code(), *c.text == '\0' ? grpc::StatusCode::OK : grpc::StatusCode::INVALID_ARGUMENT) << c.text;
    EXPECT_THAT(status.error_message(), HasSubstr(c.text));
  }
}

TEST_F(ServiceTest, SessionsExpire) {
  Start(Options(20));
  std::string stream = Session(Request()).streams(0).name();
  clock_.Advance(std::chrono::hours(6));
  EXPECT_TRUE(Read(stream).status.ok());
  clock_.Advance(std::chrono::microseconds(1));
  Outcome outcome = Read(stream);
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(outcome.status.error_message(), HasSubstr("session expired"));
}

TEST_F(ServiceTest, SessionsSurviveARestart) {
  Start(Options(20));
  auto request = Request(2);
  request.mutable_read_session()->mutable_read_options()->set_row_restriction("name IS NOT NULL");
  std::string stream = Session(request).streams(1).name();
  auto before = Read(stream, 3).ids;
  auto options = Options(20);
  service_->Shutdown();
  Start(options);
  EXPECT_EQ(Read(stream, 3).ids, before);
  EXPECT_EQ(Counters()["sessions_created"], 0);
  // With another table of the same name the rows would be wrong ones.
  service_->Shutdown();
  Start(Options(21));
  Outcome other = Read(stream, 3);
  EXPECT_EQ(other.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(other.status.error_message(), HasSubstr("loaded again with other content"));
  EXPECT_EQ(Read("projects/p/locations/local/sessions/x/streams/0").status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Read("nonsense").status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, StatusFaultsWithDetailsAndCounters) {
  Start(Options(20));
  SetFaults(
      R"({"method":"CreateReadSession","call":1,"action":{"status":{"code":"RESOURCE_EXHAUSTED","message":"slow down","retry_delay_ms":1500}}},
               {"method":"ReadRows","call":1,"after_messages":2,"action":{"status":{"code":"UNAVAILABLE"}}},
               {"method":"ReadRows","match":{"offset":8},"after_messages":"after_last","times":1,"action":{"status":{"code":"INTERNAL"}}})");
  storage::ReadSession none;
  grpc::Status status = Create(Request(), &none);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "slow down");
  google::rpc::Status details;
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 1);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);

  std::string stream = Session(Request()).streams(0).name();
  Outcome broken = Read(stream);
  EXPECT_EQ(broken.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  // The table's chunks end at row 6, or were combined: two messages of at most four rows.
  EXPECT_EQ(broken.ids, Range(0, 8));
  Outcome last = Read(stream, 8);
  EXPECT_EQ(last.status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(last.ids, Range(8, 20));
  EXPECT_TRUE(Read(stream, 20).status.ok());

  auto counters = Counters();
  EXPECT_EQ(counters["sessions_created"], 1);
  EXPECT_EQ(counters["sessions_by_table"]["p.d.t"], 1);
  EXPECT_EQ(counters["read_rows_calls"], 3);
  ASSERT_EQ(counters["streams"].size(), 1U);
  const auto& counted = counters["streams"][0];
  EXPECT_EQ(counted["name"], stream);
  EXPECT_EQ(counted["rows_sent"], 20);
  EXPECT_EQ(counted["messages_sent"], 5);
  ASSERT_EQ(counted["opens"].size(), 3U);
  EXPECT_EQ(counted["opens"][0], nlohmann::json::parse(R"({"offset":0,"rows_sent":8,"messages_sent":2,"status":"UNAVAILABLE"})"));
  EXPECT_EQ(counted["opens"][1], nlohmann::json::parse(R"({"offset":8,"rows_sent":12,"messages_sent":3,"status":"INTERNAL"})"));
  EXPECT_EQ(counted["opens"][2], nlohmann::json::parse(R"({"offset":20,"rows_sent":0,"messages_sent":0,"status":"OK"})"));
  EXPECT_EQ(counters["faults"][0]["fired"], 1);
  EXPECT_EQ(counters["faults"][1]["fired"], 1);
  EXPECT_EQ(counters["faults"][2]["fired"], 1);
}

TEST_F(ServiceTest, DropBreaksTheConnection) {
  Start(Options(20));
  std::string stream = Session(Request()).streams(0).name();
  for (const char* point : {"0", "2", "\"after_last\""}) {
    SetFaults(std::string(R"({"method":"ReadRows","call":1,"after_messages":)") + point + R"(,"action":{"drop":true}})");
    Outcome outcome = Read(stream);
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAVAILABLE) << point;
    EXPECT_THAT(outcome.status.error_message(), ::testing::Not(HasSubstr("Scripted")))
        << point;  // no status arrived, the connection is gone
    EXPECT_EQ(Counters()["faults"][0]["fired"], 1);
    Connect();  // the old channel may give its next call to the dead connection, too
    Outcome again = Read(stream);
    EXPECT_TRUE(again.status.ok()) << point << ": " << again.status.error_message();
    EXPECT_EQ(again.ids, Range(0, 20));
  }
}

TEST_F(ServiceTest, ThrottleAndDelayTakeTheClocksTime) {
  clock_.set_auto_advance(true);
  auto options = Options(2000);
  options.message_rows = 500;
  options.throttle_bytes_per_second = 10'000;
  Start(options);
  std::string stream = Session(Request()).streams(0).name();
  auto begin = clock_.Monotonic();
  Outcome outcome = Read(stream);
  EXPECT_EQ(outcome.ids, Range(0, 2000));
  auto bytes = Counters()["streams"][0]["bytes_sent"].get<int64_t>();
  auto seconds = std::chrono::duration<double>(clock_.Monotonic() - begin).count();
  EXPECT_NEAR(seconds, static_cast<double>(bytes) / 10'000, 0.1);
  EXPECT_GT(outcome.messages.back().throttle_state().throttle_percent(), 0);

  SetFaults(
      R"({"method":"ReadRows","call":1,"action":{"delay_ms":90000}},{"method":"ReadRows","call":2,"action":{"throttle_bytes_per_second":100}})");
  begin = clock_.Monotonic();
  EXPECT_TRUE(Read(stream, 2000).status.ok());
  EXPECT_GE(clock_.Monotonic() - begin, std::chrono::seconds(90));
  begin = clock_.Monotonic();
  EXPECT_EQ(Read(stream, 1900).ids, Range(1900, 2000));
  EXPECT_GE(clock_.Monotonic() - begin, std::chrono::seconds(20));
}

TEST_F(ServiceTest, EachStreamHasItsOwnRate) {
  clock_.set_auto_advance(true);
  auto options = Options(2000);
  options.message_rows = 100;
  options.stream_throttle_bytes_per_second = 10'000;
  Start(options);
  auto session = Session(Request(2));
  auto begin = clock_.Monotonic();
  for (const auto& stream : session.streams()) EXPECT_EQ(Read(stream.name()).ids.size(), 1000U);  // one after the other
  auto both = std::chrono::duration<double>(clock_.Monotonic() - begin).count();
  auto counters = Counters();
  auto bytes = counters["streams"][0]["bytes_sent"].get<double>() + counters["streams"][1]["bytes_sent"].get<double>();
  EXPECT_NEAR(both, bytes / 10'000, 0.1);
  // A call does not pay for one that came before it.
  begin = clock_.Monotonic();
  Outcome outcome = Read(session.streams(0).name(), 900);
  EXPECT_NEAR(std::chrono::duration<double>(clock_.Monotonic() - begin).count(),
              Counters()["streams"][0]["bytes_sent"].get<double>() / 10'000 - counters["streams"][0]["bytes_sent"].get<double>() / 10'000,
              0.1);
}

TEST_F(ServiceTest, ShutdownEndsAWaitingCall) {
  auto options = Options(20);
  options.clock = RealClock();
  Start(options);
  std::string stream = Session(Request()).streams(0).name();
  SetFaults(R"({"method":"ReadRows","action":{"delay_ms":600000}})");
  Outcome outcome;
  std::jthread reading([&] { outcome = Read(stream); });
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (Counters()["read_rows_calls"] == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  std::jthread waiting([&] { service_->Wait({}); });
  service_->Shutdown();
  waiting.join();
  reading.join();
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

// One HTTP/1.0 exchange.
std::string Http(const std::string& address, const std::string& request) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  timeval limit{10, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0 && send(fd, request.data(), request.size(), 0) > 0) {
    char buffer[4096];
    for (ssize_t got = recv(fd, buffer, sizeof(buffer), 0); got > 0; got = recv(fd, buffer, sizeof(buffer), 0))
      answer.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return answer;
}

TEST_F(ServiceTest, AdminEndpoint) {
  Start(Options(20));
  auto post = [&](const std::string& body) {
    return Http(bound_.http, "POST /headrace/faults HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  };
  EXPECT_THAT(Http(bound_.http, "GET /headrace/health HTTP/1.0\r\n\r\n"), HasSubstr("{\"status\":\"ok\"}"));
  EXPECT_THAT(Http(bound_.http, "GET /headrace/counters HTTP/1.0\r\n\r\n"), HasSubstr("\"sessions_created\":0"));
  EXPECT_THAT(post(R"({"rules":[{"method":"ReadRows","action":{"drop":true}}]})"),
              HasSubstr(R"({"faults":[{"rule":0,"calls":0,"fired":0}]})"));
  std::string refused = post(R"({"rules":[{"method":"ReadRows","action":{"drop":true},"x":1}]})");
  EXPECT_THAT(refused, HasSubstr("400"));
  EXPECT_THAT(refused, HasSubstr(R"(unknown key \"x\")"));
  EXPECT_THAT(Http(bound_.http, "GET /headrace/faults HTTP/1.0\r\n\r\n"), HasSubstr("\"rule\":0"));  // unchanged
  EXPECT_THAT(Http(bound_.http, "DELETE /headrace/faults HTTP/1.0\r\n\r\n"), HasSubstr(R"({"faults":[]})"));
  EXPECT_THAT(Http(bound_.http, "GET /other HTTP/1.0\r\n\r\n"), HasSubstr("404"));
  struct sigaction pipe{};
  sigaction(SIGPIPE, nullptr, &pipe);
  EXPECT_EQ(pipe.sa_handler, SIG_DFL);  // a library leaves the process's signals alone
}

TEST(ServiceOptionsTest, WrongOptionsAreNamed) {
  struct Case {
    const char* option;
    std::function<void(ServiceOptions*)> change;
  };
  const Case kCases[] = {
      {"grpc_port is 70000", [](ServiceOptions* o) { o->grpc_port = 70000; }},
      {"port is -1", [](ServiceOptions* o) { o->port = -1; }},
      {"message_bytes is 0", [](ServiceOptions* o) { o->message_bytes = 0; }},
      {"message_rows is 0", [](ServiceOptions* o) { o->message_rows = 0; }},
      {"throttle_bytes_per_second is -1", [](ServiceOptions* o) { o->throttle_bytes_per_second = -1; }},
      {"stream_throttle_bytes_per_second is -1", [](ServiceOptions* o) { o->stream_throttle_bytes_per_second = -1; }},
      {"empty_table_streams is 2", [](ServiceOptions* o) { o->empty_table_streams = 2; }},
      {"cache_bytes is -1", [](ServiceOptions* o) { o->cache_bytes = -1; }},
      {"max_threads is 1", [](ServiceOptions* o) { o->max_threads = 1; }},
      {"\"localhost\" is not a numeric address", [](ServiceOptions* o) { o->bind_address = "localhost"; }},
      {"\"t\" is not a table name", [](ServiceOptions* o) { o->tables = {{"t", Numbers(1)}}; }},
      {"\"d.t\" is not a table name", [](ServiceOptions* o) { o->load = {{"d.t", "x.csv"}}; }},
      {"The table p.d.t is given twice", [](ServiceOptions* o) { o->tables = {{"p.d.t", Numbers(1)}, {"p.d.t", Numbers(1)}}; }},
      {"The table p.d.t is given twice",
       [](ServiceOptions* o) {
         o->tables = {{"p.d.t", Numbers(1)}};
         o->views = {"p.d.t"};
       }},
      {"/does/not/exist", [](ServiceOptions* o) { o->fault_script = "/does/not/exist"; }},
      {"/does/not/exist.csv", [](ServiceOptions* o) { o->load = {{"p.d.t", "/does/not/exist.csv"}}; }},
  };
  for (const Case& c : kCases) {
    ServiceOptions options;
    c.change(&options);
    Service service(options);
    auto bound = service.Start();
    EXPECT_THAT(bound.status().message(), HasSubstr(c.option));
  }
}

TEST_F(ServiceTest, LoadsFilesWithTheirNulls) {
  std::string path = ::testing::TempDir() + "headrace_local_" + std::to_string(getpid()) + ".csv";
  ASSERT_TRUE(WriteFileAtomically(LocalFileSystem(), path, "id,name\n0,a\n1,NA\n", true).ok());
  auto options = Options(1);
  options.tables.clear();
  options.load = {{"p.d.t", path}};
  options.csv_null_values = {"NA"};
  Start(options);
  auto request = Request();
  request.mutable_read_session()->mutable_read_options()->set_row_restriction("name IS NULL");
  EXPECT_THAT(Read(Session(request).streams(0).name()).ids, ElementsAre(1));
  EXPECT_TRUE(LocalFileSystem()->Remove(path).ok());
}

TEST_F(ServiceTest, FaultScriptFromAFile) {
  std::string path = ::testing::TempDir() + "headrace_local_" + std::to_string(getpid()) + ".json";
  ASSERT_TRUE(WriteFileAtomically(LocalFileSystem(), path,
                                  R"({"rules":[{"method":"CreateReadSession","action":{"status":{"code":"ABORTED"}}}]})", true)
                  .ok());
  auto options = Options(1);
  options.fault_script = path;
  Start(options);
  storage::ReadSession session;
  EXPECT_EQ(Create(Request(), &session).error_code(), grpc::StatusCode::ABORTED);
  EXPECT_TRUE(LocalFileSystem()->Remove(path).ok());
}

TEST_F(ServiceTest, BindsToTheAddressItIsGiven) {
  auto options = Options(1);
  options.bind_address = "127.0.0.2";
  Start(options);
  EXPECT_TRUE(bound_.grpc.starts_with("127.0.0.2:")) << bound_.grpc;
  EXPECT_TRUE(bound_.http.starts_with("127.0.0.1:")) << bound_.http;
  EXPECT_EQ(Session(Request()).streams_size(), 1);
}

TEST_F(ServiceTest, CallsBeyondTheThreadsAreRefused) {
  auto options = Options(20);
  options.clock = RealClock();
  options.max_threads = 4;
  Start(options);
  std::string stream = Session(Request()).streams(0).name();
  SetFaults(R"({"method":"ReadRows","action":{"delay_ms":600000}})");
  std::mutex mutex;
  std::condition_variable answered;
  int refused = 0;
  std::vector<std::jthread> readers;
  readers.reserve(8);
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&] {
      Outcome outcome = Read(stream);
      std::lock_guard lock(mutex);
      refused += outcome.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ? 1 : 0;
      answered.notify_all();
    });
  }
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(answered.wait_for(lock, std::chrono::seconds(10), [&] { return refused >= 4; })) << refused;
  }
  service_->Shutdown();
}

TEST(ServiceOptionsTest, UnmappableColumnIsNamed) {
  arrow::FieldVector fields = {arrow::field("odd", arrow::duration(arrow::TimeUnit::SECOND))};
  ServiceOptions options;
  options.tables = {{"p.d.t", *arrow::Table::MakeEmpty(arrow::schema(fields))}};
  Service service(options);
  auto status = service.Start().status();
  EXPECT_THAT(status.message(), HasSubstr("Table p.d.t"));
  EXPECT_THAT(status.message(), HasSubstr("odd"));
}

TEST(ServiceOptionsTest, TakenPortIsAnError) {
  Service first(ServiceOptions{});
  auto bound = first.Start();
  ASSERT_TRUE(bound.ok()) << bound.status();
  ServiceOptions options;
  options.grpc_port = std::stoi(bound->grpc.substr(bound->grpc.find(':') + 1));
  EXPECT_EQ(CodeOf(Service(options).Start().status()), Code::kUnavailable);
  options.grpc_port = 0;
  options.port = std::stoi(bound->http.substr(bound->http.find(':') + 1));
  EXPECT_EQ(CodeOf(Service(options).Start().status()), Code::kUnavailable);
}

}  // namespace
}  // namespace headrace::local
