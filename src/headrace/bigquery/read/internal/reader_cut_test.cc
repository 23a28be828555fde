// Cuts of a read stream over a real connection to a scripted server: every row once, whatever becomes of the request.
#include <algorithm>
#include <chrono>
#include <thread>

#include <arrow/array/util.h>
#include <arrow/scalar.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/bigquery/read/internal/reader.h"
#include "headrace/bigquery/read/internal/reader_bench_testing.h"

namespace headrace::bigquery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

template <typename Condition>
bool WaitUntil(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + seconds{30};
  while (!condition() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(milliseconds{1});
  return condition();
}

bool Said(const Bench& bench, const std::string& text) {
  const auto lines = bench.logger.lines();
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

ServedTable Splittable(SourceFormat format = SourceFormat::kArrow) {
  ServedTable table = OneStream();
  table.format = format;
  table.can_split = true;
  return table;
}

/// A reader that has received `messages` messages, and was then asked for a cut.
struct Asked {
  Asked(Bench& bench, ScriptedServer& server, int64_t messages, double fraction = 0.5) {
    server.AllowMessages(messages);
    reader = bench.Open(MakeRows(0)->schema());
    EXPECT_TRUE(WaitUntil([&] { return bench.count("responses") >= messages; }));
    EXPECT_TRUE(WaitUntil([&] { return reader->Progress().can_cut; }));
    reader->RequestCut(fraction);
  }
  std::unique_ptr<SplitReader> reader;
};

ReadAll ReadFar(const Bench& bench, const Cut& cut) {
  EXPECT_EQ(cut.far.size(), 1U);
  Split far = cut.far.front();
  EXPECT_EQ(far.position, "");
  far.id = "s/1";
  auto reader = bench.source->OpenReader(bench.context, MakeRows(0)->schema(), far);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return Drain(reader->get());
}

std::vector<int64_t> Joined(std::vector<int64_t> near, const std::vector<int64_t>& far) {
  near.insert(near.end(), far.begin(), far.end());
  return near;
}

std::vector<std::pair<std::string, int64_t>> Opened(const ScriptedServer& server) {
  std::vector<std::pair<std::string, int64_t>> opened;
  for (const auto& call : server.reads()) opened.emplace_back(call.stream, call.offset);
  return opened;
}

class CutTest : public testing::TestWithParam<SourceFormat> {};
INSTANTIATE_TEST_SUITE_P(Formats, CutTest, testing::Values(SourceFormat::kArrow, SourceFormat::kAvro),
                         [](const auto& info) { return std::string(SourceFormatName(info.param)); });

TEST_P(CutTest, NearAndFarPartAreTheWholeStreamOnce) {
  for (const int64_t messages : {0, 1, 3, 5}) {
    SCOPED_TRACE(messages);
    ScriptedServer server(Splittable(GetParam()));
    Bench bench(server);
    Asked asked(bench, server, messages);
    ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
    EXPECT_FALSE(asked.reader->Progress().can_cut) << "one request at a time";
    server.AllowMessages(kNoBound);
    auto near = Drain(asked.reader.get());
    ASSERT_TRUE(near.status.ok()) << near.status;
    ASSERT_EQ(near.cuts.size(), 1U);
    const double seen = static_cast<double>(messages) / 10;
    const double fraction = seen + std::max((1 - seen) / 2, messages == 0 ? 0.0 : 0.2);
    ASSERT_EQ(server.splits().size(), 1U);
    EXPECT_DOUBLE_EQ(server.splits()[0].fraction, fraction);
    EXPECT_LE(server.splits()[0].deadline_seconds, 30.5);
    const int64_t border = static_cast<int64_t>(fraction * 1000) / 100 * 100;
    EXPECT_EQ(near.ids, Range(0, border));
    auto far = ReadFar(bench, near.cuts.front());
    ASSERT_TRUE(far.status.ok()) << far.status;
    EXPECT_EQ(far.ids, Range(border, kRows));
    // A message that was waited for when the answer came is of the original still.
    const std::string stream = server.StreamName(0);
    EXPECT_THAT(Opened(server), testing::UnorderedElementsAre(
                                    testing::Pair(stream, 0),
                                    testing::Pair(ScriptedServer::Primary(stream), testing::AnyOf(100 * messages, 100 * (messages + 1))),
                                    testing::Pair(ScriptedServer::Remainder(stream), 0)));
    EXPECT_EQ(bench.count("rowsRead"), kRows);
    EXPECT_EQ(bench.count("readRetries"), 0);
    EXPECT_EQ(bench.count("cutsRefused"), 0);
    EXPECT_EQ(near.fractions.back(), 1.0);
    EXPECT_EQ(far.fractions.back(), 1.0);
  }
}

TEST_P(CutTest, ThePositionsOfTheNearPartAreRowsOfIt) {
  ScriptedServer server(Splittable(GetParam()));
  Bench bench(server);
  Asked asked(bench, server, 2);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
  server.AllowMessages(kNoBound);
  auto near = Drain(asked.reader.get());
  ASSERT_EQ(near.cuts.size(), 1U);
  // What a checkpoint right behind the cut, or anywhere later, says: the near part at that position.
  for (size_t i = 2; i < near.positions.size(); ++i) {
    auto resumed = bench.source->OpenReader(
        bench.context, MakeRows(0)->schema(),
        {.id = "s", .descriptor = near.cuts.front().near_descriptor, .position = near.positions[i], .end_position = {}});
    ASSERT_TRUE(resumed.ok());
    auto rest = Drain(resumed->get());
    ASSERT_TRUE(rest.status.ok()) << rest.status;
    EXPECT_EQ(rest.ids, Range(static_cast<int64_t>(i + 1) * 100, 600)) << near.positions[i];
  }
  // What a checkpoint before the cut says: the original, which still has all rows.
  auto whole = Drain(bench.Open(MakeRows(0)->schema(), near.positions[1]).get());
  EXPECT_EQ(whole.ids, Range(200, kRows));
}

TEST_P(CutTest, SizesAndProgressAreSharedOut) {
  ScriptedServer server(Splittable(GetParam()));
  Bench bench(server);
  server.AllowMessages(2);
  auto opened = bench.source->OpenReader(
      bench.context, MakeRows(0)->schema(),
      {.id = "s", .descriptor = SerializeStreamState(bench.stream), .position = {}, .end_position = {}, .estimated_bytes = 1000});
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(WaitUntil([&] { return bench.count("responses") >= 2; }));
  (*opened)->RequestCut(0.5);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
  server.AllowMessages(kNoBound);
  double before = 0;
  bool was_cut = false;
  double at = 0;  // where the near part was opened
  while (true) {
    auto next = (*opened)->Next();
    ASSERT_TRUE(next.ok()) << next.status();
    const double now = (*opened)->Progress().fraction;
    EXPECT_GE(now, before);
    if (std::exchange(was_cut, false)) {
      EXPECT_DOUBLE_EQ(now, (at + 100) / 600) << "the batch behind the cut";
    }
    if (const auto* cut = std::get_if<Cut>(&*next)) {
      at = static_cast<double>(Opened(server).at(1).second);
      EXPECT_THAT(at, testing::AnyOf(200, 300));
      EXPECT_DOUBLE_EQ(before, at / 1000);
      EXPECT_DOUBLE_EQ(now, before) << "the cut is not applied yet";
      was_cut = true;
      EXPECT_DOUBLE_EQ(cut->near_estimated_bytes, 600);
      EXPECT_DOUBLE_EQ(cut->far[0].estimated_bytes, 400);
    }
    before = now;
    if (std::holds_alternative<End>(*next)) break;
  }
  EXPECT_EQ(before, 1);
}

TEST_P(CutTest, PartsAreCutAgain) {
  ScriptedServer server(Splittable(GetParam()));
  Bench bench(server);
  Asked asked(bench, server, 1, 0.9);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
  // Three of the primary, behind one of the original, or two: the second was waited for when the answer came, or was not.
  server.AllowMessages(3);
  ASSERT_TRUE(WaitUntil([&] { return Opened(server).size() == 2; }));
  const int64_t of_original = Opened(server)[1].second / 100;
  ASSERT_TRUE(WaitUntil([&] { return bench.count("responses") == of_original + 3; }));
  ASSERT_TRUE(WaitUntil([&] { return asked.reader->Progress().can_cut; }));
  asked.reader->RequestCut(0.5);
  const std::string primary = ScriptedServer::Primary(server.StreamName(0));
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split " + primary); }));
  server.AllowMessages(kNoBound);
  auto near = Drain(asked.reader.get());
  ASSERT_TRUE(near.status.ok()) << near.status;
  ASSERT_EQ(near.cuts.size(), 2U);
  auto last = ReadFar(bench, near.cuts[0]);
  auto middle = ReadFar(bench, near.cuts[1]);
  EXPECT_FALSE(middle.ids.empty());
  EXPECT_FALSE(last.ids.empty());
  EXPECT_EQ(Joined(Joined(near.ids, middle.ids), last.ids), Range(0, kRows));
}

TEST_P(CutTest, ALostRaceIsRefusedAndTheOriginalGoesOn) {
  ServedTable table = Splittable(GetParam());
  table.split_at = 0.2;
  ScriptedServer server(table);
  Bench bench(server);
  Asked asked(bench, server, 3);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
  server.AllowMessages(kNoBound);
  auto all = Drain(asked.reader.get());
  ASSERT_TRUE(all.status.ok()) << all.status;
  EXPECT_EQ(all.ids, Range(0, kRows));
  EXPECT_TRUE(all.cuts.empty());
  // The original was neither closed nor opened again.
  const std::string stream = server.StreamName(0);
  EXPECT_THAT(Opened(server),
              testing::ElementsAre(testing::Pair(stream, 0), testing::Pair(ScriptedServer::Primary(stream), testing::AnyOf(300, 400))));
  EXPECT_EQ(bench.count("cutsRefused"), 1);
  EXPECT_TRUE(Said(bench, "FAILED_PRECONDITION"));
}

// After a refusal the next request waits, each time longer: the same question would have the same answer.
TEST_P(CutTest, ARefusalIsFollowedByAPause) {
  ServedTable table = Splittable(GetParam());
  table.split_at = 0.1;
  ScriptedServer server(table);
  Bench bench(server);
  Asked asked(bench, server, 2);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
  server.AllowMessages(3);
  ASSERT_TRUE(WaitUntil([&] { return bench.count("cutsRefused") == 1; }));
  EXPECT_FALSE(asked.reader->Progress().can_cut);
  asked.reader->RequestCut(0.5);
  EXPECT_EQ(server.splits().size(), 1U);
  bench.clock.Advance(seconds{1});
  EXPECT_TRUE(asked.reader->Progress().can_cut);
  asked.reader->RequestCut(0.5);
  EXPECT_TRUE(server.WaitForSplits(2));
  server.AllowMessages(kNoBound);
  EXPECT_EQ(Drain(asked.reader.get()).ids, Range(0, kRows));
}

TEST_P(CutTest, AServerThatIgnoresOffsetsOfPrimariesIsNotAskedAgain) {
  ServedTable table = Splittable(GetParam());
  table.primaries_ignore_offsets = true;
  ScriptedServer server(table);
  Bench bench(server);
  Asked asked(bench, server, 3);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
  server.AllowMessages(kNoBound);
  auto all = Drain(asked.reader.get());
  ASSERT_TRUE(all.status.ok()) << all.status;
  EXPECT_EQ(all.ids, Range(0, kRows));
  EXPECT_TRUE(all.cuts.empty());
  EXPECT_TRUE(Said(bench, "ignores offsets"));
  // Nor by another reader of the same source.
  server.AllowMessages(0);
  auto other = bench.Open(MakeRows(0)->schema());
  EXPECT_FALSE(other->Progress().can_cut);
  other->RequestCut(0.5);
  server.AllowMessages(kNoBound);
  EXPECT_EQ(Drain(other.get()).ids, Range(0, kRows));
  EXPECT_EQ(server.splits().size(), 1U);
}

TEST_P(CutTest, TheOriginalMayEndBeforeTheCutIsKnown) {
  ScriptedServer server(Splittable(GetParam()));
  server.ScriptSplits({{.kind = Fault::Kind::kHang}});
  Bench bench(server);
  Asked asked(bench, server, 3);
  ASSERT_TRUE(server.WaitForHanging(1));
  server.AllowMessages(kNoBound);
  auto all = Drain(asked.reader.get());
  ASSERT_TRUE(all.status.ok()) << all.status;
  EXPECT_EQ(all.ids, Range(0, kRows));
  EXPECT_TRUE(all.cuts.empty());
  asked.reader.reset();  // ends the request, which nobody waits for
  EXPECT_TRUE(server.WaitForSplits(1));
}

struct Answer {
  const char* name;
  std::vector<Fault> script;
  bool can_split = true;
  bool into_itself = false;
  bool other_streams_may_be_asked = false;
};

class RefusedSplitTest : public testing::TestWithParam<Answer> {};
INSTANTIATE_TEST_SUITE_P(
    Answers, RefusedSplitTest,
    testing::Values(Answer{.name = "Unimplemented", .script = {}, .can_split = false},
                    Answer{.name = "PermissionDenied", .script = {{.code = Code::kPermissionDenied}}},
                    Answer{.name = "IntoItself", .script = {}, .into_itself = true},
                    Answer{.name = "NoNames", .script = {{.kind = Fault::Kind::kCleanEnd}}, .other_streams_may_be_asked = true},
                    Answer{.name = "NotFound", .script = {{.code = Code::kNotFound}}, .other_streams_may_be_asked = true},
                    Answer{.name = "InvalidArgument", .script = {{.code = Code::kInvalidArgument}}, .other_streams_may_be_asked = true}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(RefusedSplitTest, IsRememberedForTheStreamOrTheSource) {
  ServedTable table = Splittable();
  table.streams.push_back(MakeRows(kRows));
  table.can_split = GetParam().can_split;
  table.splits_into_itself = GetParam().into_itself;
  ScriptedServer server(table);
  server.ScriptSplits(GetParam().script);
  Bench bench(server);
  Asked asked(bench, server, 3);
  ASSERT_TRUE(server.WaitForSplits(1));
  bench.clock.Advance(std::chrono::hours{1});
  asked.reader->RequestCut(0.5);
  bench.stream = server.Descriptor(1);
  auto other = bench.Open(MakeRows(0)->schema());
  ASSERT_TRUE(WaitUntil([&] { return other->Progress().can_cut == GetParam().other_streams_may_be_asked; }));
  server.AllowMessages(kNoBound);
  auto all = Drain(asked.reader.get());
  ASSERT_TRUE(all.status.ok()) << all.status;
  EXPECT_EQ(all.ids, Range(0, kRows));
  EXPECT_TRUE(all.cuts.empty());
  EXPECT_EQ(server.splits().size(), 1U) << "asked once, and not again";
  EXPECT_EQ(Drain(other.get()).ids, Range(0, kRows));
}

TEST_P(CutTest, ASplitThatFailsInPassingIsTriedAgain) {
  ScriptedServer server(Splittable(GetParam()));
  server.ScriptSplits({{.code = Code::kUnavailable}, {.code = Code::kUnavailable}});
  Bench bench(server);
  Asked asked(bench, server, 3);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
  server.AllowMessages(kNoBound);
  auto near = Drain(asked.reader.get());
  ASSERT_EQ(near.cuts.size(), 1U);
  EXPECT_EQ(server.splits().size(), 3U);
  EXPECT_EQ(Joined(near.ids, ReadFar(bench, near.cuts[0]).ids), Range(0, kRows));
}

TEST_P(CutTest, ASplitThatKeepsFailingIsGivenUpAfterThirtySeconds) {
  ScriptedServer server(Splittable(GetParam()));
  server.ScriptSplits(std::vector<Fault>(1000, Fault{.code = Code::kUnavailable}));
  Bench bench(server);
  Asked asked(bench, server, 3);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "SplitReadStream of"); }));
  EXPECT_LE(bench.clock.Monotonic(), Duration(seconds{30}));
  server.AllowMessages(kNoBound);
  EXPECT_EQ(Drain(asked.reader.get()).ids, Range(0, kRows));
}

