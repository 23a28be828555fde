#include "headrace/local/fault_rules.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/local/expired_sessions.h"

namespace headrace::local {
namespace {

using Json = nlohmann::json;

// Bounds of a script: generous for a test, small for the service.
constexpr size_t kMostRules = 1000;
constexpr int64_t kLongestDelayMs = 600'000;
constexpr size_t kMostActions = 100;
constexpr int64_t kRarestRows = 1'000'000'000'000;

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

arrow::Status CheckTrue(size_t rule, const Json& value, std::string_view key) {
  if (value == Json(true)) return arrow::Status::OK();
  return RuleError(rule, fmt::format("{} must be true.", key));
}

// `fault` has what is the default.
arrow::Status ParseStatus(size_t rule, const Json& status, std::string_view where, bool needs_code, StatusFault* fault) {
  ARROW_RETURN_NOT_OK(CheckKeys(rule, status, where, {"code", "message", "retry_delay_ms"}));
  if (status.contains("code")) {
    ARROW_ASSIGN_OR_RAISE(std::string name, Text(rule, status["code"], "code"));
    auto code = CodeFromName(name);
    if (!code || *code == Code::kOk)
      return RuleError(rule, fmt::format("\"{}\" is not the name of a gRPC error code (like UNAVAILABLE).", name));
    fault->code = *code;
    fault->message = fmt::format("Scripted fault: {}", name);
  } else if (needs_code) {
    return RuleError(rule, fmt::format("{} needs a code.", where));
  }
  if (status.contains("message")) {
    ARROW_ASSIGN_OR_RAISE(fault->message, Text(rule, status["message"], "message"));
  }
  if (status.contains("retry_delay_ms")) {
    ARROW_ASSIGN_OR_RAISE(fault->retry_delay_ms, Integer(rule, status["retry_delay_ms"], "retry_delay_ms", 0));
  }
  return arrow::Status::OK();
}

arrow::Result<FaultAction> ParseStatusAction(size_t rule, const Json& value) {
  StatusFault fault;
  ARROW_RETURN_NOT_OK(ParseStatus(rule, value, "status", true, &fault));
  return fault;
}

arrow::Result<FaultAction> ParseDrop(size_t rule, const Json& value) {
  ARROW_RETURN_NOT_OK(CheckTrue(rule, value, "drop"));
  return DropFault{};
}

arrow::Result<FaultAction> ParseDelay(size_t rule, const Json& value) {
  ARROW_ASSIGN_OR_RAISE(int64_t delay, Integer(rule, value, "delay_ms", 0, kLongestDelayMs));
  return DelayFault{delay};
}

arrow::Result<FaultAction> ParseThrottle(size_t rule, const Json& value) {
  ARROW_ASSIGN_OR_RAISE(int64_t rate, Integer(rule, value, "throttle_bytes_per_second", 1));
  return ThrottleFault{rate};
}

// "drop", or a status.
arrow::Result<FaultAction> ParseLostAnswer(size_t rule, const Json& value) {
  if (value == Json("drop")) return DropFault{};
  if (!value.is_object()) return RuleError(rule, "lose_answer must be \"drop\" or an object like status.");
  StatusFault fault;
  ARROW_RETURN_NOT_OK(ParseStatus(rule, value, "lose_answer", true, &fault));
  return fault;
}

// true, or what another service would answer.
arrow::Result<FaultAction> ParseExpiry(size_t rule, const Json& value) {
  ExpireFault fault{{.code = Code::kFailedPrecondition, .message = kSessionExpired}};
  if (value == Json(true)) return fault;
  if (!value.is_object()) return RuleError(rule, "expire_session must be true or an object like status.");
  ARROW_RETURN_NOT_OK(ParseStatus(rule, value, "expire_session", true, &fault.status));
  return fault;
}

arrow::Result<FaultAction> ParseIdle(size_t rule, const Json& value) {
  ARROW_RETURN_NOT_OK(CheckKeys(rule, value, "close_idle", {"after_ms", "code", "message"}));
  if (!value.contains("after_ms")) return RuleError(rule, "close_idle needs after_ms.");
  IdleFault fault{.status = {.code = Code::kUnavailable, .message = "Scripted fault: closed, its client takes nothing"}};
  ARROW_ASSIGN_OR_RAISE(fault.milliseconds, Integer(rule, value["after_ms"], "after_ms", 1, kLongestDelayMs));
  Json status = value;
  status.erase("after_ms");
  ARROW_RETURN_NOT_OK(ParseStatus(rule, status, "close_idle", false, &fault.status));
  return fault;
}

arrow::Result<FaultAction> ParseDuplicate(size_t rule, const Json& value) {
  ARROW_RETURN_NOT_OK(CheckTrue(rule, value, "duplicate"));
  return DuplicateFault{};
}

arrow::Result<FaultAction> ParseSkip(size_t rule, const Json& value) {
  ARROW_RETURN_NOT_OK(CheckTrue(rule, value, "skip"));
  return SkipFault{};
}

arrow::Result<FaultAction> ParseTruncate(size_t rule, const Json& value) {
  ARROW_ASSIGN_OR_RAISE(int64_t bytes, Integer(rule, value, "truncate_bytes", 1));
  return DamageFault{{.cut_bytes = bytes}};
}

arrow::Result<FaultAction> ParseCorrupt(size_t rule, const Json& value) {
  ARROW_RETURN_NOT_OK(CheckKeys(rule, value, "corrupt", {"at", "bytes"}));
  DamageFault fault{{.flip_bytes = 1}};
  if (value.contains("at")) {
    ARROW_ASSIGN_OR_RAISE(fault.damage.flip_at, Integer(rule, value["at"], "at", INT64_MIN));
  }
  if (value.contains("bytes")) {
    ARROW_ASSIGN_OR_RAISE(fault.damage.flip_bytes, Integer(rule, value["bytes"], "bytes", 1));
  }
  return fault;
}

arrow::Result<FaultAction> ParseRowCount(size_t rule, const Json& value) {
  ARROW_ASSIGN_OR_RAISE(int64_t off_by, Integer(rule, value, "row_count_off_by", INT64_MIN));
  if (off_by == 0) return RuleError(rule, "row_count_off_by must not be 0.");
  return DamageFault{{.row_count_off_by = off_by}};
}

arrow::Result<FaultAction> ParseSchema(size_t rule, const Json& value) {
  if (value == Json("name")) return SchemaFault{SchemaChange::kName};
  if (value == Json("type")) return SchemaFault{SchemaChange::kType};
  if (value == Json("columns")) return SchemaFault{SchemaChange::kColumns};
  return RuleError(rule, "change_schema must be \"name\", \"type\" or \"columns\".");
}

using ActionParser = arrow::Result<FaultAction> (*)(size_t, const Json&);

// In the order of docs/local-service.md.
constexpr std::array<std::pair<std::string_view, ActionParser>, 13> kActions = {{{"status", ParseStatusAction},
                                                                                 {"drop", ParseDrop},
                                                                                 {"delay_ms", ParseDelay},
                                                                                 {"throttle_bytes_per_second", ParseThrottle},
                                                                                 {"lose_answer", ParseLostAnswer},
                                                                                 {"expire_session", ParseExpiry},
                                                                                 {"close_idle", ParseIdle},
                                                                                 {"duplicate", ParseDuplicate},
                                                                                 {"skip", ParseSkip},
                                                                                 {"truncate_bytes", ParseTruncate},
                                                                                 {"corrupt", ParseCorrupt},
                                                                                 {"row_count_off_by", ParseRowCount},
                                                                                 {"change_schema", ParseSchema}}};

arrow::Result<FaultAction> ParseAction(size_t rule, const Json& action) {
  std::set<std::string> names;
  std::string list;
  for (const auto& [name, parse] : kActions) {
    names.emplace(name);
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  ARROW_RETURN_NOT_OK(CheckKeys(rule, action, "action", names));
  if (action.size() != 1) return RuleError(rule, fmt::format("action must have exactly one of {}.", list));
  for (const auto& [name, parse] : kActions) {
    if (action.contains(std::string(name))) return parse(rule, action[std::string(name)]);
  }
  return RuleError(rule, "action is none of them.");
}

arrow::Status ParseMatch(size_t index, const Json& match, FaultRule* rule) {
  ARROW_RETURN_NOT_OK(CheckKeys(index, match, "match", {"stream", "part", "table", "offset"}));
  if (match.contains("stream")) {
    ARROW_ASSIGN_OR_RAISE(rule->stream, Integer(index, match["stream"], "stream", 0));
  }
  if (match.contains("offset")) {
    ARROW_ASSIGN_OR_RAISE(rule->offset, Integer(index, match["offset"], "offset", 0));
  }
  if (match.contains("table")) {
    ARROW_ASSIGN_OR_RAISE(rule->table, Text(index, match["table"], "table"));
  }
  if (match.contains("part")) {
    ARROW_ASSIGN_OR_RAISE(std::string name, Text(index, match["part"], "part"));
    for (StreamPart part : {StreamPart::kOriginal, StreamPart::kPrimary, StreamPart::kRemainder}) {
      if (name == PartName(part)) rule->part = part;
    }
    if (!rule->part) return RuleError(index, "part must be \"original\", \"primary\" or \"remainder\".");
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

arrow::Status ParsePlaces(size_t index, const Json& json, FaultRule* rule) {
  for (const char* key : {"call", "after_messages", "action"}) {
    if (json.contains(key)) return RuleError(index, fmt::format("{} does not go with every_rows.", key));
  }
  if (!json.contains("every_rows") || !json.contains("actions")) return RuleError(index, "every_rows, seed and actions go together.");
  FaultPlaces places;
  ARROW_ASSIGN_OR_RAISE(places.every_rows, Integer(index, json["every_rows"], "every_rows", 1, kRarestRows));
  if (json.contains("seed")) {
    ARROW_ASSIGN_OR_RAISE(int64_t seed, Integer(index, json["seed"], "seed", INT64_MIN));
    places.seed = static_cast<uint64_t>(seed);
  }
  rule->places = places;
  const Json& actions = json["actions"];
  if (!actions.is_array() || actions.empty() || actions.size() > kMostActions) {
    return RuleError(index, fmt::format("actions must be a list of 1 to {} actions.", kMostActions));
  }
  for (const Json& action : actions) {
    if (action.is_object() && action.contains("lose_answer")) return RuleError(index, "lose_answer does not go with every_rows.");
    ARROW_ASSIGN_OR_RAISE(rule->actions.emplace_back(), ParseAction(index, action));
  }
  return arrow::Status::OK();
}

// What does not go with the method.
arrow::Status CheckMethod(size_t index, const FaultRule& rule) {
  if (rule.method == "ReadRows") return arrow::Status::OK();
  const FaultAction& action = rule.actions.front();
  if (rule.offset || rule.after_messages != 0 || rule.places || IsOfMessage(action) || std::holds_alternative<ThrottleFault>(action) ||
      std::holds_alternative<IdleFault>(action)) {
    return RuleError(
        index, fmt::format("offset, after_messages, every_rows, and what happens to messages, are for ReadRows, not for {}.", rule.method));
  }
  if (rule.method == "CreateReadSession" && (rule.stream || rule.part))
    return RuleError(index, "CreateReadSession has no stream to match.");
  return arrow::Status::OK();
}

arrow::Result<FaultRule> ParseRule(size_t index, const Json& json) {
  ARROW_RETURN_NOT_OK(
      CheckKeys(index, json, "a rule", {"method", "match", "call", "times", "after_messages", "action", "every_rows", "seed", "actions"}));
  FaultRule rule;
  bool placed = json.contains("every_rows") || json.contains("seed") || json.contains("actions");
  if (!json.contains("method") || !(json.contains("action") || placed)) {
    return RuleError(index, "a rule needs a method and an action, or every_rows and actions.");
  }
  ARROW_ASSIGN_OR_RAISE(rule.method, Text(index, json["method"], "method"));
  constexpr std::array kMethods = {"CreateReadSession", "ReadRows", "SplitReadStream"};
  if (std::find(kMethods.begin(), kMethods.end(), rule.method) == kMethods.end()) {
    return RuleError(index,
                     fmt::format("\"{}\" is not a method of the service (CreateReadSession, ReadRows, SplitReadStream).", rule.method));
  }
  if (json.contains("match")) ARROW_RETURN_NOT_OK(ParseMatch(index, json["match"], &rule));
  ARROW_RETURN_NOT_OK(ParseOccasion(index, json, &rule));
  if (placed) {
    ARROW_RETURN_NOT_OK(ParsePlaces(index, json, &rule));
    ARROW_RETURN_NOT_OK(CheckMethod(index, rule));
    return rule;
  }
  const Json& action = json["action"];
  ARROW_ASSIGN_OR_RAISE(rule.actions.emplace_back(), ParseAction(index, action));
  ARROW_RETURN_NOT_OK(CheckMethod(index, rule));
  if (action.contains("lose_answer") && json.contains("after_messages")) {
    return RuleError(index, "lose_answer comes when the call is carried out: it takes no after_messages.");
  }
  if (IsOfMessage(rule.actions.front()) && !rule.after_messages) {
    return RuleError(index, "after the last message there is none that this could happen to.");
  }
  // A session can expire once it is there.
  bool expires_new = rule.method == "CreateReadSession" && std::holds_alternative<ExpireFault>(rule.actions.front());
  if (action.contains("lose_answer") || expires_new) rule.after_messages.reset();
  return rule;
}

}  // namespace

bool IsOfMessage(const FaultAction& action) {
  return std::holds_alternative<DuplicateFault>(action) || std::holds_alternative<SkipFault>(action) ||
         std::holds_alternative<DamageFault>(action) || std::holds_alternative<SchemaFault>(action);
}

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

}  // namespace headrace::local
