// The read sessions that a fault script let expire. Any thread.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "headrace/local/fault_rules.h"

namespace headrace::local {

/// What the service says of a session that is older than it may be. The real service's words are not known (fact R7).
inline constexpr const char* kSessionExpired = "session expired: a read session lives 6 hours. Create a new one.";

class ExpiredSessions {
 public:
  /// From now on calls for the session's streams are to end with `status`.
  void Expire(const std::string& session_name, const StatusFault& status);
  std::optional<StatusFault> Find(const std::string& session_name) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, StatusFault> sessions_;
  std::deque<std::string> order_;  // oldest first: a bounded number is kept
};

}  // namespace headrace::local
