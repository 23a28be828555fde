#include "headrace/local/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
