#include "headrace/local/read_api.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "headrace/avro/table_schema.h"
#include "headrace/base/random.h"
#include "headrace/local/expired_sessions.h"
#include "headrace/local/row_message.h"

namespace headrace::local {
namespace {

namespace storage = google::cloud::bigquery::storage::v1;

constexpr const char* kServiceName = "local BigQuery Storage Read";
constexpr auto kSessionLife = std::chrono::hours(6);     // fact R7
constexpr int64_t kMostTimesOwn = 4;                     // fact R5: 138 -> 552
constexpr int64_t kMostStreams = 1000;                   // storage.proto: "a default system max limit of 1,000"
constexpr int64_t kBytesPerStream = int64_t{250} << 20;  // fact R11: a second stream comes between 195 and 264 MB
constexpr double kMiddle = 0.5;                          // where a stream is split whose fraction was not set
constexpr size_t kLongestTraceId = 256;                  // stream.proto: "Maximum length is 256 bytes"

arrow::Status Refuse(Code code, std::string resource, std::string message) {
  return MakeError({.code = code, .service = kServiceName, .resource = std::move(resource)}, std::move(message));
}

arrow::Status Bad(std::string resource, std::string message) {
  return Refuse(Code::kInvalidArgument, std::move(resource), std::move(message));
}

int64_t MicrosOf(SystemTime time) { return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count(); }
SystemTime TimeOfMicros(int64_t micros) { return SystemTime{std::chrono::microseconds(micros)}; }

arrow::Result<std::string> ProjectOf(const std::string& parent) {
  constexpr std::string_view kProjects = "projects/";
  std::string project = parent.starts_with(kProjects) ? parent.substr(kProjects.size()) : "";
  if (project.empty() || project.find('/') != std::string::npos) {
    return Bad("parent", fmt::format("request failed: parent \"{}\" is not of the form projects/PROJECT", parent));
  }
  return project;
}

arrow::Status CheckCounts(const storage::CreateReadSessionRequest& request) {
  int32_t most = request.max_stream_count();
  int32_t preferred = request.preferred_min_stream_count();
  if (most < 0 || preferred < 0) return Bad("max_stream_count", "request failed: stream counts must not be negative");
  if (most > 0 && preferred > most) {  // fact R6
    return Bad("preferred_min_stream_count",
               fmt::format("request failed: preferred_min_stream_count {} is larger than max_stream_count {}", preferred, most));
  }
  return arrow::Status::OK();
}

// The numbers of both formats' enums are the same.
int PicosOf(const storage::ReadSession& wanted) {
  const auto& read = wanted.read_options();
  if (wanted.data_format() == storage::AVRO) return static_cast<int>(read.avro_serialization_options().picos_timestamp_precision());
  return static_cast<int>(read.arrow_serialization_options().picos_timestamp_precision());
}

avro::PicosPrecision AvroPrecision(TimestampPrecision precision) {
  switch (precision) {
    case TimestampPrecision::kMicros:
      return avro::PicosPrecision::kMicros;
    case TimestampPrecision::kNanos:
      return avro::PicosPrecision::kNanos;
    case TimestampPrecision::kPicos:
      break;
  }
  return avro::PicosPrecision::kPicos;
}

}  // namespace

double OpenedStream::ProgressBefore(int64_t offset) const {
  return static_cast<double>(view->TableRowOf(range.begin + offset) - name.rows.begin) / static_cast<double>(name.rows.size());
}

double OpenedStream::ProgressAfter(int64_t offset) const {
  if (offset == range.size()) return 1;
  return static_cast<double>(view->TableRowOf(range.begin + offset - 1) + 1 - name.rows.begin) / static_cast<double>(name.rows.size());
}

ReadApi::ReadApi(TableStore* tables, ReadApiOptions options) : tables_(tables), options_(options), views_(options.cache_bytes) {}

arrow::Status ReadApi::CheckFormat(const storage::ReadSession& wanted) const {
  const auto& read = wanted.read_options();
  bool avro = wanted.data_format() == storage::AVRO;
  if (!avro && wanted.data_format() != storage::ARROW) return Bad("data_format", "request failed: data_format must be ARROW or AVRO");
  if (avro && read.has_arrow_serialization_options()) {
    return Bad("arrow_serialization_options", "request failed: Arrow serialization options need the ARROW data format");
  }
  if (!avro && read.has_avro_serialization_options()) {
    return Bad("avro_serialization_options", "request failed: Avro serialization options need the AVRO data format");
  }
  auto codec = read.arrow_serialization_options().buffer_compression();
  if (!storage::ArrowSerializationOptions::CompressionCodec_IsValid(codec)) {
    return Bad("buffer_compression", fmt::format("request failed: unknown buffer compression {}", static_cast<int>(codec)));
  }
  auto whole = read.response_compression_codec();
  if (!storage::ReadSession::TableReadOptions::ResponseCompressionCodec_IsValid(whole)) {
    return Bad("response_compression_codec", fmt::format("request failed: unknown response compression {}", static_cast<int>(whole)));
  }
  // stream.proto: "setting both native Arrow compression and application-level response compression will not be allowed"
  if (whole != 0 && codec != storage::ArrowSerializationOptions::COMPRESSION_UNSPECIFIED) {
    return Bad("response_compression_codec", "request failed: buffer compression and response compression cannot be set both");
  }
  int precision = PicosOf(wanted);
  if (!storage::ArrowSerializationOptions::PicosTimestampPrecision_IsValid(precision)) {
    return Bad("picos_timestamp_precision", fmt::format("request failed: unknown timestamp precision {}", precision));
  }
  if (wanted.trace_id().size() > kLongestTraceId) return Bad("trace_id", "request failed: trace_id is longer than 256 bytes");
  if (!read.has_sample_percentage() || (read.sample_percentage() >= 0 && read.sample_percentage() <= 100)) return arrow::Status::OK();
  return Bad("sample_percentage", "request failed: sample_percentage must be from 0 to 100");
}

arrow::Result<std::shared_ptr<const StoredTable>> ReadApi::FindTable(const storage::ReadSession& wanted, const TableName& name) const {
  if (tables_->IsView(name)) {  // fact R14
    return Bad(name.Dotted(), "request failed: non-table entities cannot be read with the storage API");
  }
  auto table = tables_->Find(name);
  if (table == nullptr) return Refuse(Code::kNotFound, name.Dotted(), fmt::format("Not found: Table {}", name.Legacy()));
  if (!wanted.table_modifiers().has_snapshot_time()) return table;
  const auto& stamp = wanted.table_modifiers().snapshot_time();
  constexpr int64_t kYear9999 = 253402300799;  // the last second of a google.protobuf.Timestamp
  if (stamp.seconds() < 0 || stamp.seconds() > kYear9999 || stamp.nanos() < 0 || stamp.nanos() > 999'999'999) {
    return Bad("snapshot_time", "request failed: invalid snapshot_time");
  }
  auto at = std::chrono::seconds(stamp.seconds());
  auto now = options_.clock->Now().time_since_epoch();
  if (at + kTimeTravel < now) {
    return Bad("snapshot_time", "request failed: time travel timestamp exceeds the maximum time travel duration of 168h");
  }
  if (at > now) return Bad("snapshot_time", "request failed: snapshot_time is in the future");
  return tables_->FindAt(name, TimeOfMicros(stamp.seconds() * 1'000'000 + stamp.nanos() / 1000));
}

int64_t ReadApi::StreamCount(const storage::CreateReadSessionRequest& request, const ReadView& view) const {
  // Before the restriction, like the cut into streams.
  int64_t rows = view.scanned_rows();
  if (rows == 0) return options_.empty_table_streams;
  int64_t most = request.max_stream_count();
  int64_t preferred = request.preferred_min_stream_count();
  int64_t own = view.scanned_bytes() / kBytesPerStream + 1;
  int64_t wanted = std::max(own, preferred);
  if (options_.streams_as_asked) {
    if (most > 0) wanted = most;
  } else {
    // Facts R4, R5 and R11: a small table has one stream whatever is asked for, a larger one up to four times its own number.
    wanted = own == 1 ? 1 : std::min(wanted, own * kMostTimesOwn);
    if (most > 0) wanted = std::min(wanted, most);
  }
  return std::min({wanted, rows, kMostStreams});
}

arrow::Result<std::shared_ptr<const avro::Schema>> ReadApi::AvroSchemaOf(const SessionState& state, const ReadView& view) {
  if (state.data_format() != storage::AVRO) return nullptr;
  avro::AvroSchemaOptions options{
      .dialect = avro::Dialect::kStorageRead, .picos = AvroPrecision(PrecisionOf(state)), .display_names = state.avro_display_names()};
  auto text = avro::ToAvroSchema(view.columns(), options);
  if (!text.ok()) return Bad("data_format", "request failed: " + text.status().message());
  return avro::Schema::Parse(*text);
}

arrow::Result<storage::ReadSession> ReadApi::CreateReadSession(const storage::CreateReadSessionRequest& request) {
  const storage::ReadSession& wanted = request.read_session();
  ARROW_ASSIGN_OR_RAISE(std::string project, ProjectOf(request.parent()));
  ARROW_ASSIGN_OR_RAISE(TableName name, ParseResourceTableName(wanted.table()));
  ARROW_RETURN_NOT_OK(CheckCounts(request));
  ARROW_RETURN_NOT_OK(CheckFormat(wanted));
  ARROW_ASSIGN_OR_RAISE(auto table, FindTable(wanted, name));

  const auto& read = wanted.read_options();
  SessionState state;
  state.set_table(name.Dotted());
  for (const std::string& field : read.selected_fields()) state.add_selected_fields(field);
  state.set_row_restriction(read.row_restriction());
  state.set_compression(read.arrow_serialization_options().buffer_compression());
  state.set_creation_micros(MicrosOf(options_.clock->Now()));
  state.set_sample_percentage(read.has_sample_percentage() ? read.sample_percentage() : 100);
  state.set_sample_seed(options_.seed);
  state.set_table_rows(table->rows.rows);
  state.set_schema_checksum(table->schema_checksum);
  state.set_content_checksum(table->content_checksum);
  state.set_nonce(SystemRandom()->Next());
  if (wanted.data_format() == storage::AVRO) state.set_data_format(storage::AVRO);
  state.set_response_compression(read.response_compression_codec());
  state.set_picos_precision(PicosOf(wanted));
  state.set_avro_display_names(read.avro_serialization_options().enable_display_name_attribute());
  ARROW_ASSIGN_OR_RAISE(auto view, views_.Get(table, state));
  ARROW_ASSIGN_OR_RAISE(auto avro_schema, AvroSchemaOf(state, *view));
  state.set_stream_count(static_cast<int32_t>(StreamCount(request, *view)));

  storage::ReadSession session = wanted;
  session.set_name(FormatSessionName(project, state));
  int64_t expiry = MicrosOf(TimeOfMicros(state.creation_micros()) + kSessionLife);
  session.mutable_expire_time()->set_seconds(expiry / 1'000'000);
  session.mutable_expire_time()->set_nanos(static_cast<int32_t>(expiry % 1'000'000 * 1000));
  if (avro_schema != nullptr) {
    session.mutable_avro_schema()->set_schema(avro_schema->ToJson());
  } else {
    ARROW_ASSIGN_OR_RAISE(*session.mutable_arrow_schema()->mutable_serialized_schema(), SerializeSchema(*view->rows().schema));
  }
  for (int64_t i = 0; i < state.stream_count(); ++i) session.add_streams()->set_name(FormatStreamName(session.name(), i));
  session.set_estimated_row_count(view->scanned_rows());
  session.set_estimated_total_bytes_scanned(view->scanned_bytes());
  session.set_estimated_total_physical_file_size(0);  // stream.proto: "only set for BigLake tables"
  return session;
}

arrow::Result<std::shared_ptr<const StoredTable>> ReadApi::TableOf(const SessionState& state) const {
  if (options_.clock->Now() > TimeOfMicros(state.creation_micros()) + kSessionLife) {
    return MakeError({.code = Code::kFailedPrecondition, .service = kServiceName, .resource = state.table(), .reason = "SESSION_EXPIRED"},
                     kSessionExpired);
  }
  ARROW_ASSIGN_OR_RAISE(TableName table_name, ParseDottedTableName(state.table()));
  // A table that was changed or deleted since is read as it was.
  auto table = tables_->FindVersion(table_name, state.schema_checksum(), state.content_checksum(), state.table_rows());
  if (table == nullptr) {
    ARROW_RETURN_NOT_OK(FindTable({}, table_name).status());
    return Refuse(Code::kFailedPrecondition, state.table(),
                  fmt::format("Table {} was loaded again with other content since the session was created. Create a new session.",
                              table_name.Legacy()));
  }
  return table;
}

arrow::Result<OpenedStream> ReadApi::Open(const StreamName& name, int64_t offset) {
  const SessionState& state = name.session;
  ARROW_ASSIGN_OR_RAISE(auto table, TableOf(state));
  OpenedStream opened;
  opened.name = name;
  opened.table = state.table();
  ARROW_ASSIGN_OR_RAISE(opened.view, views_.Get(table, state));
  ARROW_ASSIGN_OR_RAISE(opened.avro_schema, AvroSchemaOf(state, *opened.view));
  opened.range = opened.view->RowsIn(name.rows);
  bool child = name.part != StreamPart::kOriginal;
  if (options_.ignore_offsets == IgnoredOffsets::kAll || (child && options_.ignore_offsets == IgnoredOffsets::kChildren)) return opened;
  opened.offset = offset;
  int64_t rows = opened.range.size();
  if (offset < 0) return Bad("offset", fmt::format("request failed: offset {} is negative", offset));
  if (offset > rows) {  // fact R2
    return Refuse(Code::kFailedPrecondition, state.table(),
                  fmt::format("request failed: offset {} has not been allocated yet; the stream has {} rows", offset, rows));
  }
  return opened;
}

arrow::Result<std::optional<SplitStream>> ReadApi::Split(const StreamName& name, double fraction) const {
  // storage.proto: "A value in the range (0.0, 1.0)". 0 is what a client sends that sets none; false for NaN, too.
  if (!(fraction >= 0 && fraction < 1)) {
    return Bad("fraction", fmt::format("request failed: fraction {} is not between 0 and 1", fraction));
  }
  ARROW_RETURN_NOT_OK(TableOf(name.session).status());
  // storage.proto: "The actual split point is evaluated on pre-filtered rows".
  double share = fraction == 0 ? kMiddle : fraction;
  int64_t cut = name.rows.begin + static_cast<int64_t>(share * static_cast<double>(name.rows.size()));
  if (cut <= name.rows.begin || cut >= name.rows.end) return std::nullopt;
  return SplitStream{.primary = FormatPartName(name.session_name, name.index, StreamPart::kPrimary, {name.rows.begin, cut}),
                     .remainder = FormatPartName(name.session_name, name.index, StreamPart::kRemainder, {cut, name.rows.end})};
}

}  // namespace headrace::local
