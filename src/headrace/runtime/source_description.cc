#include "headrace/runtime/source_description.h"

#include <string_view>

#include <fmt/format.h>

namespace headrace {
namespace {

// A schema as JSON has no end.
constexpr size_t kLongestShown = 200;

std::string Shown(const SourceDescription& description, const std::string& name) {
  const auto found = description.find(name);
  if (found == description.end()) return "not given";
  if (found->second.size() <= kLongestShown) return fmt::format("'{}'", found->second);
  return fmt::format("'{}...' ({} bytes)", std::string_view(found->second).substr(0, kLongestShown), found->second.size());
}

arrow::Status Differs(const SourceDescription& kept, const SourceDescription& given, const std::string& name) {
  return MakeError({.code = Code::kFailedPrecondition, .resource = name, .reason = "SOURCE_CHANGED"},
                   fmt::format("the source is not the one that was read so far: {} was {} and now is {}. Give the same again, or start "
                               "anew",
                               name, Shown(kept, name), Shown(given, name)));
}

}  // namespace

arrow::Status CheckSameSource(const SourceDescription& kept, const SourceDescription& given) {
  if (kept.empty()) return arrow::Status::OK();
  for (const auto& [name, value] : kept) {
    const auto now = given.find(name);
    if (now == given.end() || now->second != value) return Differs(kept, given, name);
  }
  for (const auto& [name, value] : given) {
    if (!kept.contains(name)) return Differs(kept, given, name);
  }
  return arrow::Status::OK();
}

}  // namespace headrace
