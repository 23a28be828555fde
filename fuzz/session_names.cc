// Names of read streams, which carry the state of their session. The checksum would stop every mutation at the door, so an input is a
// state, as the rest after the first line, and what follows "streams/", as that line; one that begins as a name is taken as a whole name.
#include <algorithm>

#include "fuzz/fuzz_target.h"
#include "headrace/local/session_name.h"

namespace headrace::fuzz {
namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void UseName(std::string_view name) {
  const auto parsed = local::ParseStreamName(name);
  if (!parsed.ok()) return;
  const auto whole = local::StreamRows(parsed->session, parsed->index);
  Require(whole.begin >= 0 && whole.begin <= parsed->rows.begin && parsed->rows.begin <= parsed->rows.end &&
          parsed->rows.end <= whole.end && whole.end <= parsed->session.table_rows());
  // There is one text for one stream.
  const std::string again = parsed->part == local::StreamPart::kOriginal
                                ? local::FormatStreamName(parsed->session_name, parsed->index)
                                : local::FormatPartName(parsed->session_name, parsed->index, parsed->part, parsed->rows);
  Require(again == name);
}

local::SessionState State() {
  local::SessionState state;
  state.set_table("p.d.t");
  state.add_selected_fields("a.b");
  state.set_row_restriction("n > 1");
  state.set_stream_count(4);
  state.set_sample_percentage(50);
  state.set_table_rows(1'000);
  state.set_nonce(7);
  return state;
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  UseName(bytes);
  const size_t line = std::min(bytes.find('\n'), bytes.size());
  local::SessionState state;
  const std::string_view rest = bytes.substr(std::min(line + 1, bytes.size()));
  if (!state.ParseFromArray(rest.data(), static_cast<int>(rest.size()))) return;
  const std::string session = local::FormatSessionName("p", state);
  UseName(session + "/streams/" + std::string(bytes.substr(0, line)));
  // The checksum of a part is out of reach as well.
  const auto count = static_cast<int64_t>(state.stream_count());
  if (count < 1 || state.table_rows() < 1) return;
  for (const int64_t index : {int64_t{0}, count - 1}) {
    const auto rows = local::StreamRows(state, index);
    UseName(local::FormatPartName(session, index, local::StreamPart::kPrimary, rows));
    UseName(local::FormatPartName(session, index, local::StreamPart::kRemainder, {rows.begin, rows.begin + (rows.end - rows.begin) / 2}));
  }
}

std::vector<std::string> Seeds() {
  const std::string session = local::FormatSessionName("p", State());
  const std::string part = local::FormatPartName(session, 1, local::StreamPart::kRemainder, {300, 400});
  return {local::FormatStreamName(session, 3), part, "0\n" + State().SerializeAsString(),
          part.substr(session.size() + std::string_view("/streams/").size()) + "\n" + State().SerializeAsString()};
}

}  // namespace headrace::fuzz
