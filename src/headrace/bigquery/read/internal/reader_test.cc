// Reads over a real connection from a scripted server: which rows come, from which offsets, and what is said when they cannot.
#include "headrace/bigquery/read/internal/reader.h"

#include <future>
#include <numeric>
#include <thread>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/compute/cast.h>
#include <arrow/json/from_string.h>
#include <arrow/util/byte_size.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/bigquery/read/internal/reader_bench_testing.h"
#include "headrace/bigquery/read/internal/scripted_server_testing.h"
#include "headrace/bigquery/read/source.h"

namespace headrace::bigquery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What the service may be asked for, and what a state of version 1 says.
struct Form {
  const char* name;
  SourceFormat format = SourceFormat::kArrow;
  bool lz4 = false;
  bool schema_as_sent = false;
};

/// Every rule of a stream holds in every form.
class StreamReaderTest : public testing::TestWithParam<Form> {
 protected:
  static ServedTable OneStream(int64_t rows = kRows) {
    ServedTable table = bigquery::OneStream(rows);
    table.format = GetParam().format;
    table.response_lz4 = GetParam().lz4;
    table.schema_as_sent = GetParam().schema_as_sent;
    return table;
  }
};

INSTANTIATE_TEST_SUITE_P(Forms, StreamReaderTest,
                         testing::Values(Form{.name = "Arrow"}, Form{.name = "ArrowLz4", .lz4 = true},
                                         Form{.name = "ArrowOfVersion1", .schema_as_sent = true},
                                         Form{.name = "Avro", .format = SourceFormat::kAvro},
                                         Form{.name = "AvroLz4", .format = SourceFormat::kAvro, .lz4 = true}),
                         [](const auto& info) { return std::string(info.param.name); });

// Specs 24, 27; facts R1, R3.
TEST_P(StreamReaderTest, StartsAtAnyRow) {
  ScriptedServer server(OneStream());
  const Bench bench(server);
  for (const int64_t from : {0, 1, 99, 100, 101, 555, 999, 1000}) {
    auto all = Drain(bench.Open(MakeRows(0)->schema(), from == 0 ? "" : std::to_string(from)).get());
    EXPECT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(from, kRows));
    EXPECT_EQ(server.reads().back().offset, from);
    EXPECT_EQ(all.fractions.back(), 1.0);
  }
}

// The acceptance rule: UNAVAILABLE after each message index, also after the last row but before OK.
TEST_P(StreamReaderTest, UnavailableAfterEachMessageLosesAndDoublesNothing) {
  for (int after = 0; after <= 10; ++after) {
    ScriptedServer server(OneStream());
    server.ScriptReads({{.after_messages = after}});
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(0, kRows)) << after;
    EXPECT_EQ(Offsets(server), (std::vector<int64_t>{0, int64_t{100} * after}));
    EXPECT_EQ(bench.count("readRetries"), 1);
    EXPECT_EQ(bench.count("readRetries.UNAVAILABLE"), 1);
    EXPECT_EQ(bench.count("rowsRead"), kRows);
    EXPECT_EQ(bench.count("responses"), 10);
  }
}

TEST_P(StreamReaderTest, TransportFaultsAreReopenedAtOnceTheFirstTimeInARow) {
  ScriptedServer server(OneStream());
  server.ScriptReads({{.after_messages = 3, .code = Code::kInternal, .message = "Received RST_STREAM with error code 2"},
                      {.after_messages = 2, .code = Code::kUnknown, .message = "connection is draining"},
                      {.after_messages = 1, .code = Code::kAborted, .message = "GOAWAY"},
                      {.after_messages = 1, .code = Code::kCancelled, .message = "CANCELLED"}});
  Bench bench(server);
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  EXPECT_EQ(all.ids, Range(0, kRows));
  EXPECT_EQ(Offsets(server), (std::vector<int64_t>{0, 300, 500, 600, 700}));
  EXPECT_EQ(bench.clock.Monotonic(), Duration{0});
  EXPECT_EQ(bench.count("readRetries.INTERNAL"), 1);
}

TEST_P(StreamReaderTest, AttemptsAreBoundedAndProgressRenewsThem) {
  {
    ScriptedServer server(OneStream());
    server.FailAllReads({.after_messages = 0, .message = "overloaded"});
    Bench bench(server, {.retry_max_attempts = 3});
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_EQ(server.reads().size(), 3U);
    EXPECT_EQ(CodeOf(all.status), Code::kUnavailable);
    EXPECT_THAT(all.status.message(),
                AllOf(HasSubstr(server.StreamName(0)), HasSubstr("at offset 0"), HasSubstr("3 times"), HasSubstr("overloaded")));
  }
  ScriptedServer server(OneStream());
  server.FailAllReads({.after_messages = 1});  // every call brings one message, then fails
  Bench bench(server, {.retry_max_attempts = 2});
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  EXPECT_TRUE(all.status.ok() || CodeOf(all.status) == Code::kUnavailable);
  EXPECT_EQ(all.ids, Range(0, kRows));  // all rows came although eleven calls failed
  EXPECT_GE(server.reads().size(), 11U);
}

TEST_P(StreamReaderTest, ResourceExhaustedIsRetriedOnlyAfterTheServersDelay) {
  ScriptedServer server(OneStream());
  server.ScriptReads({{.after_messages = 2, .code = Code::kResourceExhausted, .retry_delay_ms = 3500}});
  Bench bench(server);
  EXPECT_EQ(Drain(bench.Open(MakeRows(0)->schema()).get()).ids, Range(0, kRows));
  EXPECT_EQ(bench.clock.Monotonic(), Duration(milliseconds{3500}));
}

