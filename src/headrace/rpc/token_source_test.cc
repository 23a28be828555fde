// One access token for many callers, in virtual time, from a token server in this program.
#include "headrace/rpc/token_source.h"

#include <atomic>
#include <latch>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/rpc/secrets_testing.h"
#include "headrace/rpc/token_server_testing.h"

namespace headrace::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

/// Another clock's time, and how often somebody looked at it.
class WatchedClock final : public Clock {
 public:
  explicit WatchedClock(Clock* clock) : clock_(clock) {}
  SystemTime Now() const override { return clock_->Now(); }
  MonotonicTime Monotonic() const override {
    ++looks;
    return clock_->Monotonic();
  }
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake, MonotonicTime deadline) override {
    clock_->WaitUntil(lock, wake, deadline);
  }
  mutable std::atomic<int> looks{0};

 private:
  Clock* const clock_;
};

class TokenSourceTest : public testing::Test {
 protected:
  std::unique_ptr<TokenSource> Source() { return Source(&clock); }
  std::unique_ptr<TokenSource> Source(Clock* expiry) {
    return std::make_unique<TokenSource>(MakeTokenFetcher(*ParseCredentialFile(KeyFileText(server.uri())), {}, &clock), expiry);
  }
  static std::string Text(const std::variant<AccessToken, RpcFailure>& answer) {
    if (const auto* token = std::get_if<AccessToken>(&answer)) return token->text;
    return "failed: " + std::get<RpcFailure>(answer).message;
  }
  static std::string Text(const std::optional<AccessToken>& token) { return token.has_value() ? token->text : "none"; }
  /// Waits until the refresh that was begun has ended with a token.
  static void AwaitToken(TokenSource* source, const std::string& text) {
    const auto until = std::chrono::steady_clock::now() + seconds{30};
    while (Text(source->Current()) != text && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(milliseconds{1});
    EXPECT_EQ(Text(source->Current()), text);
  }

  ManualClock clock;
  TokenServer server{&clock};
};

TEST_F(TokenSourceTest, IsFetchedWhenItIsFirstNeededAndKept) {
  auto source = Source();
  EXPECT_EQ(Text(source->Current()), "none");
  EXPECT_EQ(server.requests(), 0) << "asking for the current token fetches none: nobody would wait for it";
  EXPECT_EQ(Text(source->Wait({}, {})), "token-1");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Text(source->Current()), "token-1");
    EXPECT_EQ(Text(source->Wait({}, {})), "token-1");
  }
  EXPECT_EQ(server.requests(), 1);
}

// An hour's token is refreshed from 3:45 before its end, and not sent in its last ten seconds; of shorter lives both are a share.
TEST_F(TokenSourceTest, IsReplacedBeforeItExpiresWithoutAWait) {
  for (const auto& [lifetime, stale, expires] :
       {std::tuple{3'600'000, 3'375'000, 3'590'000}, {2'000, 1'500, 1'800}, {600'000, 450'000, 590'000}}) {
    server.set_lifetime(lifetime / 1000);
    auto source = Source();
    const int64_t before = server.issued();
    const auto token = [&](int n) { return "token-" + std::to_string(before + n); };
    EXPECT_EQ(Text(source->Wait({}, {})), token(1));
    clock.Advance(milliseconds{stale - 1});
    EXPECT_EQ(Text(source->Current()), token(1));
    EXPECT_EQ(source->refreshes(), 1);
    clock.Advance(milliseconds{1});
    server.Script({{.delay = milliseconds{50}}});
    EXPECT_EQ(Text(source->Current()), token(1)) << "a call with a valid token does not wait";
    EXPECT_EQ(source->refreshes(), 2);
    AwaitToken(source.get(), token(2));
    EXPECT_EQ(source->refreshes(), 2) << "those who looked meanwhile began no other";
    clock.Advance(milliseconds{expires - 1});
    EXPECT_NE(Text(source->Current()), "none");
    AwaitToken(source.get(), token(3));
    clock.Advance(milliseconds{expires});
    EXPECT_EQ(Text(source->Current()), "none");
    EXPECT_EQ(Text(source->Wait({}, {})), token(4));
  }
}

TEST_F(TokenSourceTest, OneRefreshForAllWhoWait) {
  constexpr int kThreads = 32;
  auto source = Source();
  for (int round = 1; round <= 3; ++round) {
    server.Script({{.delay = milliseconds{200}}});
    std::latch start(kThreads);
    std::vector<std::string> texts(kThreads);
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        texts[static_cast<size_t>(i)] = Text(source->Wait(seconds{30}, {}));
      });
    }
    threads.clear();
    EXPECT_THAT(texts, testing::Each("token-" + std::to_string(round)));
    EXPECT_EQ(server.requests(), round);
    EXPECT_EQ(source->refreshes(), round);
    clock.Advance(std::chrono::hours{1});
  }
}

