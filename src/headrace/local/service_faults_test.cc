// Scripted faults as a gRPC client meets them. service_test.cc has those that end or slow a call.
#include <cmath>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/local/service_testing.h"

namespace headrace::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ServiceFaultsTest : public ServiceTest {
 protected:
  std::string Stream(storage::DataFormat format = storage::ARROW) {
    auto request = Request();
    request.mutable_read_session()->set_data_format(format);
    return Session(request).streams(0).name();
  }
  static const std::string& RowsOf(const storage::ReadRowsResponse& message) {
    return message.has_avro_rows() ? message.avro_rows().serialized_binary_rows() : message.arrow_record_batch().serialized_record_batch();
  }
  static std::vector<int64_t> RowCounts(const Outcome& outcome) {
    std::vector<int64_t> counts;
    counts.reserve(outcome.messages.size());
    for (const auto& message : outcome.messages) counts.push_back(message.row_count());
    return counts;
  }
  std::vector<int64_t> Fired() {
    std::vector<int64_t> fired;
    auto counters = Counters();
    for (const auto& rule : counters["faults"]) fired.push_back(rule["fired"]);
    return fired;
  }
  // One message of the call is told; the others are to be as they would be.
  void SetMessageFault(const std::string& action) {
    SetFaults(R"({"method":"ReadRows","times":1,"after_messages":1,"action":)" + action + "}");
  }
};

TEST_F(ServiceFaultsTest, TheAnswerOfCreateIsLost) {
  Start(Options(20));
  SetFaults(
      R"({"method":"CreateReadSession","call":1,"action":{"lose_answer":{"code":"UNAVAILABLE","message":"lost","retry_delay_ms":5}}},
         {"method":"CreateReadSession","call":2,"action":{"lose_answer":"drop"}})");
  storage::ReadSession session;
  grpc::Status status = Create(Request(), &session);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "lost");
  EXPECT_FALSE(status.error_details().empty());
  EXPECT_TRUE(session.name().empty());
  EXPECT_EQ(Counters()["sessions_created"], 1);
  status = Create(Request(), &session);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), ::testing::Not(HasSubstr("Scripted")));  // no status arrived
  EXPECT_EQ(Counters()["sessions_created"], 2);
  Connect();
  EXPECT_EQ(Read(Stream()).ids, Range(0, 20));
  EXPECT_THAT(Fired(), ElementsAre(1, 1));
  // A call that is refused was not carried out.
  SetFaults(R"({"method":"CreateReadSession","action":{"lose_answer":{"code":"UNAVAILABLE"}}})");
  auto wrong = Request();
  wrong.set_parent("nonsense");
  EXPECT_EQ(Create(wrong, &session).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(Fired(), ElementsAre(0));
}

