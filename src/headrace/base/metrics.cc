#include "headrace/base/metrics.h"

namespace headrace {

Counter* MetricRegistry::counter(std::string_view name) {
  std::lock_guard<std::mutex> guard(mutex_);
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

}  // namespace headrace