// Every way in which the near part may fail to prove itself.
TEST_P(CutTest, WithoutProofReadingGoesOnAsBefore) {
  const std::vector<Fault> faults = {{.kind = Fault::Kind::kStatus, .code = Code::kUnavailable},
                                     {.kind = Fault::Kind::kStatus, .code = Code::kOutOfRange},
                                     {.kind = Fault::Kind::kStatus, .code = Code::kNotFound},
                                     {.kind = Fault::Kind::kCleanEnd},
                                     {.kind = Fault::Kind::kGarbage},
                                     {.kind = Fault::Kind::kOtherFormat},
                                     // Its first rows were lost on the way: found in the soak.
                                     {.kind = Fault::Kind::kSkip}};
  for (const Fault& fault : faults) {
    ScriptedServer server(Splittable(GetParam()));
    server.FailReadsOf(ScriptedServer::Primary(server.StreamName(0)), fault);
    Bench bench(server);
    Asked asked(bench, server, 3);
    ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
    server.AllowMessages(kNoBound);
    auto all = Drain(asked.reader.get());
    ASSERT_TRUE(all.status.ok()) << all.status;
    EXPECT_EQ(all.ids, Range(0, kRows));
    EXPECT_TRUE(all.cuts.empty());
    EXPECT_EQ(bench.count("cutsRefused"), 1);
    EXPECT_EQ(server.reads().size(), 2U) << "the original is not opened again";
  }
}

