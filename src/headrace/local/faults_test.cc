#include "headrace/local/faults.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/local/fault_places.h"

namespace headrace::local {
namespace {

using ::testing::HasSubstr;

constexpr const char* kUnavailable = R"("action":{"status":{"code":"UNAVAILABLE"}})";

std::vector<FaultRule> Rules(const std::string& rule) { return ParseFaultRules("{\"rules\":[" + rule + "]}").ValueOrDie(); }

TEST(FaultRulesTest, WrongScriptsSayWhere) {
  struct Case {
    std::string script;
    std::string message;
  };
  const std::string kOpen = R"({"rules":[{"method":"ReadRows",)";
  const Case kCases[] = {
      {"", "one key \"rules\""},
      {"[]", "one key \"rules\""},
      {R"({"rules":[],"x":1})", "one key \"rules\""},
      {R"({"rules":[5]})", "Fault rule 0: a rule must be an object"},
      {R"({"rules":[{}]})", "needs a method and an action"},
      {R"({"rules":[{"method":"Nope","action":{"drop":true}}]})", "\"Nope\" is not a method"},
      {kOpen + R"("action":{}}]})", "exactly one of"},
      {kOpen + R"("action":{"drop":true,"delay_ms":1}}]})", "exactly one of"},
      {kOpen + R"("action":{"drop":false}}]})", "drop must be true"},
      {kOpen + R"("action":{"boom":1}}]})", "unknown key \"boom\" in action"},
      {kOpen + R"("action":{"delay_ms":-1}}]})", "delay_ms must be an integer from 0 to 600000"},
      {kOpen + R"("action":{"delay_ms":"1"}}]})", "delay_ms must be an integer"},
      {kOpen + R"("action":{"throttle_bytes_per_second":0}}]})", "must be an integer of at least 1"},
      {kOpen + R"("action":{"status":{}}}]})", "status needs a code"},
      {kOpen + R"("action":{"status":{"code":"OK"}}}]})", "\"OK\" is not the name"},
      {kOpen + R"("action":{"status":{"code":"UNAVAILABLE","x":1}}}]})", "unknown key \"x\" in status"},
      {kOpen + R"("match":{"x":1},"action":{"drop":true}}]})", "unknown key \"x\" in match"},
      {kOpen + R"("match":{"stream":"0"},"action":{"drop":true}}]})", "stream must be an integer"},
      {kOpen + R"("call":0,"action":{"drop":true}}]})", "call must be an integer of at least 1"},
      {kOpen + R"("call":"some","action":{"drop":true}}]})", "call must be a number of at least 1, or \"every\""},
      {kOpen + R"("times":0,"action":{"drop":true}}]})", "times must be an integer of at least 1"},
      {kOpen + R"("after_messages":"x","action":{"drop":true}}]})", "after_messages must be a number"},
      {kOpen + R"("after_messages":18446744073709551615,"action":{"drop":true}}]})", "after_messages must be an integer"},
      {kOpen + R"("action":{"drop":true}},{"method":"ReadRows","y":1}]})", "Fault rule 1: unknown key \"y\""},
      {kOpen + R"("match":{"part":"second"},"action":{"drop":true}}]})", "part must be \"original\", \"primary\" or \"remainder\""},
      {kOpen + R"("action":{"lose_answer":true}}]})", "lose_answer must be \"drop\" or an object"},
      {kOpen + R"("action":{"lose_answer":{}}}]})", "lose_answer needs a code"},
      {kOpen + R"("after_messages":1,"action":{"lose_answer":"drop"}}]})", "takes no after_messages"},
      {kOpen + R"("action":{"expire_session":false}}]})", "expire_session must be true or an object"},
      {kOpen + R"("action":{"expire_session":{"code":"OK"}}}]})", "\"OK\" is not the name"},
      {kOpen + R"("action":{"close_idle":5}}]})", "close_idle must be an object"},
      {kOpen + R"("action":{"close_idle":{}}}]})", "close_idle needs after_ms"},
      {kOpen + R"("action":{"close_idle":{"after_ms":0}}}]})", "after_ms must be an integer from 1 to 600000"},
      {kOpen + R"("action":{"close_idle":{"after_ms":1,"retry_delay_ms":1}}}]})", "unknown key \"retry_delay_ms\""},
      {kOpen + R"("action":{"duplicate":2}}]})", "duplicate must be true"},
      {kOpen + R"("action":{"skip":false}}]})", "skip must be true"},
      {kOpen + R"("action":{"truncate_bytes":0}}]})", "truncate_bytes must be an integer of at least 1"},
      {kOpen + R"("action":{"corrupt":true}}]})", "corrupt must be an object"},
      {kOpen + R"("action":{"corrupt":{"at":"x"}}}]})", "at must be an integer"},
      {kOpen + R"("action":{"corrupt":{"bytes":0}}}]})", "bytes must be an integer of at least 1"},
      {kOpen + R"("action":{"row_count_off_by":0}}]})", "row_count_off_by must not be 0"},
      {kOpen + R"("action":{"row_count_off_by":1.5}}]})", "row_count_off_by must be an integer"},
      {kOpen + R"("action":{"change_schema":true}}]})", "change_schema must be"},
      {kOpen + R"("after_messages":"after_last","action":{"skip":true}}]})", "there is none that this could happen to"},
      {R"({"rules":[{"method":"SplitReadStream","action":{"duplicate":true}}]})", "are for ReadRows, not for SplitReadStream"},
      {R"({"rules":[{"method":"SplitReadStream","after_messages":"after_last","action":{"drop":true}}]})", "are for ReadRows"},
      {R"({"rules":[{"method":"CreateReadSession","action":{"close_idle":{"after_ms":1}}}]})", "are for ReadRows"},
      {R"({"rules":[{"method":"CreateReadSession","match":{"part":"primary"},"action":{"drop":true}}]})", "has no stream"},
      {R"({"rules":[{"method":"SplitReadStream","every_rows":1,"actions":[{"drop":true}]}]})", "are for ReadRows"},
      {kOpen + R"("every_rows":10}]})", "go together"},
      {kOpen + R"("seed":10}]})", "go together"},
      {kOpen + R"("actions":[{"drop":true}]}]})", "go together"},
      {kOpen + R"("every_rows":0,"actions":[{"drop":true}]}]})", "every_rows must be an integer from 1"},
      {kOpen + R"("every_rows":5,"actions":[]}]})", "a list of 1 to 100 actions"},
      {kOpen + R"("every_rows":5,"actions":{"drop":true}}]})", "a list of 1 to 100 actions"},
      {kOpen + R"("every_rows":5,"seed":"x","actions":[{"drop":true}]}]})", "seed must be an integer"},
      {kOpen + R"("every_rows":5,"actions":[{"drop":true},{"boom":1}]}]})", "unknown key \"boom\" in action"},
      {kOpen + R"("every_rows":5,"actions":[{"lose_answer":"drop"}]}]})", "lose_answer does not go with every_rows"},
      {kOpen + R"("every_rows":5,"call":1,"actions":[{"drop":true}]}]})", "call does not go with every_rows"},
      {kOpen + R"("every_rows":5,"after_messages":1,"actions":[{"drop":true}]}]})", "after_messages does not go with every_rows"},
      {kOpen + R"("every_rows":5,"action":{"drop":true},"actions":[{"drop":true}]}]})", "action does not go with every_rows"},
      {R"({"rules":[{"method":"CreateReadSession","after_messages":1,"action":{"drop":true}}]})", "are for ReadRows"},
      {R"({"rules":[{"method":"CreateReadSession","match":{"stream":1},"action":{"drop":true}}]})", "has no stream"},
  };
  for (const Case& c : kCases) {
    auto status = ParseFaultRules(c.script).status();
    EXPECT_EQ(CodeOf(status), Code::kInvalidArgument) << c.script;
    EXPECT_THAT(status.message(), HasSubstr(c.message)) << c.script;
  }
}

// Which of five calls to two streams fire.
std::string Fires(const std::string& rule) {
  FaultScript script(RealClock());
  script.Replace(Rules(rule));
  std::string fired;
  const std::pair<int64_t, int64_t> kCalls[] = {{0, 0}, {1, 0}, {0, 5}, {0, 5}, {1, 7}};
  for (auto [stream, offset] : kCalls) {
    CallFaults faults = script.Begin({.method = "ReadRows", .table = "p.d.t", .stream = stream, .offset = offset});
    fired += faults.AfterMessages(0).empty() ? '-' : 'x';
  }
  return fired;
}

TEST(FaultScriptTest, WhichCallsFire) {
  auto rule = [](const std::string& what) { return R"({"method":"ReadRows",)" + what + kUnavailable + "}"; };
  EXPECT_EQ(Fires(rule("")), "xxxxx");
  EXPECT_EQ(Fires(rule(R"("call":"every",)")), "xxxxx");
  EXPECT_EQ(Fires(rule(R"("times":2,)")), "xx---");
  EXPECT_EQ(Fires(rule(R"("call":2,)")), "-x---");
  EXPECT_EQ(Fires(rule(R"("call":2,"times":3,)")), "-xxx-");
  EXPECT_EQ(Fires(rule(R"("call":9,)")), "-----");
  EXPECT_EQ(Fires(rule(R"("match":{"stream":1},)")), "-x--x");
  EXPECT_EQ(Fires(rule(R"("match":{"stream":1},"call":2,)")), "----x");
  EXPECT_EQ(Fires(rule(R"("match":{"offset":5},)")), "--xx-");
  EXPECT_EQ(Fires(rule(R"("match":{"table":"p.d.t","stream":0,"offset":5},"call":2,)")), "---x-");
  EXPECT_EQ(Fires(rule(R"("match":{"table":"p.d.u"},)")), "-----");
  EXPECT_EQ(Fires(rule(R"("after_messages":1,)")), "-----");
  EXPECT_EQ(Fires(rule(R"("match":{"part":"original"},)")), "xxxxx");
  EXPECT_EQ(Fires(rule(R"("match":{"part":"primary"},)")), "-----");
}

TEST(FaultScriptTest, PointsAndCounts) {
  FaultScript script(RealClock());
  auto rules = Rules(R"({"method":"ReadRows","after_messages":2,"action":{"delay_ms":5}},
                        {"method":"ReadRows","after_messages":"after_last","action":{"drop":true}},
                        {"method":"ReadRows","after_messages":2,"action":{"status":{"code":"ABORTED","message":"m","retry_delay_ms":9}}},
                        {"method":"ReadRows","after_messages":2,"action":{"drop":true}})");
  script.Replace(rules);
  CallFaults faults = script.Begin({.method = "ReadRows"});
  EXPECT_TRUE(faults.AfterMessages(0).empty());
  EXPECT_TRUE(faults.AfterMessages(1).empty());
  auto fired = faults.AfterMessages(2);
  ASSERT_EQ(fired.size(), 2U);  // the status ends the call, so the last rule stays
  EXPECT_EQ(std::get<DelayFault>(fired[0].action).milliseconds, 5);
  EXPECT_EQ(std::get<StatusFault>(fired[1].action).code, Code::kAborted);
  EXPECT_EQ(std::get<StatusFault>(fired[1].action).retry_delay_ms, 9);
  EXPECT_EQ(faults.AfterLast().size(), 1U);
  EXPECT_TRUE(faults.AfterLast().empty());
  auto counts = script.Counts();
  ASSERT_EQ(counts.size(), 4U);
  EXPECT_EQ(counts[0].fired, 1);
  EXPECT_EQ(counts[1].fired, 1);
  EXPECT_EQ(counts[2].fired, 1);
  EXPECT_EQ(counts[3].fired, 0);
  EXPECT_EQ(counts[3].calls, 1);
}

TEST(FaultScriptTest, MessagesHaveTheirOwnPoint) {
  FaultScript script(RealClock());
  script.Replace(Rules(R"({"method":"ReadRows","after_messages":1,"action":{"skip":true}},
                          {"method":"ReadRows","after_messages":1,"action":{"delay_ms":5}},
                          {"method":"ReadRows","after_messages":1,"action":{"close_idle":{"after_ms":7}}})"));
  CallFaults faults = script.Begin({.method = "ReadRows"});
  EXPECT_TRUE(faults.AfterMessages(0).empty());
  EXPECT_TRUE(faults.ForMessage(0, {0, 5}).empty());
  auto fired = faults.AfterMessages(1);
  ASSERT_EQ(fired.size(), 2U);
  EXPECT_EQ(script.Counts()[0].fired, 0);  // no message yet
  EXPECT_EQ(script.Counts()[2].fired, 0);  // nothing was closed yet
  faults.CountClosed(fired[1]);
  EXPECT_EQ(script.Counts()[2].fired, 1);
  fired = faults.ForMessage(1, {5, 10});
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<SkipFault>(fired[0].action));
  EXPECT_EQ(script.Counts()[0].fired, 1);
  EXPECT_TRUE(faults.ForMessage(2, {10, 15}).empty());
}

// Reads the 1,000 rows of a stream in messages of 7 and comes again where a fault ended it; answers "row:action ..." of all that fired.
std::string Places(const std::string& rule, const std::string& stream, const std::string& stream_rows, FaultScript* script) {
  if (!rule.empty()) script->Replace(Rules(rule));
  std::string places;
  for (int64_t offset = 0, calls = 0; offset < 1000 && calls < 1000; ++calls) {
    CallFaults faults =
        script->Begin({.method = "ReadRows", .table = "p.d.t", .stream = 0, .stream_name = stream, .stream_rows = stream_rows});
    bool ended = false;
    for (; offset < 1000 && !ended; offset += ended ? 0 : 7) {
      auto fired = faults.ForMessage(0, {offset, std::min<int64_t>(offset + 7, 1000)});
      EXPECT_LE(fired.size(), 1U);
      if (fired.empty()) continue;
      ended = std::holds_alternative<StatusFault>(fired[0].action);
      places += std::to_string(offset) + ":" + std::to_string(fired[0].index) + " ";
    }
  }
  return places;
}

TEST(FaultScriptTest, PlacesBySeed) {
  auto rule = [](int64_t every, int64_t seed, const std::string& more = "") {
    return R"({"method":"ReadRows","every_rows":)" + std::to_string(every) + R"(,"seed":)" + std::to_string(seed) + more +
           R"(,"actions":[{"status":{"code":"UNAVAILABLE"}},{"duplicate":true},{"delay_ms":1}]})";
  };
  FaultScript script(RealClock());
  std::string places = Places(rule(100, 1), "s", "r", &script);
  EXPECT_EQ(std::count(places.begin(), places.end(), ':'), 10);  // one in each 100 rows, and each once
  for (const char* action : {":0 ", ":1 ", ":2 "}) EXPECT_THAT(places, HasSubstr(action));
  auto count = script.Counts()[0];
  EXPECT_EQ(count.fired, 10);
  EXPECT_EQ(count.by_action.size(), 3U);
  EXPECT_EQ(count.by_action[0] + count.by_action[1] + count.by_action[2], 10);
  EXPECT_EQ(count.calls, count.by_action[0] + 1);
  EXPECT_THAT(FaultCountsJson(script.Counts()), HasSubstr("\"by_action\":["));

  EXPECT_EQ(Places("", "s", "r", &script), "");          // each place fires once
  EXPECT_EQ(Places("", "other", "r", &script), places);  // another session's stream over the same rows has the same
  EXPECT_EQ(Places(rule(100, 1), "s", "r", &script), places);
  EXPECT_NE(Places(rule(100, 2), "s", "r", &script), places);
  EXPECT_NE(Places(rule(100, 1), "s", "q", &script), places);
  EXPECT_EQ(Places(rule(1'000'000'000'000, 1), "s", "r", &script), "");  // almost surely beyond the stream, and so for this seed
  std::string bounded = Places(rule(100, 1, R"(,"times":3)"), "s", "r", &script);
  EXPECT_EQ(std::count(bounded.begin(), bounded.end(), ':'), 3);
  EXPECT_TRUE(places.starts_with(bounded));
  // Closer than messages are long: one for each message, and still an end.
  std::string dense = Places(rule(1, 1), "s", "r", &script);
  EXPECT_EQ(std::count(dense.begin(), dense.end(), ':'), 143);
}

TEST(FaultPlacesTest, OneInEachBlock) {
  std::set<int64_t> rows;
  for (int64_t block = 0; block < 1000; ++block) {
    FaultPlace place = PlaceOf(7, "s", 50, 4, block);
    EXPECT_EQ(place.row / 50, block);
    EXPECT_LT(place.action, 4U);
    rows.insert(place.row % 50);
  }
  EXPECT_EQ(rows.size(), 50U);
  // A run is repeated on other machines, too.
  EXPECT_EQ(PlaceOf(7, "s", 1000, 4, 3).row, 3344);
}

TEST(ThrottleTest, HoldsTheRate) {
  ManualClock clock;
  Throttle throttle(&clock, 1000);
  EXPECT_EQ(throttle.Reserve(500), std::chrono::milliseconds(500));
  EXPECT_EQ(throttle.Reserve(500), std::chrono::milliseconds(1000));
  clock.Advance(std::chrono::milliseconds(400));
  EXPECT_EQ(throttle.Reserve(100), std::chrono::milliseconds(700));
  clock.Advance(std::chrono::seconds(10));  // idle time is not saved up
  EXPECT_EQ(throttle.Reserve(100), std::chrono::milliseconds(100));
}

}  // namespace
}  // namespace headrace::local
