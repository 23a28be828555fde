#include "headrace/bigquery/read/options.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "headrace/bigquery/read/internal/field_selection.h"
#include "headrace/rpc/credentials.h"
#include "headrace/rpc/endpoint.h"

namespace headrace::bigquery {
namespace {

constexpr size_t kLongestRestriction = 1 << 20;  // the service's limit of row_restriction: 1 MB

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

template <typename T>
arrow::Status AtLeast(std::string_view option, T value, T least) {
  if (value >= least) return arrow::Status::OK();
  return InvalidOption(std::string(option), fmt::format("{} is {}; it must be at least {}", option, value, least));
}

arrow::Status CheckLimit(std::string_view option, std::chrono::milliseconds limit) {
  // More cannot be counted in nanoseconds (ADR-0068's rule of durations).
  constexpr auto kLongest = std::chrono::duration_cast<std::chrono::milliseconds>(Duration::max());
  if (limit.count() >= 0 && limit <= kLongest) return arrow::Status::OK();
  return InvalidOption(std::string(option), fmt::format("{} is {} ms; it must not be negative, nor longer than 292 years; 0 means no limit",
                                                        option, limit.count()));
}

/// Each option alone.
arrow::Status CheckValues(const SourceOptions& options) {
  if (options.table.empty()) return InvalidOption("table", "a table is required: set the option table");
  if (!options.billing_project.empty()) ARROW_RETURN_NOT_OK(CheckPathComponent("billing_project", options.billing_project));
  if (!options.quota_project.empty()) ARROW_RETURN_NOT_OK(CheckPathComponent("quota_project", options.quota_project));
  ARROW_RETURN_NOT_OK(ParseTableName(options.table, options.billing_project).status());
  ARROW_RETURN_NOT_OK(FieldSelection::Parse(options.selected_fields).status());
  if (!options.row_restriction.empty() && IsBlank(options.row_restriction))
    return InvalidOption("row_restriction", "row_restriction is blank");
  if (options.row_restriction.size() > kLongestRestriction) {
    return InvalidOption("row_restriction",
                         fmt::format("row_restriction has {} bytes; the service takes at most 1 MB", options.row_restriction.size()));
  }
  ARROW_RETURN_NOT_OK(AtLeast("max_stream_count", options.max_stream_count, 0));
  ARROW_RETURN_NOT_OK(AtLeast("preferred_min_stream_count", options.preferred_min_stream_count, 0));
  ARROW_RETURN_NOT_OK(AtLeast<int64_t>("max_rows_per_batch", options.max_rows_per_batch, 1));
  ARROW_RETURN_NOT_OK(AtLeast<int64_t>("max_bytes_per_batch", options.max_bytes_per_batch, 1));
  ARROW_RETURN_NOT_OK(AtLeast("retry_max_attempts", options.retry_max_attempts.value_or(1), 1));
  if (options.sample_percentage.has_value() && !(*options.sample_percentage > 0 && *options.sample_percentage < 100)) {
    return InvalidOption("sample_percentage",
                         fmt::format("sample_percentage is {}; it must be above 0 and below 100", *options.sample_percentage));
  }
  ARROW_RETURN_NOT_OK(AtLeast("channels", options.channels, 0));
  ARROW_RETURN_NOT_OK(CheckLimit("connect_limit", options.connect_limit));
  ARROW_RETURN_NOT_OK(CheckLimit("attempt_limit", options.attempt_limit));
  ARROW_RETURN_NOT_OK(CheckLimit("idle_limit", options.idle_limit));
  return CheckLimit("total_limit", options.total_limit);
}

/// Reads an unsigned number of exactly `digits` digits at the front of `text`; -1 when it is not there.
int TakeNumber(std::string_view& text, size_t digits) {
  if (text.size() < digits) return -1;
  int number = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    number = number * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return number;
}

bool TakeOneOf(std::string_view& text, std::string_view characters) {
  if (text.empty() || characters.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

/// The fraction of a second behind the point; nothing when malformed.
std::optional<std::chrono::nanoseconds> TakeFraction(std::string_view& text) {
  if (!TakeOneOf(text, ".")) return std::chrono::nanoseconds{0};
  int64_t nanos = 0;
  int digits = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9' && digits < 9; ++digits) {
    nanos = nanos * 10 + (text.front() - '0');
    text.remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  for (int i = digits; i < 9; ++i) nanos *= 10;
  return std::chrono::nanoseconds{nanos};
}

/// "Z" or "+hh:mm"; nothing when malformed.
std::optional<std::chrono::minutes> TakeOffset(std::string_view& text) {
  if (TakeOneOf(text, "Zz")) return std::chrono::minutes{0};
  const bool negative = !text.empty() && text.front() == '-';
  if (!TakeOneOf(text, "+-")) return std::nullopt;
  const int hours = TakeNumber(text, 2);
  if (hours < 0 || hours > 23 || !TakeOneOf(text, ":")) return std::nullopt;
  const int minutes = TakeNumber(text, 2);
  if (minutes < 0 || minutes > 59) return std::nullopt;
  const std::chrono::minutes offset = std::chrono::hours{hours} + std::chrono::minutes{minutes};
  return negative ? -offset : offset;
}

}  // namespace

arrow::Result<SourceFormat> ParseSourceFormat(std::string_view text) {
  if (text == "arrow") return SourceFormat::kArrow;
  if (text == "avro") return SourceFormat::kAvro;
  return InvalidOption("source_format", fmt::format("source_format \"{}\" is not known; use arrow or avro", text));
}

std::string_view SourceFormatName(SourceFormat format) { return format == SourceFormat::kArrow ? "arrow" : "avro"; }

arrow::Result<ResponseCompression> ParseResponseCompression(std::string_view text) {
  if (text == "none") return ResponseCompression::kNone;
  if (text == "lz4") return ResponseCompression::kLz4;
  return InvalidOption("response_compression", fmt::format("response_compression \"{}\" is not known; use none or lz4", text));
}

arrow::Result<TimestampPrecision> ParseTimestampPrecision(std::string_view text) {
  if (text == "micros") return TimestampPrecision::kMicros;
  if (text == "nanos") return TimestampPrecision::kNanos;
  if (text == "picos") return TimestampPrecision::kPicos;
  return InvalidOption("timestamp_precision", fmt::format("timestamp_precision \"{}\" is not known; use micros, nanos or picos", text));
}

arrow::Result<Compression> ParseCompression(std::string_view text) {
  if (text == "none") return Compression::kNone;
  if (text == "lz4") return Compression::kLz4;
  if (text == "zstd") return Compression::kZstd;
  return InvalidOption("compression", fmt::format("compression \"{}\" is not known; use none, lz4 or zstd", text));
}

arrow::Result<SystemTime> ParseSnapshotTime(std::string_view text) {
  const auto wrong =
      InvalidOption("snapshot_time", fmt::format("snapshot_time \"{}\" is no RFC 3339 time such as 2026-01-31T12:00:00Z", text));
  std::string_view rest = text;
  const int year = TakeNumber(rest, 4);
  if (year < 0 || !TakeOneOf(rest, "-")) return wrong;
  const int month = TakeNumber(rest, 2);
  if (month < 0 || !TakeOneOf(rest, "-")) return wrong;
  const int day = TakeNumber(rest, 2);
  if (day < 0 || !TakeOneOf(rest, "Tt ")) return wrong;
  const int hour = TakeNumber(rest, 2);
  if (hour < 0 || hour > 23 || !TakeOneOf(rest, ":")) return wrong;
  const int minute = TakeNumber(rest, 2);
  if (minute < 0 || minute > 59 || !TakeOneOf(rest, ":")) return wrong;
  const int second = TakeNumber(rest, 2);
  if (second < 0 || second > 59) return wrong;
  const auto fraction = TakeFraction(rest);
  if (!fraction.has_value()) return wrong;
  const auto offset = TakeOffset(rest);
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  // A system clock of nanoseconds ends in 2262; nothing outside these years is a time of BigQuery's travel window anyway.
  if (!offset.has_value() || !rest.empty() || !date.ok() || year < 1970 || year > 2261) return wrong;
  return std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute} + std::chrono::seconds{second} + *fraction -
         *offset;
}

std::string FormatSnapshotTime(SystemTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(time - seconds).count();
  std::string text = fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
  std::string digits = fmt::format(".{:09}", nanos);
  while (digits.ends_with("000")) digits.resize(digits.size() - 3);
  if (digits.size() > 1) text += digits;
  return text + "Z";
}

arrow::Status CheckSourceOptions(const SourceOptions& options) {
  ARROW_RETURN_NOT_OK(CheckValues(options));
  ARROW_ASSIGN_OR_RAISE(const auto endpoint, rpc::ResolveStorageEndpoint(options.bigquery_storage_endpoint));
  ARROW_RETURN_NOT_OK(rpc::ParseCredentials(options.credentials, endpoint).status());
  ARROW_RETURN_NOT_OK(rpc::CheckCaBundle(options.ca_bundle, endpoint));
  if (options.max_stream_count > 0 && options.preferred_min_stream_count > options.max_stream_count) {
    return InvalidOption("preferred_min_stream_count", fmt::format("preferred_min_stream_count {} is above max_stream_count {}",
                                                                   options.preferred_min_stream_count, options.max_stream_count));
  }
  if (options.ordered && options.max_stream_count > 1) {
    return InvalidOption(
        "ordered", fmt::format("ordered reads one stream, but max_stream_count is {}; leave out one of the two", options.max_stream_count));
  }
  if (options.ordered && options.preferred_min_stream_count > 1) {
    return InvalidOption("ordered", fmt::format("ordered reads one stream, but preferred_min_stream_count is {}; leave out one of the two",
                                                options.preferred_min_stream_count));
  }
  if (options.compression != Compression::kNone && options.source_format == SourceFormat::kAvro) {
    return InvalidOption("compression",
                         "compression is of Arrow's buffers, which source_format avro does not have; use response_compression");
  }
  if (options.compression != Compression::kNone && options.response_compression != ResponseCompression::kNone) {
    // stream.proto: "choose, at most, one kind of compression".
    return InvalidOption("response_compression", "compression and response_compression cannot be combined; leave out one of the two");
  }
  return arrow::Status::OK();
}

arrow::Status RefuseUnbuiltOption(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 27> kUnbuilt = {{
      {"query", "only tables are read; write the query's result into a table first"},
      {"use_legacy_sql", "it belongs to query"},
      {"flatten_results", "it belongs to query"},
      {"materialize_views", "only tables are read; write the view's rows into a table first"},
      {"query_location", "it belongs to query"},
      {"query_priority", "it belongs to query"},
      {"max_bytes_billed", "it belongs to query"},
      {"labels", "it belongs to query"},
      {"kms_key", "it belongs to query"},
      {"query_result_dataset", "it belongs to query"},
      {"query_temp_dataset", "it belongs to query"},
      {"query_temp_project", "it belongs to query"},
      {"reuse_query_result_within", "it belongs to query"},
      {"bigquery_rest_endpoint", "a read of a table makes no REST call"},
      {"method", "every read is a direct read"},
      {"temp_location", "it belongs to method export"},
      {"validate", "the session request is the only check of the table"},
      {"raw_types", "logical types are always on"},
      {"impersonate", "give credentials that may read the table"},
      {"universe_domain", "give bigquery_storage_endpoint as https://host"},
      {"use_avro_logical_types", "logical types are always on"},
      {"max_rejects", "a destination that can reject rows is not built; files take every row or fail"},
      {"rejects", "a destination that can reject rows is not built; files take every row or fail"},
      {"bigtable_endpoint", "Bigtable is not built"},
      {"bigtable_admin_endpoint", "Bigtable is not built"},
      {"gcs_endpoint", "Cloud Storage is not built"},
      {"until", "a source that has no end is not built"},
  }};
  const auto* found = std::find_if(kUnbuilt.begin(), kUnbuilt.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == kUnbuilt.end()) return arrow::Status::OK();
  return Unsupported(std::string(name), fmt::format("{} is not supported: {}", name, found->second));
}

}  // namespace headrace::bigquery