TEST_P(StreamReaderTest, PermanentFaultsEndAtOnceWithAClearError) {
  struct Case {
    Code code;
    std::string says;
    std::string reason;
  };
  for (const Case& c : {Case{Code::kResourceExhausted, "no delay", ""}, Case{Code::kNotFound, "does not exist", "NOT_FOUND"},
                        Case{Code::kPermissionDenied, "readsessions.getData", "PERMISSION_DENIED"},
                        Case{Code::kFailedPrecondition, "offset", "OFFSET"}, Case{Code::kInvalidArgument, "scripted", ""},
                        Case{Code::kInternal, "scripted", ""}, Case{Code::kUnauthenticated, "credentials", "CREDENTIALS"}}) {
    ScriptedServer server(OneStream());
    server.ScriptReads({{.after_messages = 2, .code = c.code}});
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_EQ(all.ids, Range(0, 200)) << "rows received before the fault are handed over";
    EXPECT_EQ(CodeOf(all.status), c.code);
    EXPECT_THAT(all.status.message(),
                AllOf(HasSubstr(server.StreamName(0)), HasSubstr("at offset 200"), HasSubstr(CodeName(c.code)), HasSubstr(c.says)));
    EXPECT_THAT(all.status.message(), Not(HasSubstr("expired")));
    EXPECT_EQ(GetErrorInfo(all.status)->reason, c.reason);
    EXPECT_EQ(server.reads().size(), 1U);
    EXPECT_EQ(bench.count("readRetries"), 0);
  }
}

// Fact R2.
TEST_P(StreamReaderTest, OffsetBeyondTheEndIsAnError) {
  ScriptedServer server(OneStream());
  Bench bench(server);
  auto all = Drain(bench.Open(MakeRows(0)->schema(), "1001").get());
  EXPECT_EQ(CodeOf(all.status), Code::kFailedPrecondition);
  EXPECT_THAT(all.status.message(), AllOf(HasSubstr("1001"), HasSubstr("beyond the end")));
}

// Spec 30.
TEST_P(StreamReaderTest, AnExpiredSessionIsNamedOnlyWhenTheClockIsPastIt) {
  for (const int64_t past_ms : {-1000, 1000}) {
    ScriptedServer server(OneStream());
    server.ScriptReads({{.after_messages = 0, .code = Code::kFailedPrecondition}});
    Bench bench(server);
    const int64_t now = std::chrono::duration_cast<milliseconds>(bench.clock.Now().time_since_epoch()).count();
    bench.stream.session_expires_ms = now - past_ms;
    bench.stream.session_created_ms = bench.stream.session_expires_ms - int64_t{6} * 3'600'000;
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_EQ(all.status.message().find("expired at") != std::string::npos, past_ms > 0) << all.status;
    if (past_ms > 0) {
      EXPECT_THAT(all.status.message(), HasSubstr("after 6 h 0 min"));
    }
  }
}

TEST_P(StreamReaderTest, AServerThatIgnoresOffsetsIsRefusedInsteadOfDoublingRows) {
  for (const int after : {1, 2, 5, 9, 10}) {
    auto table = OneStream();
    table.ignore_offsets = true;
    ScriptedServer server(table);
    server.ScriptReads({{.after_messages = after}});
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_EQ(all.ids, Range(0, int64_t{100} * after));
    ASSERT_FALSE(all.status.ok()) << after;
    EXPECT_EQ(GetErrorInfo(all.status)->reason, "OFFSET_IGNORED");
    // The same in another process, which knows only the position.
    auto resumed = Drain(bench.Open(MakeRows(0)->schema(), all.positions.back()).get());
    EXPECT_TRUE(resumed.ids.empty());
    EXPECT_EQ(GetErrorInfo(resumed.status)->reason, "OFFSET_IGNORED");
  }
}

// Found on the wire (tests/wire): OK in mid-stream was taken for the end, and rows were lost without a word.
TEST_P(StreamReaderTest, AnEndBeforeTheLastFractionIsAskedOnceMore) {
  for (const int after : {1, 2, 9}) {
    ScriptedServer server(OneStream());
    server.ScriptReads({{.kind = Fault::Kind::kCleanEnd, .after_messages = after}});
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    ASSERT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(0, kRows));
    ASSERT_EQ(server.reads().size(), 2U) << "once, and not again at the true end";
    EXPECT_EQ(server.reads()[1].offset, int64_t{100} * after);
  }
}

// What the first response would have told is lost with it: of a stream with one response nothing came, and nobody missed it.
TEST_P(StreamReaderTest, AnEndBeforeTheFirstResponseIsAskedAgain) {
  using enum Fault::Kind;
  for (const int64_t rows : {int64_t{100}, kRows}) {
    for (const Fault::Kind kind : {kSkip, kCleanEnd}) {
      for (const size_t times : {1, 3}) {
        if (rows == kRows && kind == kSkip) continue;  // the second response tells
        ScriptedServer server(OneStream(rows));
        server.ScriptReads(std::vector<Fault>(times, Fault{.kind = kind}));
        Bench bench(server);
        auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
        ASSERT_TRUE(all.status.ok()) << all.status;
        EXPECT_EQ(all.ids, Range(0, rows));
        EXPECT_EQ(Offsets(server), std::vector<int64_t>(times + 1, 0));
      }
    }
  }
  ScriptedServer server(OneStream(0));
  Bench bench(server);
  auto none = Drain(bench.Open(MakeRows(0)->schema()).get());
  ASSERT_TRUE(none.status.ok()) << none.status;
  EXPECT_TRUE(none.ids.empty());
  EXPECT_EQ(server.reads().size(), 4U) << "the fourth end is believed";
}

// Responses that say nothing of their place are not at fraction 0.
TEST_P(StreamReaderTest, ResponsesThatTellNothingHideNoFault) {
  using enum Fault::Kind;
  for (const Fault::Kind kind : {kCleanEnd, kDouble, kSkip, kStatus}) {
    for (const int after : {1, 5, 9}) {
      auto table = OneStream();
      table.empty_messages = true;
      table.empty_tell_nothing = true;
      ScriptedServer server(table);
      server.ScriptReads({{.kind = kind, .after_messages = after}});
      Bench bench(server);
      auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
      ASSERT_TRUE(all.status.ok()) << all.status;
      EXPECT_EQ(all.ids, Range(0, kRows)) << after;
      EXPECT_EQ(server.reads().size(), 2U);
    }
  }
}

