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

std::string Bytes(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

const StreamState kStream{.stream = "s/1",
                          .session_created_ms = 1,
                          .session_expires_ms = 300,
                          .result_columns = {1, 0},
                          .format = SourceFormat::kAvro,
                          .response_compression = ResponseCompression::kLz4,
                          .wire_schema = "{}"};
PlanState Plan() {
  return {.planned = true,
          .session = "s",
          .session_created_ms = 1,
          .session_expires_ms = 300,
          .schema = "xy",
          .wire_columns = {1, 0},
          .estimated_rows = 7,
          .estimated_bytes = -1,
          .queue = {{.id = "a", .descriptor = "d", .position = "5", .end_position = "9", .estimated_bytes = 0.5}},
          .format = SourceFormat::kAvro,
          .response_compression = ResponseCompression::kLz4};
}

// Bytes that were written once never change their meaning: a checkpoint of one release is read by the next
// (docs/formats/bigquery-state.md).
const char kStreamVersion1[] = "08011203732f31180120ac022a020100";
const char kPlanVersion1[] =
    "080110011a0173200128ac0232027879"
    "3a020100400748ffffffffffffffffff01521"
    "50a01611201641a013522013929000000000000e03f";

TEST(State, GoldenBytes) {
  EXPECT_EQ(Hex(SerializeStreamState(kStream)), "08021203732f31180120ac022a0201003001380142027b7d");
  EXPECT_EQ(*ParseStreamState(SerializeStreamState(kStream)), kStream);
  StreamState near = kStream;
  near.cut_rows = 7;
  near.cut_fraction = 0.5;
  EXPECT_EQ(Hex(SerializeStreamState(near)), "08021203732f31180120ac022a0201003001380142027b7d480751000000000000e03f");
  EXPECT_EQ(*ParseStreamState(SerializeStreamState(near)), near);
  EXPECT_EQ(Hex(SerializePlanState(Plan())),
            "080210011a0173200128ac0232027879"
            "3a020100400748ffffffffffffffffff01521"
            "50a01611201641a013522013929000000000000e03f"
            "58016001");
  EXPECT_EQ(*ParsePlanState(SerializePlanState(Plan())), Plan());
  PlanState described = Plan();
  described.reads = {{"row_restriction", "x"}, {"table", "p.d.t"}};
  EXPECT_EQ(Hex(SerializePlanState(described)), Hex(SerializePlanState(Plan())) +
                                                    "72140a0f726f775f7265737472696374696f6e120178"
                                                    "720e0a057461626c651205702e642e74");
  EXPECT_EQ(*ParsePlanState(SerializePlanState(described)), described);
  EXPECT_EQ(*ParsePlanState(SerializePlanState({})), PlanState{});
}

// Version 1 knew Arrow only, and handed its columns out as they came.
TEST(State, Version1IsStillRead) {
  const StreamState stream{.stream = "s/1", .session_created_ms = 1, .session_expires_ms = 300, .result_columns = {1, 0}};
  EXPECT_EQ(*ParseStreamState(Bytes(kStreamVersion1)), stream);
  EXPECT_EQ(*ParseStreamState(SerializeStreamState(stream)), stream);
  PlanState plan = Plan();
  plan.format = SourceFormat::kArrow;
  plan.response_compression = ResponseCompression::kNone;
  plan.schema_as_sent = true;
  EXPECT_EQ(*ParsePlanState(Bytes(kPlanVersion1)), plan);
  EXPECT_EQ(*ParsePlanState(SerializePlanState(plan)), plan) << "it stays so when it is written again";
  EXPECT_FALSE(ParsePlanState(Bytes("0801"))->schema_as_sent) << "nothing was planned: the new plan has canonical types";
}

TEST(State, AnotherVersionIsRefusedNamingAll) {
  for (const char version : {'\0', '\3', '\x7f'}) {
    std::string bytes = SerializePlanState(Plan());
    bytes[1] = version;
    const std::string named = "version " + std::to_string(version);
    EXPECT_THAT(ParsePlanState(bytes).status().message(), AllOf(HasSubstr(named), HasSubstr("versions 1 and 2")));
    EXPECT_EQ(CodeOf(ParsePlanState(bytes).status()), Code::kUnimplemented);
    bytes = SerializeStreamState(kStream);
    bytes[1] = version;
    EXPECT_THAT(ParseStreamState(bytes).status().message(), AllOf(HasSubstr(named), HasSubstr("versions 1 and 2")));
  }
}

TEST(State, UnknownFormsAreCorrupt) {
  // Fields 6, 7 of the descriptor, 11, 12 of the plan, with the value 2; Avro as sent.
  for (const char* bytes : {"0802120173"
                            "3002",
                            "0802120173"
                            "3802"}) {
    EXPECT_EQ(CodeOf(ParseStreamState(Bytes(bytes)).status()), Code::kDataLoss) << bytes;
  }
  for (const char* bytes : {"0802"
                            "5802",
                            "0802"
                            "6002",
                            "080210011a0173320178"
                            "58016801"}) {
    EXPECT_EQ(CodeOf(ParsePlanState(Bytes(bytes)).status()), Code::kDataLoss) << bytes;
  }
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
  for (const StreamState& wrong : {StreamState{.stream = "s", .session_expires_ms = -1}, StreamState{.stream = "s", .cut_rows = -1},
                                   StreamState{.stream = "s", .cut_fraction = -0.5}, StreamState{.stream = "s", .cut_fraction = 1.5},
                                   StreamState{.stream = "s", .cut_fraction = std::numeric_limits<double>::quiet_NaN()}}) {
    EXPECT_EQ(CodeOf(ParseStreamState(SerializeStreamState(wrong)).status()), Code::kDataLoss);
  }
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
