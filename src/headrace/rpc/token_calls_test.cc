// Calls with access tokens over TLS, to a gRPC server in this program that checks them, with tokens from a token server in this program.
#include <atomic>
#include <functional>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <google/cloud/bigquery/storage/v1/storage.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "headrace/rpc/byte_stream.h"
#include "headrace/rpc/secrets_testing.h"
#include "headrace/rpc/token_server_testing.h"

namespace headrace::rpc {
namespace {

namespace api = google::cloud::bigquery::storage::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kReadRows[] = "/google.cloud.bigquery.storage.v1.BigQueryRead/ReadRows";
constexpr Duration kLimit = seconds{30};  // no wait of these tests is longer

/// ReadRows sends one message a row from `offset` on, and asks `gate` before each and at the end.
class TlsServer final : public api::BigQueryRead::Service {
 public:
  using Gate = std::function<grpc::Status(const std::string& token, int64_t row)>;

  explicit TlsServer(int64_t rows, bool tls = true) : rows_(rows) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({TestKeyPem(), TestCertificatePem()});
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", tls ? grpc::SslServerCredentials(options) : grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    endpoint = {.host = "127.0.0.1", .port = static_cast<uint16_t>(port), .plaintext = !tls, .given_by = "test"};
  }
  ~TlsServer() override { server_->Shutdown(std::chrono::system_clock::now() + seconds{5}); }

  grpc::Status ReadRows(grpc::ServerContext* context, const api::ReadRowsRequest* request,
                        grpc::ServerWriter<api::ReadRowsResponse>* writer) override {
    const auto header = context->client_metadata().find("authorization");
    const std::string value = header == context->client_metadata().end() ? "" : std::string(header->second.data(), header->second.size());
    const std::string token = value.starts_with("Bearer ") ? value.substr(7) : value;
    Gate gate;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      tokens_.push_back(token);
      gate = gate_;
    }
    for (int64_t row = request->offset(); row <= rows_; ++row) {
      const grpc::Status status = gate ? gate(token, row) : grpc::Status::OK;
      if (!status.ok() || row == rows_) return status;
      api::ReadRowsResponse response;
      response.set_row_count(row);
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

  std::vector<std::string> tokens() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return tokens_;
  }

  /// For the calls that begin from now on.
  void SetGate(Gate gate) {
    std::lock_guard<std::mutex> guard(mutex_);
    gate_ = std::move(gate);
  }

  Endpoint endpoint;

 private:
  const int64_t rows_;
  Gate gate_;
  mutable std::mutex mutex_;
  std::vector<std::string> tokens_;
  std::unique_ptr<grpc::Server> server_;
};

grpc::Status Unauthenticated(const std::string& text) { return {grpc::StatusCode::UNAUTHENTICATED, text}; }

class TokenCalls : public testing::Test {
 protected:
  static constexpr int64_t kRows = 10;

  std::shared_ptr<ChannelPool> Pool(const TlsServer& server, const std::string& file_text,
                                    const std::string& bundle = TestCertificatePem()) {
    const Credentials credentials{.kind = CredentialKind::kFile, .source = WriteTestFile(file_text)};
    return *ChannelPool::Make(
        {.endpoint = server.endpoint, .credentials = credentials, .ca_bundle = bundle.empty() ? "" : WriteTestFile(bundle)},
        LocalFileSystem(), &clock);
  }
  std::shared_ptr<ChannelPool> Pool(const TlsServer& server) { return Pool(server, KeyFileText(tokens.uri())); }

  static CallOptions Call(int64_t offset) {
    api::ReadRowsRequest request;
    request.set_read_stream("s");
    request.set_offset(offset);
    return {.method = kReadRows, .request = request.SerializeAsString()};
  }

  struct Outcome {
    std::vector<int64_t> rows{};
    std::vector<RpcFailure> failures{};
    bool ended = false;
  };

