#include "headrace/base/fail_point.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/error.h"

namespace headrace {
namespace {

// Armed once, before any thread starts; read without a lock afterwards.
std::string armed_name;
std::atomic<int64_t> passes_left{0};
#ifdef HEADRACE_FAIL_POINTS
std::function<void(std::string_view)> pass_handler;
#endif

}  // namespace

#ifdef HEADRACE_FAIL_POINTS
void SetFailPointHandler(std::function<void(std::string_view)> handler) { pass_handler = std::move(handler); }

void FailPoint(std::string_view name) {
  if (pass_handler) pass_handler(name);
  if (armed_name.empty() || name != armed_name) return;
  if (passes_left.fetch_sub(1) == 1) kill(getpid(), SIGKILL);
}
#endif

arrow::Status ArmFailPoint(std::string_view spec) {
  if (!kFailPointsCompiled) return Unsupported("fail point", "this program was built without fail points (HEADRACE_BUILD_TESTS)");
  auto colon = spec.find(':');
  auto name = spec.substr(0, colon);
  int64_t pass = 1;
  if (colon != std::string_view::npos) {
    auto digits = spec.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pass);
    if (error != std::errc{} || end != digits.data() + digits.size() || pass < 1) {
      return InvalidOption("fail-point", fmt::format("fail point '{}': the pass after ':' must be a whole number from 1", spec));
    }
  }
  const auto is_one_of = [&](const auto& names) { return std::find(std::begin(names), std::end(names), name) != std::end(names); };
  if (!is_one_of(kFailPoints) && !is_one_of(kCutFailPoints) && !is_one_of(kLookFailPoints)) {
    return InvalidOption("fail-point", fmt::format("no fail point is named '{}'", name));
  }
  passes_left = pass;
  armed_name = std::string(name);
  return arrow::Status::OK();
}

}  // namespace headrace
