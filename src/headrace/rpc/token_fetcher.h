// Where access tokens come from: a variable, a key that signs them here, a token server.
//
// A fetcher is used by one thread at a time. It holds secrets; nothing of them, of a token or of what is sent goes into a text.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>

#include "headrace/base/clock.h"
#include "headrace/rpc/credential_file.h"
#include "headrace/rpc/retry.h"

namespace headrace::rpc {

struct FetchedToken {
  std::string text{};
  Duration lifetime{0};  // from the moment it was asked for; zero = for ever
};

class TokenFetcher {
 public:
  virtual ~TokenFetcher() = default;
  /// A new token, or why there is none: TokenFault::kNotFetched when another attempt may go well, else kImpossible. Blocks until the
  /// network answers, half a minute at most; ends soon after `stop` is requested.
  virtual std::variant<FetchedToken, RpcFailure> Fetch(const std::stop_token& stop) = 0;
  /// False when every token would be the same.
  virtual bool renews() const { return true; }
  /// For errors: "the service account's key given by credentials".
  virtual std::string_view kind() const = 0;
};

struct TokenFetcherOptions {
  bool found_by_adc = false;                   // the file; else the option credentials named it. For texts
  std::string ca_certificates{};               // PEM text, for an https token server; empty = the system's
  std::chrono::milliseconds connect_limit{0};  // zero = none
  std::chrono::milliseconds limit{30'000};     // of one request to a token server; zero = none
};

/// Always the token that is given.
std::unique_ptr<TokenFetcher> MakeFixedToken(std::string token);
/// A service account's key whose token_uri is Google's signs its tokens itself (AIP-4111); any other asks its token server (RFC 7523). An
/// authorized user's refresh token is sent to its token server (RFC 6749, 6).
std::unique_ptr<TokenFetcher> MakeTokenFetcher(CredentialFile file, TokenFetcherOptions options, Clock* clock);

/// A token server's answer with the status 200 (RFC 6749, 5.1); the error says what is wrong and holds nothing of the answer.
arrow::Result<FetchedToken> ParseTokenAnswer(std::string_view body);
/// "error (its description)" of a token server's refusal (RFC 6749, 5.2); words that are no plain words, or that share a part of `sent`,
/// which the server was asked with, are left out. Empty when it says nothing.
std::string DescribeTokenRefusal(std::string_view body, std::string_view sent);
/// One to 16,384 printable ASCII characters without a space: what may stand in a header.
bool IsTokenText(std::string_view text);

}  // namespace headrace::rpc
