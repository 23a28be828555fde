// Tokens from a key, and from a token server in this program.
#include "headrace/rpc/token_fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/rpc/http_client.h"
#include "headrace/rpc/jwt.h"
#include "headrace/rpc/secrets_testing.h"
#include "headrace/rpc/token_server_testing.h"

namespace headrace::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::unique_ptr<TokenFetcher> KeyFetcher(const std::string& token_uri, Clock* clock, TokenFetcherOptions options = {}) {
  return MakeTokenFetcher(*ParseCredentialFile(KeyFileText(token_uri)), std::move(options), clock);
}

void ExpectNoSecrets(const std::string& text, const std::vector<std::string>& sent) {
  for (const std::string& secret : TestSecrets()) EXPECT_THAT(text, Not(HasSubstr(secret)));
  for (const std::string& body : sent) EXPECT_THAT(text, Not(HasSubstr(body.substr(body.size() - 30))));
  EXPECT_THAT(text, Not(HasSubstr("token-")));
}

TEST(TokenAnswer, IsParsedStrictly) {
  const struct {
    const char* body;
    int64_t lifetime;  // 0 = refused
  } cases[] = {
      {R"({"access_token":"ya29.a","expires_in":3599,"token_type":"Bearer"})", 3599},
      {R"({"access_token":"ya29.a","expires_in":3599,"token_type":"bearer","scope":"x","id_token":"y"})", 3599},
      {R"({"access_token":"ya29.a","expires_in":1})", 1},
      {R"({"access_token":"ya29.a","expires_in":18446744073709551615})", 43'200},
      {R"({"access_token":"ya29.a","expires_in":86400})", 43'200},
      {R"({"access_token":"ya29.a","expires_in":0})", 0},
      {R"({"access_token":"ya29.a","expires_in":-1})", 0},
      {R"({"access_token":"ya29.a","expires_in":3599.5})", 0},
      {R"({"access_token":"ya29.a","expires_in":"3599"})", 0},
      {R"({"access_token":"ya29.a","expires_in":null})", 0},
      {R"({"access_token":"ya29.a"})", 0},
      {R"({"expires_in":3599})", 0},
      {R"({"access_token":"","expires_in":3599})", 0},
      {R"({"access_token":"a b","expires_in":3599})", 0},
      {R"({"access_token":"a\r\nx-evil: 1","expires_in":3599})", 0},
      {R"({"access_token":"é","expires_in":3599})", 0},
      {R"({"access_token":7,"expires_in":3599})", 0},
      {R"({"access_token":"a","expires_in":3599,"token_type":"mac"})", 0},
      {R"({"access_token":"a","expires_in":3599,"token_type":1})", 0},
      {R"(["a"])", 0},
      {R"({"access_token":"a","expires_in":3599)", 0},
      {"", 0},
      {"<html>", 0},
  };
  for (const auto& c : cases) {
    const auto token = ParseTokenAnswer(c.body);
    EXPECT_EQ(token.ok(), c.lifetime > 0) << c.body;
    if (token.ok()) {
      EXPECT_EQ(token->lifetime, Duration(seconds{c.lifetime})) << c.body;
    } else {
      EXPECT_THAT(token.status().message(), Not(HasSubstr("ya29"))) << c.body;
    }
  }
  const std::string longest(16 << 10, 'a');
  EXPECT_TRUE(ParseTokenAnswer(R"({"expires_in":1,"access_token":")" + longest + "\"}").ok());
  EXPECT_FALSE(ParseTokenAnswer(R"({"expires_in":1,"access_token":")" + longest + "a\"}").ok());
}

