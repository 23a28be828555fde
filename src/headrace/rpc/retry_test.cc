#include "headrace/rpc/retry.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <gtest/gtest.h>

namespace headrace::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Always just below 1, so that a wait is its nominal delay.
class NominalRandom final : public Random {
 public:
  uint64_t Next() override { return UINT64_MAX; }
};

struct Case {
  Code code;
  std::string message;
  FaultKind read_rows;
  FaultKind create_session;
};

TEST(RetryTable, TextsOfAConnectionThatNeverWas) {
  for (const char* text : {"failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: "
                           "Connection refused",
                           "DNS resolution failed for nosuch.invalid:1: C-ares status is not ARES_SUCCESS qtype=A name=nosuch.invalid"}) {
    EXPECT_TRUE(IsUnreachedText(text)) << text;
  }
  for (const char* text : {"", "Socket closed", "the service is overloaded", "Connection reset by peer"}) {
    EXPECT_FALSE(IsUnreachedText(text)) << text;
  }
}

// Spec connection.md "Retry policies"; facts R13, U83, U84.
TEST(RetryTable, EachCodeAndText) {
  constexpr auto kNo = FaultKind::kPermanent;
  constexpr auto kWait = FaultKind::kUnavailable;
  constexpr auto kWire = FaultKind::kTransport;
  const Case cases[] = {
      {Code::kUnavailable, "try again", kWait, kWait},
      {Code::kUnavailable, "Ssl handshake failed: error:0A000086:SSL routines::certificate verify failed.", kNo, kNo},
      {Code::kUnavailable, "Socket closed", kWire, kWire},
      {Code::kUnavailable, "Connection reset by peer", kWire, kWire},
      {Code::kUnavailable, "Getting metadata from plugin failed with error: timeout", kWait, kWait},
      {Code::kUnauthenticated, "Getting metadata from plugin failed with error: timeout", kWire, kWire},
      {Code::kUnauthenticated, "Request had invalid authentication credentials", kNo, kNo},
      {Code::kInternal, "Received RST_STREAM with error code 2", kWire, kWire},
      {Code::kInternal, "Received Rst Stream", kWire, kWire},
      {Code::kInternal, "HTTP/2 error code: INTERNAL_ERROR", kWire, kWire},
      {Code::kInternal, "Received unexpected EOS on DATA frame from server", kWire, kWire},
      {Code::kInternal, "Connection closed with unknown cause", kWire, kWire},
      {Code::kInternal, "stream terminated by RST_STREAM", kWire, kWire},
      {Code::kInternal, "EOF", kWire, kWire},
      {Code::kInternal, "internal error in the service", kNo, kNo},
      {Code::kInternal, "", kNo, kNo},
      {Code::kInternal, "the GEOFENCE column is broken", kNo, kNo},
      // In gRPC's own words, as tests/wire saw them.
      {Code::kInternal, "frame of size 12664 overflows local window of 12660", kWire, kWire},
      {Code::kInternal, "unsupported data flags: 0x08 stream: 3", kWire, kWire},
      {Code::kInternal, "Bad GRPC frame type 0x7e", kWire, kWire},
      {Code::kInternal, "Received http2 header with status: 400", kNo, kNo},
      {Code::kUnknown, "Received http2 header with status: 500", kWait, kWait},
      {Code::kUnknown, "No status received", kWire, kWire},
      {Code::kUnknown, "GOAWAY received", kWire, kWire},
      {Code::kUnknown, "connection is draining", kWire, kWire},
      {Code::kUnknown, "Stream removed", kWire, kWire},
      {Code::kUnknown, "something else", kNo, kNo},
      {Code::kAborted, "Received RST_STREAM with error code 8", kWire, kNo},
      {Code::kAborted, "transaction aborted", kNo, kNo},
      {Code::kCancelled, "Received RST_STREAM with error code 8", kWire, kWire},
      {Code::kCancelled, "the client is gone", kWire, kWire},
      {Code::kCancelled, "", kWire, kWire},
      {Code::kResourceExhausted, "quota", kNo, kNo},
      {Code::kResourceExhausted, "Received RST_STREAM with error code 11", kWait, kWait},
      {Code::kPermissionDenied, "Received RST_STREAM with error code 12", kWait, kWait},
      {Code::kPermissionDenied, "Received http2 header with status: 403", kNo, kNo},
      {Code::kDeadlineExceeded, "Deadline Exceeded", kNo, kWait},
      {Code::kInvalidArgument, "RST_STREAM", kNo, kNo},
      {Code::kNotFound, "", kNo, kNo},
      {Code::kPermissionDenied, "", kNo, kNo},
      {Code::kFailedPrecondition, "session expired", kNo, kNo},
      {Code::kOutOfRange, "", kNo, kNo},
      {Code::kUnimplemented, "", kNo, kNo},
      {Code::kDataLoss, "", kNo, kNo},
      {Code::kAlreadyExists, "", kNo, kNo},
  };
  for (const Case& c : cases) {
    const RpcFailure failure{.code = c.code, .message = c.message};
    EXPECT_EQ(ClassifyReadRows(failure), c.read_rows) << CodeName(c.code) << " " << c.message;
    EXPECT_EQ(ClassifyCreateReadSession(failure), c.create_session) << CodeName(c.code) << " " << c.message;
  }
}

TEST(RetryTable, ResourceExhaustedIsRetriedOnlyWithTheServersDelay) {
  const RpcFailure named{.code = Code::kResourceExhausted, .server_delay = seconds{3}};
  EXPECT_EQ(ClassifyReadRows(named), FaultKind::kServerDelay);
  EXPECT_EQ(ClassifyCreateReadSession(named), FaultKind::kPermanent);
  EXPECT_EQ(ClassifyReadRows({.code = Code::kInternal, .server_delay = seconds{3}}), FaultKind::kPermanent);
}

