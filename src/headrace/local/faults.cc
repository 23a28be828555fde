#include "headrace/local/faults.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace headrace::local {
namespace {

using Json = nlohmann::json;

// Bounds of a script: generous for a test, small for the service.
constexpr size_t kMostRules = 1000;
constexpr int64_t kLongestDelayMs = 600'000;

arrow::Status RuleError(size_t rule, std::string_view message) {
  return MakeError({.code = Code::kInvalidArgument, .resource = "fault script", .reason = "INVALID_FAULTS"},
                   fmt::format("Fault rule {}: {}", rule, message));
}

arrow::Status CheckKeys(size_t rule, const Json& object, std::string_view where, const std::set<std::string>& known) {
  if (!object.is_object()) return RuleError(rule, fmt::format("{} must be an object.", where));
  for (const auto& item : object.items()) {
    if (known.contains(item.key())) continue;
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    return RuleError(rule, fmt::format("unknown key \"{}\" in {}. Known keys: {}.", item.key(), where, list));
  }
  return arrow::Status::OK();
}

arrow::Result<int64_t> Integer(size_t rule, const Json& value, std::string_view key, int64_t least, int64_t most = INT64_MAX) {
  bool in_range = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  if (in_range && value.get<int64_t>() >= least && value.get<int64_t>() <= most) return value.get<int64_t>();
  return RuleError(rule, most == INT64_MAX ? fmt::format("{} must be an integer of at least {}.", key, least)
                                           : fmt::format("{} must be an integer from {} to {}.", key, least, most));
}

arrow::Result<std::string> Text(size_t rule, const Json& value, std::string_view key) {
  if (value.is_string()) return value.get<std::string>();
  return RuleError(rule, fmt::format("{} must be a string.", key));
}

arrow::Result<FaultAction> ParseStatus(size_t rule, const Json& status) {
  ARROW_RETURN_NOT_OK(CheckKeys(rule, status, "status", {"code", "message", "retry_delay_ms"}));
  StatusFault fault;
  if (!status.contains("code")) return RuleError(rule, "status needs a code.");
  ARROW_ASSIGN_OR_RAISE(std::string name, Text(rule, status["code"], "code"));
  auto code = CodeFromName(name);
  if (!code || *code == Code::kOk)
    return RuleError(rule, fmt::format("\"{}\" is not the name of a gRPC error code (like UNAVAILABLE).", name));
  fault.code = *code;
  fault.message = fmt::format("Scripted fault: {}", name);
  if (status.contains("message")) {
    ARROW_ASSIGN_OR_RAISE(fault.message, Text(rule, status["message"], "message"));
  }
  if (status.contains("retry_delay_ms")) {
    ARROW_ASSIGN_OR_RAISE(fault.retry_delay_ms, Integer(rule, status["retry_delay_ms"], "retry_delay_ms", 0));
  }
  return fault;
}

arrow::Result<FaultAction> ParseAction(size_t rule, const Json& action) {
  ARROW_RETURN_NOT_OK(CheckKeys(rule, action, "action", {"status", "drop", "delay_ms", "throttle_bytes_per_second"}));
  if (action.size() != 1) return RuleError(rule, "action must have exactly one of status, drop, delay_ms, throttle_bytes_per_second.");
  if (action.contains("status")) return ParseStatus(rule, action["status"]);
  if (action.contains("delay_ms")) {
    ARROW_ASSIGN_OR_RAISE(int64_t delay, Integer(rule, action["delay_ms"], "delay_ms", 0, kLongestDelayMs));
    return DelayFault{delay};
  }
  if (action.contains("throttle_bytes_per_second")) {
    ARROW_ASSIGN_OR_RAISE(int64_t rate, Integer(rule, action["throttle_bytes_per_second"], "throttle_bytes_per_second", 1));
    return ThrottleFault{rate};
  }
  if (action["drop"] != Json(true)) return RuleError(rule, "drop must be true.");
  return DropFault{};
}

arrow::Status ParseMatch(size_t index, const Json& match, FaultRule* rule) {
  ARROW_RETURN_NOT_OK(CheckKeys(index, match, "match", {"stream", "table", "offset"}));
  if (match.contains("stream")) {
    ARROW_ASSIGN_OR_RAISE(rule->stream, Integer(index, match["stream"], "stream", 0));
  }
  if (match.contains("offset")) {
    ARROW_ASSIGN_OR_RAISE(rule->offset, Integer(index, match["offset"], "offset", 0));
  }
  if (match.contains("table")) {
    ARROW_ASSIGN_OR_RAISE(rule->table, Text(index, match["table"], "table"));
  }
  return arrow::Status::OK();
}

arrow::Status ParseOccasion(size_t index, const Json& json, FaultRule* rule) {
  if (json.contains("call") && json["call"] != Json("every")) {
    if (!json["call"].is_number_integer()) return RuleError(index, "call must be a number of at least 1, or \"every\".");
    ARROW_ASSIGN_OR_RAISE(rule->call, Integer(index, json["call"], "call", 1));
    rule->times = 1;
  }
  if (json.contains("times")) {
    ARROW_ASSIGN_OR_RAISE(rule->times, Integer(index, json["times"], "times", 1));
  }
  if (json.contains("after_messages")) {
    if (json["after_messages"] == Json("after_last")) {
      rule->after_messages.reset();
    } else if (!json["after_messages"].is_number_integer()) {
      return RuleError(index, "after_messages must be a number of at least 0, or \"after_last\".");
    } else {
      ARROW_ASSIGN_OR_RAISE(rule->after_messages, Integer(index, json["after_messages"], "after_messages", 0));
    }
  }
  return arrow::Status::OK();
}

arrow::Result<FaultRule> ParseRule(size_t index, const Json& json) {
  ARROW_RETURN_NOT_OK(CheckKeys(index, json, "a rule", {"method", "match", "call", "times", "after_messages", "action"}));
  FaultRule rule;
  if (!json.contains("method") || !json.contains("action")) return RuleError(index, "a rule needs a method and an action.");
  ARROW_ASSIGN_OR_RAISE(rule.method, Text(index, json["method"], "method"));
  constexpr std::array kMethods = {"CreateReadSession", "ReadRows", "SplitReadStream"};
  if (std::find(kMethods.begin(), kMethods.end(), rule.method) == kMethods.end()) {
    return RuleError(index,
                     fmt::format("\"{}\" is not a method of the service (CreateReadSession, ReadRows, SplitReadStream).", rule.method));
  }
  if (json.contains("match")) ARROW_RETURN_NOT_OK(ParseMatch(index, json["match"], &rule));
  ARROW_RETURN_NOT_OK(ParseOccasion(index, json, &rule));
  ARROW_ASSIGN_OR_RAISE(rule.action, ParseAction(index, json["action"]));
  bool for_streams = rule.offset.has_value() || rule.after_messages != 0 || std::holds_alternative<ThrottleFault>(rule.action);
  if (rule.method != "ReadRows" && for_streams) {
    return RuleError(index, fmt::format("offset, after_messages and throttle_bytes_per_second are for ReadRows, not for {}.", rule.method));
  }
  if (rule.method == "CreateReadSession" && rule.stream) return RuleError(index, "CreateReadSession has no stream to match.");
  return rule;
}

bool Matches(const FaultRule& rule, const FaultCall& call) {
  return rule.method == call.method && (!rule.table || *rule.table == call.table) && (!rule.stream || rule.stream == call.stream) &&
         (!rule.offset || rule.offset == call.offset);
}

}  // namespace

