// Fault scripts of the local service: parsed, and asked what they have for a call.
#include "headrace/local/fault_rules.h"

#include "fuzz/fuzz_target.h"
#include "headrace/base/clock.h"
#include "headrace/local/faults.h"

namespace headrace::fuzz {

void FuzzOne(std::string_view bytes) {
  auto rules = local::ParseFaultRules(bytes);
  if (!rules.ok()) return;
  const size_t count = rules->size();
  ManualClock clock;
  local::FaultScript script(&clock);
  script.Replace(*std::move(rules));
  for (const char* method : {"CreateReadSession", "ReadRows", "SplitReadStream"}) {
    local::CallFaults faults =
        script.Begin({.method = method, .table = "p.d.t", .stream = 0, .offset = 0, .stream_name = "s", .stream_rows = "0-1000"});
    for (int64_t message = 0; message < 3; ++message) {
      (void)faults.AfterMessages(message);
      (void)faults.ForMessage(message, {message * 300, (message + 1) * 300});
    }
    (void)faults.AfterLast();
  }
  const auto counts = script.Counts();
  if (counts.size() != count || local::FaultCountsJson(counts).empty()) __builtin_trap();
}

std::vector<std::string> Seeds() {
  return {
      R"({"rules":[]})",
      R"({"rules":[{"method":"ReadRows","after_messages":2,"times":2,"action":{"status":{"code":"UNAVAILABLE","message":"m","retry_delay_ms":5}}}]})",
      R"({"rules":[{"method":"ReadRows","match":{"stream":0,"table":"p.d.t","offset":0},"call":"every","action":{"drop":true}}]})",
      R"({"rules":[{"method":"CreateReadSession","call":1,"action":{"delay_ms":10}},{"method":"ReadRows","action":{"throttle_bytes_per_second":1000}}]})",
      R"({"rules":[{"method":"ReadRows","every_rows":100,"seed":7,"actions":[{"drop":true},{"skip":true},{"duplicate":true}]}]})",
      R"({"rules":[{"method":"ReadRows","action":{"corrupt":{"at":-2,"bytes":2}}},{"method":"ReadRows","action":{"row_count_off_by":1}}]})",
  };
}

}  // namespace headrace::fuzz
