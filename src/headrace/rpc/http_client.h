// One HTTP POST through libcurl: what a token server is asked with.
//
// Any thread may call; nothing is shared between calls. Nothing of a request or an answer goes into a fault's text. Redirects are not
// followed, and nothing but http and https is spoken.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>

#include "headrace/base/clock.h"
#include "headrace/base/error.h"

namespace headrace::rpc {

struct HttpRequest {
  std::string url{};
  std::string body{};                          // application/x-www-form-urlencoded
  std::string ca_certificates{};               // PEM text; empty = the system's
  std::chrono::milliseconds connect_limit{0};  // zero = none
  std::chrono::milliseconds limit{0};          // of the whole exchange; zero = none
  int64_t most_answer_bytes = 64 << 10;        // of the body, and of the headers
};

struct HttpAnswer {
  int status = 0;
  std::string body{};
  std::optional<Duration> retry_after{};  // of the header; at most a day
};

struct HttpFault {
  std::string text{};
  bool transient = false;  // a connection that could not be made or broke, a limit of time: another attempt may go well
  bool unreached = false;  // there was no connection
};

/// The answer, whatever its status, or why there is none. Ends soon after `stop` is requested. A plain http request never goes through a
/// proxy; an https request does when the environment names one, as libcurl reads it.
std::variant<HttpAnswer, HttpFault> HttpPost(const HttpRequest& request, const std::stop_token& stop);

/// The origin ("https://host:port") of a URL to which secrets may be sent: https anywhere, or http on this machine's loopback only; no
/// user, no password, no fragment. The error names `what` and holds nothing of the URL.
arrow::Result<std::string> CheckSecretUrl(std::string_view what, const std::string& url);

/// "a=b&c=d" with everything but letters, digits and "-._~" percent-encoded.
void AppendFormField(std::string* form, std::string_view name, std::string_view value);

}  // namespace headrace::rpc
