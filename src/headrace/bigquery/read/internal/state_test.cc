#include "headrace/bigquery/read/internal/state.h"

#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    text += two;
  }
  return text;
}

const StreamState kStream{.stream = "s/1", .session_created_ms = 1, .session_expires_ms = 300, .result_columns = {1, 0}};
PlanState Plan() {
  return {.planned = true,
          .session = "s",
          .session_created_ms = 1,
          .session_expires_ms = 300,
          .schema = "xy",
          .wire_columns = {1, 0},
          .estimated_rows = 7,
          .estimated_bytes = -1,
          .queue = {{.id = "a", .descriptor = "d", .position = "5", .end_position = "9", .estimated_bytes = 0.5}}};
}

// The bytes of version 1 never change: a checkpoint of this release must be readable by the next (docs/formats/bigquery-state.md).
TEST(State, GoldenBytes) {
  EXPECT_EQ(Hex(SerializeStreamState(kStream)), "08011203732f31180120ac022a020100");
  EXPECT_EQ(*ParseStreamState(SerializeStreamState(kStream)), kStream);
  EXPECT_EQ(Hex(SerializePlanState(Plan())),
            "080110011a0173200128ac023202"
            "7879"
            "3a020100400748ffffffffffffffffff01521"
            "50a01611201641a01352201392900000000"
            "0000e03f");
  EXPECT_EQ(*ParsePlanState(SerializePlanState(Plan())), Plan());
  EXPECT_EQ(*ParsePlanState(SerializePlanState({})), PlanState{});
}

TEST(State, AnotherVersionIsRefusedNamingBoth) {
  std::string bytes = SerializePlanState(Plan());
  bytes[1] = 2;
  EXPECT_THAT(ParsePlanState(bytes).status().message(), AllOf(HasSubstr("version 2"), HasSubstr("version 1")));
  EXPECT_EQ(CodeOf(ParsePlanState(bytes).status()), Code::kUnimplemented);
  bytes = SerializeStreamState(kStream);
  bytes[1] = 9;
  EXPECT_THAT(ParseStreamState(bytes).status().message(), AllOf(HasSubstr("version 9"), HasSubstr("version 1")));
}

TEST(State, WhatDoesNotAddUpIsCorrupt) {
  for (const auto& change : std::vector<std::function<void(PlanState&)>>{
           [](auto& s) { s.session.clear(); }, [](auto& s) { s.schema.clear(); }, [](auto& s) { s.planned = false; },
           [](auto& s) { s.session_created_ms = -1; }, [](auto& s) { s.session_expires_ms = -1; }}) {
    PlanState plan = Plan();
    change(plan);
    EXPECT_EQ(CodeOf(ParsePlanState(SerializePlanState(plan)).status()), Code::kDataLoss);
  }
  EXPECT_EQ(CodeOf(ParseStreamState(SerializeStreamState({})).status()), Code::kDataLoss);
  EXPECT_EQ(CodeOf(ParseStreamState(SerializeStreamState({.stream = "s", .session_expires_ms = -1})).status()), Code::kDataLoss);
}

// Cut or flipped anywhere: an error or some other state, never a crash.
TEST(State, DamagedBytesNeverCrash) {
  const std::string good = SerializePlanState(Plan());
  for (size_t i = 0; i < good.size(); ++i) {
    (void)ParsePlanState(good.substr(0, i));
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      (void)ParsePlanState(bad);
    }
  }
}

}  // namespace
}  // namespace headrace::bigquery