TEST_F(TokenSourceTest, OneFailureForAllWhoWaitAndTheNextAsksAnew) {
  constexpr int kThreads = 8;
  WatchedClock watched(&clock);
  auto source = Source(&watched);
  EXPECT_EQ(Text(source->Wait({}, {})), "token-1");
  clock.Advance(std::chrono::hours{1});
  server.Script({{.status = 503, .hold = true}});
  watched.looks = 0;
  std::latch start(kThreads);
  std::atomic<int> failed{0};
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      auto answer = source->Wait(seconds{30}, {});
      const auto* failure = std::get_if<RpcFailure>(&answer);
      if (failure != nullptr && failure->token == TokenFault::kNotFetched) ++failed;
    });
  }
  // Each looks whether the token is valid, with the source's lock until it waits; the refresh looks once.
  const auto until = std::chrono::steady_clock::now() + seconds{20};
  while (watched.looks < kThreads + 1 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(milliseconds{1});
  EXPECT_EQ(watched.looks, kThreads + 1);
  server.Release();
  threads.clear();
  EXPECT_EQ(failed, kThreads);
  EXPECT_EQ(server.requests(), 2);
  EXPECT_EQ(Text(source->Wait({}, {})), "token-2");
  EXPECT_EQ(server.requests(), 3);
}

TEST_F(TokenSourceTest, AFailedEarlyRefreshHurtsNobodyAndIsTriedAgainInATwentiethOfWhatIsLeft) {
  auto source = Source();
  EXPECT_EQ(Text(source->Wait({}, {})), "token-1");
  clock.Advance(seconds{3'375});
  server.Always({.status = 500});
  const auto settle = [&](int64_t requests) {
    EXPECT_EQ(Text(source->Current()), "token-1");
    const auto until = std::chrono::steady_clock::now() + seconds{30};
    while (source->refreshing() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(milliseconds{1});
    EXPECT_EQ(server.requests(), requests);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(Text(source->Current()), "token-1");
    EXPECT_EQ(source->refreshes(), requests);
  };
  settle(2);
  clock.Advance(milliseconds{10'749});  // (3,590 - 3,375) / 20 = 10.75 s
  EXPECT_EQ(Text(source->Current()), "token-1");
  EXPECT_EQ(source->refreshes(), 2);
  clock.Advance(milliseconds{1});
  settle(3);
  server.Script({});
  clock.Advance(seconds{11});
  AwaitToken(source.get(), "token-2");
  EXPECT_EQ(source->refreshes(), 4);
}

TEST_F(TokenSourceTest, TheWaitIsBoundedAndCanBeStopped) {
  auto source = Source();
  server.Script({{.hang = true}});
  const auto started = std::chrono::steady_clock::now();
  auto limited = std::get<RpcFailure>(source->Wait(milliseconds{50}, {}));
  EXPECT_EQ(limited.token, TokenFault::kNotFetched);
  EXPECT_THAT(limited.message, HasSubstr("within the call's limit of time"));
  std::stop_source stop;
  std::jthread other([&] { stop.request_stop(); });
  EXPECT_EQ(std::get<RpcFailure>(source->Wait({}, stop.get_token())).code, Code::kCancelled);
  EXPECT_EQ(source->refreshes(), 1);
  source.reset();  // in the middle of the refresh, which would take half a minute
  EXPECT_LT(std::chrono::steady_clock::now() - started, seconds{10});
}

TEST_F(TokenSourceTest, ATokenThatExpiredOnItsWayIsTriedOnce) {
  auto source = Source();
  server.set_lifetime(2);
  server.Script({{.delay = milliseconds{100}}});
  std::jthread other([&] {
    server.WaitForRequests(1);
    clock.Advance(seconds{5});
  });
  EXPECT_EQ(Text(source->Wait({}, {})), "token-1");
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(TokenSourceTest, ARefusedTokenIsReplacedAndARefusedReplacementIsTheEnd) {
  auto source = Source();
  EXPECT_EQ(Text(source->Wait({}, {})), "token-1");
  EXPECT_TRUE(source->Refused(1));
  EXPECT_EQ(Text(source->Current()), "none");
  EXPECT_TRUE(source->Refused(1)) << "another call that had it";
  EXPECT_EQ(Text(source->Wait({}, {})), "token-2");
  EXPECT_TRUE(source->Refused(1)) << "a late one: the new token stays";
  EXPECT_EQ(Text(source->Current()), "token-2");
  source->Accepted(2);
  EXPECT_TRUE(source->Refused(2)) << "it had been good";
  EXPECT_EQ(Text(source->Wait({}, {})), "token-3");
  source->Accepted(2);
  EXPECT_FALSE(source->Refused(3)) << "it replaced a refused one and was never good";
  EXPECT_EQ(server.requests(), 3);
}

TEST_F(TokenSourceTest, AFixedTokenNeverExpiresAndIsNeverReplaced) {
  TokenSource source(MakeFixedToken("fixed"), &clock);
  EXPECT_EQ(Text(source.Wait({}, {})), "fixed");
  clock.Advance(std::chrono::hours{24 * 365 * 200});
  EXPECT_EQ(Text(source.Current()), "fixed");
  EXPECT_FALSE(source.Refused(1));
  EXPECT_EQ(source.refreshes(), 1);
}

}  // namespace
}  // namespace headrace::rpc
