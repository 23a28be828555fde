#include "headrace/rpc/token_fetcher.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/rpc/http_client.h"
#include "headrace/rpc/jwt.h"

namespace headrace::rpc {
namespace {

constexpr char kScope[] = "https://www.googleapis.com/auth/cloud-platform";
constexpr char kJwtGrant[] = "urn:ietf:params:oauth:grant-type:jwt-bearer";  // RFC 7523, 2.1
// The longest that Google takes, of an assertion and of a self-signed token ("iat" to "exp",
// developers.google.com/identity/protocols/oauth2).
constexpr std::chrono::seconds kJwtLifetime{3600};
// No access token of Google's lives longer (iam.allowServiceAccountCredentialLifetimeExtension: twelve hours).
constexpr int64_t kLongestLifetime = int64_t{12} * 3600;
constexpr size_t kLongestToken = 16 << 10;
// A token server's answers that another attempt may mend: RFC 6749's own words for it, and what google-auth retries beside 5xx.
constexpr std::array<std::string_view, 4> kTransientErrors = {"temporarily_unavailable", "server_error", "internal_failure",
                                                              "internal_error"};
constexpr std::array kTransientStatuses = {408, 429, 500, 502, 503, 504};

int64_t SecondsSinceEpoch(SystemTime time) { return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count(); }

RpcFailure Failure(TokenFault fault, std::string text) {
  return {.code = Code::kUnauthenticated, .message = std::move(text), .token = fault};
}

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// The word without the punctuation around it.
std::string_view Core(std::string_view word) {
  constexpr std::string_view kAround = ".,:;!?()[]'\"";
  const size_t first = word.find_first_not_of(kAround);
  return first == std::string_view::npos ? std::string_view() : word.substr(first, word.find_last_not_of(kAround) - first + 1);
}

/// It is a part of what was sent, or has one in it.
bool SharesSecret(std::string_view word, std::string_view sent) {
  constexpr size_t kShortestSecret = 4;
  constexpr size_t kShortestPart = 8;  // shorter ones are in many words of a language
  if (word.size() < kShortestSecret) return false;
  const size_t length = std::min(word.size(), kShortestPart);
  for (size_t first = 0; first + length <= word.size(); ++first) {
    if (sent.find(word.substr(first, length)) != std::string_view::npos) return true;
  }
  return false;
}

/// RFC 6749, 5.2: letters and underscores; anything else is not repeated.
std::string ErrorWord(const nlohmann::json& json, std::string_view sent) {
  const auto found = json.find("error");
  if (found == json.end() || !found->is_string()) return "";
  const auto& word = found->get_ref<const std::string&>();
  constexpr size_t kLongestWord = 40;
  const bool plain =
      word.size() <= kLongestWord && std::all_of(word.begin(), word.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  // RFC 6749, 5.2; some have a part of a parameter's name in them, and none is a secret.
  constexpr std::array<std::string_view, 8> kKnown = {"invalid_request",     "invalid_client",         "invalid_grant",
                                                      "unauthorized_client", "unsupported_grant_type", "invalid_scope",
                                                      "server_error",        "temporarily_unavailable"};
  const bool known = std::find(kKnown.begin(), kKnown.end(), word) != kKnown.end();
  return known || (plain && !SharesSecret(word, sent)) ? word : "";
}

/// A word of a language ("short-lived", "JWT") or a small number, and nothing of what was sent: anything else may be a secret.
bool IsPlainWord(std::string_view word, std::string_view sent) {
  constexpr size_t kLongestWord = 20;
  constexpr size_t kLongestNumber = 4;
  constexpr size_t kMostAround = 4;  // of punctuation
  const std::string_view core = Core(word);
  if (word.size() > core.size() + kMostAround) return false;
  if (core.size() <= kLongestNumber && std::all_of(core.begin(), core.end(), IsDigit)) return true;
  const bool of_letters = std::all_of(core.begin(), core.end(), [](char c) { return IsLetter(c) || c == '-'; });
  return of_letters && core.size() <= kLongestWord && !SharesSecret(core, sent);
}

/// At most 160 characters of plain words, with "..." in place of others.
std::string PlainSentence(std::string_view text, std::string_view sent) {
  constexpr size_t kLongestSentence = 160;
  std::string sentence;
  while (!text.empty() && sentence.size() < kLongestSentence) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    if (!sentence.empty()) sentence += ' ';
    sentence += IsPlainWord(word, sent) ? word : std::string_view("...");
  }
  return sentence;
}

class FixedToken final : public TokenFetcher {
 public:
  explicit FixedToken(std::string token) : token_(std::move(token)) {}
  std::variant<FetchedToken, RpcFailure> Fetch(const std::stop_token&) override { return FetchedToken{.text = token_}; }
  bool renews() const override { return false; }
  std::string_view kind() const override { return "the access token in the environment variable named by credentials"; }

