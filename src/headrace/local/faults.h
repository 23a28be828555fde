// Scripted faults: what the rules of a script have for each call. Deterministic: what fires depends on the order of calls, and for rules
// with a seed on the rows that a stream has reached, alone.
//
// FaultScript may be used from any thread; a CallFaults belongs to one call.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "headrace/local/fault_rules.h"
#include "headrace/local/row_range.h"
#include "headrace/local/throttle.h"

namespace headrace::local {

struct FaultCall {
  std::string method{};
  std::string table{};
  std::optional<int64_t> stream{};
  StreamPart part = StreamPart::kOriginal;
  std::optional<int64_t> offset{};
  std::string stream_name{};  // as the client gave it
  std::string stream_rows{};  // tells the stream by what it holds, the same in every session: what seeds depend on
};

class FaultScript;

/// What the rules have for one call. Ask in the order of the messages.
class CallFaults {
 public:
  struct Fired {
    FaultAction action{};
    std::shared_ptr<Throttle> throttle{};  // of a ThrottleFault
    size_t rule = 0;
    size_t index = 0;  // of the action in its rule
  };
  /// What fires once `messages` were sent, rule by rule, but for what happens to a message.
  std::vector<Fired> AfterMessages(int64_t messages);
  /// What fires for the next message, which follows `messages` others and has these rows of the stream: what happens to it, and what rules
  /// with a seed have at one of its rows.
  std::vector<Fired> ForMessage(int64_t messages, RowRange rows);
  /// What fires when the call is carried out, before its status.
  std::vector<Fired> AfterLast();
  /// Counts an IdleFault, which is not counted before it closes a stream. Any thread.
  void CountClosed(const Fired& fired) const;

 private:
  friend class FaultScript;
  struct State;
  std::vector<Fired> Take(std::optional<int64_t> point, bool of_message);
  void TakePlace(size_t rule, RowRange rows, std::vector<Fired>* fired);
  std::shared_ptr<State> state_;  // of the script as it was when the call came
  std::vector<size_t> armed_;     // rules that may fire in this call
  std::vector<size_t> placed_;    // those of them that have places
  uint64_t stream_ = 0;           // the name's hash
  std::string stream_rows_;
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
    std::vector<int64_t> by_action{};  // of a rule with places
  };
  std::vector<Count> Counts() const;

 private:
  Clock* const clock_;
  mutable std::mutex mutex_;
  std::shared_ptr<CallFaults::State> state_;
};

/// The counts as GET /headrace/faults and /headrace/counters show them: a list.
std::string FaultCountsJson(const std::vector<FaultScript::Count>& counts);

}  // namespace headrace::local
