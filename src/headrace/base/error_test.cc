#include "headrace/base/error.h"

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headrace/base/fail_point.h"

namespace headrace {
namespace {

TEST(ErrorTest, EveryCodeHasItsNameAndComesBackFromAStatus) {
  for (int i = 0; i <= 16; ++i) {
    auto code = static_cast<Code>(i);
    EXPECT_EQ(CodeFromName(CodeName(code)), code);
    if (i > 0) {
      EXPECT_EQ(CodeOf(MakeError({.code = code}, "text")), code) << CodeName(code);
    }
  }
  EXPECT_EQ(CodeName(static_cast<Code>(99)), "UNKNOWN");
  EXPECT_EQ(CodeFromName("NO_SUCH"), std::nullopt);
}

TEST(ErrorTest, TheDetailSurvivesContext) {
  auto status =
      MakeError({.code = Code::kNotFound, .resource = "t", .reason = "GONE", .retryable = true, .row = 7, .column = "c"}, "no table t");
  auto outer = WithContext(status, "planning");
  EXPECT_EQ(outer.message(), "planning: no table t");
  const auto* info = GetErrorInfo(outer);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->reason, "GONE");
  EXPECT_EQ(info->row, 7);
  EXPECT_TRUE(info->retryable);
  EXPECT_TRUE(outer.IsKeyError());
  EXPECT_NE(outer.ToString().find("NOT_FOUND"), std::string::npos);
  EXPECT_TRUE(WithContext(arrow::Status::OK(), "x").ok());
}

TEST(ErrorTest, AStatusWithoutDetailHasTheNearestCode) {
  EXPECT_EQ(CodeOf(arrow::Status::OK()), Code::kOk);
  EXPECT_EQ(CodeOf(arrow::Status::Cancelled("")), Code::kCancelled);
  EXPECT_EQ(CodeOf(arrow::Status::TypeError("")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(arrow::Status::IOError("")), Code::kUnknown);
  EXPECT_EQ(GetErrorInfo(arrow::Status::IOError("")), nullptr);
  EXPECT_EQ(CodeOf(MakeError({.code = Code::kOk}, "an error is never OK")), Code::kInternal);
  EXPECT_EQ(GetErrorInfo(InvalidOption("readers", "x"))->resource, "readers");
  EXPECT_EQ(CodeOf(Unsupported("view", "x")), Code::kUnimplemented);
}

TEST(FailPointTest, OnlyKnownStepsAreArmed) {
  for (const char* spec :
       {"no.such.step", "commit.before:0", "commit.before:-1", "commit.before:x", "commit.before:1x", "commit.before:", ""}) {
    EXPECT_EQ(CodeOf(ArmFailPoint(spec)), Code::kInvalidArgument) << spec;
  }
}

TEST(FailPointTest, TheArmedPassKillsTheProcessAndNoOther) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        if (!ArmFailPoint("commit.item:3").ok()) std::exit(1);
        FailPoint("commit.before");
        FailPoint("commit.item");
        FailPoint("commit.item");
        FailPoint("commit.item");
        std::exit(2);
      },
      ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(
      {
        if (!ArmFailPoint("commit.item:3").ok()) std::exit(1);
        FailPoint("commit.item");
        FailPoint("commit.item");
        std::exit(2);
      },
      ::testing::ExitedWithCode(2), "");
}

TEST(FailPointTest, AHandlerSeesEveryPass) {
  std::vector<std::string> seen;
  SetFailPointHandler([&](std::string_view name) { seen.emplace_back(name); });
  FailPoint("commit.before");
  SetFailPointHandler(nullptr);
  FailPoint("commit.before");
  EXPECT_EQ(seen, std::vector<std::string>{"commit.before"});
}

}  // namespace
}  // namespace headrace
