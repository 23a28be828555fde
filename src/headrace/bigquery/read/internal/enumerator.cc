#include "headrace/bigquery/read/internal/enumerator.h"

#include <set>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/base/short_name.h"
#include "headrace/bigquery/read/internal/columns.h"
#include "headrace/bigquery/read/internal/field_selection.h"
#include "headrace/bigquery/read/internal/session_schema.h"

namespace headrace::bigquery {
namespace {

constexpr int64_t kYear2255 = 9'000'000'000'000;  // ms; before a clock of nanoseconds ends

std::string FormatTime(int64_t ms) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(ms / 1000))); }

/// What decides which rows and values come; not in which form they are sent, which is the session's.
SourceDescription Describe(const SourceOptions& options, const TableName& table) {
  SourceDescription reads{{"table", table.ToString()}};
  if (!options.selected_fields.empty()) reads["selected_fields"] = fmt::format("{}", fmt::join(options.selected_fields, ","));
  if (!options.row_restriction.empty()) reads["row_restriction"] = options.row_restriction;
  if (options.snapshot_time.has_value()) reads["snapshot_time"] = FormatSnapshotTime(*options.snapshot_time);
  if (options.sample_percentage.has_value()) reads["sample_percentage"] = fmt::format("{}", *options.sample_percentage);
  if (options.timestamp_precision == TimestampPrecision::kMicros) reads["timestamp_precision"] = "micros";
  if (options.timestamp_precision == TimestampPrecision::kNanos) reads["timestamp_precision"] = "nanos";
  return reads;
}

}  // namespace

arrow::Result<std::unique_ptr<StreamEnumerator>> StreamEnumerator::Make(PoolMaker pool, std::shared_ptr<const SourceOptions> options,
                                                                        TableName table, const JobContext& context,
                                                                        std::optional<std::string_view> state) {
  std::unique_ptr<StreamEnumerator> enumerator(new StreamEnumerator(std::move(pool), std::move(options), std::move(table), context));
  if (context.metrics != nullptr) {
    // Registered by every source, so that 0 means "did not happen".
    for (const char* name : {"rowsRead", "bytesRead", "responses", "readRetries", "readSessionsCreated", "cutsRefused"})
      context.metrics->counter(name);
  }
  if (state.has_value()) {
    ARROW_ASSIGN_OR_RAISE(enumerator->state_, ParsePlanState(*state));
    if (enumerator->state_.planned) {
      ARROW_RETURN_NOT_OK(CheckSameSource(enumerator->state_.reads, Describe(*enumerator->options_, enumerator->table_)));
      ARROW_RETURN_NOT_OK(enumerator->SetSchema());
    }
  }
  return enumerator;
}

arrow::Status StreamEnumerator::SetSchema() {
  ARROW_ASSIGN_OR_RAISE(const auto wire, state_.schema_as_sent
                                             ? ReadSchemaBytes(state_.schema)
                                             : SessionSchema(state_.format, state_.schema, options_->timestamp_precision));
  ARROW_RETURN_NOT_OK(InvertColumns(state_.wire_columns).status());
  ARROW_ASSIGN_OR_RAISE(schema_, SelectFields(wire, state_.wire_columns));
  return arrow::Status::OK();
}

arrow::Status StreamEnumerator::Start() {
  if (state_.planned) {
    // A second session would be a second snapshot of the table. The client's clock does not decide: an expired session's reads fail by
    // themselves.
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(context_.clock->Now().time_since_epoch()).count();
    if (state_.session_expires_ms > 0 && now > state_.session_expires_ms) {
      context_.logger->Log(LogLevel::kWarning,
                           fmt::format("the read session {} of {} expired at {}; if its reads fail, start the read anew",
                                       ShortName(state_.session), table_.ToString(), FormatTime(state_.session_expires_ms)));
    }
    return arrow::Status::OK();
  }
  ARROW_ASSIGN_OR_RAISE(const auto pool, pool_());
  ARROW_ASSIGN_OR_RAISE(const Session session, CreateReadSession(pool, *options_, table_, context_, stop_.get_token()));
  if (context_.metrics != nullptr) context_.metrics->counter("readSessionsCreated")->Add();
  return Plan(session);
}