TEST_F(ServiceFaultsTest, TheAnswerOfASplitIsLost) {
  Start(Options(20));
  std::string stream = Stream();
  SetFaults(R"({"method":"SplitReadStream","call":1,"action":{"lose_answer":{"code":"DEADLINE_EXCEEDED"}}})");
  storage::SplitReadStreamResponse response;
  EXPECT_EQ(Split(stream, 0.5, &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(response.has_primary_stream());
  auto counters = Counters();
  EXPECT_EQ(counters["splits_accepted"], 1);
  EXPECT_EQ(counters["streams"][0]["splits"], nlohmann::json::parse(R"([{"fraction":0.5,"accepted":true,"status":"DEADLINE_EXCEEDED"}])"));
  EXPECT_TRUE(Split(stream, 0.5, &response).ok());
  EXPECT_EQ(Read(response.remainder_stream().name()).ids, Range(10, 20));
}

TEST_F(ServiceFaultsTest, RulesCanBeOfPartsOnly) {
  Start(Options(20));
  std::string stream = Stream();
  storage::SplitReadStreamResponse parts;
  ASSERT_TRUE(Split(stream, 0.5, &parts).ok());
  for (const std::string part : {"original", "primary", "remainder"}) {
    SetFaults(R"({"method":"ReadRows","match":{"part":")" + part + R"("},"action":{"status":{"code":"ABORTED"}}})");
    EXPECT_EQ(Read(stream).status.ok(), part != "original") << part;
    EXPECT_EQ(Read(parts.primary_stream().name()).status.ok(), part != "primary") << part;
    EXPECT_EQ(Read(parts.remainder_stream().name()).status.ok(), part != "remainder") << part;
    EXPECT_THAT(Fired(), ElementsAre(1));
  }
}

TEST_F(ServiceFaultsTest, TheEndOfAStreamIsLost) {
  Start(Options(20));
  std::string stream = Stream();
  SetFaults(R"({"method":"ReadRows","call":1,"action":{"lose_answer":{"code":"UNAVAILABLE"}}})");
  Outcome outcome = Read(stream);
  EXPECT_EQ(outcome.ids, Range(0, 20));
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Read(stream, 20).status.ok());
}

TEST_F(ServiceFaultsTest, MessagesAreDuplicatedAndSkipped) {
  Start(Options(20));
  for (auto format : {storage::ARROW, storage::AVRO}) {
    std::string stream = Stream(format);
    SetMessageFault(R"({"duplicate":true})");
    Outcome outcome = Receive(stream);
    ASSERT_EQ(outcome.messages.size(), 6U);
    EXPECT_EQ(outcome.messages[1].SerializeAsString(), outcome.messages[2].SerializeAsString());
    EXPECT_NE(RowsOf(outcome.messages[2]), RowsOf(outcome.messages[3]));
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_THAT(Fired(), ElementsAre(1));
    EXPECT_EQ(Receive(stream).messages.size(), 5U);

    SetMessageFault(R"({"skip":true})");
    outcome = Receive(stream);
    ASSERT_EQ(outcome.messages.size(), 4U);
    // It shows in the progress.
    EXPECT_DOUBLE_EQ(outcome.messages[0].stats().progress().at_response_end(), 0.2);
    EXPECT_DOUBLE_EQ(outcome.messages[1].stats().progress().at_response_start(), 0.4);
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_THAT(Fired(), ElementsAre(1));
  }
  // The first one takes the schema with it.
  SetFaults(R"({"method":"ReadRows","action":{"skip":true}})");
  EXPECT_FALSE(Receive(Stream()).messages[0].has_arrow_schema());
  // After the last message there is none: nothing fires.
  SetFaults(R"({"method":"ReadRows","after_messages":5,"action":{"skip":true}})");
  EXPECT_EQ(Read(Stream()).ids, Range(0, 20));
  EXPECT_THAT(Fired(), ElementsAre(0));
}

TEST_F(ServiceFaultsTest, RowBytesAreDamaged) {
  Start(Options(20));
  struct Case {
    std::string action;
    std::function<std::string(std::string)> damage;
  };
  auto flipped = [](size_t begin, size_t end) {
    return [=](std::string bytes) {
      for (size_t i = begin; i < std::min(end, bytes.size()); ++i) bytes[i] = static_cast<char>(~bytes[i]);
      return bytes;
    };
  };
  const Case kCases[] = {
      {R"({"truncate_bytes":1})", [](const std::string& bytes) { return bytes.substr(0, bytes.size() - 1); }},
      {R"({"truncate_bytes":20})", [](const std::string& bytes) { return bytes.substr(0, bytes.size() - 20); }},
      {R"({"truncate_bytes":1000000})", [](const std::string&) { return std::string(); }},
      {R"({"corrupt":{}})", flipped(0, 1)},
      {R"({"corrupt":{"at":3,"bytes":5}})", flipped(3, 8)},
      {R"({"corrupt":{"at":3,"bytes":1000000}})", flipped(3, SIZE_MAX)},
      {R"({"corrupt":{"at":1000000}})", flipped(0, 0)},
      {R"({"corrupt":{"at":-2,"bytes":2}})", [&](const std::string& bytes) { return flipped(bytes.size() - 2, bytes.size())(bytes); }},
      {R"({"corrupt":{"at":-1000000,"bytes":2}})", flipped(0, 2)},
      {R"({"row_count_off_by":1})", flipped(0, 0)},
  };
  for (auto format : {storage::ARROW, storage::AVRO}) {
    std::string stream = Stream(format);
    Outcome whole = Receive(stream);
    for (const Case& c : kCases) {
      SetMessageFault(c.action);
      Outcome outcome = Receive(stream);
      EXPECT_TRUE(outcome.status.ok()) << c.action;
      ASSERT_EQ(outcome.messages.size(), whole.messages.size()) << c.action;
      for (size_t i = 0; i < whole.messages.size(); ++i) {
        std::string right = RowsOf(whole.messages[i]);
        EXPECT_EQ(RowsOf(outcome.messages[i]), i == 1 ? c.damage(right) : right) << c.action << " message " << i;
      }
      EXPECT_THAT(Fired(), ElementsAre(1));
    }
  }
}

TEST_F(ServiceFaultsTest, RowCountsDisagree) {
  Start(Options(20));
  struct Case {
    std::string off_by;
    int64_t claimed;
  };
  const Case kCases[] = {{"1", 5}, {"-1", 3}, {"-4", 0}, {"-9", -5}, {"9223372036854775807", INT64_MAX}};
  for (const Case& c : kCases) {
    SetMessageFault(R"({"row_count_off_by":)" + c.off_by + "}");
    Outcome outcome = Receive(Stream());
    EXPECT_THAT(RowCounts(outcome), ElementsAre(4, c.claimed, 4, 4, 4));
  }
}

TEST_F(ServiceFaultsTest, AResponseCarriesAnotherSchema) {
  Start(Options(20));
  std::string arrow = Stream();
  std::string avro = Stream(storage::AVRO);
  std::string right = Receive(arrow).messages[0].arrow_schema().serialized_schema();
  for (const std::string change : {"name", "type", "columns"}) {
    SetMessageFault(R"({"change_schema":")" + change + "\"}");
    Outcome outcome = Receive(arrow);
    EXPECT_EQ(outcome.messages[0].arrow_schema().serialized_schema(), right);
    arrow::io::BufferReader in(arrow::Buffer::FromString(outcome.messages[1].arrow_schema().serialized_schema()));
    auto schema = arrow::ipc::ReadSchema(&in, &memo_).ValueOrDie();
    EXPECT_EQ(schema->num_fields(), change == "columns" ? 4 : 3);
    EXPECT_EQ(schema->field(0)->name() == "id", change != "name");
    EXPECT_EQ(schema->field(0)->type()->id() == arrow::Type::INT64, change != "type");
    EXPECT_FALSE(outcome.messages[2].has_arrow_schema());

    SetMessageFault(R"({"change_schema":")" + change + "\"}");
    outcome = Receive(avro);
    auto json = nlohmann::json::parse(outcome.messages[1].avro_schema().schema());
    auto plain = nlohmann::json::parse(outcome.messages[0].avro_schema().schema());
    EXPECT_EQ(json["fields"].size(), change == "columns" ? 4U : 3U);
    EXPECT_EQ(json["fields"][0]["name"] == "id", change != "name");
    EXPECT_EQ(json["fields"][0]["type"] == plain["fields"][0]["type"], change != "type");
  }
}