// Rows that are alike all over the table: then only the fractions show that the first of them were lost.
TEST_P(CutTest, ALostFirstMessageIsNoticedAmongEqualRows) {
  for (const int64_t messages : {0, 1, 7}) {
    for (const bool lost : {false, true}) {
      const auto schema = arrow::schema({arrow::field("id", arrow::int64())});
      const auto rows = arrow::RecordBatch::Make(schema, 2000, {*arrow::MakeArrayFromScalar(arrow::Int64Scalar(7), 2000)});
      ServedTable table{.streams = {rows}, .schema = schema, .format = GetParam()};
      table.can_split = true;
      ScriptedServer server(table);
      if (lost) server.FailReadsOf(ScriptedServer::Primary(server.StreamName(0)), {.kind = Fault::Kind::kSkip});
      Bench bench(server);
      server.AllowMessages(messages);
      auto reader = bench.Open(schema);
      ASSERT_TRUE(WaitUntil([&] { return bench.count("responses") >= messages && reader->Progress().can_cut; }));
      reader->RequestCut(0.5);
      ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
      server.AllowMessages(kNoBound);
      int64_t read = 0;
      int64_t cuts = 0;
      for (auto next = reader->Next(); !std::holds_alternative<End>(*next); next = reader->Next()) {
        ASSERT_TRUE(next.ok()) << next.status();
        if (const auto* cut = std::get_if<Cut>(&*next)) {
          ++cuts;
          Split far = cut->far.front();
          far.id = "far";
          auto rest = *bench.source->OpenReader(bench.context, schema, far);
          for (auto more = rest->Next(); !std::holds_alternative<End>(*more); more = rest->Next())
            read += std::get<Batch>(*more).rows->num_rows();
        } else {
          read += std::get<Batch>(*next).rows->num_rows();
        }
      }
      EXPECT_EQ(read, 2000);
      EXPECT_EQ(cuts, lost ? 0 : 1) << messages;
    }
  }
}