 private:
  const std::string token_;
};

std::string KindOf(std::string_view what, bool found_by_adc) {
  return fmt::format("{} {}", what, found_by_adc ? "found by adc" : "given by credentials");
}
constexpr std::string_view kKey = "the service account's key";
constexpr std::string_view kUser = "the authorized user";

class SelfSignedToken final : public TokenFetcher {
 public:
  SelfSignedToken(ServiceAccountKey key, std::string kind, Clock* clock) : key_(std::move(key)), kind_(std::move(kind)), clock_(clock) {}

  std::variant<FetchedToken, RpcFailure> Fetch(const std::stop_token&) override {
    const int64_t now = SecondsSinceEpoch(clock_->Now());
    // A scope in place of an audience: the token is good at any of Google's hosts, also behind a private endpoint.
    const nlohmann::json claims = {
        {"iss", key_.client_email}, {"sub", key_.client_email}, {"scope", kScope}, {"iat", now}, {"exp", now + kJwtLifetime.count()}};
    auto token = SignJwt(key_.private_key_id, claims.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), key_.private_key);
    if (!token.ok()) return Failure(TokenFault::kImpossible, token.status().message());
    return FetchedToken{.text = *std::move(token), .lifetime = kJwtLifetime};
  }
  std::string_view kind() const override { return kind_; }

 private:
  const ServiceAccountKey key_;
  const std::string kind_;
  Clock* const clock_;
};

/// Asks a token server; what it is asked with is the derived class's.
class ServerToken : public TokenFetcher {
 public:
  ServerToken(std::string_view what, std::string token_uri, TokenFetcherOptions options)
      : kind_(KindOf(what, options.found_by_adc)),
        uri_(std::move(token_uri)),
        origin_(CheckSecretUrl("token_uri", uri_).ValueOr("")),
        options_(std::move(options)) {}
  std::string_view kind() const final { return kind_; }

  std::variant<FetchedToken, RpcFailure> Fetch(const std::stop_token& stop) final {
    auto form = Form();
    if (!form.ok()) return Failure(TokenFault::kImpossible, form.status().message());
    auto answer = HttpPost({.url = uri_,
                            .body = *form,
                            .ca_certificates = options_.ca_certificates,
                            .connect_limit = options_.connect_limit,
                            .limit = options_.limit},
                           stop);
    if (const auto* fault = std::get_if<HttpFault>(&answer)) {
      RpcFailure failure =
          Failure(fault->transient ? TokenFault::kNotFetched : TokenFault::kImpossible,
                  Text(fault->text, fault->transient ? "check that this machine reaches the token server"
                                                     : "check the file's \"token_uri\" and, when a certificate is not trusted, ca_bundle"));
      failure.unreached = fault->unreached;
      return failure;
    }
    return Judge(std::get<HttpAnswer>(answer), *form);
  }

 protected:
  virtual arrow::Result<std::string> Form() = 0;
  /// What to do when the server does not take what it was asked with.
  virtual std::string_view Advice() const = 0;

 private:
  std::variant<FetchedToken, RpcFailure> Judge(const HttpAnswer& answer, std::string_view sent) const {
    constexpr int kGood = 200;
    if (answer.status == kGood) {
      auto token = ParseTokenAnswer(answer.body);
      if (token.ok()) return *std::move(token);
      return Failure(TokenFault::kImpossible, Text(token.status().message(), "check that the file's \"token_uri\" names a token server"));
    }
    const std::string refusal = DescribeTokenRefusal(answer.body, sent);
    const bool by_status = std::find(kTransientStatuses.begin(), kTransientStatuses.end(), answer.status) != kTransientStatuses.end();
    const bool by_word = std::any_of(kTransientErrors.begin(), kTransientErrors.end(),
                                     [&](std::string_view word) { return std::string_view(refusal).substr(0, refusal.find(' ')) == word; });
    const std::string text = fmt::format("HTTP {}{}{}", answer.status, refusal.empty() ? "" : " ", refusal);
    if (!by_status && !by_word) return Failure(TokenFault::kImpossible, Text(text, Advice()));
    RpcFailure failure = Failure(TokenFault::kNotFetched, Text(text, "the token server has a fault or is overloaded"));
    if (answer.retry_after.has_value()) failure.server_delay = std::min<Duration>(*answer.retry_after, kLongestServerDelay);
    return failure;
  }

  std::string Text(std::string_view cause, std::string_view advice) const {
    return fmt::format("no access token for {} from {}: {}; {}", kind(), origin_, cause, advice);
  }