// A session that expires ends its streams, and answers with the code of an offset beyond the end.
TEST_P(StreamReaderTest, AnExpiredSessionIsNoEnd) {
  const Fault ended{.kind = Fault::Kind::kCleanEnd, .after_messages = 5};
  for (const bool says : {false, true}) {
    for (const Code code : {Code::kFailedPrecondition, Code::kOutOfRange}) {
      ScriptedServer server(OneStream());
      server.ScriptReads({ended, {.code = code, .message = says ? "session expired at 12:00" : "scripted"}});
      Bench bench(server);
      const int64_t now = std::chrono::duration_cast<milliseconds>(bench.clock.Now().time_since_epoch()).count();
      if (!says) bench.stream.session_expires_ms = now - 1000;
      auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
      EXPECT_EQ(all.ids, Range(0, 500));
      ASSERT_FALSE(all.status.ok());
      EXPECT_EQ(GetErrorInfo(all.status)->reason, "SESSION_EXPIRED");
    }
  }
  // Once is not enough where nothing is said of the session.
  ScriptedServer server(OneStream());
  server.ScriptReads({ended, {.code = Code::kFailedPrecondition}, {.code = Code::kOutOfRange}});
  Bench bench(server);
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  ASSERT_TRUE(all.status.ok()) << all.status;
  EXPECT_EQ(all.ids, Range(0, kRows));
}

// A filter may leave the last fraction below 1, and a server may be asked past its end in vain: its end is believed the second time.
TEST_P(StreamReaderTest, AnEndThatIsConfirmedIsTheEnd) {
  auto table = OneStream();
  table.progress_end_share = 0.9;
  for (const bool ignores : {false, true}) {
    table.ignore_offsets = ignores;
    ScriptedServer server(table);
    Bench bench(server, {.row_restriction = "id >= 0"});
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    ASSERT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(0, kRows)) << "a server that ignores the offset begins anew: nothing of that may come through";
    // A server that begins anew has told that there is nothing more; an end alone is believed the fourth time.
    EXPECT_EQ(server.reads().size(), ignores ? 2U : 4U);
  }
}

// Found in the soak: what came last was lost, and lost again when it was asked for.
TEST_P(StreamReaderTest, ALastMessageThatIsLostAgainIsAskedForAgain) {
  using enum Fault::Kind;
  for (const Fault::Kind kind : {kSkip, kCleanEnd}) {
    ScriptedServer server(OneStream());
    server.ScriptReads({{.kind = kind, .after_messages = 9}, {.kind = kind, .after_messages = 0}, {.kind = kind, .after_messages = 0}});
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    ASSERT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(0, kRows));
    EXPECT_EQ(Offsets(server), (std::vector<int64_t>{0, 900, 900, 900}));
  }
}

// Found in the soak: the first message behind a resume was lost, nothing showed it, and every offset from there on was too low.
TEST_P(StreamReaderTest, AMessageThatIsLostBehindAResumeIsAskedForAgain) {
  ScriptedServer server(OneStream());
  Bench bench(server, {.max_rows_per_batch = 40});
  auto whole = Drain(bench.Open(MakeRows(0)->schema()).get());
  ASSERT_EQ(whole.positions.size(), 30U);
  whole.positions.emplace_back("");
  // As checkpoints say them, and inside a batch that lies before the one that was asked for last.
  auto reader = bench.Open(MakeRows(0)->schema());
  auto batch = std::get<Batch>(*reader->Next());
  ASSERT_TRUE(reader->Next().ok());
  whole.positions.push_back(*reader->PositionAt(batch, 1));
  whole.positions.push_back(*reader->PositionAt(batch, 40));
  for (const std::string& position : whole.positions) {
    const int64_t rows = ParseStreamPosition(position)->rows;
    if (rows == kRows) continue;
    ScriptedServer faulty(OneStream());
    faulty.ScriptReads({{.kind = Fault::Kind::kSkip}, {.kind = Fault::Kind::kSkip}});
    Bench resumed(faulty);
    auto rest = Drain(resumed.Open(MakeRows(0)->schema(), position).get());
    ASSERT_TRUE(rest.status.ok()) << rest.status;
    EXPECT_EQ(rest.ids, Range(rows, kRows)) << position;
    EXPECT_EQ(Offsets(faulty), std::vector<int64_t>(3, rows)) << position;
  }
}

// Positions as they were written before they told where a row lies at the latest.
TEST_P(StreamReaderTest, PositionsWithALowerBoundOnlyAreStillRead) {
  ScriptedServer server(OneStream());
  Bench bench(server);
  for (const char* position : {"150@0.1", "200@0.2", "200"}) {
    auto rest = Drain(bench.Open(MakeRows(0)->schema(), position).get());
    ASSERT_TRUE(rest.status.ok()) << rest.status;
    EXPECT_EQ(rest.ids, Range(ParseStreamPosition(position)->rows, kRows));
  }
  EXPECT_EQ(server.reads().size(), 3U);
}

// Found on the wire: gRPC drops a message with an unknown flag without a word, so its rows were lost.
TEST_P(StreamReaderTest, LostAndDoubledMessagesAreSeenByTheirFractions) {
  for (const auto kind : {Fault::Kind::kSkip, Fault::Kind::kDouble}) {
    for (const int after : {0, 1, 3, 8}) {
      ScriptedServer server(OneStream());
      server.ScriptReads({{.kind = kind, .after_messages = after}});
      Bench bench(server);
      auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
      ASSERT_TRUE(all.status.ok()) << all.status;
      EXPECT_EQ(all.ids, Range(0, kRows));
      EXPECT_EQ(server.reads().size(), 2U);
    }
  }
  ScriptedServer server(OneStream());
  server.FailAllReads({.kind = Fault::Kind::kSkip, .after_messages = 1});
  Bench bench(server, {.retry_max_attempts = 2});
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  EXPECT_TRUE(all.status.ok()) << "each call brings one message more: " << all.status;
  EXPECT_EQ(all.ids, Range(0, kRows));
}