// What the service makes of a new call's rows may be other responses than those of the one that runs.
TEST_P(CutTest, ANearPartInOtherResponsesIsProvenByItsRows) {
  ServedTable table = Splittable(GetParam());
  table.rows_per_message_of_primaries = 37;
  ScriptedServer server(table);
  Bench bench(server);
  Asked asked(bench, server, 3);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
  server.AllowMessages(kNoBound);
  auto near = Drain(asked.reader.get());
  ASSERT_TRUE(near.status.ok()) << near.status;
  ASSERT_EQ(near.cuts.size(), 1U);
  EXPECT_EQ(Joined(near.ids, ReadFar(bench, near.cuts[0]).ids), Range(0, kRows));
  server.FailReadsOf(ScriptedServer::Primary(server.StreamName(0)), {.kind = Fault::Kind::kSkip});
  Bench other(server);
  Asked again(other, server, 3);
  ASSERT_TRUE(WaitUntil([&] { return Said(other, "the service split"); }));
  server.AllowMessages(kNoBound);
  auto all = Drain(again.reader.get());
  EXPECT_TRUE(all.cuts.empty());
  EXPECT_EQ(all.ids, Range(0, kRows));
}

// The checkpoint right behind the cut has the position that the whole stream had, and the near part's descriptor.
TEST_P(CutTest, AMessageThatIsLostBehindAResumeOfTheNearPartIsAskedForAgain) {
  ScriptedServer server(Splittable(GetParam()));
  Bench bench(server);
  Asked asked(bench, server, 2);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
  server.AllowMessages(kNoBound);
  auto near = Drain(asked.reader.get());
  ASSERT_EQ(near.cuts.size(), 1U);
  for (size_t i = 0; i < near.positions.size(); ++i) {
    const int64_t rows = static_cast<int64_t>(i + 1) * 100;
    // Of a position before the cut only the lower bound counts: a loss there is not noticed, but a checkpoint never says it.
    const bool lose = rows >= 300 && rows < 600;
    if (lose) server.ScriptReads(std::vector<Fault>(server.reads().size() + 1, Fault{.kind = Fault::Kind::kSkip}));
    const size_t before = server.reads().size();  // opened, a reader asks at once
    auto resumed = bench.source->OpenReader(
        bench.context, MakeRows(0)->schema(),
        {.id = "s", .descriptor = near.cuts.front().near_descriptor, .position = near.positions[i], .end_position = {}});
    auto rest = Drain(resumed->get());
    ASSERT_TRUE(rest.status.ok()) << rest.status;
    EXPECT_EQ(rest.ids, Range(rows, 600)) << near.positions[i];
    EXPECT_EQ(server.reads().size() - before, lose ? 2U : 1U) << near.positions[i];
  }
}

