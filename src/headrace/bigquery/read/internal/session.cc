#include "headrace/bigquery/read/internal/session.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <google/cloud/bigquery/storage/v1/storage.pb.h>

#include "headrace/bigquery/read/internal/field_selection.h"
#include "headrace/bigquery/read/internal/session_schema.h"
#include "headrace/rpc/byte_stream.h"
#include "headrace/types/utf8.h"

namespace headrace::bigquery {
namespace {

namespace api = google::cloud::bigquery::storage::v1;

constexpr char kMethod[] = "/google.cloud.bigquery.storage.v1.BigQueryRead/CreateReadSession";
constexpr char kService[] = "BigQuery Storage Read";
constexpr Duration kBudget = std::chrono::minutes{10};  // the Storage Read client's total time of CreateReadSession
// Of connect_limit where it is left to gRPC, whose attempts to connect take as long (GRPC_ARG_MIN_RECONNECT_BACKOFF_MS).
constexpr std::chrono::milliseconds kConnectLimit{20'000};
// To a service that has never answered at least: one connection alone may get lost, and may take all of connect_limit to say so.
constexpr int kLeastAttempts = 3;
constexpr Duration kProbeLimit = std::chrono::seconds{30};  // of the call that only improves the text of an error

int64_t MillisSinceEpoch(SystemTime time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count(); }

constexpr std::string_view NameOf(SourceFormat format) { return format == SourceFormat::kArrow ? "Arrow" : "Avro"; }
constexpr SourceFormat Other(SourceFormat format) { return format == SourceFormat::kArrow ? SourceFormat::kAvro : SourceFormat::kArrow; }

/// AvroSerializationOptions and ArrowSerializationOptions number the precisions alike.
int PrecisionNumber(TimestampPrecision precision) {
  using Avro = api::AvroSerializationOptions;
  using Arrow = api::ArrowSerializationOptions;
  static_assert(static_cast<int>(Avro::TIMESTAMP_PRECISION_PICOS) == static_cast<int>(Arrow::TIMESTAMP_PRECISION_PICOS));
  switch (precision) {
    case TimestampPrecision::kMicros:
      return Avro::TIMESTAMP_PRECISION_MICROS;
    case TimestampPrecision::kNanos:
      return Avro::TIMESTAMP_PRECISION_NANOS;
    case TimestampPrecision::kPicos:
      break;
  }
  return Avro::TIMESTAMP_PRECISION_PICOS;
}

void SetFormat(const SourceOptions& options, SourceFormat format, api::ReadSession* session) {
  // The precision is always sent: without it the service would cut TIMESTAMPs with picoseconds to microseconds.
  auto* read = session->mutable_read_options();
  const int precision = PrecisionNumber(options.timestamp_precision);
  if (format == SourceFormat::kAvro) {
    session->set_data_format(api::AVRO);
    auto* avro = read->mutable_avro_serialization_options();
    avro->set_picos_timestamp_precision(static_cast<api::AvroSerializationOptions::PicosTimestampPrecision>(precision));
    // Else the service refuses tables with column names that Avro has not (avro.proto).
    avro->set_enable_display_name_attribute(true);
  } else {
    session->set_data_format(api::ARROW);
    auto* arrow = read->mutable_arrow_serialization_options();
    arrow->set_picos_timestamp_precision(static_cast<api::ArrowSerializationOptions::PicosTimestampPrecision>(precision));
    if (options.compression == Compression::kLz4) arrow->set_buffer_compression(api::ArrowSerializationOptions::LZ4_FRAME);
    if (options.compression == Compression::kZstd) arrow->set_buffer_compression(api::ArrowSerializationOptions::ZSTD);
  }
  if (options.response_compression == ResponseCompression::kLz4)
    read->set_response_compression_codec(api::ReadSession::TableReadOptions::RESPONSE_COMPRESSION_CODEC_LZ4);
}

void SetReadOptions(const SourceOptions& options, api::ReadSession* session) {
  if (options.snapshot_time.has_value()) {
    const auto since = options.snapshot_time->time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    auto* snapshot = session->mutable_table_modifiers()->mutable_snapshot_time();
    snapshot->set_seconds(seconds.count());
    snapshot->set_nanos(static_cast<int32_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds).count()));
  }
  // The options were checked: an error leaves nothing selected, which the check of the session's columns would notice.
  const auto selection = FieldSelection::Parse(options.selected_fields).ValueOr(FieldSelection());
  for (const std::string& path : selection.Paths()) session->mutable_read_options()->add_selected_fields(path);
  if (!options.row_restriction.empty()) session->mutable_read_options()->set_row_restriction(options.row_restriction);
  if (options.sample_percentage.has_value()) session->mutable_read_options()->set_sample_percentage(*options.sample_percentage);
}

arrow::Result<Session> ParseSession(const std::string& bytes, const TableName& table, SourceFormat format, SystemTime now) {
  const ErrorInfo broken{.code = Code::kInternal, .service = kService, .method = "CreateReadSession", .resource = table.ToString()};
  api::ReadSession answer;
  if (!answer.ParseFromString(bytes)) return MakeError(broken, "the answer to CreateReadSession cannot be parsed");
  if (format == SourceFormat::kArrow ? !answer.has_arrow_schema() : !answer.has_avro_schema()) {
    const bool other = answer.has_avro_schema() || answer.has_arrow_schema();
    return MakeError(broken, fmt::format("the session of {} was asked for in {}, but the service gave it {}", table.ToString(),
                                         NameOf(format), other ? fmt::format("a schema of {}", NameOf(Other(format))) : "no schema"));
  }
  Session session{.name = answer.name(),
                  .created_ms = MillisSinceEpoch(now),
                  .format = format,
                  .schema = format == SourceFormat::kArrow ? answer.arrow_schema().serialized_schema() : answer.avro_schema().schema(),
                  .estimated_rows = answer.estimated_row_count(),
                  .estimated_bytes = answer.estimated_total_bytes_scanned()};
  if (answer.has_expire_time()) session.expires_ms = answer.expire_time().seconds() * 1000 + answer.expire_time().nanos() / 1'000'000;
  for (const auto& stream : answer.streams()) session.streams.push_back(stream.name());
  return session;
}

bool HoldsIgnoringCase(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

bool IsWordAt(std::string_view text, size_t at, size_t size) {
  const auto letter = [&](size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
  };
  return !(at > 0 && letter(at - 1)) && !letter(at + size);
}

/// `word` (in lower case) as a whole word, whatever its case in `text`.
bool HoldsWord(std::string_view text, std::string_view word) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
    if (IsWordAt(lower, at, word.size())) return true;
  }
  return false;
}

