// When a failed call is tried again, and after how long. One table-driven function per call; docs/guarantees.md shows the tables.
//
// The functions are pure. A RetryState belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/clock.h"
#include "headrace/base/error.h"
#include "headrace/base/random.h"

namespace headrace::rpc {

/// What the call's access token has to do with its failure.
enum class TokenFault {
  kNone,
  kNotFetched,  // there was none to send: the refresh failed, and another may go well
  kImpossible,  // there was none to send, and there will be none: the token server refuses, the key cannot sign
  kRefused,     // the service refused it, and the next call gets a new one
};

// A server's delay is believed up to here: it cannot put a reader to sleep for ever.
constexpr Duration kLongestServerDelay = std::chrono::minutes{10};

/// How a call ended when it did not end well.
struct RpcFailure {
  Code code = Code::kUnknown;
  std::string message{};
  std::optional<Duration> server_delay{};  // google.rpc.RetryInfo of the status details
  bool stalled = false;                    // given up by us: no message within the idle limit
  bool attempt_limit = false;              // given up by us: the limit of one attempt
  bool unreached = false;                  // no connection came about: to the service, or to the server that gives the token
  TokenFault token = TokenFault::kNone;
};

enum class FaultKind {
  kPermanent,    // never tried again
  kUnavailable,  // tried again after a growing delay
  kTransport,    // at once the first time in a row, then as kUnavailable
  kServerDelay,  // after the delay that the server named
};

/// ReadRows: UNAVAILABLE, unless it is for a certificate that is not trusted; faults of the transport that show as INTERNAL, UNKNOWN,
/// ABORTED or UNAVAILABLE and are known by their text; RST_STREAM whatever its error code; a front end's HTTP status of 500 and above;
/// CANCELLED, which must not be asked about for a call that the caller cancelled; a stalled stream; a failed token refresh, after the token
/// server's own delay if it names one; a refused token that is replaced; RESOURCE_EXHAUSTED only with the server's delay.
FaultKind ClassifyReadRows(const RpcFailure& failure);
/// CreateReadSession: UNAVAILABLE as above, DEADLINE_EXCEEDED, faults of the transport that show as INTERNAL, UNKNOWN or CANCELLED,
/// RST_STREAM, HTTP 500 and above, and what concerns the token as above.
FaultKind ClassifyCreateReadSession(const RpcFailure& failure);

/// How gRPC's text of an answer in HTTP alone begins, and what is said behind it.
inline constexpr char kFrontEndText[] = "Received http2 header with status";
inline constexpr char kFrontEndAdvice[] =
    ". Not the service said this but something before it: a proxy, or a server that is no gRPC service. Check bigquery_storage_endpoint "
    "and "
    "the network's proxy";

/// True for the texts by which gRPC and its peers report a broken connection or stream.
bool IsTransportText(std::string_view message);
/// True for the texts by which gRPC reports that no connection came about: a name that is not found, a port where nobody listens or
/// somebody who does not speak as expected, a path without an answer.
bool IsUnreachedText(std::string_view message);
/// True for the texts by which OpenSSL, through gRPC, reports a certificate that is not trusted.
bool IsCertificateText(std::string_view message);
/// True for the texts by which gRPC reports that a token could not be fetched.
bool IsTokenRefreshText(std::string_view message);

/// The delay in google.rpc.RetryInfo of a serialized google.rpc.Status (the trailer grpc-status-details-bin). Unparsable or absent:
/// nothing. At most kLongestServerDelay.
std::optional<Duration> ParseRetryInfo(std::string_view status_details);

/// The nominal delay before retry number `retry` (from 0): 100 ms x 1.3 per retry, at most 60 s (the Storage Read client's settings).
Duration NominalDelay(int retry);

/// Counts failed attempts since the last progress.
class RetryState {
 public:
  /// `max_attempts` consecutive attempts without progress are made at most; 0 = no bound.
  RetryState(int max_attempts, Random* random) : max_attempts_(max_attempts), random_(random) {}

  /// A row came, or the progress moved: everything starts anew.
  void Progress() { failures_ = delayed_ = transport_in_a_row_ = 0; }
  /// The wait before the next attempt; nothing when there must be none. Jitter: uniform in [0, nominal).
  std::optional<Duration> Next(FaultKind kind, const RpcFailure& failure);
  /// Failed attempts since the last progress.
  int failures() const { return failures_; }

 private:
  const int max_attempts_;
  Random* const random_;
  int failures_ = 0;
  int delayed_ = 0;
  int transport_in_a_row_ = 0;
};

}  // namespace headrace::rpc