TEST(CutProofTest, ANearPartThatSaysNothingIsGivenUpAfterFiveSeconds) {
  ScriptedServer server(Splittable());
  server.FailReadsOf(ScriptedServer::Primary(server.StreamName(0)), {.kind = Fault::Kind::kHang});
  Bench bench(server);
  Asked asked(bench, server, 3);
  ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
  server.AllowMessages(kNoBound);
  const auto start = std::chrono::steady_clock::now();
  auto all = Drain(asked.reader.get());
  EXPECT_EQ(all.ids, Range(0, kRows));
  EXPECT_TRUE(all.cuts.empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds{15});
  EXPECT_EQ(bench.count("cutsRefused"), 1);
}

TEST_P(CutTest, WithoutProgressThereIsNoProofAndNoRequest) {
  ServedTable table = Splittable(GetParam());
  table.report_progress = false;
  ScriptedServer server(table);
  Bench bench(server);
  server.AllowMessages(2);
  auto reader = bench.Open(MakeRows(0)->schema());
  ASSERT_TRUE(WaitUntil([&] { return bench.count("responses") == 2; }));
  EXPECT_TRUE(WaitUntil([&] { return !reader->Progress().can_cut; }));
  reader->RequestCut(0.5);
  server.AllowMessages(kNoBound);
  EXPECT_EQ(Drain(reader.get()).ids, Range(0, kRows));
  EXPECT_TRUE(server.splits().empty());
}

