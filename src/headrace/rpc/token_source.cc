#include "headrace/rpc/token_source.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace headrace::rpc {
namespace {

// google-auth's REFRESH_THRESHOLD: caches before a token server may hand out the same token until four minutes from its expiry.
constexpr Duration kStaleBefore = std::chrono::minutes{3} + std::chrono::seconds{45};
// A call that leaves now reaches the service with a token that is still good.
constexpr Duration kExpiresBefore = std::chrono::seconds{10};
// Of short lives both margins are a share.
constexpr int kStaleShare = 4;
constexpr int kExpiresShare = 10;
// Attempts of early refresh in the time that is left.
constexpr int kEarlyAttempts = 20;

}  // namespace

std::optional<AccessToken> TokenSource::Current() {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!IsValid()) return std::nullopt;
  const MonotonicTime now = clock_->Monotonic();
  if (now >= held_->stale_at && now >= early_again_at_ && !refreshing_) BeginRefresh();
  return held_->token;
}

std::variant<AccessToken, RpcFailure> TokenSource::Wait(Duration limit, const std::stop_token& stop) {
  constexpr Duration kForEver = std::chrono::hours{24 * 365};  // steady_clock overflows close to its maximum
  const auto until = std::chrono::steady_clock::now() + (limit.count() > 0 ? std::min(limit, kForEver) : kForEver);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!IsValid()) {
    if (!refreshing_) BeginRefresh();
    const int64_t mine = begun_;
    const bool ended = changed_.wait_until(lock, stop, until, [&] { return ended_ >= mine; });
    if (stop.stop_requested()) return RpcFailure{.code = Code::kCancelled, .message = "cancelled while waiting for an access token"};
    if (!ended) {
      return RpcFailure{.code = Code::kUnauthenticated,
                        .message = "no access token for " + std::string(kind()) + " within the call's limit of time",
                        .token = TokenFault::kNotFetched};
    }
    if (last_failure_.has_value()) return *last_failure_;
    // Even one that expired on its way here: the service decides. None is held when another call was refused with it already.
    if (held_.has_value()) break;
  }
  return held_->token;
}

void TokenSource::Accepted(int64_t number) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (held_.has_value() && held_->token.number == number) held_->accepted = true;
}

bool TokenSource::Refused(int64_t number) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!fetcher_->renews()) return false;
  if (!held_.has_value() || held_->token.number != number) return true;  // it has been replaced, or is being
  const bool worthwhile = held_->accepted || !held_->replaces_refused;
  held_.reset();
  was_refused_ = true;
  return worthwhile;
}

int64_t TokenSource::refreshes() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return begun_;
}

bool TokenSource::refreshing() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return refreshing_;
}

void TokenSource::BeginRefresh() {
  refreshing_ = true;
  ++begun_;
  try {
    // The refresh before has ended: it set refreshing_ as its last act with the lock that is held here, so that its thread is joined at
    // once.
    worker_ = std::jthread([this](const std::stop_token& stop) { Refresh(stop); });
  } catch (const std::system_error&) {
    refreshing_ = false;
    ended_ = begun_;
    last_failure_ = RpcFailure{.code = Code::kUnauthenticated,
                               .message = "no access token for " + std::string(kind()) + ": no thread could be started",
                               .token = TokenFault::kNotFetched};
    changed_.notify_all();
  }
}

void TokenSource::Refresh(const std::stop_token& stop) {
  const MonotonicTime asked_at = clock_->Monotonic();
  auto fetched = fetcher_->Fetch(stop);
  std::lock_guard<std::mutex> guard(mutex_);
  if (auto* token = std::get_if<FetchedToken>(&fetched)) {
    Hold(std::move(*token), asked_at);
    last_failure_.reset();
  } else {
    last_failure_ = std::get<RpcFailure>(std::move(fetched));
    if (held_.has_value()) early_again_at_ = clock_->Monotonic() + (held_->expires_at - held_->stale_at) / kEarlyAttempts;
  }
  refreshing_ = false;
  ended_ = begun_;
  changed_.notify_all();
}

void TokenSource::Hold(FetchedToken token, MonotonicTime asked_at) {
  Held held{.token = {.text = std::move(token.text), .number = ++fetched_}, .replaces_refused = std::exchange(was_refused_, false)};
  const Duration lifetime = token.lifetime;
  const bool for_ever = lifetime.count() == 0;
  held.stale_at = for_ever ? MonotonicTime::max() : asked_at + lifetime - std::min(kStaleBefore, lifetime / kStaleShare);
  held.expires_at = for_ever ? MonotonicTime::max() : asked_at + lifetime - std::min(kExpiresBefore, lifetime / kExpiresShare);
  held_ = std::move(held);
  early_again_at_ = {};
}

}  // namespace headrace::rpc