TEST(TokenRefusal, IsToldWithoutWhatCouldBeASecret) {
  const struct {
    const char* body;
    const char* text;
  } cases[] = {
      {R"({"error":"invalid_grant","error_description":"Invalid JWT Signature."})", "invalid_grant (Invalid JWT Signature.)"},
      {R"({"error":"invalid_grant"})", "invalid_grant"},
      {R"({"error":"invalid_grant","error_description":"bad eyJhbGciOiJSUzI1NiJ9.e30.c2ln token"})", "invalid_grant (bad ... token)"},
      {R"({"error":"invalid_grant","error_description":"a\nb \u00e9 c"})", "invalid_grant (... ... c)"},
      {R"({"error":"invalid_grant","error_description":"Token must be a short-lived token (60 minutes), not 123456."})",
       "invalid_grant (Token must be a short-lived token (60 minutes), not ...)"},
      {R"({"error":"invalid_client","error_description":"is it 'open-sesame'? a b, '' 1// GOCSPX-a1 a_b"})",
       "invalid_client (is it ... a b, '' ... ... ...)"},
      // Found by fuzzing: a word that begins with the secret.
      {R"({"error":"invalid_client","error_description":"open-sesames, xopen-sesam and open-se of open"})",
       "invalid_client (... ... and ... of ...)"},
      {R"({"error":"eyJhbGciOiJSUzI1NiJ9","error_description":"x"})", ""},
      {R"({"error":{"code":403}})", ""},
      {R"({"error_description":"x"})", ""},
      {"not json", ""},
      {"", ""},
  };
  for (const auto& c : cases) EXPECT_EQ(DescribeTokenRefusal(c.body, "client_secret=open-sesame&a=b"), c.text) << c.body;
  // Found by fuzzing: the word itself. Those of the standard are told, whatever the names of parameters are.
  EXPECT_EQ(DescribeTokenRefusal(R"({"error":"opensesames","error_description":"x"})", "client_secret=opensesame"), "");
  EXPECT_EQ(DescribeTokenRefusal(R"({"error":"unsupported_grant_type"})", "grant_type=x"), "unsupported_grant_type");
  // Found by fuzzing: a short word in much punctuation is long.
  EXPECT_EQ(DescribeTokenRefusal(R"({"error":"e","error_description":"in minutes)...., then )" + std::string(300, '.') + "\"}", ""),
            "e (in ... then ...)");
  std::string words = R"({"error":"e","error_description":")";
  for (int i = 0; i < 1'000; ++i) words += "word ";
  EXPECT_LT(DescribeTokenRefusal(words + "\"}", "").size(), 200U);
}

