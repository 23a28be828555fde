#include "headrace/base/prometheus.h"

#include <algorithm>

#include <fmt/format.h>

namespace headrace {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }

/// HELP escapes the backslash and the line feed; label values also the quote.
std::string Escaped(std::string_view text, bool quotes) {
  std::string escaped;
  for (char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || (c == '"' && quotes)) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string NameOf(const MetricValue& value) {
  if (value.info != nullptr) return PrometheusName(value.name, value.info->kind);
  return PrometheusName(value.name, MetricKind::kGauge);  // without a suffix that says more than is known
}

std::string_view TypeOf(const MetricInfo* info) {
  if (info == nullptr) return "untyped";
  return info->kind == MetricKind::kCounter ? "counter" : "gauge";
}

}  // namespace

std::string PrometheusName(std::string_view name, MetricKind kind) {
  std::string text = "headrace_";
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (IsCapital(c) && i > 0 && !IsCapital(name[i - 1])) text += '_';
    const bool good = IsLetter(c) || (c >= '0' && c <= '9');
    text += !good ? '_' : IsCapital(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return kind == MetricKind::kCounter ? text + "_total" : text;
}

std::string PrometheusText(const std::vector<MetricValue>& values) {
  std::string text;
  for (auto first = values.begin(); first != values.end();) {
    auto end = std::find_if(first, values.end(), [&](const MetricValue& value) { return value.name != first->name; });
    const std::string name = NameOf(*first);
    if (first->info != nullptr) text += fmt::format("# HELP {} {}\n", name, Escaped(first->info->meaning, false));
    text += fmt::format("# TYPE {} {}\n", name, TypeOf(first->info));
    const bool parts = end - first > 1 || !first->part.empty();
    const std::string_view label = first->info != nullptr && !first->info->label.empty() ? first->info->label : "part";
    for (; first != end; ++first) {
      if (!first->part.empty()) {
        text += fmt::format("{}{{{}=\"{}\"}} {}\n", name, label, Escaped(first->part, true), first->value);
      } else if (!parts) {
        text += fmt::format("{} {}\n", name, first->value);
      }
    }
  }
  return text;
}

}  // namespace headrace