TEST(RetryTable, WhatBecameOfTheTokenComesFirst) {
  for (const Code code : {Code::kUnauthenticated, Code::kUnavailable, Code::kPermissionDenied}) {
    for (const auto classify : {ClassifyReadRows, ClassifyCreateReadSession}) {
      EXPECT_EQ(classify({.code = code, .token = TokenFault::kNotFetched}), FaultKind::kTransport);
      EXPECT_EQ(classify({.code = code, .server_delay = seconds{3}, .token = TokenFault::kNotFetched}), FaultKind::kServerDelay);
      EXPECT_EQ(classify({.code = code, .token = TokenFault::kRefused}), FaultKind::kTransport);
      EXPECT_EQ(classify({.code = code, .server_delay = seconds{3}, .token = TokenFault::kImpossible}), FaultKind::kPermanent);
    }
  }
}

TEST(RetryTable, OurOwnLimitsAreTransportFaults) {
  EXPECT_EQ(ClassifyReadRows({.code = Code::kDeadlineExceeded, .stalled = true}), FaultKind::kTransport);
  EXPECT_EQ(ClassifyReadRows({.code = Code::kDeadlineExceeded, .attempt_limit = true}), FaultKind::kTransport);
}

TEST(RetryState, DelaysGrowToTheCapAndTransportFaultsGoAtOnceTheFirstTimeInARow) {
  NominalRandom random;
  RetryState state(0, &random);
  const RpcFailure any{.code = Code::kUnavailable};
  const auto near = [](std::optional<Duration> wait, double nominal_ms) {
    ASSERT_TRUE(wait.has_value());
    EXPECT_NEAR(static_cast<double>(wait->count()) / 1e6, nominal_ms, 0.001 * nominal_ms + 0.001);
  };
  near(state.Next(FaultKind::kTransport, any), 0);
  near(state.Next(FaultKind::kTransport, any), 100);
  near(state.Next(FaultKind::kUnavailable, any), 130);
  near(state.Next(FaultKind::kUnavailable, any), 169);
  near(state.Next(FaultKind::kTransport, any), 0);
  near(state.Next(FaultKind::kTransport, any), 219.7);
  EXPECT_EQ(state.Next(FaultKind::kServerDelay, {.code = Code::kResourceExhausted, .server_delay = seconds{7}}), Duration(seconds{7}));
  state.Progress();
  near(state.Next(FaultKind::kUnavailable, any), 100);
  EXPECT_LT(NominalDelay(24), Duration(seconds{60}));
  EXPECT_EQ(NominalDelay(25), Duration(seconds{60}));
  EXPECT_EQ(NominalDelay(1'000'000), Duration(seconds{60}));
}

TEST(RetryState, JitterIsUniformBelowTheNominalDelay) {
  SeededRandom random(7);
  RetryState state(0, &random);
  Duration low = seconds{1}, high{0};
  for (int i = 0; i < 1000; ++i) {
    state.Progress();
    auto wait = state.Next(FaultKind::kUnavailable, {});
    low = std::min(low, *wait);
    high = std::max(high, *wait);
  }
  EXPECT_LT(low, Duration(milliseconds{5}));
  EXPECT_GT(high, Duration(milliseconds{95}));
  EXPECT_LT(high, Duration(milliseconds{100}));
}

// Fact 2.2: 25 attempts without progress are 24 waits, about 181 s in the sum.
TEST(RetryState, GivesUpAfterTheAttemptsWithoutProgress) {
  NominalRandom random;
  RetryState state(25, &random);
  Duration sum{0};
  int waits = 0;
  while (auto wait = state.Next(FaultKind::kUnavailable, {})) {
    sum += *wait;
    ++waits;
  }
  EXPECT_EQ(waits, 24);
  EXPECT_NEAR(static_cast<double>(sum.count()) / 1e9, 180.6, 0.5);
  state.Progress();
  EXPECT_TRUE(state.Next(FaultKind::kUnavailable, {}).has_value());
  RetryState once(1, &random);
  EXPECT_FALSE(once.Next(FaultKind::kTransport, {}).has_value());
  RetryState permanent(25, &random);
  EXPECT_FALSE(permanent.Next(FaultKind::kPermanent, {}).has_value());
}

std::string Details(int64_t seconds, int32_t nanos) {
  google::rpc::Status status;
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(seconds);
  info.mutable_retry_delay()->set_nanos(nanos);
  google::rpc::ErrorInfo other;
  other.set_reason("X");
  status.add_details()->PackFrom(other);
  status.add_details()->PackFrom(info);
  return status.SerializeAsString();
}

TEST(RetryInfo, IsReadFromTheStatusDetailsAndNeverBelieved) {
  EXPECT_EQ(ParseRetryInfo(Details(2, 500'000'000)), Duration(milliseconds{2500}));
  EXPECT_EQ(ParseRetryInfo(Details(-5, 0)), Duration{0});
  EXPECT_EQ(ParseRetryInfo(Details(INT64_MAX, 0)), Duration(std::chrono::minutes{10}));
  EXPECT_EQ(ParseRetryInfo(""), std::nullopt);
  EXPECT_EQ(ParseRetryInfo("\xFF\xFF garbage"), std::nullopt);
  google::rpc::Status empty;
  empty.set_code(8);
  EXPECT_EQ(ParseRetryInfo(empty.SerializeAsString()), std::nullopt);
}

}  // namespace
}  // namespace headrace::rpc