arrow::Result<std::vector<FaultRule>> ParseFaultRules(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object() || json.size() != 1 || !json.contains("rules") || !json["rules"].is_array()) {
    return MakeError({.code = Code::kInvalidArgument, .resource = "fault script", .reason = "INVALID_FAULTS"},
                     "A fault script is a JSON object with the one key \"rules\", a list of rules.");
  }
  if (json["rules"].size() > kMostRules) return RuleError(kMostRules, fmt::format("a script has at most {} rules.", kMostRules));
  std::vector<FaultRule> rules;
  for (const Json& rule : json["rules"]) {
    ARROW_ASSIGN_OR_RAISE(rules.emplace_back(), ParseRule(rules.size(), rule));
  }
  return rules;
}

struct CallFaults::State {
  std::mutex mutex;
  std::vector<FaultRule> rules;
  std::vector<FaultScript::Count> counts;
  std::vector<std::shared_ptr<Throttle>> throttles;
};

std::vector<CallFaults::Fired> CallFaults::AfterMessages(int64_t messages) { return Take(messages); }
std::vector<CallFaults::Fired> CallFaults::AfterLast() { return Take(std::nullopt); }

std::vector<CallFaults::Fired> CallFaults::Take(std::optional<int64_t> point) {
  std::vector<Fired> fired;
  if (armed_.empty()) return fired;
  std::lock_guard lock(state_->mutex);
  for (auto at = armed_.begin(); at != armed_.end();) {
    const FaultRule& rule = state_->rules[*at];
    if (rule.after_messages != point) {
      ++at;
      continue;
    }
    FaultScript::Count& count = state_->counts[*at];
    // An "every" rule with a bound may have been used up by another call since this one began.
    if (rule.call || !rule.times || count.fired < *rule.times) {
      ++count.fired;
      fired.push_back({rule.action, state_->throttles[*at]});
    }
    at = armed_.erase(at);
    // The call ends here: the rules behind this one stay as they are.
    bool ends = !fired.empty() &&
                (std::holds_alternative<StatusFault>(fired.back().action) || std::holds_alternative<DropFault>(fired.back().action));
    if (ends) break;
  }
  return fired;
}

FaultScript::FaultScript(Clock* clock) : clock_(clock), state_(std::make_shared<CallFaults::State>()) {}

void FaultScript::Replace(std::vector<FaultRule> rules) {
  auto state = std::make_shared<CallFaults::State>();
  state->counts.resize(rules.size());
  for (const FaultRule& rule : rules) {
    const auto* throttle = std::get_if<ThrottleFault>(&rule.action);
    state->throttles.push_back(throttle == nullptr ? nullptr : std::make_shared<Throttle>(clock_, throttle->bytes_per_second));
  }
  state->rules = std::move(rules);
  std::lock_guard lock(mutex_);
  state_ = std::move(state);
}

CallFaults FaultScript::Begin(const FaultCall& call) {
  CallFaults faults;
  {
    std::lock_guard lock(mutex_);
    faults.state_ = state_;
  }
  std::lock_guard lock(faults.state_->mutex);
  for (size_t i = 0; i < faults.state_->rules.size(); ++i) {
    const FaultRule& rule = faults.state_->rules[i];
    if (!Matches(rule, call)) continue;
    int64_t number = ++faults.state_->counts[i].calls;
    if (rule.call && (number < *rule.call || number - *rule.call >= *rule.times)) continue;
    faults.armed_.push_back(i);
  }
  return faults;
}

std::vector<FaultScript::Count> FaultScript::Counts() const {
  std::shared_ptr<CallFaults::State> state;
  {
    std::lock_guard lock(mutex_);
    state = state_;
  }
  std::lock_guard lock(state->mutex);
  return state->counts;
}

}  // namespace headrace::local
