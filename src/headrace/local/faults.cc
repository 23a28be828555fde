#include "headrace/local/faults.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "headrace/local/fault_places.h"

namespace headrace::local {
namespace {

bool Matches(const FaultRule& rule, const FaultCall& call) {
  return rule.method == call.method && (!rule.table || *rule.table == call.table) && (!rule.stream || rule.stream == call.stream) &&
         (!rule.part || (call.stream && *rule.part == call.part)) && (!rule.offset || rule.offset == call.offset);
}

// The call ends here: the rules behind this one stay as they are.
bool Ends(const FaultRule& rule, const FaultAction& action) {
  bool expires = std::holds_alternative<ExpireFault>(action) && rule.method != "CreateReadSession";
  return expires || std::holds_alternative<StatusFault>(action) || std::holds_alternative<DropFault>(action);
}

}  // namespace

struct CallFaults::State {
  std::mutex mutex;
  std::vector<FaultRule> rules;
  std::vector<FaultScript::Count> counts;
  std::vector<std::vector<std::shared_ptr<Throttle>>> throttles;  // by rule and action
  // By rule, and in it by the stream's name: the first block of rows whose place no call has reached. Each place fires once, so that a call
  // that comes again gets on.
  std::vector<std::unordered_map<uint64_t, int64_t>> next_blocks;

  bool Spent(size_t rule) const { return rules[rule].times && !rules[rule].call && counts[rule].fired >= *rules[rule].times; }
  Fired Fire(size_t rule, size_t index) {
    const FaultAction& action = rules[rule].actions[index];
    if (!std::holds_alternative<IdleFault>(action)) Count(rule, index);
    return {action, throttles[rule][index], rule, index};
  }
  void Count(size_t rule, size_t index) {
    ++counts[rule].fired;
    if (rules[rule].places) ++counts[rule].by_action[index];
  }
};

std::vector<CallFaults::Fired> CallFaults::AfterMessages(int64_t messages) { return Take(messages, false); }
std::vector<CallFaults::Fired> CallFaults::AfterLast() { return Take(std::nullopt, false); }

std::vector<CallFaults::Fired> CallFaults::ForMessage(int64_t messages, RowRange rows) {
  std::vector<Fired> fired;
  if (!placed_.empty()) {
    std::lock_guard lock(state_->mutex);
    for (size_t rule : placed_) {
      TakePlace(rule, rows, &fired);
      if (!fired.empty() && Ends(state_->rules[fired.back().rule], fired.back().action)) return fired;
    }
  }
  for (Fired& one : Take(messages, true)) fired.push_back(std::move(one));
  return fired;
}

void CallFaults::TakePlace(size_t rule, RowRange rows, std::vector<Fired>* fired) {
  const FaultRule& what = state_->rules[rule];
  int64_t every = what.places->every_rows;
  int64_t& block = state_->next_blocks[rule].try_emplace(stream_, 0).first->second;
  block = std::max(block, rows.begin / every);
  for (bool took = false; block <= (rows.end - 1) / every; ++block) {
    FaultPlace place = PlaceOf(what.places->seed, stream_rows_, every, what.actions.size(), block);
    if (place.row >= rows.end) return;
    // One for a message: where places lie closer than messages are long, the others pass with it.
    if (took || place.row < rows.begin || state_->Spent(rule)) continue;
    took = true;
    fired->push_back(state_->Fire(rule, place.action));
  }
}

std::vector<CallFaults::Fired> CallFaults::Take(std::optional<int64_t> point, bool of_message) {
  std::vector<Fired> fired;
  if (armed_.empty()) return fired;
  std::lock_guard lock(state_->mutex);
  for (auto at = armed_.begin(); at != armed_.end();) {
    size_t index = *at;
    const FaultRule& rule = state_->rules[index];
    if (rule.after_messages != point || IsOfMessage(rule.actions.front()) != of_message) {
      ++at;
      continue;
    }
    // An "every" rule with a bound may have been used up by another call since this one began.
    bool fires = !state_->Spent(index);
    if (fires) fired.push_back(state_->Fire(index, 0));
    at = armed_.erase(at);
    if (fires && Ends(rule, rule.actions.front())) break;
  }
  return fired;
}

void CallFaults::CountClosed(const Fired& fired) const {
  std::lock_guard lock(state_->mutex);
  state_->Count(fired.rule, fired.index);
}

FaultScript::FaultScript(Clock* clock) : clock_(clock), state_(std::make_shared<CallFaults::State>()) {}

void FaultScript::Replace(std::vector<FaultRule> rules) {
  auto state = std::make_shared<CallFaults::State>();
  state->counts.resize(rules.size());
  state->next_blocks.resize(rules.size());
  for (size_t i = 0; i < rules.size(); ++i) {
    auto& throttles = state->throttles.emplace_back();
    for (const FaultAction& action : rules[i].actions) {
      const auto* throttle = std::get_if<ThrottleFault>(&action);
      throttles.push_back(throttle == nullptr ? nullptr : std::make_shared<Throttle>(clock_, throttle->bytes_per_second));
    }
    if (rules[i].places) state->counts[i].by_action.resize(rules[i].actions.size());
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
  faults.stream_ = HashOf(call.stream_name);
  faults.stream_rows_ = call.stream_rows;
  std::lock_guard lock(faults.state_->mutex);
  for (size_t i = 0; i < faults.state_->rules.size(); ++i) {
    const FaultRule& rule = faults.state_->rules[i];
    if (!Matches(rule, call)) continue;
    int64_t number = ++faults.state_->counts[i].calls;
    if (rule.call && (number < *rule.call || number - *rule.call >= *rule.times)) continue;
    (rule.places ? faults.placed_ : faults.armed_).push_back(i);
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

std::string FaultCountsJson(const std::vector<FaultScript::Count>& counts) {
  auto json = nlohmann::ordered_json::array();
  for (size_t i = 0; i < counts.size(); ++i) {
    nlohmann::ordered_json item = {{"rule", i}, {"calls", counts[i].calls}, {"fired", counts[i].fired}};
    if (!counts[i].by_action.empty()) item["by_action"] = counts[i].by_action;
    json.push_back(std::move(item));
  }
  return json.dump();
}

}  // namespace headrace::local