/// Creates a session, in one format after the other if need be.
class SessionMaker {
 public:
  SessionMaker(const std::shared_ptr<rpc::ChannelPool>& pool, const SourceOptions& options, const TableName& table,
               const JobContext& context, const std::stop_token& stop)
      : pool_(pool),
        options_(options),
        table_(table),
        context_(context),
        stop_(stop),
        until_(context.clock->Monotonic() + kBudget),
        reach_until_(context.clock->Monotonic() + ConnectLimit()) {}

  arrow::Result<Session> Make() {
    const SourceFormat first = options_.source_format;
    auto session = MakeIn(first);
    if (session.ok() || !refusal_.has_value() || !RefusesFormat(*refusal_, first)) return session;
    const SourceFormat second = Other(first);
    context_.logger->Log(LogLevel::kWarning,
                         fmt::format("the service does not give the rows of {} in {} ({}: {}); they are read in {}{}", table_.ToString(),
                                     NameOf(first), CodeName(refusal_->code), refusal_->message, NameOf(second),
                                     options_.compression == Compression::kNone ? "" : ", without compression, which is of Arrow only"));
    auto other = MakeIn(second);
    if (other.ok() || stop_.stop_requested()) return other;
    return WithContext(session.status(), fmt::format("neither format can be read; in {}: {}; in {}", NameOf(second),
                                                     other.status().message(), NameOf(first)));
  }

 private:
  arrow::Result<Session> MakeIn(SourceFormat format) {
    refusal_.reset();
    const std::string request = BuildCreateReadSession(options_, table_, format, context_.job_name);
    rpc::RetryState retry(options_.retry_max_attempts.value_or(0), context_.random);
    while (true) {
      auto answer = Call(request, until_ - context_.clock->Monotonic());
      if (stop_.stop_requested()) return arrow::Status::Cancelled("stopped while creating the read session");
      if (const auto* bytes = std::get_if<std::string>(&answer)) return ParseSession(*bytes, table_, format, context_.clock->Now());
      const auto& failure = std::get<rpc::RpcFailure>(answer);
      reached_ = reached_ || !failure.unreached;
      const rpc::FaultKind kind = rpc::ClassifyCreateReadSession(failure);
      const auto wait = retry.Next(kind, failure);
      if (!wait.has_value() && kind == rpc::FaultKind::kPermanent) {
        refusal_ = failure;
        return Explain(failure, format);
      }
      const bool late = !wait.has_value() || (retry.failures() >= kLeastAttempts && context_.clock->Monotonic() + *wait >= reach_until_);
      if (!reached_ && late) return Unreachable(failure, retry.failures());
      if (!wait.has_value()) {
        return WithContext(SessionError(failure, table_, BillingProject(options_, table_)),
                           fmt::format("no read session after {} attempts (retry_max_attempts)", retry.failures()));
      }
      if (context_.clock->Monotonic() + *wait >= until_) {
        return WithContext(SessionError(failure, table_, BillingProject(options_, table_)), "no read session within 10 minutes");
      }
      context_.logger->Log(LogLevel::kWarning,
                           fmt::format("CreateReadSession for {} at {} failed ({}: {}); attempt {} follows in {} ms", table_.ToString(),
                                       pool_->options().endpoint.target(), CodeName(failure.code), failure.message, retry.failures() + 1,
                                       std::chrono::duration_cast<std::chrono::milliseconds>(*wait).count()));
      if (!context_.clock->SleepFor(*wait, stop_)) return arrow::Status::Cancelled("stopped while creating the read session");
    }
  }

