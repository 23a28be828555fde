#include "headrace/local/session_name.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <openssl/sha.h>

namespace headrace::local {
namespace {

constexpr char kVersion = 1;
constexpr size_t kChecksumBytes = 8;
constexpr std::string_view kStreams = "/streams/";
// A restriction has at most 1 MB, selected fields at most 10,000 names of 300 characters (quotas): nothing longer is a name of ours.
constexpr size_t kLongestState = size_t{8} << 20;
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string Encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  uint32_t bits = 0;
  int count = 0;
  for (char c : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    count += 8;
    while (count >= 6) {
      count -= 6;
      text.push_back(kDigits[(bits >> count) & 63]);
    }
  }
  if (count > 0) text.push_back(kDigits[(bits << (6 - count)) & 63]);
  return text;
}

std::optional<std::string> Decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>((bits >> count) & 0xFF));
    }
  }
  // One text for one state: the bits that are left must be zero.
  if (count >= 6 || (bits & ((1U << count) - 1)) != 0) return std::nullopt;
  return bytes;
}

// Over what stands before it, too: a state moved to another project, or a part moved to another session, is another name.
std::string Checksum(std::string_view before, std::string_view payload) {
  std::string input = fmt::format("{}\n", before);
  input.append(payload);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(input.data()), input.size(), digest.data());
  return {reinterpret_cast<const char*>(digest.data()), kChecksumBytes};
}

arrow::Status BadForm(std::string_view name) {
  constexpr size_t kShown = 200;
  return MakeError(
      {.code = Code::kInvalidArgument, .service = "local BigQuery Storage Read", .resource = std::string(name.substr(0, kShown))},
      fmt::format("request failed: \"{}\" is not a stream name (projects/P/locations/L/sessions/S/streams/N)", name.substr(0, kShown)));
}

arrow::Status NotFound(std::string_view name) {
  constexpr size_t kShown = 200;
  return MakeError({.code = Code::kNotFound, .service = "local BigQuery Storage Read", .resource = std::string(name.substr(0, kShown))},
                   fmt::format("Not found: Stream {} was not made by this service", name.substr(0, kShown)));
}

// A number that is not negative, as this service writes it: no sign, no leading zero.
std::optional<int64_t> Integer(std::string_view text) {
  int64_t value = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || fmt::format("{}", value) != text) return std::nullopt;
  return value;
}

// Takes what stands before `end` from the front of `rest`, and `end` itself.
std::string_view TakeBefore(char end, std::string_view* rest) {
  size_t at = rest->find(end);
  std::string_view taken = rest->substr(0, at);
  rest->remove_prefix(at == std::string_view::npos ? rest->size() : at + 1);
  return taken;
}

// What follows "streams/". False when no stream of the session has that name.
bool ParseStreamId(std::string_view id, StreamName* parsed) {
  size_t dot = id.find('.');
  auto index = Integer(id.substr(0, dot));
  if (!index || *index >= parsed->session.stream_count()) return false;
  parsed->index = *index;
  parsed->rows = StreamRows(parsed->session, *index);
  if (dot == std::string_view::npos) return true;

  std::string_view rest = id.substr(dot + 1);
  std::string_view part = TakeBefore('.', &rest);
  if (part != PartName(StreamPart::kPrimary) && part != PartName(StreamPart::kRemainder)) return false;
  parsed->part = part == PartName(StreamPart::kPrimary) ? StreamPart::kPrimary : StreamPart::kRemainder;
  auto begin = Integer(TakeBefore('-', &rest));
  auto end = Integer(TakeBefore('.', &rest));
  if (!begin || !end || *begin >= *end || *begin < parsed->rows.begin || *end > parsed->rows.end) return false;
  parsed->rows = {*begin, *end};
  // Written again, so that there is one text for one part.
  std::string name = FormatPartName(parsed->session_name, parsed->index, parsed->part, parsed->rows);
  return std::string_view(name).substr(parsed->session_name.size() + kStreams.size()) == id;
}

}  // namespace

std::string_view PartName(StreamPart part) {
  switch (part) {
    case StreamPart::kPrimary:
      return "primary";
    case StreamPart::kRemainder:
      return "remainder";
    case StreamPart::kOriginal:
      break;
  }
  return "original";
}

RowRange StreamRows(const SessionState& session, int64_t index) {
  int64_t count = session.stream_count();
  // rows * index / count, in steps that fit whatever a forged name says.
  auto before = [&](int64_t streams) { return session.table_rows() / count * streams + session.table_rows() % count * streams / count; };
  return {before(index), before(index + 1)};
}

std::string FormatSessionName(std::string_view project, const SessionState& session) {
  std::string payload(1, kVersion);
  payload += session.SerializeAsString();
  payload += Checksum(project, payload);
  return fmt::format("projects/{}/locations/local/sessions/{}", project, Encode(payload));
}

std::string FormatStreamName(std::string_view session_name, int64_t index) { return fmt::format("{}/streams/{}", session_name, index); }

std::string FormatPartName(std::string_view session_name, int64_t index, StreamPart part, RowRange rows) {
  std::string id = fmt::format("{}.{}.{}-{}", index, PartName(part), rows.begin, rows.end);
  return fmt::format("{}/streams/{}.{}", session_name, id, Encode(Checksum(session_name, id)));
}

arrow::Result<StreamName> ParseStreamName(std::string_view name) {
  constexpr std::array<std::string_view, 4> kLabels = {"projects", "locations", "sessions", "streams"};
  std::array<std::string_view, 4> parts;
  std::string_view rest = name;
  for (size_t i = 0; i < kLabels.size(); ++i) {
    if (!rest.starts_with(kLabels[i]) || rest.substr(kLabels[i].size(), 1) != "/") return BadForm(name);
    rest.remove_prefix(kLabels[i].size() + 1);
    size_t slash = rest.find('/');
    bool last = i + 1 == kLabels.size();
    if (last != (slash == std::string_view::npos)) return BadForm(name);
    parts[i] = rest.substr(0, slash);
    if (parts[i].empty()) return BadForm(name);
    if (!last) rest.remove_prefix(slash + 1);
  }
  if (parts[1] != "local" || parts[2].size() > kLongestState * 4 / 3) return NotFound(name);
  auto payload = Decode(parts[2]);
  if (!payload || payload->size() <= kChecksumBytes + 1 || (*payload)[0] != kVersion) return NotFound(name);
  std::string_view body = std::string_view(*payload).substr(0, payload->size() - kChecksumBytes);
  if (std::string_view(*payload).substr(body.size()) != Checksum(parts[0], body)) return NotFound(name);

  StreamName parsed;
  parsed.project = parts[0];
  body.remove_prefix(1);
  if (!parsed.session.ParseFromArray(body.data(), static_cast<int>(body.size()))) return NotFound(name);
  parsed.session_name = name.substr(0, name.size() - parts[3].size() - kStreams.size());
  if (parsed.session.table_rows() < 0 || !ParseStreamId(parts[3], &parsed)) return NotFound(name);
  return parsed;
}

}  // namespace headrace::local