// Back-pressure from the consumer is no fault of the server: no limit counts, and nothing is opened again.
TEST_P(StreamReaderTest, AConsumerThatTakesAnHourForEachBatchReadsEveryRowOfOneCall) {
  ScriptedServer server(OneStream());
  Bench bench(server, {.idle_limit = milliseconds{300'000}});
  bench.memory.emplace(1);  // one response is let through at a time
  bench.context.memory = &*bench.memory;
  auto reader = bench.Open(MakeRows(0)->schema());
  int64_t rows = 0;
  while (true) {
    auto next = reader->Next();
    ASSERT_TRUE(next.ok()) << next.status();
    if (std::holds_alternative<End>(*next)) break;
    rows += std::get<Batch>(*next).rows->num_rows();
    bench.clock.Advance(std::chrono::hours{1});
  }
  EXPECT_EQ(rows, kRows);
  EXPECT_EQ(server.reads().size(), 1U);
  EXPECT_EQ(bench.count("readRetries"), 0);
}

// Found with the local service's fault scripts: the message that was asked for again may be lost too.
TEST_P(StreamReaderTest, MessagesThatAreLostAgainAreAskedForAgain) {
  using enum Fault::Kind;
  const std::vector<std::vector<Fault>> scripts = {
      {{.kind = kDouble, .after_messages = 3}, {.kind = kSkip, .after_messages = 0}},
      {{.kind = kSkip, .after_messages = 3}, {.kind = kSkip, .after_messages = 0}},
      {{.kind = kSkip, .after_messages = 3}, {.kind = kSkip, .after_messages = 0}, {.kind = kSkip, .after_messages = 0}},
      {{.after_messages = 3}, {.kind = kSkip, .after_messages = 0}, {.kind = kDouble, .after_messages = 2}}};
  for (const auto& script : scripts) {
    ScriptedServer server(OneStream());
    server.ScriptReads(script);
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    ASSERT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(0, kRows));
    EXPECT_EQ(server.reads().size(), script.size() + 1);
  }
}

// Some servers' fractions do not meet. Four calls show it, and the rest of the stream is read as it comes.
TEST_P(StreamReaderTest, FractionsThatNeverMeetProveNothing) {
  auto table = OneStream();
  table.progress_end_share = 0.999;
  ScriptedServer server(table);
  Bench bench(server);
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  ASSERT_TRUE(all.status.ok()) << all.status;
  EXPECT_EQ(all.ids, Range(0, kRows));
  EXPECT_EQ(server.reads().size(), 7U) << "three for the gap, three for the end";
}

TEST(StreamReader, BrokenResponsesAreErrorsThatNameThePlace) {
  struct Case {
    Fault::Kind kind;
    std::string says;
    std::string advises = "run it again, and report it";
  };
  for (const Case& c : {Case{Fault::Kind::kGarbage, "cannot be decoded"}, Case{Fault::Kind::kWrongRowCount, "names 101 rows but holds 100"},
                        Case{Fault::Kind::kOtherFormat, "answered in Avro", ""}, Case{Fault::Kind::kClaimsMore, "compression"}}) {
    ScriptedServer server(OneStream());
    server.ScriptReads({{.kind = c.kind, .after_messages = 3}});
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_EQ(all.ids, Range(0, 300));
    EXPECT_THAT(all.status.message(),
                AllOf(HasSubstr(server.StreamName(0)), HasSubstr("at offset 300"), HasSubstr(c.says), HasSubstr(c.advises)));
    EXPECT_EQ(server.reads().size(), 1U) << "broken bytes are not tried again";
  }
}

// stream.proto: a response whose compression would not have made it smaller says -1 and is not compressed.
TEST(StreamReader, WholeResponsesInLz4) {
  auto table = OneStream();
  table.response_lz4 = true;
  for (const int64_t rows : {100, 1}) {  // one row does not become smaller
    table.rows_per_message = rows;
    ScriptedServer server(table);
    server.ScriptReads({{.after_messages = 4}});
    Bench bench(server, {.response_compression = ResponseCompression::kLz4});
    bench.stream.response_compression = ResponseCompression::kLz4;
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(0, kRows));
    if (rows > 1) {
      EXPECT_LT(bench.count("bytesRead"), arrow::util::TotalBufferSize(*MakeRows(kRows)));
    }
  }
}

TEST(StreamReader, BrokenLz4IsDataLossThatNamesThePlace) {
  for (const auto kind : {Fault::Kind::kGarbage, Fault::Kind::kClaimsMore}) {
    auto table = OneStream();
    table.response_lz4 = true;
    ScriptedServer server(table);
    server.ScriptReads({{.kind = kind, .after_messages = 3}});
    Bench bench(server);
    bench.stream.response_compression = ResponseCompression::kLz4;
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_EQ(all.ids, Range(0, 300));
    EXPECT_EQ(CodeOf(all.status), Code::kDataLoss);
    EXPECT_THAT(all.status.message(), AllOf(HasSubstr(server.StreamName(0)), HasSubstr("at offset 300"), HasSubstr("LZ4")));
    EXPECT_EQ(server.reads().size(), 1U);
  }
  // What nobody asked for is not guessed at.
  auto table = OneStream();
  table.response_lz4 = true;
  ScriptedServer server(table);
  Bench bench(server);
  bench.stream.response_compression = ResponseCompression::kNone;
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  EXPECT_TRUE(all.ids.empty());
  EXPECT_THAT(all.status.message(), HasSubstr("not asked for"));
}

TEST(StreamReader, FormsOfTheWire) {
  for (const auto codec : {arrow::Compression::UNCOMPRESSED, arrow::Compression::LZ4_FRAME, arrow::Compression::ZSTD}) {
    for (const bool full : {false, true}) {
      for (const bool schema_first : {false, true}) {
        auto table = OneStream();
        table.codec = codec;
        table.full_ipc_streams = full;
        table.schema_in_first = schema_first;
        table.empty_messages = schema_first;
        ScriptedServer server(table);
        server.ScriptReads({{.after_messages = 4}});
        Bench bench(server);
        auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
        EXPECT_TRUE(all.status.ok()) << all.status;
        EXPECT_EQ(all.ids, Range(0, kRows));
        const auto lines = bench.logger.lines();
        EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                                [](const std::string& line) { return line.find("whole Arrow IPC stream") != std::string::npos; }),
                  full ? 1 : 0);
      }
    }
  }
}