TEST_F(ServiceFaultsTest, ASessionExpires) {
  Start(Options(20));
  auto session = Session(Request(2));
  auto other = Session(Request(2));
  SetFaults(R"({"method":"ReadRows","match":{"stream":1},"call":1,"after_messages":1,"action":{"expire_session":true}})");
  storage::SplitReadStreamResponse parts;
  ASSERT_TRUE(Split(session.streams(0).name(), 0.5, &parts).ok());
  EXPECT_EQ(Read(session.streams(0).name()).ids, Range(0, 10));
  Outcome outcome = Read(session.streams(1).name());
  EXPECT_EQ(outcome.ids, Range(10, 14));
  auto expired = [&](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("session expired: a read session lives 6 hours"));
  };
  expired(outcome.status);
  expired(Read(session.streams(0).name()).status);
  expired(Read(parts.primary_stream().name(), 3).status);
  expired(Split(session.streams(0).name(), 0.5, &parts));
  EXPECT_EQ(Read(other.streams(0).name()).ids, Range(0, 10));
  SetFaults("");  // it is over for good
  expired(Read(session.streams(0).name()).status);

  SetFaults(R"({"method":"CreateReadSession","call":1,"action":{"expire_session":{"code":"NOT_FOUND","message":"gone"}}})");
  auto born_dead = Session(Request());
  EXPECT_EQ(Read(born_dead.streams(0).name()).status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Read(Stream()).ids, Range(0, 20));
  SetFaults(R"({"method":"SplitReadStream","call":1,"action":{"expire_session":true}})");
  std::string stream = Stream();
  expired(Split(stream, 0.5, &parts));
  expired(Read(stream).status);
  // Of a name that is none there is no session to expire.
  SetFaults(R"({"method":"ReadRows","call":1,"action":{"expire_session":true}})");
  Read("nonsense");
  EXPECT_EQ(Read(Stream()).ids, Range(0, 20));
}

// A client that looks: it takes a message that begins where it is and is whole, and else comes again.
std::vector<int64_t> ReadUntilDone(const std::function<Outcome(int64_t)>& receive, int64_t rows, int64_t* calls) {
  std::vector<int64_t> ids;
  for (*calls = 0; *calls < 1000; ++*calls) {
    Outcome outcome = receive(static_cast<int64_t>(ids.size()));
    for (const auto& message : outcome.messages) {
      auto begin = static_cast<double>(ids.size()) / static_cast<double>(rows);
      if (std::abs(message.stats().progress().at_response_start() - begin) > 1e-12) break;
      const std::string& bytes = message.avro_rows().serialized_binary_rows();
      // A LONG that is not null is one byte 02 and the value in zigzag: as many of them as row_count says, and no more.
      size_t at = 0;
      std::vector<int64_t> found;
      while (at < bytes.size() && bytes[at] == 2) {
        uint64_t value = 0;
        int shift = 0;
        bool ended = false;
        for (++at; at < bytes.size() && !ended; shift += 7) {
          auto byte = static_cast<unsigned char>(bytes[at++]);
          value |= static_cast<uint64_t>(byte & 0x7F) << shift;
          ended = byte < 0x80;
        }
        if (ended) found.push_back(static_cast<int64_t>(value >> 1));
      }
      if (at != bytes.size() || static_cast<int64_t>(found.size()) != message.row_count()) break;
      ids.insert(ids.end(), found.begin(), found.end());
    }
    if (outcome.status.ok() && static_cast<int64_t>(ids.size()) == rows) break;
  }
  return ids;
}

