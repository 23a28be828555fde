// The read session: its request as data, its creation with retries and in the other format if need be, its errors in words.
//
// Free functions; any thread.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/bigquery/read/options.h"
#include "headrace/rpc/channel.h"
#include "headrace/rpc/retry.h"
#include "headrace/runtime/source.h"

namespace headrace::bigquery {

struct Session {
  std::string name{};
  int64_t created_ms = 0;  // by our clock
  int64_t expires_ms = 0;  // 0 = the service did not say
  SourceFormat format = SourceFormat::kArrow;
  std::string schema{};  // Arrow IPC bytes, or Avro's JSON
  std::vector<std::string> streams{};
  int64_t estimated_rows = -1;
  int64_t estimated_bytes = -1;  // that will be scanned
};

/// The project that pays: billing_project, else the table's.
std::string BillingProject(const SourceOptions& options, const TableName& table);

/// How the service's logs tell whose a session is: "headrace:JOB_NAME", at most 256 bytes of UTF-8.
std::string TraceId(std::string_view job_name);

/// The serialized CreateReadSessionRequest for rows in `format`. Options that are not set leave their fields unset.
std::string BuildCreateReadSession(const SourceOptions& options, const TableName& table, SourceFormat format, std::string_view job_name);

/// Whether the service refused to write the table's rows in `format`, and not something else: INVALID_ARGUMENT or UNIMPLEMENTED with a text
/// about that format.
bool RefusesFormat(const rpc::RpcFailure& failure, SourceFormat format);

/// One session, tried for at most ten minutes in all and retry_max_attempts times in each format, where that is set, and only for
/// connect_limit, but three times, as long as nobody has answered at all; in the other format, with a warning, when the service refuses the
/// one asked for. Cancelled when `stop` is requested.
arrow::Result<Session> CreateReadSession(const std::shared_ptr<rpc::ChannelPool>& pool, const SourceOptions& options,
                                         const TableName& table, const JobContext& context, const std::stop_token& stop);

/// What a user is told of a session that could not be created.
arrow::Status SessionError(const rpc::RpcFailure& failure, const TableName& table, const std::string& billing_project);

}  // namespace headrace::bigquery