  const std::string kind_;
  const std::string uri_;
  const std::string origin_;
  const TokenFetcherOptions options_;
};

class KeyServerToken final : public ServerToken {
 public:
  KeyServerToken(const ServiceAccountKey& key, TokenFetcherOptions options, Clock* clock)
      : ServerToken(kKey, key.token_uri, std::move(options)), key_(key), clock_(clock) {}

 protected:
  arrow::Result<std::string> Form() override {
    const int64_t now = SecondsSinceEpoch(clock_->Now());
    const nlohmann::json claims = {
        {"iss", key_.client_email}, {"aud", key_.token_uri}, {"scope", kScope}, {"iat", now}, {"exp", now + kJwtLifetime.count()}};
    ARROW_ASSIGN_OR_RAISE(
        const auto assertion,
        SignJwt(key_.private_key_id, claims.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), key_.private_key));
    std::string form;
    AppendFormField(&form, "grant_type", kJwtGrant);
    AppendFormField(&form, "assertion", assertion);
    return form;
  }
  std::string_view Advice() const override {
    return "the key was deleted, its account is disabled, or this machine's clock is wrong; make a new key or give other credentials";
  }

 private:
  const ServiceAccountKey key_;
  Clock* const clock_;
};

class UserServerToken final : public ServerToken {
 public:
  UserServerToken(const AuthorizedUser& user, TokenFetcherOptions options)
      : ServerToken(kUser, user.token_uri, std::move(options)), user_(user) {}

 protected:
  arrow::Result<std::string> Form() override {
    std::string form;
    AppendFormField(&form, "grant_type", "refresh_token");
    AppendFormField(&form, "client_id", user_.client_id);
    AppendFormField(&form, "client_secret", user_.client_secret);
    AppendFormField(&form, "refresh_token", user_.refresh_token);
    return form;
  }
  std::string_view Advice() const override {
    return "the refresh token has expired or was revoked; run \"gcloud auth application-default login\" again or give other credentials";
  }

 private:
  const AuthorizedUser user_;
};

}  // namespace

std::unique_ptr<TokenFetcher> MakeFixedToken(std::string token) { return std::make_unique<FixedToken>(std::move(token)); }

std::unique_ptr<TokenFetcher> MakeTokenFetcher(CredentialFile file, TokenFetcherOptions options, Clock* clock) {
  if (const auto* user = std::get_if<AuthorizedUser>(&file)) return std::make_unique<UserServerToken>(*user, std::move(options));
  auto& key = std::get<ServiceAccountKey>(file);
  if (key.token_uri.empty()) return std::make_unique<SelfSignedToken>(std::move(key), KindOf(kKey, options.found_by_adc), clock);
  return std::make_unique<KeyServerToken>(key, std::move(options), clock);
}

arrow::Result<FetchedToken> ParseTokenAnswer(std::string_view body) {
  const auto wrong = [](std::string_view why) {
    return MakeError({.code = Code::kUnauthenticated, .resource = "credentials", .reason = "CREDENTIALS"},
                     fmt::format("its answer {}", why));
  };
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return wrong("is not a JSON object");
  const auto token = json.find("access_token");
  if (token == json.end() || !token->is_string()) return wrong("has no \"access_token\"");
  if (!IsTokenText(token->get_ref<const std::string&>())) return wrong("has an \"access_token\" that is empty, too long or no token");
  const auto seconds = json.find("expires_in");
  if (seconds == json.end() || !seconds->is_number_integer()) return wrong("has no whole number \"expires_in\"");
  if (seconds->is_number_unsigned() ? seconds->get<uint64_t>() == 0 : seconds->get<int64_t>() <= 0) {
    return wrong("has an \"expires_in\" that is not positive");
  }
  const auto type = json.find("token_type");
  if (type != json.end()) {
    std::string word = type->is_string() ? type->get<std::string>() : "";
    for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (word != "bearer") return wrong("has a \"token_type\" that is not Bearer");
  }
  const auto lifetime = static_cast<int64_t>(std::min<uint64_t>(seconds->get<uint64_t>(), kLongestLifetime));
  return FetchedToken{.text = token->get<std::string>(), .lifetime = std::chrono::seconds{lifetime}};
}

std::string DescribeTokenRefusal(std::string_view body, std::string_view sent) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return "";
  std::string word = ErrorWord(json, sent);
  const auto found = json.find("error_description");
  if (word.empty() || found == json.end() || !found->is_string()) return word;
  const std::string sentence = PlainSentence(found->get_ref<const std::string&>(), sent);
  return sentence.empty() ? word : fmt::format("{} ({})", word, sentence);
}

bool IsTokenText(std::string_view text) {
  return !text.empty() && text.size() <= kLongestToken &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace headrace::rpc