  /// Reads all rows as a reader does: by the retry table, from where it was, in virtual time.
  Outcome ReadAll(const std::shared_ptr<ChannelPool>& pool) {
    SeededRandom random(1);
    RetryState retry(25, &random);
    Outcome outcome;
    while (true) {
      auto stream = ByteStream::Open(pool->Acquire(), Call(static_cast<int64_t>(outcome.rows.size())));
      StreamEvent event = StreamEnd{};
      for (event = stream->Read(kLimit); std::holds_alternative<ByteMessage>(event); event = stream->Read(kLimit)) {
        api::ReadRowsResponse response;
        const auto& message = std::get<ByteMessage>(event);
        std::string bytes;
        for (auto piece : message.pieces) bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        EXPECT_TRUE(response.ParseFromString(bytes));
        outcome.rows.push_back(response.row_count());
        retry.Progress();
      }
      if (std::holds_alternative<StreamEnd>(event)) {
        outcome.ended = true;
        return outcome;
      }
      outcome.failures.push_back(std::get<RpcFailure>(event));
      const auto wait = retry.Next(ClassifyReadRows(outcome.failures.back()), outcome.failures.back());
      if (!wait.has_value()) return outcome;
      clock.Advance(*wait);
    }
  }

  static void ExpectAllRowsOnce(const Outcome& outcome) {
    EXPECT_TRUE(outcome.ended) << (outcome.failures.empty() ? "" : outcome.failures.back().message);
    ASSERT_EQ(outcome.rows.size(), static_cast<size_t>(kRows));
    for (int64_t i = 0; i < kRows; ++i) EXPECT_EQ(outcome.rows[static_cast<size_t>(i)], i);
  }

  void ExpectNoSecrets(const Outcome& outcome) {
    for (const RpcFailure& failure : outcome.failures) {
      for (const std::string& secret : TestSecrets()) EXPECT_THAT(failure.message, Not(HasSubstr(secret)));
      EXPECT_THAT(failure.message, Not(HasSubstr("token-")));
      for (const std::string& body : tokens.bodies()) EXPECT_THAT(failure.message, Not(HasSubstr(body.substr(body.size() - 30))));
    }
  }

  ManualClock clock;
  TokenServer tokens{&clock};
};

TEST_F(TokenCalls, EachCallCarriesTheToken) {
  TlsServer server(kRows);
  auto pool = Pool(server);
  EXPECT_EQ(tokens.requests(), 0) << "nothing is fetched before the first call";
  for (int i = 0; i < 3; ++i) {
    auto outcome = ReadAll(pool);
    ExpectAllRowsOnce(outcome);
    EXPECT_TRUE(outcome.failures.empty());
  }
  EXPECT_THAT(server.tokens(), ElementsAre("token-1", "token-1", "token-1"));
  EXPECT_EQ(tokens.requests(), 1);
}

TEST_F(TokenCalls, EachKindOfCredentials) {
  TlsServer server(kRows);
  ExpectAllRowsOnce(ReadAll(Pool(server, UserFileText(tokens.uri()))));
  ExpectAllRowsOnce(ReadAll(Pool(server, KeyFileText(""))));
  ::setenv("HEADRACE_TEST_TOKEN", "ya29.fixed", 1);
  const std::string bundle = WriteTestFile(TestCertificatePem());
  for (const Credentials& credentials :
       {Credentials{.kind = CredentialKind::kAccessToken, .source = "HEADRACE_TEST_TOKEN"}, {.kind = CredentialKind::kNone}}) {
    ExpectAllRowsOnce(ReadAll(
        *ChannelPool::Make({.endpoint = server.endpoint, .credentials = credentials, .ca_bundle = bundle}, LocalFileSystem(), &clock)));
  }
  ::unsetenv("HEADRACE_TEST_TOKEN");
  const auto seen = server.tokens();
  EXPECT_EQ(seen[0], "token-1");
  EXPECT_THAT(VerifiedClaims(seen[1]), HasSubstr("reader@p.iam.example"));
  EXPECT_EQ(seen[2], "ya29.fixed");
  EXPECT_EQ(seen[3], "");
  EXPECT_EQ(tokens.requests(), 1);
}

TEST_F(TokenCalls, AnAuthorizedUsersOwnQuotaProjectUnlessOneIsGiven) {
  TlsServer server(kRows);
  EXPECT_EQ(Pool(server, UserFileText(tokens.uri()))->options().quota_project, "users-project");
  const Credentials credentials{.kind = CredentialKind::kFile, .source = WriteTestFile(UserFileText(tokens.uri()))};
  auto pool = *ChannelPool::Make({.endpoint = server.endpoint, .credentials = credentials, .quota_project = "payer"}, LocalFileSystem());
  EXPECT_EQ(pool->options().quota_project, "payer");
}

TEST_F(TokenCalls, OneRefreshForManyCallsAtOnce) {
  constexpr int kCalls = 16;
  TlsServer server(kRows);
  auto pool = Pool(server);
  for (int round = 1; round <= 2; ++round) {
    tokens.Script({{.delay = milliseconds{300}}});
    std::latch start(kCalls);
    std::vector<std::jthread> threads;
    threads.reserve(kCalls);
    for (int i = 0; i < kCalls; ++i) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        const Outcome outcome = ReadAll(pool);
        ExpectAllRowsOnce(outcome);
        for (const RpcFailure& failure : outcome.failures) EXPECT_EQ(failure.token, TokenFault::kNone) << failure.message;
      });
    }
    threads.clear();
    EXPECT_EQ(tokens.requests(), round);
    clock.Advance(std::chrono::hours{1});
  }
}