TEST(StreamReader, DictionaryBatches) {
  auto values = arrow::StringBuilder();
  for (const char* value : {"x", "y", "z"}) EXPECT_TRUE(values.Append(value).ok());
  arrow::Int8Builder indices;
  arrow::Int64Builder ids;
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(indices.Append(static_cast<int8_t>(i % 3)).ok() && ids.Append(i).ok());
  auto dictionary = *arrow::DictionaryArray::FromArrays(*indices.Finish(), *values.Finish());
  auto schema = arrow::schema({arrow::field("id", arrow::int64()), arrow::field("letter", dictionary->type())});
  auto rows = arrow::RecordBatch::Make(schema, 300, {*ids.Finish(), dictionary});
  auto texts = *arrow::compute::Cast(*dictionary, arrow::utf8());
  auto plain =
      arrow::RecordBatch::Make(arrow::schema({schema->field(0), arrow::field("letter", arrow::utf8())}), 300, {rows->column(0), texts});
  for (const auto& [schema_first, as_sent] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    ScriptedServer server({.streams = {rows}, .schema = schema, .schema_as_sent = as_sent, .schema_in_first = schema_first});
    server.ScriptReads({{.after_messages = 1}});
    Bench bench(server);
    auto reader = bench.Open(as_sent ? schema : plain->schema());
    int64_t row = 0;
    while (true) {
      auto next = reader->Next();
      ASSERT_TRUE(next.ok()) << next.status();
      if (std::holds_alternative<End>(*next)) break;
      const auto& batch = std::get<Batch>(*next).rows;
      EXPECT_TRUE(batch->Equals(*(as_sent ? rows : plain)->Slice(row, batch->num_rows())));
      row += batch->num_rows();
    }
    EXPECT_EQ(row, 300);
  }
}

// Spec 25; runtime.md "A block that is half consumed is resumed in its middle".
TEST_P(StreamReaderTest, EveryBatchPositionResumesExactlyThere) {
  auto table = OneStream();
  table.rows_per_message = 250;
  ScriptedServer server(table);
  Bench bench(server, {.max_rows_per_batch = 100});
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  EXPECT_EQ(all.batch_rows, (std::vector<int64_t>{100, 100, 50, 100, 100, 50, 100, 100, 50, 100, 100, 50}));
  EXPECT_EQ(server.reads().size(), 1U);
  int64_t delivered = 0;
  for (size_t i = 0; i < all.positions.size(); ++i) {
    delivered += all.batch_rows[i];
    auto rest = Drain(bench.Open(MakeRows(0)->schema(), all.positions[i]).get());
    EXPECT_TRUE(rest.status.ok()) << rest.status;
    EXPECT_EQ(rest.ids, Range(delivered, kRows));
    EXPECT_EQ(server.reads().back().offset, delivered);
  }
}

TEST_P(StreamReaderTest, PositionAtARowOfABatch) {
  ScriptedServer server(OneStream());
  Bench bench(server, {.max_rows_per_batch = 60});
  auto reader = bench.Open(MakeRows(0)->schema());
  int64_t first = 0;
  for (int i = 0; i < 5; ++i) {
    auto batch = std::get<Batch>(*reader->Next());
    for (int64_t row = 0; row <= batch.rows->num_rows(); ++row) {
      auto position = reader->PositionAt(batch, row);
      ASSERT_TRUE(position.ok());
      EXPECT_EQ(ParseStreamPosition(*position)->rows, first + row);
    }
    EXPECT_FALSE(reader->PositionAt(batch, -1).ok());
    EXPECT_FALSE(reader->PositionAt(batch, batch.rows->num_rows() + 1).ok());
    auto rest = Drain(bench.Open(MakeRows(0)->schema(), *reader->PositionAt(batch, 7)).get());
    EXPECT_EQ(rest.ids, Range(first + 7, kRows));
    first += batch.rows->num_rows();
  }
}

TEST_P(StreamReaderTest, EndPositionBoundsTheSplit) {
  ScriptedServer server(OneStream());
  Bench bench(server, {.max_rows_per_batch = 60});
  EXPECT_EQ(Drain(bench.Open(MakeRows(0)->schema(), "130", "275").get()).ids, Range(130, 275));
  EXPECT_EQ(Drain(bench.Open(MakeRows(0)->schema(), "130", "130").get()).ids, Range(130, 130));
  EXPECT_EQ(Drain(bench.Open(MakeRows(0)->schema(), "", "5000").get()).ids, Range(0, kRows));
}

TEST_P(StreamReaderTest, BytesBoundBatchesToo) {
  ScriptedServer server(OneStream());
  Bench bench(server, {.max_bytes_per_batch = 1});
  auto all = Drain(bench.Open(MakeRows(0)->schema(), "990").get());
  EXPECT_EQ(all.batch_rows, std::vector<int64_t>(10, 1)) << "a row above the target goes alone";
}

// Specs 28 and 29: Cancel decides by its own flag, whatever the stream looks like.
TEST_P(StreamReaderTest, CancelDuringAWaitAnswersCancelled) {
  ScriptedServer server(OneStream());
  server.ScriptReads({{.kind = Fault::Kind::kHang, .after_messages = 2}});
  Bench bench(server);
  auto reader = bench.Open(MakeRows(0)->schema());
  EXPECT_TRUE(reader->Next().ok());
  EXPECT_TRUE(reader->Next().ok());
  ASSERT_TRUE(server.WaitForHanging(1));
  std::jthread other([&] { reader->Cancel(); });
  EXPECT_EQ(reader->Next().status().code(), arrow::StatusCode::Cancelled);
}

TEST_P(StreamReaderTest, CancelAfterACleanEndAnswersCancelledNotEnd) {
  ScriptedServer server(OneStream());
  Bench bench(server);
  auto reader = bench.Open(MakeRows(0)->schema());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(std::holds_alternative<Batch>(*reader->Next()));
  ASSERT_TRUE(server.WaitForFinished(1));
  reader->Cancel();
  EXPECT_EQ(reader->Next().status().code(), arrow::StatusCode::Cancelled);
}

TEST_P(StreamReaderTest, CancelBeforeTheFirstReadAndWhileWaitingToReopen) {
  {
    ScriptedServer server(OneStream());
    Bench bench(server);
    auto reader = bench.Open(MakeRows(0)->schema());
    reader->Cancel();
    EXPECT_EQ(reader->Next().status().code(), arrow::StatusCode::Cancelled);
  }
  ScriptedServer server(OneStream());
  server.FailAllReads({.after_messages = 0});
  Bench bench(server);
  bench.clock.set_auto_advance(false);  // the wait before the second attempt never ends by itself
  auto reader = bench.Open(MakeRows(0)->schema());
  ASSERT_TRUE(server.WaitForFinished(1));
  std::jthread other([&] { reader->Cancel(); });
  EXPECT_EQ(reader->Next().status().code(), arrow::StatusCode::Cancelled);
}

