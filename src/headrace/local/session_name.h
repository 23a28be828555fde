// The names of read sessions and streams, which carry the whole state of a session. Free functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/local/row_range.h"
#include "headrace/local/session.pb.h"

namespace headrace::local {

/// A stream that its session was made with, or the first or second part of one that was split.
enum class StreamPart { kOriginal, kPrimary, kRemainder };

struct StreamName {
  std::string project{};
  std::string session_name{};
  SessionState session{};
  int64_t index = 0;  // among the session's streams; parts have that of the stream they are of
  StreamPart part = StreamPart::kOriginal;
  RowRange rows{};  // of the table, before restriction and sample
};

/// projects/PROJECT/locations/local/sessions/STATE
std::string FormatSessionName(std::string_view project, const SessionState& session);
std::string FormatStreamName(std::string_view session_name, int64_t index);
/// SESSION/streams/INDEX.PART.BEGIN-END.CHECKSUM, where PART is not kOriginal.
std::string FormatPartName(std::string_view session_name, int64_t index, StreamPart part, RowRange rows);
/// "original", "primary", "remainder".
std::string_view PartName(StreamPart part);
/// The table's rows are cut evenly into the session's streams.
RowRange StreamRows(const SessionState& session, int64_t index);

/// INVALID_ARGUMENT when it has not the form of a stream name, NOT_FOUND when the form is right but no session of this service has that
/// name: another location, a changed byte, a stream index beyond the session's, rows that are no part of the stream's.
arrow::Result<StreamName> ParseStreamName(std::string_view name);

}  // namespace headrace::local
