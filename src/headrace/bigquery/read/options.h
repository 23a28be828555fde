// What can be asked of a BigQuery read. Plain values; docs/options.md tells each option's counterpart in Flink and Beam.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/error.h"
#include "headrace/bigquery/table_name.h"
#include "headrace/types/type_table.h"

namespace headrace::bigquery {

/// How rows are written on the wire.
enum class SourceFormat { kArrow, kAvro };
/// "arrow" or "avro".
arrow::Result<SourceFormat> ParseSourceFormat(std::string_view text);
std::string_view SourceFormatName(SourceFormat format);

/// Compression of the Arrow buffers on the wire.
enum class Compression { kNone, kLz4, kZstd };
/// "none", "lz4" or "zstd".
arrow::Result<Compression> ParseCompression(std::string_view text);

/// Compression of whole responses, in either format.
enum class ResponseCompression { kNone, kLz4 };
/// "none" or "lz4".
arrow::Result<ResponseCompression> ParseResponseCompression(std::string_view text);

/// "micros", "nanos" or "picos".
arrow::Result<TimestampPrecision> ParseTimestampPrecision(std::string_view text);

/// A point in time as RFC 3339 writes it ("2026-01-31T12:00:00.25Z", any offset, at most nine digits of a second).
arrow::Result<SystemTime> ParseSnapshotTime(std::string_view text);

/// The same in UTC, with 0, 3, 6 or 9 digits of a second as needed (as the JSON of google.protobuf.Timestamp has it).
std::string FormatSnapshotTime(SystemTime time);

/// Attempts in a row without a row, or any progress, before the reading of a stream fails (spec; Flink's retryMaxAttempts).
constexpr int kDefaultRetryMaxAttempts = 25;

/// Every member is one option of the same name. Zero or empty means "not set" where nothing else is said.
struct SourceOptions {
  std::string table{};                                // required; see ParseTableName
  std::string billing_project{};                      // parent of the session; empty = the table's project
  std::vector<std::string> selected_fields{};         // top level and nested paths; the columns come in this order; empty = all
  std::string row_restriction{};                      // SQL text of a WHERE clause without the keyword, sent as it is
  std::optional<SystemTime> snapshot_time{};          // the table as it was then
  SourceFormat source_format = SourceFormat::kArrow;  // the other is tried when the service refuses to write this table's rows so
  Compression compression = Compression::kNone;       // of Arrow's buffers; not together with the next
  ResponseCompression response_compression = ResponseCompression::kNone;
  // Of a TIMESTAMP(12) only: a timestamp of microseconds or nanoseconds (the service cuts the rest off), or text with all twelve digits.
  TimestampPrecision timestamp_precision = TimestampPrecision::kPicos;
  int32_t max_stream_count = 0;            // a cap
  int32_t preferred_min_stream_count = 0;  // a hint, at most max_stream_count when both are set
  bool ordered = false;                    // one stream, storage order
  int64_t max_rows_per_batch = 65'536;
  int64_t max_bytes_per_batch = int64_t{8} << 20;  // Arrow: of the buffers of a batch; Avro: of its rows as they were sent
  /// Consecutive attempts without progress, of a stream's rows and of the read session. Unset: 25 of the rows
  /// (kDefaultRetryMaxAttempts), and of the session as many as ten minutes take.
  std::optional<int> retry_max_attempts{};
  std::optional<double> sample_percentage{};  // 0 < p < 100

  std::string bigquery_storage_endpoint{};  // host:port or http://host:port (plaintext), https://host[:port]
  std::string credentials{};    // "none", "adc", "token:ENV_NAME", a credential file; empty = adc, none for a plaintext endpoint
  std::string quota_project{};  // sent as x-goog-user-project; empty = that of an authorized user's file, else none
  std::string ca_bundle{};      // PEM file of the certificates that are trusted; empty = the system's
  int channels = 0;             // connections; 0 = one per two open streams, at most eight
  /// Time to connect, and in which a service that has never answered must be reached when the read is planned; zero = gRPC's own, and 20 s.
  std::chrono::milliseconds connect_limit{20'000};
  std::chrono::milliseconds attempt_limit{0};     // time of one call, zero = none
  std::chrono::milliseconds idle_limit{300'000};  // longest wait for a message of a stream, zero = none
  std::chrono::milliseconds total_limit{0};       // time of one stream with all its attempts, zero = none
};

/// Each option alone, then the combinations, in the documented order; reads and contacts nothing. Source::Make calls it.
arrow::Status CheckSourceOptions(const SourceOptions& options);

/// For faces that take options by name: the refusal of an option of the specification that is not built yet ("query", "materialize_views",
/// ...); OK for every other name.
arrow::Status RefuseUnbuiltOption(std::string_view name);

}  // namespace headrace::bigquery