TEST_F(ServiceFaultsTest, FaultsBySeedLetAReaderGetOn) {
  clock_.set_auto_advance(true);
  constexpr int64_t kRows = 3000;
  auto rule = [](int64_t every, int64_t seed) {
    return R"({"method":"ReadRows","every_rows":)" + std::to_string(every) + R"(,"seed":)" + std::to_string(seed) +
           R"(,"actions":[{"status":{"code":"UNAVAILABLE"}},{"drop":true},{"delay_ms":100},{"duplicate":true},{"skip":true},
                          {"truncate_bytes":2},{"row_count_off_by":1}]})";
  };
  std::vector<nlohmann::json> counts;
  for (auto [every, seed] : {std::pair<int64_t, int64_t>(50, 1), {50, 1}, {50, 2}, {1, 1}}) {
    auto options = Options(kRows);
    Start(options);
    auto request = Request(2);
    request.mutable_read_session()->set_data_format(storage::AVRO);
    request.mutable_read_session()->mutable_read_options()->add_selected_fields("id");
    auto session = Session(request);
    SetFaults(rule(every, seed));
    std::vector<int64_t> all;
    int64_t calls = 0;
    for (const auto& stream : session.streams()) {
      int64_t of_stream = 0;
      auto receive = [&](int64_t offset) {
        Outcome outcome = Receive(stream.name(), offset);
        if (outcome.status.error_code() == grpc::StatusCode::UNAVAILABLE) Connect();  // the connection may be gone
        return outcome;
      };
      auto ids = ReadUntilDone(receive, kRows / 2, &of_stream);
      all.insert(all.end(), ids.begin(), ids.end());
      calls += of_stream + 1;
    }
    EXPECT_EQ(all, Range(0, kRows)) << "every " << every << " seed " << seed;
    counts.push_back(Counters()["faults"][0]);
    // One in each 50 rows, but for neighbours in one message; where every row is a place, one for each message.
    EXPECT_LE(counts.back()["fired"], every == 1 ? kRows / 4 : kRows / 50);
    EXPECT_GE(counts.back()["fired"], every == 1 ? kRows / 4 : kRows / 50 - 5);
    EXPECT_EQ(counts.back()["calls"], calls);
    for (const auto& of_action : counts.back()["by_action"]) EXPECT_GT(of_action, 0);
    service_.reset();
  }
  EXPECT_EQ(counts[0]["by_action"], counts[1]["by_action"]);
  EXPECT_NE(counts[0]["by_action"], counts[2]["by_action"]);
}

TEST_F(ServiceFaultsTest, AStreamWhoseClientTakesNothingIsClosed) {
  auto options = Options(400'000);
  options.message_rows = 1'000'000;
  Start(options);
  SetFaults(R"({"method":"ReadRows","call":1,"after_messages":1,"action":{"close_idle":{"after_ms":5000}}},
               {"method":"ReadRows","call":2,"action":{"close_idle":{"after_ms":5000,"code":"ABORTED","message":"too slow"}}})");
  std::string stream = Stream();
  const grpc::StatusCode kCodes[] = {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::ABORTED};
  for (size_t call = 0; call < 2; ++call) {
    storage::ReadRowsRequest request;
    request.set_read_stream(stream);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    auto reader = stub_->ReadRows(&context, request);
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (Fired()[call] == 0 && std::chrono::steady_clock::now() < deadline) {
      clock_.Advance(std::chrono::seconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(Fired()[call], 1);
    Outcome outcome;
    storage::ReadRowsResponse response;
    while (reader->Read(&response)) outcome.messages.push_back(response);
    outcome.status = reader->Finish();
    EXPECT_EQ(outcome.status.error_code(), kCodes[call]) << outcome.status.error_message();
    EXPECT_THAT(outcome.status.error_message(), HasSubstr(call == 0 ? "its client takes nothing" : "too slow"));
    // What came is whole, and the stream can be opened again behind it.
    Decode(&outcome);
    EXPECT_LT(outcome.ids.size(), 400'000U);
    EXPECT_EQ(outcome.ids, Range(0, static_cast<int64_t>(outcome.ids.size())));
  }
  // The clock stands still: this client is in time.
  SetFaults(R"({"method":"ReadRows","action":{"close_idle":{"after_ms":1}}})");
  EXPECT_EQ(Read(stream).ids.size(), 400'000U);
  EXPECT_THAT(Fired(), ElementsAre(0));
}

}  // namespace
}  // namespace headrace::local
