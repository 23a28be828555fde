// The access token of one client: fetched when it is first needed, replaced before it expires, one refresh at a time for all calls.
//
// Any thread may call. A refresh runs on a thread of its own, which is stopped and joined by the destructor. Expiry is read from the clock
// that is given; waits for the network are in real time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>

#include "headrace/base/clock.h"
#include "headrace/rpc/retry.h"
#include "headrace/rpc/token_fetcher.h"

namespace headrace::rpc {

struct AccessToken {
  std::string text{};
  int64_t number = 0;  // 1 for the first that was fetched, and so on
};

class TokenSource {
 public:
  TokenSource(std::unique_ptr<TokenFetcher> fetcher, Clock* clock) : fetcher_(std::move(fetcher)), clock_(clock) {}
  TokenSource(const TokenSource&) = delete;
  TokenSource& operator=(const TokenSource&) = delete;

  /// The token when there is a valid one. Never waits; begins a refresh when the token will expire soon.
  std::optional<AccessToken> Current();
  /// The token, waiting for the refresh in progress, or one that is begun now, when there is no valid one. The failure is that of this one
  /// refresh: whether it is tried again is the caller's retry table's decision. `limit` zero = none.
  std::variant<AccessToken, RpcFailure> Wait(Duration limit, const std::stop_token& stop);

  /// A call with this token was let in.
  void Accepted(int64_t number);
  /// A call with this token was refused as unauthenticated: the token is not used again. True when a call with a new one may go well, which
  /// it may not when this one had itself replaced a refused one and was never accepted.
  bool Refused(int64_t number);

  std::string_view kind() const { return fetcher_->kind(); }
  /// Refreshes begun so far, whatever came of them.
  int64_t refreshes() const;
  /// One is in progress.
  bool refreshing() const;

 private:
  struct Held {
    AccessToken token{};
    MonotonicTime stale_at{};    // from here on a refresh is due
    MonotonicTime expires_at{};  // from here on it is not sent
    bool replaces_refused = false;
    bool accepted = false;
  };

  // All with mutex_ held.
  bool IsValid() const { return held_.has_value() && clock_->Monotonic() < held_->expires_at; }
  void BeginRefresh();
  void Refresh(const std::stop_token& stop);  // on worker_, without mutex_
  void Hold(FetchedToken token, MonotonicTime asked_at);

  const std::unique_ptr<TokenFetcher> fetcher_;
  Clock* const clock_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Held> held_;
  bool refreshing_ = false;
  bool was_refused_ = false;  // the next token replaces a refused one
  int64_t begun_ = 0;         // refreshes
  int64_t ended_ = 0;
  int64_t fetched_ = 0;
  std::optional<RpcFailure> last_failure_;  // of the refresh that ended last
  MonotonicTime early_again_at_{};          // after a failed early refresh, the next one not before this
  std::jthread worker_;                     // last: stopped and joined before anything else goes
};

}  // namespace headrace::rpc