// Google's own token_uri, or none: AIP-4111.
TEST(SelfSignedToken, IsAJwtWithAScope) {
  ManualClock clock;
  for (const char* uri : {"", "https://oauth2.googleapis.com/token", "https://accounts.google.com/o/oauth2/token"}) {
    auto fetched = KeyFetcher(uri, &clock)->Fetch({});
    const auto& token = std::get<FetchedToken>(fetched);
    EXPECT_EQ(token.lifetime, Duration(std::chrono::hours{1}));
    const auto claims = nlohmann::json::parse(VerifiedClaims(token.text));
    EXPECT_EQ(claims["iss"], "reader@p.iam.example");
    EXPECT_EQ(claims["sub"], "reader@p.iam.example");
    EXPECT_EQ(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
    EXPECT_EQ(claims["iat"], 1'700'000'000);
    EXPECT_EQ(claims["exp"], 1'700'003'600);
    EXPECT_FALSE(claims.contains("aud"));
  }
}

TEST(ServerToken, OfAKeyAndOfAUser) {
  ManualClock clock;
  TokenServer server(&clock);
  server.set_lifetime(1234);
  auto by_key = KeyFetcher(server.uri(), &clock)->Fetch({});
  ASSERT_TRUE(std::holds_alternative<FetchedToken>(by_key)) << std::get<RpcFailure>(by_key).message;
  EXPECT_EQ(std::get<FetchedToken>(by_key).text, "token-1");
  EXPECT_EQ(std::get<FetchedToken>(by_key).lifetime, Duration(seconds{1234}));
  clock.Advance(std::chrono::hours{5});  // the server checks the assertion's times
  auto by_user = MakeTokenFetcher(*ParseCredentialFile(UserFileText(server.uri())), {}, &clock)->Fetch({});
  ASSERT_TRUE(std::holds_alternative<FetchedToken>(by_user)) << std::get<RpcFailure>(by_user).message;
  EXPECT_EQ(std::get<FetchedToken>(by_user).text, "token-2");
  EXPECT_EQ(server.requests(), 2);
}

TEST(ServerToken, EachFaultOfATokenServer) {
  constexpr auto kAgain = TokenFault::kNotFetched;
  constexpr auto kNever = TokenFault::kImpossible;
  const std::string echo = R"({"error":"invalid_grant","error_description":"secret )" + std::string(kTestSecret) + " " + kTestRefreshToken +
                           " " + TestKeyPem().substr(40, 19) + "\"}";
  const struct {
    TokenStep step;
    TokenFault fault;
    const char* text;
  } cases[] = {
      {{.status = 500}, kAgain, "HTTP 500"},
      {{.status = 502, .body = "<html>"}, kAgain, "HTTP 502"},
      {{.status = 503, .body = R"({"error":"backend"})"}, kAgain, "HTTP 503 backend"},
      {{.status = 429}, kAgain, "HTTP 429"},
      {{.status = 408}, kAgain, "HTTP 408"},
      {{.status = 400, .body = R"({"error":"temporarily_unavailable"})"}, kAgain, "HTTP 400 temporarily_unavailable"},
      {{.status = 403, .body = R"({"error":"internal_failure","error_description":"x"})"}, kAgain, "internal_failure (x)"},
      {{.drop = true}, kAgain, "nothing"},
      {{.cut = true}, kAgain, "partial"},
      {{.hang = true}, kAgain, "Timeout"},
      {{.status = 400, .body = R"({"error":"invalid_grant","error_description":"Account deleted"})"},
       kNever,
       "invalid_grant (Account deleted); the"},
      {{.status = 401, .body = echo}, kNever, "invalid_grant"},
      {{.status = 404, .body = "no such page"}, kNever, "HTTP 404"},
      {{.status = 301, .headers = "Location: http://127.0.0.1:1/\r\n"}, kNever, "HTTP 301"},
      {{.status = 204}, kNever, "HTTP 204"},
      {{.body = "{\"access_token\":"}, kNever, "not a JSON object"},
      {{.body = "{\"access_token\":\"token-x\"}"}, kNever, "expires_in"},
      {{.huge_bytes = 70'000}, kNever, "longer than 65536 bytes"},
      {{.headers = "X-Long: " + std::string(70'000, 'a') + "\r\n"}, kNever, "longer than 65536 bytes"},
      {{.no_http = true}, kNever, ""},
  };
  ManualClock clock;
  TokenServer server(&clock);
  for (const bool user : {false, true}) {
    const auto credentials = *ParseCredentialFile(user ? UserFileText(server.uri()) : KeyFileText(server.uri()));
    auto patient = MakeTokenFetcher(credentials, {}, &clock);
    auto hasty = MakeTokenFetcher(credentials, {.limit = milliseconds{1'500}}, &clock);
    for (const auto& c : cases) {
      server.Script({c.step});
      const int64_t before = server.requests();
      auto fetched = (c.step.hang ? hasty : patient)->Fetch({});
      EXPECT_EQ(server.requests(), before + 1) << c.text;
      ASSERT_TRUE(std::holds_alternative<RpcFailure>(fetched)) << c.text;
      const auto& failure = std::get<RpcFailure>(fetched);
      EXPECT_EQ(failure.token, c.fault) << failure.message;
      EXPECT_EQ(failure.code, Code::kUnauthenticated);
      EXPECT_THAT(failure.message, AllOf(HasSubstr(c.text), HasSubstr(user ? "the authorized user" : "the service account's key"),
                                         HasSubstr("http://127.0.0.1:"), HasSubstr("; ")));
      ExpectNoSecrets(failure.message, server.bodies());
      EXPECT_EQ(ClassifyReadRows(failure), c.fault == kAgain ? FaultKind::kTransport : FaultKind::kPermanent);
      EXPECT_EQ(ClassifyCreateReadSession(failure), ClassifyReadRows(failure));
    }
  }
  server.Down();
  auto refused = KeyFetcher(server.uri(), &clock)->Fetch({});
  EXPECT_EQ(std::get<RpcFailure>(refused).token, kAgain);
}

TEST(ServerToken, TheServersDelayIsKeptAndBounded) {
  ManualClock clock;
  TokenServer server(&clock);
  server.Script({{.status = 503, .headers = "Retry-After: 7\r\n"}, {.status = 503, .headers = "Retry-After: 999999999\r\n"}});
  auto fetcher = KeyFetcher(server.uri(), &clock);
  auto first = std::get<RpcFailure>(fetcher->Fetch({}));
  EXPECT_EQ(first.server_delay, Duration(seconds{7}));
  EXPECT_EQ(ClassifyReadRows(first), FaultKind::kServerDelay);
  EXPECT_EQ(ClassifyCreateReadSession(first), FaultKind::kServerDelay);
  EXPECT_EQ(std::get<RpcFailure>(fetcher->Fetch({})).server_delay, Duration(std::chrono::minutes{10}));
}

TEST(ServerToken, OverTlsOnlyWhereTheCertificateIsTrusted) {
  ManualClock clock;
  TokenServer server(&clock, /*tls=*/true);
  auto untrusted = std::get<RpcFailure>(KeyFetcher(server.uri(), &clock)->Fetch({}));
  EXPECT_EQ(untrusted.token, TokenFault::kImpossible) << untrusted.message;
  EXPECT_THAT(untrusted.message, AllOf(HasSubstr("certificate"), HasSubstr("ca_bundle")));
  EXPECT_EQ(server.requests(), 0);
  auto trusted = KeyFetcher(server.uri(), &clock, {.ca_certificates = TestCertificatePem()})->Fetch({});
  ASSERT_TRUE(std::holds_alternative<FetchedToken>(trusted)) << std::get<RpcFailure>(trusted).message;
  EXPECT_EQ(server.requests(), 1);
}

TEST(ServerToken, AProxyOfTheEnvironmentIsForHttpsOnly) {
  ManualClock clock;
  TokenServer plain(&clock), tls(&clock, /*tls=*/true);
  // Nothing listens on port 1.
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"}) ::setenv(name, "http://127.0.0.1:1", 1);
  ::unsetenv("no_proxy");
  ::unsetenv("NO_PROXY");
  EXPECT_TRUE(std::holds_alternative<FetchedToken>(KeyFetcher(plain.uri(), &clock)->Fetch({})));
  auto through = KeyFetcher(tls.uri(), &clock, {.ca_certificates = TestCertificatePem()});
  EXPECT_EQ(std::get<RpcFailure>(through->Fetch({})).token, TokenFault::kNotFetched);
  EXPECT_EQ(tls.requests(), 0);
  ::setenv("no_proxy", "127.0.0.1", 1);
  EXPECT_TRUE(std::holds_alternative<FetchedToken>(through->Fetch({})));
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY", "no_proxy"}) ::unsetenv(name);
}

TEST(ServerToken, AStopEndsTheWaitAtOnce) {
  ManualClock clock;
  TokenServer server(&clock);
  server.Script({{.hang = true}});
  std::stop_source stop;
  std::jthread other([&] {
    server.WaitForRequests(1);
    stop.request_stop();
  });
  const auto started = std::chrono::steady_clock::now();
  EXPECT_TRUE(std::holds_alternative<RpcFailure>(KeyFetcher(server.uri(), &clock)->Fetch(stop.get_token())));
  EXPECT_LT(std::chrono::steady_clock::now() - started, seconds{10});
}

TEST(SecretUrl, IsHttpsOrLoopback) {
  const struct {
    const char* url;
    const char* origin;  // empty = refused
  } cases[] = {
      {"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com:443"},
      {"https://sts.example:8443/t?x=1", "https://sts.example:8443"},
      {"http://127.0.0.1:8080/token", "http://127.0.0.1:8080"},
      {"http://127.1.2.3/token", "http://127.1.2.3:80"},
      {"http://localhost:1/", "http://localhost:1"},
      {"http://[::1]:9/", "http://[::1]:9"},
      {"http://oauth2.googleapis.com/token", ""},
      {"http://127.0.0.1.example.com/token", ""},
      {"http://128.0.0.1/", ""},
      {"http://localhost.example/", ""},
      {"http://localhost@example.com/", ""},
      {"https://user:password@example.com/", ""},
      {"https://example.com/#f", ""},
      {"ftp://127.0.0.1/", ""},
      {"file:///etc/passwd", ""},
      {"oauth2.googleapis.com/token", ""},
      {"https://exa mple.com/", ""},
      {"https://example.com/\r\nx: y", ""},
      {"", ""},
  };
  for (const auto& c : cases) {
    const auto origin = CheckSecretUrl("token_uri", c.url);
    EXPECT_EQ(origin.ok() ? *origin : "", c.origin) << c.url;
    EXPECT_THAT(origin.status().message(), Not(HasSubstr("example")));
  }
}

TEST(Jwt, OnlyWithAnRsaKey) {
  EXPECT_TRUE(IsRsaKey(TestKeyPem()));
  EXPECT_FALSE(IsRsaKey(""));
  EXPECT_FALSE(IsRsaKey(TestCertificatePem()));
  EXPECT_FALSE(SignJwt("key-1", "{}", "no key").ok());
  EXPECT_EQ(VerifiedClaims(*SignJwt("key-1", R"({"a":1})", TestKeyPem())), R"({"a":1})");
  EXPECT_THAT(VerifiedClaims(*SignJwt("key-1", "{}", TestKeyPem()) + "x"), IsEmpty());
}

}  // namespace
}  // namespace headrace::rpc
