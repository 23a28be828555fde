// Scripted faults: rules read from JSON that say which call breaks when and how. Deterministic: what fires depends on the order of calls
// alone.
//
// FaultScript may be used from any thread; a CallFaults belongs to one call.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/local/throttle.h"

namespace headrace::local {

struct StatusFault {
  Code code = Code::kUnavailable;
  std::string message{};
  std::optional<int64_t> retry_delay_ms{};  // sent as google.rpc.RetryInfo
};
struct DropFault {};  // breaks the TCP connection of the call
struct DelayFault {
  int64_t milliseconds = 0;
};
struct ThrottleFault {  // the rest of the call; one budget for all calls that the rule fired for
  int64_t bytes_per_second = 0;
};
using FaultAction = std::variant<StatusFault, DropFault, DelayFault, ThrottleFault>;

struct FaultRule {
  std::string method{};
  std::optional<int64_t> stream{};
  std::optional<std::string> table{};
  std::optional<int64_t> offset{};
  std::optional<int64_t> call{};              // the first matching call that fires, from 1; none = every
  std::optional<int64_t> times{};             // none = no bound
  std::optional<int64_t> after_messages = 0;  // none = after the last message, before the status
  FaultAction action{};
};

/// INVALID_ARGUMENT that names the rule and the key. Unknown keys are errors.
arrow::Result<std::vector<FaultRule>> ParseFaultRules(std::string_view json);

struct FaultCall {
  std::string method{};
  std::string table{};
  std::optional<int64_t> stream{};
  std::optional<int64_t> offset{};
};

class FaultScript;

/// What the rules have for one call. Ask in the order of the messages.
class CallFaults {
 public:
  struct Fired {
    FaultAction action{};
    std::shared_ptr<Throttle> throttle{};  // of a ThrottleFault
  };
  /// What fires once `messages` were sent (before the next one), rule by rule.
  std::vector<Fired> AfterMessages(int64_t messages);
  /// What fires after the last message.
  std::vector<Fired> AfterLast();

 private:
  friend class FaultScript;
  struct State;
  std::vector<Fired> Take(std::optional<int64_t> point);
  std::shared_ptr<State> state_;  // of the script as it was when the call came
  std::vector<size_t> armed_;     // rules that may fire in this call
};

class FaultScript {
 public:
  explicit FaultScript(Clock* clock);
  void Replace(std::vector<FaultRule> rules);
  /// Counts the call for each rule that matches it.
  CallFaults Begin(const FaultCall& call);

  struct Count {
    int64_t calls = 0;  // matching ones
    int64_t fired = 0;
  };
  std::vector<Count> Counts() const;

 private:
  Clock* const clock_;
  mutable std::mutex mutex_;
  std::shared_ptr<CallFaults::State> state_;
};

}  // namespace headrace::local
