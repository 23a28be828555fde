#include "headrace/base/metrics.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace headrace {

void MetricRegistry::Register(std::span<const MetricInfo> infos) {
  std::lock_guard<std::mutex> guard(mutex_);
  for (const MetricInfo& info : infos) {
    CounterLocked(info.name);
    infos_.emplace(info.name, &info);
  }
}

Counter* MetricRegistry::counter(std::string_view name) {
  std::lock_guard<std::mutex> guard(mutex_);
  return CounterLocked(name);
}

Counter* MetricRegistry::CounterLocked(std::string_view name) {
  auto found = counters_.find(name);
  if (found == counters_.end()) found = counters_.emplace(std::string(name), std::make_unique<Counter>()).first;
  return found->second.get();
}

std::map<std::string, int64_t> MetricRegistry::Snapshot() const {
  std::lock_guard<std::mutex> guard(mutex_);
  std::map<std::string, int64_t> values;
  for (const auto& [name, counter] : counters_) values.emplace(name, counter->value());
  return values;
}

std::vector<MetricValue> MetricRegistry::Collect() const {
  std::lock_guard<std::mutex> guard(mutex_);
  std::vector<MetricValue> values;
  values.reserve(counters_.size());
  for (const auto& [name, counter] : counters_) {
    const size_t dot = std::min(name.find('.'), name.size());
    MetricValue value{.name = name.substr(0, dot), .value = counter->value()};
    if (dot < name.size()) value.part = name.substr(dot + 1);
    auto info = infos_.find(value.name);
    if (info != infos_.end()) value.info = info->second;
    values.push_back(std::move(value));
  }
  // By the whole name a part of "a" could stand behind "a-b".
  std::ranges::sort(values, {}, [](const MetricValue& value) { return std::tie(value.name, value.part); });
  return values;
}

}  // namespace headrace