// The service ends a stream whose token has expired in its middle; old tokens are refused from then on.
TEST_F(TokenCalls, ExpiryInMidStream) {
  std::mutex mutex;
  std::set<std::string> expired;
  TlsServer server(kRows);
  server.SetGate([&](const std::string& token, int64_t row) {
    std::lock_guard<std::mutex> guard(mutex);
    if ((row == 4 && token == "token-1") || (row == 7 && token == "token-2")) expired.insert(token);
    return expired.count(token) > 0 ? Unauthenticated("the token has expired") : grpc::Status::OK;
  });
  auto pool = Pool(server);
  auto outcome = ReadAll(pool);
  ExpectAllRowsOnce(outcome);
  ASSERT_EQ(outcome.failures.size(), 2U);
  EXPECT_EQ(outcome.failures[0].token, TokenFault::kRefused);
  EXPECT_THAT(outcome.failures[0].message, AllOf(HasSubstr("the token has expired"), HasSubstr("fetched anew")));
  EXPECT_THAT(server.tokens(), ElementsAre("token-1", "token-2", "token-3"));
  EXPECT_EQ(tokens.requests(), 3);
}

TEST_F(TokenCalls, ATokenOfTwoSecondsInALongRead) {
  std::mutex mutex;
  std::set<int64_t> ends = {3, 6, 9};
  TlsServer server(kRows);
  tokens.set_lifetime(2);
  // A second of virtual time a row; the service ends the calls before rows 3, 6 and 9.
  server.SetGate([&](const std::string&, int64_t row) {
    clock.Advance(seconds{1});
    std::lock_guard<std::mutex> guard(mutex);
    return ends.erase(row) > 0 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "try again") : grpc::Status::OK;
  });
  auto pool = Pool(server);
  int64_t row = 0;
  std::vector<int64_t> offsets;
  while (row < kRows) {
    auto stream = ByteStream::Open(pool->Acquire(), Call(row));
    offsets.push_back(row);
    while (std::holds_alternative<ByteMessage>(stream->Read(kLimit))) ++row;
    ASSERT_LT(offsets.size(), 100U);
  }
  EXPECT_THAT(offsets, ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(server.tokens(), ElementsAre("token-1", "token-2", "token-3", "token-4"));
  EXPECT_EQ(tokens.requests(), 4) << "each call came after the last one's token had expired";
}

