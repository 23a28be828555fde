#include "headrace/local/expired_sessions.h"

namespace headrace::local {
namespace {

// A service that runs for days must not grow without bound; a test lets far fewer expire.
constexpr size_t kMostSessions = 10'000;

}  // namespace

void ExpiredSessions::Expire(const std::string& session_name, const StatusFault& status) {
  std::lock_guard lock(mutex_);
  auto [at, fresh] = sessions_.insert_or_assign(session_name, status);
  if (!fresh) return;
  order_.push_back(session_name);
  if (order_.size() <= kMostSessions) return;
  sessions_.erase(order_.front());
  order_.pop_front();
}

std::optional<StatusFault> ExpiredSessions::Find(const std::string& session_name) const {
  std::lock_guard lock(mutex_);
  auto found = sessions_.find(session_name);
  if (found == sessions_.end()) return std::nullopt;
  return found->second;
}

}  // namespace headrace::local
