// The names of read sessions and streams, which carry the whole state of a session. Free functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/local/session.pb.h"

namespace headrace::local {

struct StreamName {
  std::string project{};
  SessionState session{};
  int64_t index = 0;
};

/// projects/PROJECT/locations/local/sessions/STATE
std::string FormatSessionName(std::string_view project, const SessionState& session);
std::string FormatStreamName(std::string_view session_name, int64_t index);

/// INVALID_ARGUMENT when it has not the form of a stream name, NOT_FOUND when the form is right but no session of this service has that
/// name: another location, a changed byte, a stream index beyond the session's.
arrow::Result<StreamName> ParseStreamName(std::string_view name);

}  // namespace headrace::local
