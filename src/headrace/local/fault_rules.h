// The rules of a fault script: which call breaks when and how. Values, and the parser of their JSON form (docs/local-service.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/local/altered_schema.h"
#include "headrace/local/row_message.h"
#include "headrace/local/session_name.h"

namespace headrace::local {

struct StatusFault {
  Code code = Code::kUnavailable;
  std::string message{};
  std::optional<int64_t> retry_delay_ms{};  // sent as google.rpc.RetryInfo
};
struct DropFault {};  // breaks the TCP connection of the call
struct DelayFault {
  int64_t milliseconds = 0;
};
struct ThrottleFault {  // the rest of the call; one budget for all calls that the rule fired for
  int64_t bytes_per_second = 0;
};
/// From now on every call for a stream of the session ends so.
struct ExpireFault {
  StatusFault status{};
};
/// From now on the call ends so once its client has not taken a message for so long.
struct IdleFault {
  int64_t milliseconds = 0;
  StatusFault status{};
};
// What happens to one message.
struct DuplicateFault {};
struct SkipFault {};
struct DamageFault {
  RowDamage damage{};
};
struct SchemaFault {
  SchemaChange change = SchemaChange::kName;
};
using FaultAction = std::variant<StatusFault, DropFault, DelayFault, ThrottleFault, ExpireFault, IdleFault, DuplicateFault, SkipFault,
                                 DamageFault, SchemaFault>;

/// It happens to the next message, so it needs one.
bool IsOfMessage(const FaultAction& action);

/// Faults at places that a seed chooses, about one every so many rows of a stream.
struct FaultPlaces {
  int64_t every_rows = 0;
  uint64_t seed = 0;
};

struct FaultRule {
  std::string method{};
  std::optional<int64_t> stream{};
  std::optional<StreamPart> part{};
  std::optional<std::string> table{};
  std::optional<int64_t> offset{};
  std::optional<int64_t> call{};              // the first matching call that fires, from 1; none = every
  std::optional<int64_t> times{};             // none = no bound
  std::optional<int64_t> after_messages = 0;  // none = when the call is carried out, before its status
  std::optional<FaultPlaces> places{};        // instead of call and after_messages
  std::vector<FaultAction> actions{};         // one; with places one of these each time
};

/// INVALID_ARGUMENT that names the rule and the key. Unknown keys are errors.
arrow::Result<std::vector<FaultRule>> ParseFaultRules(std::string_view json);

}  // namespace headrace::local