TEST_F(TokenCalls, RefreshDuringALongStream) {
  std::latch half(1), go(1);
  std::atomic<int> calls{0};
  TlsServer server(kRows);
  server.SetGate([&](const std::string&, int64_t row) {
    if (row == 5 && calls++ == 0) {
      half.count_down();
      go.wait();
    }
    return grpc::Status::OK;
  });
  auto pool = Pool(server);
  Outcome long_one;
  std::jthread reader([&] { long_one = ReadAll(pool); });
  half.wait();
  clock.Advance(seconds{3'400});  // stale, still valid
  ExpectAllRowsOnce(ReadAll(pool));
  const auto until = std::chrono::steady_clock::now() + seconds{30};
  while (pool->tokens()->Current()->number < 2 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(milliseconds{1});
  clock.Advance(std::chrono::hours{2});  // the long stream's token has expired long ago, which the service does not mind in mid-stream
  ExpectAllRowsOnce(ReadAll(pool));
  go.count_down();
  reader.join();
  ExpectAllRowsOnce(long_one);
  EXPECT_TRUE(long_one.failures.empty());
  EXPECT_THAT(server.tokens(), ElementsAre("token-1", "token-1", "token-3"));
  EXPECT_EQ(tokens.requests(), 3);
}

TEST_F(TokenCalls, FaultsOfTheTokenServerThatARetryMends) {
  TlsServer server(kRows);
  const TokenStep faults[] = {{.status = 500}, {.status = 503}, {.drop = true}, {.cut = true}, {.delay = milliseconds{300}}};
  for (const TokenStep& fault : faults) {
    auto pool = Pool(server);
    const int64_t before = tokens.requests();
    tokens.Script({fault, fault});
    auto outcome = ReadAll(pool);
    ExpectAllRowsOnce(outcome);
    const size_t failed = fault.delay.count() > 0 ? 0 : 2;
    EXPECT_EQ(outcome.failures.size(), failed);
    for (const RpcFailure& failure : outcome.failures) EXPECT_EQ(failure.token, TokenFault::kNotFetched) << failure.message;
    EXPECT_EQ(tokens.requests(), before + static_cast<int64_t>(failed) + 1);
  }
}

TEST_F(TokenCalls, ATokenServerThatIsDownForAWhile) {
  TlsServer server(kRows);
  auto pool = Pool(server);
  tokens.Down();
  std::jthread repair;
  // In virtual time the attempts follow each other at once: the server comes back between two of them.
  SeededRandom random(1);
  RetryState retry(25, &random);
  int failures = 0;
  while (true) {
    auto stream = ByteStream::Open(pool->Acquire(), Call(0));
    StreamEvent event = stream->Read(kLimit);
    if (!std::holds_alternative<RpcFailure>(event)) break;
    const auto& failure = std::get<RpcFailure>(event);
    EXPECT_EQ(failure.token, TokenFault::kNotFetched) << failure.message;
    const auto wait = retry.Next(ClassifyReadRows(failure), failure);
    ASSERT_TRUE(wait.has_value());
    clock.Advance(*wait);
    if (++failures == 10) tokens.Up();
  }
  EXPECT_EQ(failures, 10);
  ExpectAllRowsOnce(ReadAll(pool));
  EXPECT_EQ(tokens.requests(), 1);
}

TEST_F(TokenCalls, FaultsThatLastAreAClearError) {
  TlsServer server(kRows);
  const struct {
    TokenStep step;
    size_t attempts;
    const char* cause;
    const char* advice;
  } cases[] = {
      {{.status = 503}, 25, "HTTP 503", "overloaded"},
      {{.drop = true}, 25, "nothing", "check that this machine reaches"},
      {{.status = 400, .body = R"({"error":"invalid_grant","error_description":"Invalid JWT Signature."})"},
       1,
       "Invalid JWT Signature.",
       "make a new key"},
      {{.body = "<html>"}, 1, "not a JSON object", "token_uri"},
      {{.huge_bytes = 1 << 20}, 1, "longer than", "token_uri"},
  };
  for (const auto& c : cases) {
    auto pool = Pool(server);
    const int64_t before = tokens.requests();
    tokens.Always(c.step);
    auto outcome = ReadAll(pool);
    EXPECT_FALSE(outcome.ended);
    EXPECT_TRUE(outcome.rows.empty());
    ASSERT_EQ(outcome.failures.size(), c.attempts);
    EXPECT_EQ(tokens.requests(), before + static_cast<int64_t>(c.attempts));
    EXPECT_EQ(outcome.failures.back().code, Code::kUnauthenticated);
    EXPECT_THAT(outcome.failures.back().message,
                AllOf(HasSubstr(c.cause), HasSubstr(c.advice), HasSubstr("the service account's key given by credentials")));
    ExpectNoSecrets(outcome);
  }
  EXPECT_TRUE(server.tokens().empty()) << "no call left without its token";
}

TEST_F(TokenCalls, AServiceThatRefusesEveryTokenEndsAfterOneNewOne) {
  TlsServer server(kRows);
  server.SetGate([](const std::string& token, int64_t) { return Unauthenticated("who is " + token + " or " + token + "?"); });
  auto outcome = ReadAll(Pool(server));
  ASSERT_EQ(outcome.failures.size(), 2U);
  EXPECT_EQ(outcome.failures[0].token, TokenFault::kRefused);
  EXPECT_EQ(outcome.failures[1].token, TokenFault::kNone);
  EXPECT_THAT(outcome.failures[1].message,
              AllOf(HasSubstr("who is ... or ...?"), HasSubstr("the service refused the service account's key given by credentials")));
  ExpectNoSecrets(outcome);
  EXPECT_EQ(tokens.requests(), 2);
}

// Permission lost in mid-stream is not about the token.
TEST_F(TokenCalls, PermissionDeniedFetchesNoToken) {
  TlsServer server(kRows);
  server.SetGate([](const std::string& token, int64_t row) {
    return row == 5 ? grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "no more for " + token) : grpc::Status::OK;
  });
  auto outcome = ReadAll(Pool(server));
  EXPECT_EQ(outcome.rows.size(), 5U);
  ASSERT_EQ(outcome.failures.size(), 1U);
  EXPECT_EQ(outcome.failures[0].message, "no more for ...");
  EXPECT_EQ(tokens.requests(), 1);
}

TEST_F(TokenCalls, TheWaitForATokenIsWithinTheCallsLimitsAndEndsWithCancel) {
  TlsServer server(kRows);
  auto pool = Pool(server);
  tokens.Always({.hang = true});
  const auto started = std::chrono::steady_clock::now();
  auto idle = std::get<RpcFailure>(ByteStream::Open(pool->Acquire(), Call(0))->Read(milliseconds{50}));
  EXPECT_EQ(idle.token, TokenFault::kNotFetched);
  auto options = Call(0);
  options.attempt_limit = milliseconds{50};
  auto attempt = std::get<RpcFailure>(ByteStream::Open(pool->Acquire(), options)->Read(Duration{0}));
  EXPECT_EQ(attempt.token, TokenFault::kNotFetched);
  auto stream = ByteStream::Open(pool->Acquire(), Call(0));
  std::jthread other([&] { stream->Cancel(); });
  EXPECT_EQ(std::get<RpcFailure>(stream->Read(Duration{0})).code, Code::kCancelled);
  ByteStream::Open(pool->Acquire(), Call(0));  // never read: nothing to wait for
  pool.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - started, seconds{10});
  EXPECT_TRUE(server.tokens().empty());
}

TEST_F(TokenCalls, ACertificateThatIsNotTrustedGetsNoToken) {
  TlsServer server(kRows);
  auto pool = Pool(server, KeyFileText(tokens.uri()), "");
  auto stream = ByteStream::Open(pool->Acquire(), Call(0));
  const auto failure = std::get<RpcFailure>(stream->Read(kLimit));
  EXPECT_EQ(failure.code, Code::kUnavailable);
  EXPECT_THAT(failure.message, HasSubstr("ca_bundle"));
  EXPECT_EQ(ClassifyReadRows(failure), FaultKind::kPermanent) << failure.message;
  EXPECT_EQ(ClassifyCreateReadSession(failure), FaultKind::kPermanent) << failure.message;
  EXPECT_TRUE(server.tokens().empty());
}

TEST_F(TokenCalls, NoTokenLeavesOverAPlaintextChannel) {
  TlsServer server(kRows, /*tls=*/false);
  // The option is refused beside a plaintext endpoint; whoever comes here all the same reads without a token.
  auto pool = *ChannelPool::Make(
      {.endpoint = server.endpoint, .credentials = {.kind = CredentialKind::kFile, .source = WriteTestFile(KeyFileText(tokens.uri()))}},
      LocalFileSystem(), &clock);
  EXPECT_EQ(pool->tokens(), nullptr);
  ExpectAllRowsOnce(ReadAll(pool));
  EXPECT_THAT(server.tokens(), ElementsAre(""));
  // And gRPC itself, on which calls rest, refuses to send one.
  auto stub = api::BigQueryRead::NewStub(grpc::CreateChannel(server.endpoint.target(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_credentials(grpc::AccessTokenCredentials("token-x"));
  context.set_deadline(std::chrono::system_clock::now() + seconds{30});
  auto reader = stub->ReadRows(&context, api::ReadRowsRequest());
  api::ReadRowsResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(server.tokens().size(), 1U);
  EXPECT_EQ(tokens.requests(), 0);
}

}  // namespace
}  // namespace headrace::rpc