// Facts U67, U72.
TEST_P(StreamReaderTest, AStalledStreamIsReopened) {
  ScriptedServer server(OneStream());
  server.ScriptReads({{.kind = Fault::Kind::kHang, .after_messages = 2}});
  Bench bench(server, {.idle_limit = seconds{1}});  // each of the waits for what does come is shorter
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  EXPECT_TRUE(all.status.ok()) << all.status;
  EXPECT_EQ(all.ids, Range(0, kRows));
  EXPECT_EQ(Offsets(server), (std::vector<int64_t>{0, 200}));
  EXPECT_EQ(bench.count("readRetries.DEADLINE_EXCEEDED"), 1);
}

TEST_P(StreamReaderTest, LimitsOfAttemptAndTotal) {
  {
    ScriptedServer server(OneStream());
    server.ScriptReads({{.kind = Fault::Kind::kHang, .after_messages = 2}});
    // Attempts take no time by the virtual clock, and gRPC waits by the real one before it connects again.
    Bench bench(server, {.retry_max_attempts = 1'000'000, .attempt_limit = seconds{2}});
    const auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(0, kRows));
    EXPECT_EQ(Offsets(server), (std::vector<int64_t>{0, 200}));
  }
  ScriptedServer server(OneStream());
  server.FailAllReads({.after_messages = 0});
  Bench bench(server, {.total_limit = seconds{5}});
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  EXPECT_THAT(all.status.message(), HasSubstr("total_limit"));
  EXPECT_GT(server.reads().size(), 2U) << "a limit does not turn retries off (fact U78)";
  EXPECT_LT(bench.clock.Monotonic(), Duration(seconds{6}));
}

// The limit of one wait is not the limit of a call.
TEST_P(StreamReaderTest, DeadlineOfACallIsTheAttemptLimitOrWhatIsLeftOfTheTotal) {
  struct Case {
    SourceOptions options;
    double least, most;  // seconds until the deadline that the server sees
  };
  for (const Case& c :
       {Case{{.idle_limit = seconds{60}}, 1e6, 1e300}, Case{{.idle_limit = seconds{60}, .total_limit = seconds{3600}}, 3000, 3600},
        Case{{.attempt_limit = seconds{1800}, .total_limit = seconds{3600}}, 1500, 1800},
        Case{{.attempt_limit = seconds{7200}, .total_limit = seconds{3600}}, 3000, 3600}}) {
    ScriptedServer server(OneStream());
    Bench bench(server, c.options);
    EXPECT_EQ(Drain(bench.Open(MakeRows(0)->schema()).get()).ids, Range(0, kRows));
    EXPECT_GE(server.reads().at(0).deadline_seconds, c.least);
    EXPECT_LE(server.reads().at(0).deadline_seconds, c.most * 1.02);  // gRPC rounds long deadlines up on the wire
  }
}

