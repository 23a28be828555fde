#include "headrace/bigquery/read/internal/state.h"

#include <limits>

#include <fmt/format.h>

#include "headrace/bigquery/state.pb.h"
#include "headrace/runtime/split_state.h"

namespace headrace::bigquery {
namespace {

constexpr uint32_t kVersion = 2;
constexpr uint32_t kFirstVersion = 1;  // no format, no wire schema
// A schema of 10,000 columns takes about a megabyte, ten thousand splits about ten.
constexpr size_t kLongestState = size_t{256} << 20;

arrow::Status Corrupt(std::string_view what, std::string_view why) {
  return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read", .reason = "CORRUPT_STATE"},
                   fmt::format("the persisted {} is corrupt: {}", what, why));
}

template <typename Message>
arrow::Result<Message> Parse(std::string_view what, std::string_view bytes) {
  Message message;
  if (bytes.size() > kLongestState || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Corrupt(what, "it cannot be parsed");
  if (message.version() < kFirstVersion || message.version() > kVersion) {
    return MakeError({.code = Code::kUnimplemented, .service = "BigQuery Storage Read", .reason = "STATE_VERSION"},
                     fmt::format("the persisted {} has version {}; this program reads versions {} and {}", what, message.version(),
                                 kFirstVersion, kVersion));
  }
  return message;
}

uint32_t FormatNumber(SourceFormat format) { return format == SourceFormat::kAvro ? 1 : 0; }
uint32_t CompressionNumber(ResponseCompression compression) { return compression == ResponseCompression::kLz4 ? 1 : 0; }

/// Of either message.
template <typename Message>
arrow::Status ReadForm(std::string_view what, const Message& message, SourceFormat* format, ResponseCompression* compression) {
  if (message.format() > 1) return Corrupt(what, fmt::format("it names the unknown format {}", message.format()));
  if (message.response_compression() > 1) return Corrupt(what, "it names an unknown compression");
  *format = message.format() == 1 ? SourceFormat::kAvro : SourceFormat::kArrow;
  *compression = message.response_compression() == 1 ? ResponseCompression::kLz4 : ResponseCompression::kNone;
  return arrow::Status::OK();
}

}  // namespace

std::string SerializeStreamState(const StreamState& state) {
  StreamDescriptor message;
  message.set_version(kVersion);
  message.set_stream(state.stream);
  message.set_session_created_ms(state.session_created_ms);
  message.set_session_expires_ms(state.session_expires_ms);
  message.mutable_result_columns()->Assign(state.result_columns.begin(), state.result_columns.end());
  message.set_format(FormatNumber(state.format));
  message.set_response_compression(CompressionNumber(state.response_compression));
  message.set_wire_schema(state.wire_schema);
  message.set_cut_rows(state.cut_rows);
  message.set_cut_fraction(state.cut_fraction);
  return message.SerializeAsString();
}

arrow::Result<StreamState> ParseStreamState(std::string_view bytes) {
  constexpr std::string_view kWhat = "descriptor of a BigQuery read stream";
  ARROW_ASSIGN_OR_RAISE(const auto message, Parse<StreamDescriptor>(kWhat, bytes));
  if (message.stream().empty()) return Corrupt(kWhat, "it names no stream");
  if (message.session_created_ms() < 0 || message.session_expires_ms() < 0) return Corrupt(kWhat, "a time is negative");
  if (message.cut_rows() < 0 || !(message.cut_fraction() >= 0 && message.cut_fraction() <= 1))
    return Corrupt(kWhat, "the place where it was cut is none");
  StreamState state{.stream = message.stream(),
                    .session_created_ms = message.session_created_ms(),
                    .session_expires_ms = message.session_expires_ms(),
                    .result_columns = {message.result_columns().begin(), message.result_columns().end()},
                    .wire_schema = message.wire_schema(),
                    .cut_rows = message.cut_rows(),
                    .cut_fraction = message.cut_fraction()};
  ARROW_RETURN_NOT_OK(ReadForm(kWhat, message, &state.format, &state.response_compression));
  return state;
}

std::string SerializePlanState(const PlanState& state) {
  EnumeratorState message;
  message.set_version(kVersion);
  message.set_planned(state.planned);
  message.set_session(state.session);
  message.set_session_created_ms(state.session_created_ms);
  message.set_session_expires_ms(state.session_expires_ms);
  message.set_schema(state.schema);
  message.mutable_wire_columns()->Assign(state.wire_columns.begin(), state.wire_columns.end());
  message.set_estimated_rows(state.estimated_rows);
  message.set_estimated_bytes(state.estimated_bytes);
  message.set_format(FormatNumber(state.format));
  message.set_response_compression(CompressionNumber(state.response_compression));
  message.set_schema_as_sent(state.schema_as_sent);
  WriteDescription(state.reads, &message);
  for (const Split& split : state.queue) WriteSplit(split, message.add_queue());
  return message.SerializeAsString();
}

arrow::Result<PlanState> ParsePlanState(std::string_view bytes) {
  constexpr std::string_view kWhat = "state of a BigQuery plan";
  ARROW_ASSIGN_OR_RAISE(const auto message, Parse<EnumeratorState>(kWhat, bytes));
  if (message.planned() && message.session().empty()) return Corrupt(kWhat, "it is planned but names no session");
  if (message.planned() && message.schema().empty()) return Corrupt(kWhat, "it is planned but has no schema");
  if (!message.planned() && message.queue_size() > 0) return Corrupt(kWhat, "it is not planned but has splits");
  if (message.session_created_ms() < 0 || message.session_expires_ms() < 0) return Corrupt(kWhat, "a time is negative");
  PlanState state{.planned = message.planned(),
                  .session = message.session(),
                  .session_created_ms = message.session_created_ms(),
                  .session_expires_ms = message.session_expires_ms(),
                  .schema = message.schema(),
                  .wire_columns = {message.wire_columns().begin(), message.wire_columns().end()},
                  .estimated_rows = message.estimated_rows(),
                  .estimated_bytes = message.estimated_bytes(),
                  .schema_as_sent = message.planned() && (message.version() == kFirstVersion || message.schema_as_sent()),
                  .reads = ReadDescription(message)};
  ARROW_RETURN_NOT_OK(ReadForm(kWhat, message, &state.format, &state.response_compression));
  if (state.schema_as_sent && state.format == SourceFormat::kAvro) return Corrupt(kWhat, "Avro's types are never handed out as sent");
  for (const auto& pending : message.queue()) state.queue.push_back(ReadSplit(pending));
  return state;
}

}  // namespace headrace::bigquery