arrow::Status StreamEnumerator::CheckStreams(const Session& session) const {
  std::set<std::string_view> names;
  for (const std::string& name : session.streams) {
    if (name.empty() || !names.insert(name).second) {
      return MakeError(
          {.code = Code::kInternal, .service = "BigQuery Storage Read", .method = "CreateReadSession", .resource = session.name},
          fmt::format("the read session {} of {} names the stream \"{}\" twice or without a name: its rows would be doubled",
                      ShortName(session.name), table_.ToString(), ShortName(name)));
    }
  }
  if (session.streams.empty() && session.estimated_rows > 0) {
    context_.logger->Log(
        LogLevel::kWarning,
        fmt::format(
            "the read session {} of {} has no streams although the service estimates {} rows: the result is empty{}",
            ShortName(session.name), table_.ToString(), session.estimated_rows,
            options_->row_restriction.empty() ? "; compare it with the table" : ", which is right if no row meets row_restriction"));
  }
  return arrow::Status::OK();
}

arrow::Status StreamEnumerator::Plan(const Session& session) {
  ARROW_ASSIGN_OR_RAISE(const auto wire, SessionSchema(session.format, session.schema, options_->timestamp_precision));
  ARROW_ASSIGN_OR_RAISE(const auto selection, FieldSelection::Parse(options_->selected_fields));
  ARROW_ASSIGN_OR_RAISE(state_.wire_columns, selection.Columns(*wire));
  state_.session = session.name;
  state_.session_created_ms = session.created_ms;
  state_.session_expires_ms = session.expires_ms;
  state_.schema = session.schema;
  state_.format = session.format;
  state_.response_compression = options_->response_compression;
  state_.estimated_rows = session.estimated_rows;
  state_.estimated_bytes = session.estimated_bytes;
  state_.reads = Describe(*options_, table_);
  ARROW_RETURN_NOT_OK(SetSchema());
  StreamState stream{.session_created_ms = session.created_ms,
                     .session_expires_ms = session.expires_ms,
                     .format = session.format,
                     .response_compression = options_->response_compression};
  if (!IsIdentity(state_.wire_columns)) {
    ARROW_ASSIGN_OR_RAISE(stream.result_columns, InvertColumns(state_.wire_columns));
  }
  ARROW_RETURN_NOT_OK(CheckStreams(session));
  const double bytes = session.estimated_bytes < 0 || session.streams.empty()
                           ? -1
                           : static_cast<double>(session.estimated_bytes) / static_cast<double>(session.streams.size());
  for (const std::string& name : session.streams) {
    stream.stream = name;
    state_.queue.push_back({.id = name, .descriptor = SerializeStreamState(stream), .estimated_bytes = bytes});
  }
  state_.planned = true;
  return arrow::Status::OK();
}

arrow::Result<NextSplit> StreamEnumerator::Next() {
  if (!state_.planned) return NextSplit{.kind = NextSplit::Kind::kNoneNow};
  if (state_.queue.empty()) return NextSplit{.kind = NextSplit::Kind::kNoneEver};
  NextSplit next{.kind = NextSplit::Kind::kSplit, .split = state_.queue.front()};
  ARROW_ASSIGN_OR_RAISE(next.split.descriptor, WithSchema(next.split.descriptor));
  state_.queue.pop_front();
  return next;
}

arrow::Result<std::string> StreamEnumerator::WithSchema(const std::string& descriptor) const {
  if (state_.schema_as_sent) return descriptor;
  ARROW_ASSIGN_OR_RAISE(StreamState stream, ParseStreamState(descriptor));
  stream.wire_schema = state_.schema;
  return SerializeStreamState(stream);
}

std::string StreamEnumerator::WithoutSchema(std::string descriptor) const {
  auto stream = ParseStreamState(descriptor);
  if (!stream.ok() || stream->wire_schema != state_.schema) return descriptor;
  stream->wire_schema.clear();
  return SerializeStreamState(*stream);
}

void StreamEnumerator::AddSplitsBack(std::vector<Split> splits) {
  for (Split& split : splits) {
    split.descriptor = WithoutSchema(std::move(split.descriptor));
    state_.queue.push_back(std::move(split));
  }
}

std::map<std::string, std::string> StreamEnumerator::facts() const {
  if (!state_.planned) return {};
  std::map<std::string, std::string> facts{
      {"table", table_.ToString()}, {"read_session", state_.session}, {"source_format", std::string(SourceFormatName(state_.format))}};
  if (options_->snapshot_time.has_value()) {
    facts.emplace("snapshot_time", FormatSnapshotTime(*options_->snapshot_time));
  } else if (state_.session_created_ms > 0 && state_.session_created_ms < kYear2255) {
    // The service takes the table as it is when it makes the session, and does not say when that was.
    facts.emplace("snapshot_time", FormatSnapshotTime(SystemTime{std::chrono::milliseconds{state_.session_created_ms}}));
  }
  if (state_.session_expires_ms > 0) facts.emplace("read_session_expires", FormatTime(state_.session_expires_ms));
  return facts;
}

}  // namespace headrace::bigquery
