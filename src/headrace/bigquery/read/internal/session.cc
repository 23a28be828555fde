#include "headrace/bigquery/read/internal/session.h"

#include <algorithm>

#include <fmt/format.h>
#include <google/cloud/bigquery/storage/v1/storage.pb.h>

#include "headrace/rpc/byte_stream.h"

namespace headrace::bigquery {
namespace {

namespace api = google::cloud::bigquery::storage::v1;

constexpr char kMethod[] = "/google.cloud.bigquery.storage.v1.BigQueryRead/CreateReadSession";
constexpr char kService[] = "BigQuery Storage Read";
constexpr Duration kBudget = std::chrono::minutes{10};  // the Storage Read client's total time of CreateReadSession

int64_t MillisSinceEpoch(SystemTime time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count(); }

void SetReadOptions(const SourceOptions& options, api::ReadSession* session) {
  if (options.snapshot_time.has_value()) {
    const auto since = options.snapshot_time->time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    auto* snapshot = session->mutable_table_modifiers()->mutable_snapshot_time();
    snapshot->set_seconds(seconds.count());
    snapshot->set_nanos(static_cast<int32_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds).count()));
  }
  for (const std::string& field : options.selected_fields) session->mutable_read_options()->add_selected_fields(field);
  if (!options.row_restriction.empty()) session->mutable_read_options()->set_row_restriction(options.row_restriction);
  if (options.sample_percentage.has_value()) session->mutable_read_options()->set_sample_percentage(*options.sample_percentage);
  if (options.compression != Compression::kNone) {
    const bool lz4 = options.compression == Compression::kLz4;
    session->mutable_read_options()->mutable_arrow_serialization_options()->set_buffer_compression(
        lz4 ? api::ArrowSerializationOptions::LZ4_FRAME : api::ArrowSerializationOptions::ZSTD);
  }
}

arrow::Result<Session> ParseSession(const std::string& bytes, const TableName& table, SystemTime now) {
  const ErrorInfo broken{.code = Code::kInternal, .service = kService, .method = "CreateReadSession", .resource = table.ToString()};
  api::ReadSession answer;
  if (!answer.ParseFromString(bytes)) return MakeError(broken, "the answer to CreateReadSession cannot be parsed");
  if (!answer.has_arrow_schema()) {
    return MakeError(broken, fmt::format("the service gave the session of {} no Arrow schema{}", table.ToString(),
                                         answer.has_avro_schema() ? " but an Avro one, which is not supported" : ""));
  }
  Session session{.name = answer.name(),
                  .created_ms = MillisSinceEpoch(now),
                  .schema = answer.arrow_schema().serialized_schema(),
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

}  // namespace

std::string BillingProject(const SourceOptions& options, const TableName& table) {
  return options.billing_project.empty() ? table.project : options.billing_project;
}

std::string BuildCreateReadSession(const SourceOptions& options, const TableName& table) {
  api::CreateReadSessionRequest request;
  request.set_parent("projects/" + BillingProject(options, table));
  auto* session = request.mutable_read_session();
  session->set_table(table.ResourcePath());
  session->set_data_format(api::ARROW);
  SetReadOptions(options, session);
  if (options.ordered) {
    request.set_max_stream_count(1);
  } else if (options.max_stream_count > 0) {
    request.set_max_stream_count(options.max_stream_count);
  }
  if (options.preferred_min_stream_count > 0) request.set_preferred_min_stream_count(options.preferred_min_stream_count);
  return request.SerializeAsString();
}

arrow::Result<Session> CreateReadSession(const std::shared_ptr<rpc::ChannelPool>& pool, const SourceOptions& options,
                                         const TableName& table, const JobContext& context, const std::stop_token& stop) {
  const std::string billing = BillingProject(options, table);
  const std::string request = BuildCreateReadSession(options, table);
  const MonotonicTime until = context.clock->Monotonic() + kBudget;
  rpc::RetryState retry(0, context.random);
  while (true) {
    const Duration left = until - context.clock->Monotonic();
    Duration attempt = options.attempt_limit.count() > 0 ? std::min<Duration>(options.attempt_limit, left) : left;
    attempt = std::max<Duration>(attempt, std::chrono::milliseconds{1});
    auto answer = rpc::UnaryCall(pool->Acquire(),
                                 {.method = kMethod,
                                  .request = request,
                                  .routing = rpc::RoutingParameter("read_session.table", table.ResourcePath()),
                                  .attempt_limit = attempt},
                                 stop);
    if (stop.stop_requested()) return arrow::Status::Cancelled("stopped while creating the read session");
    if (const auto* bytes = std::get_if<std::string>(&answer)) return ParseSession(*bytes, table, context.clock->Now());
    const auto& failure = std::get<rpc::RpcFailure>(answer);
    const auto wait = retry.Next(rpc::ClassifyCreateReadSession(failure), failure);
    if (!wait.has_value()) return SessionError(failure, table, billing);
    if (context.clock->Monotonic() + *wait >= until) {
      return WithContext(SessionError(failure, table, billing), "no read session within 10 minutes");
    }
    context.logger->Log(LogLevel::kWarning,
                        fmt::format("CreateReadSession for {} at {} failed ({}: {}); attempt {} follows in {} ms", table.ToString(),
                                    pool->options().endpoint.target(), CodeName(failure.code), failure.message, retry.failures() + 1,
                                    std::chrono::duration_cast<std::chrono::milliseconds>(*wait).count()));
    if (!context.clock->SleepFor(*wait, stop)) return arrow::Status::Cancelled("stopped while creating the read session");
  }
}

arrow::Status SessionError(const rpc::RpcFailure& failure, const TableName& table, const std::string& billing_project) {
  ErrorInfo info{.code = failure.code,
                 .service = kService,
                 .method = "CreateReadSession",
                 .resource = table.ToString(),
                 .retryable = rpc::ClassifyCreateReadSession(failure) != rpc::FaultKind::kPermanent};
  std::string text = fmt::format("the read session of table {} (billing project {}) could not be created: {}: {}", table.ToString(),
                                 billing_project, CodeName(failure.code), failure.message);
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
      text += ". Check the option credentials";
      break;
    default:
      break;
  }
  return MakeError(std::move(info), std::move(text));
}

}  // namespace headrace::bigquery
