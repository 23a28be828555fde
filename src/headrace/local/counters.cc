#include "headrace/local/counters.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace headrace::local {
namespace {

// A service that runs for days must not grow without bound; a test opens far fewer streams.
constexpr int64_t kMaxOpenings = 100'000;

}  // namespace

void Counters::SessionCreated(const std::string& table) {
  std::lock_guard lock(mutex_);
  ++sessions_;
  ++sessions_by_table_[table];
}

Counters::Stream* Counters::Remember(const std::string& stream, const StreamName& of) {
  if (remembered_ >= kMaxOpenings) {
    ++forgotten_;
    return nullptr;
  }
  ++remembered_;
  Stream& known = streams_[stream];
  known.table = of.session.table();
  known.index = of.index;
  known.part = of.part;
  return &known;
}

int64_t Counters::StreamOpened(const std::string& stream, const StreamName& of, int64_t offset) {
  std::lock_guard lock(mutex_);
  ++read_rows_calls_;
  Stream* known = Remember(stream, of);
  if (known == nullptr) return -1;
  known->openings.push_back({.offset = offset});
  return static_cast<int64_t>(known->openings.size()) - 1;
}

int64_t Counters::SplitAsked(const std::string& stream, const StreamName& of, double fraction) {
  std::lock_guard lock(mutex_);
  ++split_calls_;
  Stream* known = Remember(stream, of);
  if (known == nullptr) return -1;
  known->splits.push_back({.fraction = fraction});
  return static_cast<int64_t>(known->splits.size()) - 1;
}

void Counters::SplitAnswered(const std::string& stream, int64_t split, bool accepted, Code code) {
  std::lock_guard lock(mutex_);
  if (accepted) ++splits_accepted_;
  auto found = streams_.find(stream);
  if (split < 0 || found == streams_.end()) return;
  Split& known = found->second.splits[static_cast<size_t>(split)];
  known.accepted = accepted;
  known.status = CodeName(code);
}

Counters::Opening* Counters::Find(const std::string& stream, int64_t opening) {
  auto found = streams_.find(stream);
  if (opening < 0 || found == streams_.end()) return nullptr;
  return &found->second.openings[static_cast<size_t>(opening)];
}

void Counters::MessageSent(const std::string& stream, int64_t opening, int64_t rows, int64_t bytes) {
  std::lock_guard lock(mutex_);
  Opening* known = Find(stream, opening);
  if (known == nullptr) return;
  known->rows += rows;
  ++known->messages;
  Stream& of = streams_[stream];
  of.rows += rows;
  of.bytes += bytes;
  ++of.messages;
}

void Counters::StreamEnded(const std::string& stream, int64_t opening, Code code) {
  std::lock_guard lock(mutex_);
  if (Opening* known = Find(stream, opening)) known->status = CodeName(code);
}

std::string Counters::ToJson(const std::vector<FaultScript::Count>& faults) const {
  std::lock_guard lock(mutex_);
  nlohmann::ordered_json json;
  json["sessions_created"] = sessions_;
  json["sessions_by_table"] = sessions_by_table_;
  json["read_rows_calls"] = read_rows_calls_;
  json["split_calls"] = split_calls_;
  json["splits_accepted"] = splits_accepted_;
  json["openings_forgotten"] = forgotten_;
  json["messages_from_cache"] = kept_.load(std::memory_order_relaxed);
  json["streams"] = nlohmann::ordered_json::array();
  for (const auto& [name, stream] : streams_) {
    nlohmann::ordered_json item = {{"name", name},
                                   {"table", stream.table},
                                   {"index", stream.index},
                                   {"part", PartName(stream.part)},
                                   {"rows_sent", stream.rows},
                                   {"messages_sent", stream.messages},
                                   {"bytes_sent", stream.bytes}};
    item["opens"] = nlohmann::ordered_json::array();
    for (const Opening& opening : stream.openings) {
      item["opens"].push_back({{"offset", opening.offset},
                               {"rows_sent", opening.rows},
                               {"messages_sent", opening.messages},
                               {"status", opening.status.empty() ? "OPEN" : opening.status}});
    }
    item["splits"] = nlohmann::ordered_json::array();
    for (const Split& split : stream.splits) {
      // A fraction that is no number has no form in JSON.
      nlohmann::ordered_json fraction = std::isfinite(split.fraction) ? nlohmann::ordered_json(split.fraction) : nullptr;
      item["splits"].push_back(
          {{"fraction", fraction}, {"accepted", split.accepted}, {"status", split.status.empty() ? "OPEN" : split.status}});
    }
    json["streams"].push_back(std::move(item));
  }
  json["faults"] = nlohmann::ordered_json::parse(FaultCountsJson(faults));
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace headrace::local