TEST_P(CutTest, ASplitWithAnEndIsNotCut) {
  ScriptedServer server(Splittable(GetParam()));
  Bench bench(server);
  server.AllowMessages(1);
  auto reader = bench.Open(MakeRows(0)->schema(), "", "500");
  EXPECT_FALSE(reader->Progress().can_cut);
  reader->RequestCut(0.5);
  server.AllowMessages(kNoBound);
  EXPECT_EQ(Drain(reader.get()).ids, Range(0, 500));
  EXPECT_TRUE(server.splits().empty());
}

TEST_P(CutTest, CancelEndsTheRequestAndTheProof) {
  Duration least[] = {std::chrono::hours{1}, std::chrono::hours{1}};  // without a proof and in one
  for (const bool in_proof : {false, true, true, true}) {
    ScriptedServer server(Splittable(GetParam()));
    if (!in_proof) server.ScriptSplits({{.kind = Fault::Kind::kHang}});
    if (in_proof) server.FailReadsOf(ScriptedServer::Primary(server.StreamName(0)), {.kind = Fault::Kind::kHang});
    Bench bench(server);
    Asked asked(bench, server, 3);
    if (in_proof) {
      ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
      server.AllowMessages(4);
    }
    ASSERT_TRUE(server.WaitForHanging(1));
    const auto start = std::chrono::steady_clock::now();
    asked.reader->Cancel();
    while (true) {
      auto next = asked.reader->Next();
      if (next.ok()) continue;
      EXPECT_EQ(CodeOf(next.status()), Code::kCancelled);
      break;
    }
    asked.reader.reset();
    least[in_proof ? 1 : 0] = std::min<Duration>(least[in_proof ? 1 : 0], std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(least[0], seconds{20}) << "the request ends by itself after thirty";
  EXPECT_LT(least[1], seconds{4}) << "the proof ends by itself after five";
}

TEST_P(CutTest, FaultsOfTheNearPartAreRetriedInIt) {
  const std::vector<Fault> faults = {{.after_messages = 2, .code = Code::kUnavailable},
                                     {.kind = Fault::Kind::kCleanEnd, .after_messages = 2},
                                     {.kind = Fault::Kind::kSkip, .after_messages = 2}};
  for (const Fault& fault : faults) {
    ScriptedServer server(Splittable(GetParam()));
    server.ScriptReads({{.after_messages = -1}, fault});
    Bench bench(server);
    Asked asked(bench, server, 1);
    ASSERT_TRUE(WaitUntil([&] { return Said(bench, "the service split"); }));
    server.AllowMessages(kNoBound);
    auto near = Drain(asked.reader.get());
    ASSERT_TRUE(near.status.ok()) << near.status;
    ASSERT_EQ(near.cuts.size(), 1U);
    const std::string primary = ScriptedServer::Primary(server.StreamName(0));
    const auto opened = Opened(server);
    ASSERT_EQ(opened.size(), 3U);
    const int64_t at = opened[1].second;
    EXPECT_THAT(at, testing::AnyOf(100, 200));
    EXPECT_EQ(opened, (std::vector<std::pair<std::string, int64_t>>{{server.StreamName(0), 0}, {primary, at}, {primary, at + 200}}));
    EXPECT_EQ(Joined(near.ids, ReadFar(bench, near.cuts[0]).ids), Range(0, kRows));
  }
}

}  // namespace
}  // namespace headrace::bigquery