  std::chrono::milliseconds ConnectLimit() const { return options_.connect_limit.count() > 0 ? options_.connect_limit : kConnectLimit; }

  /// Where nobody has ever answered, the address is wrong as likely as the service is down: that is said soon (docs/decisions/0023).
  arrow::Status Unreachable(const rpc::RpcFailure& failure, int attempts) const {
    const rpc::Endpoint& endpoint = pool_->options().endpoint;
    const bool token = failure.token != rpc::TokenFault::kNone;
    const std::string who = token                       ? "the token server"
                            : endpoint.given_by.empty() ? endpoint.target()
                                                        : fmt::format("{} ({})", endpoint.target(), endpoint.given_by);
    const int64_t ms = ConnectLimit().count();
    std::string text = fmt::format(
        "the read session of table {} could not be created: {} has not answered one of {} calls (connect_limit {}): {}. ",
        table_.ToString(), who, attempts, ms % 1000 == 0 ? fmt::format("{} s", ms / 1000) : fmt::format("{} ms", ms), failure.message);
    if (token || endpoint.given_by.empty()) {
      text += "Check this machine's network, its DNS and its proxy";
    } else {
      text += fmt::format("Check host and port in {}, that the server runs, and that it is {} there", endpoint.given_by,
                          endpoint.plaintext ? "gRPC without TLS (https:// is with it)" : "gRPC over TLS (http:// is without it)");
    }
    text += "; a longer connect_limit waits longer for a first answer";
    return MakeError({.code = failure.code,
                      .service = kService,
                      .method = "CreateReadSession",
                      .resource = table_.ToString(),
                      .reason = "UNREACHABLE",
                      .retryable = true},
                     std::move(text));
  }

  std::variant<std::string, rpc::RpcFailure> Call(const std::string& request, Duration left) const {
    Duration attempt = options_.attempt_limit.count() > 0 ? std::min<Duration>(options_.attempt_limit, left) : left;
    attempt = std::max<Duration>(attempt, std::chrono::milliseconds{1});
    return rpc::UnaryCall(pool_->Acquire(),
                          {.method = kMethod,
                           .request = request,
                           .routing = rpc::RoutingParameter("read_session.table", table_.ResourcePath()),
                           .attempt_limit = attempt},
                          stop_);
  }

  /// The error of a refused session. When it seems to be about a column, the table's own columns are looked up, with a session that is
  /// never read, to name what is there instead.
  arrow::Status Explain(const rpc::RpcFailure& failure, SourceFormat format) const {
    arrow::Status error = SessionError(failure, table_, BillingProject(options_, table_));
    const auto selection = FieldSelection::Parse(options_.selected_fields).ValueOr(FieldSelection());
    constexpr std::array<std::string_view, 4> kAboutColumns = {"field", "fields", "column", "columns"};
    const bool about_columns =
        std::any_of(kAboutColumns.begin(), kAboutColumns.end(), [&](std::string_view word) { return HoldsWord(failure.message, word); });
    if (failure.code != Code::kInvalidArgument || selection.all() || !about_columns) return error;
    const SourceOptions whole{.billing_project = options_.billing_project, .snapshot_time = options_.snapshot_time, .ordered = true};
    const auto answer = Call(BuildCreateReadSession(whole, table_, format, context_.job_name), kProbeLimit);
    const auto* bytes = std::get_if<std::string>(&answer);
    if (bytes == nullptr) return error;
    const auto session = ParseSession(*bytes, table_, format, context_.clock->Now());
    if (!session.ok()) return error;
    const auto schema = SessionSchema(format, session->schema);
    if (!schema.ok()) return error;
    const auto missing = selection.CheckExists(**schema, table_.ToString());
    if (missing.ok()) return error;
    return missing.WithMessage(missing.message(), ". The service said: ", failure.message);
  }

  const std::shared_ptr<rpc::ChannelPool>& pool_;
  const SourceOptions& options_;
  const TableName& table_;
  const JobContext& context_;
  const std::stop_token& stop_;
  const MonotonicTime until_;
  const MonotonicTime reach_until_;  // without any answer
  bool reached_ = false;
  std::optional<rpc::RpcFailure> refusal_;  // of the last MakeIn, when it was for good
};

}  // namespace

