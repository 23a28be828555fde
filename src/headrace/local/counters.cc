#include "headrace/local/counters.h"

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

int64_t Counters::StreamOpened(const std::string& stream, const std::string& table, int64_t index, int64_t offset) {
  std::lock_guard lock(mutex_);
  ++read_rows_calls_;
  if (remembered_ >= kMaxOpenings) {
    ++forgotten_;
    return -1;
  }
  ++remembered_;
  Stream& known = streams_[stream];
  known.table = table;
  known.index = index;
  known.openings.push_back({.offset = offset});
  return static_cast<int64_t>(known.openings.size()) - 1;
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
  json["openings_forgotten"] = forgotten_;
  json["streams"] = nlohmann::ordered_json::array();
  for (const auto& [name, stream] : streams_) {
    nlohmann::ordered_json item = {{"name", name},
                                   {"table", stream.table},
                                   {"index", stream.index},
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
    json["streams"].push_back(std::move(item));
  }
  json["faults"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < faults.size(); ++i)
    json["faults"].push_back({{"rule", i}, {"calls", faults[i].calls}, {"fired", faults[i].fired}});
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace headrace::local