TEST_P(StreamReaderTest, SurvivesARestartOfTheServer) {
  ScriptedServer server(OneStream());
  server.ScriptReads({{.kind = Fault::Kind::kHang, .after_messages = 4}});
  Bench bench(server, {.retry_max_attempts = 1'000'000});
  auto reader = bench.Open(MakeRows(0)->schema());
  ASSERT_TRUE(server.WaitForHanging(1));
  const auto deadline = std::chrono::steady_clock::now() + seconds{30};
  while (bench.count("responses") < 4 && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(milliseconds{1});
  server.Restart();
  auto all = Drain(reader.get());
  EXPECT_TRUE(all.status.ok()) << all.status;
  EXPECT_EQ(all.ids, Range(0, kRows));
  EXPECT_EQ(Offsets(server), (std::vector<int64_t>{0, 400}));
}

// Messages that come together wake the decoder once; the last of them is not kept back until more come.
TEST_P(StreamReaderTest, ASmallMessageIsHandedOnWhileTheNextOneIsWaitedFor) {
  ScriptedServer server(OneStream());
  server.AllowMessages(3);
  Bench bench(server, {.idle_limit = milliseconds{300'000}});
  auto reader = bench.Open(MakeRows(0)->schema());
  std::vector<int64_t> rows;
  auto three = std::async(std::launch::async, [&] {
    for (int i = 0; i < 3; ++i) {
      auto next = reader->Next();
      if (!next.ok() || !std::holds_alternative<Batch>(*next)) return;
      rows.push_back(std::get<Batch>(*next).rows->num_rows());
    }
  });
  EXPECT_EQ(three.wait_for(seconds{20}), std::future_status::ready);
  reader->Cancel();
  three.wait();
  EXPECT_EQ(rows, (std::vector<int64_t>{100, 100, 100}));
}

TEST_P(StreamReaderTest, ProgressNeverGoesDownAndThrottlingShows) {
  auto table = OneStream();
  table.throttle_percent = 40;
  ScriptedServer server(table);
  server.ScriptReads({{.after_messages = 5}});
  Bench bench(server, {.max_rows_per_batch = 30});
  auto reader = bench.Open(MakeRows(0)->schema());
  auto all = Drain(reader.get());
  EXPECT_TRUE(std::is_sorted(all.fractions.begin(), all.fractions.end()));
  EXPECT_NEAR(all.fractions.front(), 0.03, 1e-9);
  EXPECT_EQ(all.fractions.back(), 1.0);
  EXPECT_TRUE(reader->Progress().throttled);
}

// Fact U45.
TEST_P(StreamReaderTest, AnEmptyStreamEnds) {
  ScriptedServer server(OneStream(0));
  Bench bench(server);
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  EXPECT_TRUE(all.status.ok());
  EXPECT_TRUE(all.ids.empty());
}

TEST_P(StreamReaderTest, AServerWithoutProgressIsRead) {
  auto table = OneStream();
  table.report_progress = false;
  ScriptedServer server(table);
  server.ScriptReads({{.after_messages = 5}});
  Bench bench(server);
  EXPECT_EQ(Drain(bench.Open(MakeRows(0)->schema()).get()).ids, Range(0, kRows));
}

TEST_P(StreamReaderTest, ColumnsComeInTheOrderOfTheResult) {
  ScriptedServer server(OneStream());
  Bench bench(server);
  bench.stream.result_columns = {1, 0};  // the wire's id is the result's second column
  auto result = arrow::schema({arrow::field("name", arrow::utf8()), arrow::field("id", arrow::int64())});
  auto reader = bench.Open(result);
  auto batch = std::get<Batch>(*reader->Next());
  EXPECT_TRUE(batch.rows->schema()->Equals(*result));
  EXPECT_TRUE(batch.rows->column(1)->Equals(MakeRows(100)->column(0)));
  EXPECT_TRUE(batch.rows->ValidateFull().ok());
}

TEST_P(StreamReaderTest, HoldsNoMoreThanTheBudgetAndGivesAllBack) {
  auto table = OneStream(20'000);
  table.rows_per_message = 2000;
  ScriptedServer server(table);
  const int64_t message = arrow::util::TotalBufferSize(*MakeRows(2000));
  for (const int64_t limit : {int64_t{1}, message * 3}) {  // below one message: each is let through alone
    Bench bench(server, {.max_rows_per_batch = 500});
    MemoryBudget budget(limit);
    bench.context.memory = &budget;
    EXPECT_EQ(Drain(bench.Open(MakeRows(0)->schema()).get()).ids, Range(0, 20'000));
    EXPECT_EQ(budget.used(), 0);
    EXPECT_LE(budget.peak(), std::max<int64_t>(limit, int64_t{1} << 20) + message * 2);
  }
}

// Messages without rows may come first; they must not use up the look at where the stream went on.
TEST_P(StreamReaderTest, OffsetsIgnoredBehindAnEmptyMessageAreRefusedToo) {
  auto table = OneStream();
  table.ignore_offsets = true;
  table.empty_messages = true;
  ScriptedServer server(table);
  server.ScriptReads({{.after_messages = 3}});
  Bench bench(server);
  auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
  EXPECT_EQ(all.ids, Range(0, 300));
  ASSERT_FALSE(all.status.ok());
  EXPECT_EQ(GetErrorInfo(all.status)->reason, "OFFSET_IGNORED");
}

// A server whose fractions say only where a response ends cannot be told from one that began anew: the offset is taken as honoured.
TEST_P(StreamReaderTest, FractionsThatFallByThemselvesProveNothing) {
  for (const int after : {2, 5, 9}) {
    auto table = OneStream();
    table.progress_end_only = true;
    ScriptedServer server(table);
    server.ScriptReads({{.after_messages = after}});
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    ASSERT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(0, kRows));
    // Nor in another process, which knows only the position.
    for (const size_t batch : {size_t{1}, size_t{4}, all.positions.size() - 1}) {
      auto resumed = Drain(bench.Open(MakeRows(0)->schema(), all.positions[batch]).get());
      EXPECT_TRUE(resumed.status.ok()) << resumed.status;
      EXPECT_EQ(resumed.ids, Range(static_cast<int64_t>(batch + 1) * 100, kRows));
    }
  }
}

// Nor in the middle of a batch.
TEST_P(StreamReaderTest, PositionsInsideBatchesOfSuchAServerCarryNoFraction) {
  auto table = OneStream();
  table.progress_end_only = true;
  ScriptedServer server(table);
  Bench bench(server);
  auto reader = bench.Open(MakeRows(0)->schema());
  for (int64_t first = 0; first < kRows; first += 100) {
    auto batch = std::get<Batch>(*reader->Next());
    const std::string position = *reader->PositionAt(batch, 50);
    if (first < 200) continue;  // it is known from the second response on
    EXPECT_EQ(position, std::to_string(first + 50));
    EXPECT_EQ(Drain(bench.Open(MakeRows(0)->schema(), position).get()).ids, Range(first + 50, kRows));
  }
}

// A position inside a batch is asked for after the reader has gone on to messages without rows, and to the end.
TEST_P(StreamReaderTest, PositionAtARowIsTheSameAfterTheEnd) {
  auto table = OneStream(200);
  table.empty_messages = true;
  table.empty_message_at_end = true;
  ScriptedServer server(table);
  Bench bench(server);
  auto reader = bench.Open(MakeRows(0)->schema());
  auto first = std::get<Batch>(*reader->Next());
  auto second = std::get<Batch>(*reader->Next());
  const std::string at = *reader->PositionAt(second, 50);
  EXPECT_EQ(at, "150@0.5..1");
  EXPECT_TRUE(std::holds_alternative<End>(*reader->Next()));
  EXPECT_EQ(*reader->PositionAt(second, 50), at);
  EXPECT_EQ(*reader->PositionAt(first, 50), "50@0..0.5");
}

// Bytes behind the rows of one response are never taken for the beginning of the next.
TEST(StreamReader, WhatStandsBehindTheRowsOfAResponse) {
  const std::string end_marker("\xFF\xFF\xFF\xFF\0\0\0\0", 8);
  struct Case {
    std::string behind;
    bool good;
  };
  for (const Case& c : {Case{end_marker, true}, Case{std::string(8, '\0'), true}, Case{end_marker.substr(0, 4), false},
                        Case{std::string("\xFF\xFF\xFF\xFF\x40\0\0\0", 8), false}, Case{"garbage!", false}}) {
    auto table = OneStream();
    table.behind_rows = c.behind;
    ScriptedServer server(table);
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_EQ(all.status.ok(), c.good) << all.status;
    EXPECT_EQ(all.ids, c.good ? Range(0, kRows) : std::vector<int64_t>{});
    if (!c.good) {
      EXPECT_EQ(CodeOf(all.status), Code::kDataLoss);
    }
  }
}

TEST_P(StreamReaderTest, BrokenResponsesAreDataLossThatNamesThePlace) {
  for (const auto kind : {Fault::Kind::kGarbage, Fault::Kind::kWrongRowCount, Fault::Kind::kOtherFormat, Fault::Kind::kClaimsMore}) {
    ScriptedServer server(OneStream());
    server.ScriptReads({{.kind = kind, .after_messages = 3}});
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_EQ(all.ids, Range(0, 300));
    EXPECT_EQ(CodeOf(all.status), Code::kDataLoss) << all.status;
    EXPECT_THAT(all.status.message(), AllOf(HasSubstr(server.StreamName(0)), HasSubstr("at offset 300")));
    EXPECT_EQ(server.reads().size(), 1U) << "broken bytes are not tried again";
  }
}

// Fact: the service may leave bytes behind the rows that it counts.
TEST(StreamReader, BytesBehindAvroRowsAreIgnored) {
  for (const bool lz4 : {false, true}) {
    auto table = OneStream();
    table.format = SourceFormat::kAvro;
    table.response_lz4 = lz4;
    table.behind_rows = "anything";
    ScriptedServer server(table);
    Bench bench(server);
    auto all = Drain(bench.Open(MakeRows(0)->schema()).get());
    EXPECT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(0, kRows));
  }
}

// max_bytes_per_batch counts rows as they were sent: id 0 has a byte for the union's branch and one for the value; name one and nine.
TEST(StreamReader, BytesOfAvroRowsBoundBatches) {
  auto table = OneStream(40);
  table.format = SourceFormat::kAvro;
  ScriptedServer server(table);
  for (const int64_t bytes : {int64_t{25}, int64_t{24}, int64_t{1}}) {
    Bench bench(server, {.max_bytes_per_batch = bytes});
    // Rows 1 and 2: "name-1", 2 + 1 + 1 + 6 = 10 bytes each. Row 7 has no name: 3 bytes.
    auto all = Drain(bench.Open(MakeRows(0)->schema(), "1", "9").get());
    EXPECT_EQ(all.ids, Range(1, 9));
    EXPECT_EQ(all.batch_rows, bytes == 1 ? std::vector<int64_t>(8, 1) : (std::vector<int64_t>{2, 2, 3, 1})) << bytes;
  }
}

/// Rows of every canonical type that both formats hold.
std::shared_ptr<arrow::RecordBatch> TypedRows() {
  const auto json = arrow::field("j", arrow::utf8())
                        ->WithMetadata(arrow::key_value_metadata({std::string(kExtensionNameKey)}, {std::string(kJsonExtension)}));
  const auto schema = *ToArrowSchema(*FromArrowSchema(*arrow::schema(
      {arrow::field("id", arrow::int64()), arrow::field("f", arrow::float64()), arrow::field("b", arrow::boolean()),
       arrow::field("s", arrow::utf8()), arrow::field("y", arrow::binary()), arrow::field("n", arrow::decimal128(38, 9)),
       arrow::field("g", arrow::decimal256(76, 38)), arrow::field("d", arrow::date32()),
       arrow::field("t", arrow::time64(arrow::TimeUnit::MICRO)), arrow::field("dt", arrow::timestamp(arrow::TimeUnit::MICRO)),
       arrow::field("ts", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC")), json, arrow::field("größe x", arrow::int64()),
       arrow::field("l", arrow::list(arrow::int64()), false),
       arrow::field("st", arrow::struct_({arrow::field("x", arrow::int64()), arrow::field("l", arrow::list(arrow::utf8()), false)}))})));
  arrow::ArrayVector columns;
  const std::vector<std::string> json_columns = {
      "[0, 1, 2]",
      "[1.5, null, -0.0]",
      "[true, null, false]",
      R"(["a", null, ""])",
      R"(["a", null, ""])",
      R"(["1.500000000", null, "-99999999999999999999999999999.999999999"])",
      R"(["1.00000000000000000000000000000000000001", null, "-9999999999999999999999999999999999999.00000000000000000000000000000000000000"])",
      "[-719162, null, 2932896]",
      "[0, null, 86399999999]",
      "[-62135596800000000, null, 253402300799999999]",
      "[-1, null, 253402300799999999]",
      R"(["{\"k\":1}", null, "null"])",
      "[1, null, -1]",
      "[[1, 2], [], [-9223372036854775808]]",
      R"([[1, ["a", ""]], null, [null, []]])"};
  for (size_t i = 0; i < json_columns.size(); ++i) {
    auto column = arrow::json::ArrayFromJSONString(schema->field(static_cast<int>(i))->type(), json_columns[i]);
    EXPECT_TRUE(column.ok()) << column.status();
    columns.push_back(*column);
  }
  return arrow::RecordBatch::Make(schema, 3, columns);
}

TEST(StreamReader, BothFormatsGiveTheSameRows) {
  const auto rows = TypedRows();
  for (const auto format : {SourceFormat::kArrow, SourceFormat::kAvro}) {
    for (const bool schema_first : {false, true}) {
      ScriptedServer server(
          {.streams = {rows}, .schema = rows->schema(), .format = format, .rows_per_message = 2, .schema_in_first = schema_first});
      Bench bench(server);
      auto reader = bench.Open(rows->schema());
      for (int64_t row = 0; row < 3;) {
        auto next = reader->Next();
        ASSERT_TRUE(next.ok()) << next.status();
        ASSERT_TRUE(std::holds_alternative<Batch>(*next));
        const auto& batch = std::get<Batch>(*next).rows;
        EXPECT_TRUE(batch->schema()->Equals(*rows->schema(), /*check_metadata=*/true));
        EXPECT_TRUE(batch->Equals(*rows->Slice(row, batch->num_rows()))) << SourceFormatName(format) << batch->ToString();
        row += batch->num_rows();
      }
      EXPECT_TRUE(std::holds_alternative<End>(*reader->Next()));
    }
  }
}

// A value that BigQuery cannot hold is an error that names stream, column, row and value in either format.
TEST(StreamReader, ValuesOutOfRangeNameTheirPlace) {
  const auto schema = arrow::schema({arrow::field("id", arrow::int64()), arrow::field("d", arrow::date32())});
  const auto rows = arrow::RecordBatch::Make(schema, 3,
                                             {*arrow::json::ArrayFromJSONString(arrow::int64(), "[0, 1, 2]"),
                                              *arrow::json::ArrayFromJSONString(arrow::date32(), "[0, 1, 2932897]")});
  for (const auto format : {SourceFormat::kArrow, SourceFormat::kAvro}) {
    ScriptedServer server({.streams = {rows}, .schema = schema, .format = format, .rows_per_message = 1});
    Bench bench(server);
    auto all = Drain(bench.Open(schema).get());
    EXPECT_EQ(all.ids, Range(0, 2));
    EXPECT_THAT(all.status.message(), AllOf(HasSubstr(server.StreamName(0)), HasSubstr("at offset 2"), HasSubstr("column d, row 0")));
    ASSERT_NE(GetErrorInfo(all.status), nullptr);
    EXPECT_EQ(GetErrorInfo(all.status)->column, "d");
  }
}

}  // namespace
}  // namespace headrace::bigquery
