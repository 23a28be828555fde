#include "headrace/rpc/retry.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

namespace headrace::rpc {
namespace {

// Texts of gRPC core, the Java and Go servers and Google's front ends for a connection or stream that broke (facts R13, U84).
constexpr std::array<std::string_view, 23> kTransportTexts = {
    "rst_stream", "rst stream", "unexpected eos", "unexpected eof", "connection closed with unknown cause", "goaway", "draining",
    "socket closed", "connection reset", "broken pipe", "stream removed", "stream terminated", "transport closed", "transport failed",
    "http/2 error code", "connection closed", "connection aborted", "endpoint read fail", "recvmsg:",
    // A stream that ended without a status, and frames that break the protocol, in
    // the words of gRPC 1.51 (seen in tests/wire).
    "no status received", "overflows local window", "unsupported data flags", "bad grpc frame type"};
// gRPC gives RST_STREAM a code of ours by its error code: ENHANCE_YOUR_CALM looks like a quota, INADEQUATE_SECURITY like a missing
// permission. The service has said neither.
constexpr std::array<std::string_view, 1> kResetTexts = {"received rst_stream with error code"};
// A front end's answer in HTTP alone, of which gRPC makes UNKNOWN: 500 and what is like it.
constexpr std::array<std::string_view, 1> kHttpServerErrorTexts = {"received http2 header with status: 5"};
constexpr std::array<std::string_view, 3> kTokenTexts = {"getting metadata from plugin failed", "error fetching oauth2 token",
                                                         "failed to retrieve auth metadata"};
// gRPC 1.51's words of a channel that has no connection (resolving_load_balancing and pick_first).
constexpr std::array<std::string_view, 2> kUnreachedTexts = {"failed to connect to all addresses", "dns resolution failed"};
// OpenSSL's words for a peer that is not whom it should be: the next attempt would find the same.
constexpr std::array<std::string_view, 2> kCertificateTexts = {"certificate verify failed", "certificate_verify_failed"};
constexpr Duration kFirstDelay = std::chrono::milliseconds{100};
constexpr double kDelayGrowth = 1.3;
constexpr Duration kLongestDelay = std::chrono::seconds{60};

std::string AsciiLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

template <size_t N>
bool HoldsOneOf(std::string_view message, const std::array<std::string_view, N>& texts) {
  const std::string lower = AsciiLower(message);
  return std::any_of(texts.begin(), texts.end(), [&](std::string_view text) { return lower.find(text) != std::string::npos; });
}

/// What makes a row of a retry table match.
enum class When {
  kAlways,
  kTransportText,
  kResetText,
  kHttpServerError,
  kCertificateText,
  kTokenText,
  kTokenNotFetched,
  kTokenDelay,  // not fetched, and the token server named a delay
  kTokenImpossible,
  kTokenRefused,
  kServerDelay,
  kStalled,
  kAttemptLimit,
};

struct Rule {
  std::optional<Code> code;  // none = any
  When when;
  FaultKind kind;
};

// First match decides. A transport text makes even UNAVAILABLE a transport fault: the peer is gone, not overloaded.
constexpr Rule kReadRowsRules[] = {
    {std::nullopt, When::kTokenImpossible, FaultKind::kPermanent},
    {std::nullopt, When::kTokenDelay, FaultKind::kServerDelay},
    {std::nullopt, When::kTokenNotFetched, FaultKind::kTransport},
    {std::nullopt, When::kTokenRefused, FaultKind::kTransport},
    {std::nullopt, When::kStalled, FaultKind::kTransport},
    {std::nullopt, When::kAttemptLimit, FaultKind::kTransport},
    {Code::kUnavailable, When::kCertificateText, FaultKind::kPermanent},
    {Code::kUnavailable, When::kServerDelay, FaultKind::kServerDelay},
    {Code::kUnavailable, When::kTokenText, FaultKind::kUnavailable},
    {Code::kUnavailable, When::kTransportText, FaultKind::kTransport},
    {Code::kUnavailable, When::kAlways, FaultKind::kUnavailable},
    {Code::kInternal, When::kTransportText, FaultKind::kTransport},
    {Code::kUnknown, When::kTransportText, FaultKind::kTransport},
    {Code::kUnknown, When::kHttpServerError, FaultKind::kUnavailable},
    {Code::kAborted, When::kTransportText, FaultKind::kTransport},
    // A call that we cancelled is never classified: this is a proxy or a dying server that reset the stream, whatever its words.
    {Code::kCancelled, When::kAlways, FaultKind::kTransport},
    {Code::kUnauthenticated, When::kTokenText, FaultKind::kTransport},
    {Code::kResourceExhausted, When::kServerDelay, FaultKind::kServerDelay},
    {Code::kResourceExhausted, When::kResetText, FaultKind::kUnavailable},
    {Code::kPermissionDenied, When::kResetText, FaultKind::kUnavailable},
};

constexpr Rule kCreateReadSessionRules[] = {
    {std::nullopt, When::kTokenImpossible, FaultKind::kPermanent},
    {std::nullopt, When::kTokenDelay, FaultKind::kServerDelay},
    {std::nullopt, When::kTokenNotFetched, FaultKind::kTransport},
    {std::nullopt, When::kTokenRefused, FaultKind::kTransport},
    {Code::kUnauthenticated, When::kTokenText, FaultKind::kTransport},
    {Code::kUnavailable, When::kCertificateText, FaultKind::kPermanent},
    {Code::kUnavailable, When::kServerDelay, FaultKind::kServerDelay},
    {Code::kUnavailable, When::kTokenText, FaultKind::kUnavailable},
    {Code::kUnavailable, When::kTransportText, FaultKind::kTransport},
    {Code::kUnavailable, When::kAlways, FaultKind::kUnavailable},
    {Code::kDeadlineExceeded, When::kAlways, FaultKind::kUnavailable},
    {Code::kInternal, When::kTransportText, FaultKind::kTransport},
    {Code::kUnknown, When::kTransportText, FaultKind::kTransport},
    {Code::kUnknown, When::kHttpServerError, FaultKind::kUnavailable},
    {Code::kCancelled, When::kAlways, FaultKind::kTransport},
    {Code::kResourceExhausted, When::kResetText, FaultKind::kUnavailable},
    {Code::kPermissionDenied, When::kResetText, FaultKind::kUnavailable},
};

bool Matches(const Rule& rule, const RpcFailure& failure) {
  if (rule.code.has_value() && *rule.code != failure.code) return false;
  switch (rule.when) {
    case When::kAlways:
      return true;
    case When::kTransportText:
      return IsTransportText(failure.message);
    case When::kResetText:
      return HoldsOneOf(failure.message, kResetTexts);
    case When::kHttpServerError:
      return HoldsOneOf(failure.message, kHttpServerErrorTexts);
    case When::kCertificateText:
      return IsCertificateText(failure.message);
    case When::kTokenText:
      return IsTokenRefreshText(failure.message);
    case When::kTokenNotFetched:
      return failure.token == TokenFault::kNotFetched;
    case When::kTokenDelay:
      return failure.token == TokenFault::kNotFetched && failure.server_delay.has_value();
    case When::kTokenImpossible:
      return failure.token == TokenFault::kImpossible;
    case When::kTokenRefused:
      return failure.token == TokenFault::kRefused;
    case When::kServerDelay:
      return failure.server_delay.has_value();
    case When::kStalled:
      return failure.stalled;
    case When::kAttemptLimit:
      return failure.attempt_limit;
  }
  return false;
}

template <size_t N>
FaultKind Classify(const Rule (&rules)[N], const RpcFailure& failure) {
  for (const Rule& rule : rules) {
    if (Matches(rule, failure)) return rule.kind;
  }
  return FaultKind::kPermanent;
}

}  // namespace

bool IsTransportText(std::string_view message) { return message == "EOF" || HoldsOneOf(message, kTransportTexts); }

bool IsCertificateText(std::string_view message) { return HoldsOneOf(message, kCertificateTexts); }

bool IsUnreachedText(std::string_view message) { return HoldsOneOf(message, kUnreachedTexts); }

bool IsTokenRefreshText(std::string_view message) { return HoldsOneOf(message, kTokenTexts); }

FaultKind ClassifyReadRows(const RpcFailure& failure) { return Classify(kReadRowsRules, failure); }

FaultKind ClassifyCreateReadSession(const RpcFailure& failure) { return Classify(kCreateReadSessionRules, failure); }

std::optional<Duration> ParseRetryInfo(std::string_view status_details) {
  google::rpc::Status status;
  if (status_details.empty() || !status.ParseFromArray(status_details.data(), static_cast<int>(status_details.size()))) return std::nullopt;
  for (const auto& detail : status.details()) {
    google::rpc::RetryInfo info;
    if (!detail.Is<google::rpc::RetryInfo>() || !detail.UnpackTo(&info) || !info.has_retry_delay()) continue;
    const auto seconds = std::clamp<int64_t>(info.retry_delay().seconds(), 0, kLongestServerDelay / std::chrono::seconds{1});
    const auto nanos = std::clamp<int64_t>(info.retry_delay().nanos(), 0, 999'999'999);
    return std::min<Duration>(std::chrono::seconds{seconds} + std::chrono::nanoseconds{nanos}, kLongestServerDelay);
  }
  return std::nullopt;
}

Duration NominalDelay(int retry) {
  const double nanos = static_cast<double>(kFirstDelay.count()) * std::pow(kDelayGrowth, std::max(retry, 0));
  return nanos >= static_cast<double>(kLongestDelay.count()) ? kLongestDelay : Duration{static_cast<int64_t>(nanos)};
}

std::optional<Duration> RetryState::Next(FaultKind kind, const RpcFailure& failure) {
  ++failures_;
  if (kind == FaultKind::kPermanent || (max_attempts_ > 0 && failures_ >= max_attempts_)) return std::nullopt;
  transport_in_a_row_ = kind == FaultKind::kTransport ? transport_in_a_row_ + 1 : 0;
  if (kind == FaultKind::kServerDelay && failure.server_delay.has_value()) return failure.server_delay;
  if (transport_in_a_row_ == 1) return Duration{0};
  const Duration nominal = NominalDelay(delayed_++);
  return Duration{static_cast<int64_t>(static_cast<double>(nominal.count()) * random_->Uniform())};
}

}  // namespace headrace::rpc