std::string BillingProject(const SourceOptions& options, const TableName& table) {
  return options.billing_project.empty() ? table.project : options.billing_project;
}

std::string TraceId(std::string_view job_name) {
  constexpr size_t kLongest = 256;  // stream.proto, ReadSession.trace_id
  std::string id = "headrace";
  if (!job_name.empty()) id += ':';
  while (!job_name.empty()) {
    const size_t length = CharacterLength(job_name);
    if (id.size() + std::max<size_t>(length, 1) > kLongest) break;
    id += length == 0 ? "?" : job_name.substr(0, length);  // a name from the command line need not be UTF-8, the field must
    job_name.remove_prefix(std::max<size_t>(length, 1));
  }
  return id;
}

std::string BuildCreateReadSession(const SourceOptions& options, const TableName& table, SourceFormat format, std::string_view job_name) {
  api::CreateReadSessionRequest request;
  request.set_parent("projects/" + BillingProject(options, table));
  auto* session = request.mutable_read_session();
  session->set_table(table.ResourcePath());
  session->set_trace_id(TraceId(job_name));
  SetFormat(options, format, session);
  SetReadOptions(options, session);
  if (options.ordered) {
    request.set_max_stream_count(1);
  } else if (options.max_stream_count > 0) {
    request.set_max_stream_count(options.max_stream_count);
  }
  if (options.preferred_min_stream_count > 0) request.set_preferred_min_stream_count(options.preferred_min_stream_count);
  return request.SerializeAsString();
}

bool RefusesFormat(const rpc::RpcFailure& failure, SourceFormat format) {
  if (failure.code != Code::kInvalidArgument && failure.code != Code::kUnimplemented) return false;
  if (!HoldsWord(failure.message, format == SourceFormat::kArrow ? "arrow" : "avro")) return false;
  // A column or a table may be called so as well.
  constexpr std::array<std::string_view, 10> kAboutFormats = {"format",    "formats",  "serialization", "serialize",   "serialized",
                                                              "supported", "supports", "support",       "unsupported", "implemented"};
  return std::any_of(kAboutFormats.begin(), kAboutFormats.end(), [&](std::string_view word) { return HoldsWord(failure.message, word); });
}

arrow::Result<Session> CreateReadSession(const std::shared_ptr<rpc::ChannelPool>& pool, const SourceOptions& options,
                                         const TableName& table, const JobContext& context, const std::stop_token& stop) {
  return SessionMaker(pool, options, table, context, stop).Make();
}

arrow::Status SessionError(const rpc::RpcFailure& failure, const TableName& table, const std::string& billing_project) {
  ErrorInfo info{.code = failure.code,
                 .service = kService,
                 .method = "CreateReadSession",
                 .resource = table.ToString(),
                 .retryable = rpc::ClassifyCreateReadSession(failure) != rpc::FaultKind::kPermanent};
  std::string text = fmt::format("the read session of table {} (billing project {}) could not be created: {}: {}", table.ToString(),
                                 billing_project, CodeName(failure.code), failure.message);
  if (failure.message.starts_with(rpc::kFrontEndText)) return MakeError(std::move(info), text + rpc::kFrontEndAdvice);
  switch (failure.code) {
    case Code::kInvalidArgument:
      // The code alone does not tell a view from a bad projection or restriction (facts R14, R15).
      if (HoldsIgnoringCase(failure.message, "non-table entities")) {
        info.reason = "VIEW_NOT_READABLE";
        text = fmt::format(
            "{} is not a plain table but a view or the like, which is read through a query: the options query and materialize_views do "
            "that and are "
            "not supported yet; write its rows into a table first (CREATE TABLE ... AS SELECT). {}",
            table.ToString(), text);
      }
      // Fact U39: what can be filtered differs between the formats.
      if (HoldsIgnoringCase(failure.message, "too complex")) {
        info.reason = "RESTRICTION_TOO_COMPLEX";
        text += ". Try the other source_format, or a simpler row_restriction";
      }
      break;
    case Code::kPermissionDenied:
      info.reason = "PERMISSION_DENIED";
      text += fmt::format(
          ". Needed: the permission bigquery.readsessions.create (role roles/bigquery.readSessionUser) in the billing project {}, and "
          "bigquery.tables.getData (role roles/bigquery.dataViewer) on the table",
          billing_project);
      break;
    case Code::kNotFound:
      info.reason = "NOT_FOUND";
      text += ". Check the project, dataset and table, and that the credentials may see them";
      break;
    case Code::kUnauthenticated:
      info.reason = "CREDENTIALS";
      // The text of a token that could not be fetched says itself what to do.
      if (failure.token == rpc::TokenFault::kNone) text += ". Check the option credentials";
      break;
    default:
      break;
  }
  return MakeError(std::move(info), std::move(text));
}

}  // namespace headrace::bigquery
