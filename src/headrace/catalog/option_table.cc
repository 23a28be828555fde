#include "headrace/catalog/option_table.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "headrace/bigquery/read/options.h"
#include "headrace/catalog/nearest_word.h"

namespace headrace::catalog {
namespace {

using enum OptionKind;

constexpr unsigned kReads = kCopy | kPlan | kSchema | kBench;  // whoever opens a source
constexpr unsigned kReadsAgain = kReads | kResume;
constexpr unsigned kRuns = kCopy | kResume;
constexpr unsigned kAll = kRuns | kPlan | kSchema | kBench;
constexpr unsigned kEverywhere = kAll | kServeVerb;
constexpr unsigned kAnySource = kBigQuerySource | kFileSource;

constexpr Option OneOf(std::string_view words, Option option) {
  option.words = words;
  return option;
}
constexpr Option Path(PathHint path, Option option) {
  option.path = path;
  return option;
}
constexpr Option File(Option option) { return Path(PathHint::kFile, option); }

constexpr std::string_view kFormats = "parquet arrow arrows csv ndjson avro";

constexpr Option kOptions[] = {
    // What is read.
    {"selected_fields", kList, "all", "columns to read, also nested (a.b), in this order", kAnySource, kReads, "state,name,number",
     "Reading", true},
    {"row_restriction", kText, "none", "only rows for which this SQL condition is true", kBigQuerySource, kReads, "year > 1990", "Reading",
     true},
    {"snapshot_time", kTime, "now", "read the table as it was then (RFC 3339)", kBigQuerySource, kReads, "2024-05-01T10:00:00Z", "Reading",
     true},
    {"sample_percentage", kNumber, "none", "about this share of the rows, above 0 and below 100", kBigQuerySource, kReads, "10", "Reading"},
    {"max_stream_count", kInteger, "0 (unset)", "at most so many streams", kBigQuerySource, kReads, "4", "Reading", true},
    {"preferred_min_stream_count", kInteger, "0 (unset)", "ask for so many streams at least, within the cap", kBigQuerySource, kReads, "2",
     "Reading"},
    {"ordered", kFlag, "false", "keep the storage order: one stream, one reader, one writer", kBigQuerySource | kJob | kMeasurement, kReads,
     "true", "Reading", true},
    OneOf("arrow avro",
          {"source_format", kText, "arrow", "of the rows on the wire: arrow or avro", kBigQuerySource, kReads, "avro", "Reading"}),
    OneOf("none lz4 zstd",
          {"compression", kText, "none", "of Arrow's buffers on the wire: none, lz4 or zstd", kBigQuerySource, kReads, "zstd", "Reading"}),
    OneOf("none lz4", {"response_compression", kText, "none", "of whole answers, in either format: none or lz4", kBigQuerySource, kReads,
                       "lz4", "Reading"}),
    OneOf("micros nanos picos", {"timestamp_precision", kText, "picos", "of TIMESTAMP(12): micros, nanos or picos (text)", kBigQuerySource,
                                 kReads, "nanos", "Reading"}),
    {"max_rows_per_batch", kInteger, "65536", "rows after which a batch ends", kAnySource, kReads, "10000", "Reading"},
    {"max_bytes_per_batch", kBytes, "8MiB", "bytes of a batch, of Arrow buffers or Avro rows", kAnySource, kReads, "4MiB", "Reading"},
    {"retry_max_attempts", kInteger, "25, planning 10 minutes", "attempts in a row without progress", kBigQuerySource, kReads, "5",
     "Reading"},
    // Which rows files have.
    OneOf(kFormats, {"from_format", kText, "by the name", "parquet, arrow, arrows, csv, ndjson or avro", kFileSource, kReads, "csv",
                     "Reading files", true}),
    File({"schema", kText, "from the file", "of CSV and NDJSON: bq's JSON, in a file or here", kFileSource, kReads, "orders.schema.json",
          "Reading files", true}),
    {"csv_header", kBool, "true", "the first line names the columns; false needs schema", kFileSource, kReads, "false", "Reading files"},
    {"csv_null_values", kList, "empty", "CSV fields that are null; ',NA' keeps the empty one", kServe | kFileSource, kServeVerb | kReads,
     ",NA", "Reading files", true},
    {"strict", kFlag, "false", "CSV and NDJSON: only what docs/types.md says is taken always", kFileSource, kReads, "true",
     "Reading files"},
    OneOf("error half_even half_away_from_zero", {"rounding", kText, "error", "of NUMERIC digits: half_even or half_away_from_zero",
                                                  kFileSource, kReads, "half_even", "Reading files"}),
    OneOf("none seconds millis micros", {"epoch_unit", kText, "none", "of an integer for a TIMESTAMP: seconds, millis or micros",
                                         kFileSource, kReads, "millis", "Reading files"}),
    {"ignore_unknown_values", kFlag, "false", "NDJSON: pass over keys that no column has", kFileSource, kReads, "true", "Reading files"},
    {"split_bytes", kBytes, "64MiB", "bytes of a file that are read by one reader at a time", kFileSource, kReads, "16MiB",
     "Reading files"},
    // How the service is reached.
    {"billing_project", kText, "the table's", "project that pays for the read", kBigQuerySource, kReads, "my-project", "Connection", true},
    {"quota_project", kText, "none", "project whose request quota is used", kBigQuerySource, kReadsAgain, "my-quota-project", "Connection"},
    OneOf("adc none", File({"credentials", kText, "adc", "who reads: adc, none, a credential file, token:ENV_NAME", kBigQuerySource,
                            kReadsAgain, "none", "Connection", true})),
    File({"ca_bundle", kText, "the system's", "file of the certificates (PEM) that are trusted", kBigQuerySource, kReadsAgain,
          "/etc/ca.pem", "Connection"}),
    {"bigquery_storage_endpoint", kText, "the service's", "another server; http:// is plaintext", kBigQuerySource, kReadsAgain,
     "http://localhost:9060", "Connection", true},
    {"channels", kInteger, "0", "connections; 0 is one per two streams, at most eight", kBigQuerySource, kReadsAgain, "2", "Connection"},
    {"connect_limit", kDuration, "20s", "time to connect, and for a first answer; 0 is gRPC's own", kBigQuerySource, kReadsAgain, "5s",
     "Connection"},
    {"attempt_limit", kDuration, "0 (none)", "time of one call to the service", kBigQuerySource, kReadsAgain, "10m", "Connection"},
    {"idle_limit", kDuration, "300s", "longest wait for the next message of a stream; 0 is none", kBigQuerySource, kReadsAgain, "60s",
     "Connection"},
    {"total_limit", kDuration, "0 (none)", "time of one stream with all its attempts", kBigQuerySource, kReadsAgain, "1h", "Connection"},
    // What is written.
    {"overwrite", kFlag, "false", "replace the destination once the new result is complete", kFileSink, kCopy, "true", "Writing", true},
    OneOf(kFormats, {"format", kText, "name, or parquet", "parquet, arrow, arrows, csv, ndjson or avro", kFileSink, kCopy | kPlan, "csv",
                     "Writing", true}),
    OneOf("zstd snappy gzip lz4 none", {"parquet_compression", kText, "zstd", "inside the files: zstd, snappy, gzip, lz4 or none",
                                        kFileSink, kCopy, "snappy", "Writing", true}),
    {"parquet_row_group_rows", kInteger, "1000000", "rows after which a row group ends", kFileSink, kCopy, "100000", "Writing"},
    {"parquet_row_group_bytes", kBytes, "64MiB", "encoded bytes after which a row group ends", kFileSink, kCopy, "16MiB", "Writing"},
    OneOf("none lz4 zstd",
          {"arrow_compression", kText, "none", "inside arrow and arrows files: none, lz4 or zstd", kFileSink, kCopy, "zstd", "Writing"}),
    OneOf("deflate snappy zstd none",
          {"avro_compression", kText, "deflate", "inside avro files: deflate, snappy, zstd or none", kFileSink, kCopy, "zstd", "Writing"}),
    OneOf("none gzip zstd",
          {"csv_compression", kText, "by the name, else none", "of whole files: none, gzip or zstd", kFileSink, kCopy, "gzip", "Writing"}),
    {"csv_null_value", kText, "nothing", "what is written, unquoted, for null", kFileSink, kCopy, "NULL", "Writing"},
    OneOf("json",
          {"csv_nested", kText, "refused", "json: ARRAY and STRUCT columns as JSON text", kFileSink, kCopy | kPlan, "json", "Writing"}),
    OneOf("none gzip zstd", {"ndjson_compression", kText, "by the name, else none", "of whole files: none, gzip or zstd", kFileSink, kCopy,
                             "gzip", "Writing"}),
    {"max_file_bytes", kBytes, "0 (no limit)", "start a new file after so many bytes (directory)", kFileSink, kCopy, "1GiB", "Writing"},
    // How the job runs.
    {"job_name", kText, "from the arguments", "name in logs, reports and the service", kJob, kCopy, "nightly-names", "Running"},
    {"readers", kInteger, "0 (automatic)", "threads that read; streams are cut for more", kJob | kMeasurement, kRuns | kBench, "4",
     "Running", true},
    {"writers", kInteger, "0 (automatic)", "threads that write, each its own file", kJob, kRuns, "2", "Running", true},
    {"work_sharing", kBool, "true", "idle readers take half of a busy one's BigQuery stream", kJob, kRuns, "false", "Running"},
    {"memory_limit", kBytes, "512MiB", "bytes held between source and destination", kJob | kMeasurement, kRuns | kBench, "256MiB",
     "Running", true},
    Path(PathHint::kDirectory, {"checkpoint", kText, "none", "directory that makes the job resumable: headrace resume DIR", kJob, kCopy,
                                "./names.job", "Running", true}),
    {"checkpoint_interval", kDuration, "60s", "time between checkpoints", kJob, kRuns, "10s", "Running"},
    {"restart_attempts", kInteger, "0", "failures after which it goes on from its last checkpoint", kJob, kRuns, "3", "Running"},
    {"restart_delay", kDuration, "1s", "wait before such a restart", kJob, kRuns, "5s", "Running"},
    {"max_rows_per_second", kNumber, "0 (no limit)", "slow the whole job to so many rows a second", kJob, kRuns, "50000", "Running"},
    {"max_bytes_per_second", kBytes, "0 (no limit)", "slow the whole job to so many bytes a second", kJob, kRuns, "20MiB", "Running"},
    {"duration", kDuration, "30s", "stop reading after so long; 0 reads all of it", kMeasurement, kBench, "10s", "Running", true},
    // The local service.
    {"load", kEach, "none", "project.dataset.table=FILE of any format; once for each table", kServe, kServeVerb,
     "demo.nyc.flights=flights.parquet", "Serving", true},
    {"load_schema", kEach, "none", "TABLE=FILE.json, the schema of a loaded CSV or NDJSON file", kServe, kServeVerb,
     "demo.nyc.flights=schema.json", "Serving", true},
    {"view", kEach, "none", "project.dataset.name that answers as a view does: it cannot be read", kServe, kServeVerb, "demo.nyc.busy",
     "Serving", true},
    {"bind_address", kText, "127.0.0.1", "numeric address; beyond loopback others can read the tables", kServe, kServeVerb, "0.0.0.0",
     "Serving", true},
    {"grpc_port", kInteger, "0 (any free)", "port of the Storage Read API", kServe, kServeVerb, "9060", "Serving", true},
    {"port", kInteger, "0 (any free)", "port of the REST API, health, counters and faults", kServe, kServeVerb, "9050", "Serving", true},
    {"throttle", kBytes, "0 (no limit)", "bytes a second of all read answers together", kServe, kServeVerb, "1MiB", "Serving", true},
    {"stream_throttle", kBytes, "0 (no limit)", "bytes a second of the read answers of each stream", kServe, kServeVerb, "20MiB", "Serving",
     true},
    {"response_cache", kBytes, "0 (none)", "encoded answers kept in memory, to measure clients", kServe, kServeVerb, "2GiB", "Serving",
     true},
    {"message_bytes", kBytes, "1MiB", "bytes after which one answer of a stream ends", kServe, kServeVerb, "64KiB", "Serving", true},
    {"message_rows", kInteger, "65536", "rows after which one answer of a stream ends", kServe, kServeVerb, "1024", "Serving", true},
    {"empty_table_streams", kInteger, "0", "streams of a session over a table without rows: 0 or 1", kServe, kServeVerb, "1", "Serving",
     true},
    {"streams_as_asked", kFlag, "false", "as many streams as max_stream_count says, also of a small table", kServe, kServeVerb, "true",
     "Serving", true},
    OneOf("none children all", {"ignore_offsets", kText, "none", "children or all: streams that ignore offsets, to test clients", kServe,
                                kServeVerb, "children", "Serving", true}),
    {"seed", kInteger, "0", "chooses the rows of sample_percentage", kServe, kServeVerb, "7", "Serving", true},
    File({"faults", kText, "none", "file with fault rules, see docs/local-service.md", kServe, kServeVerb, "faults.json", "Serving", true}),
    File({"ready_file", kText, "none", "file with the addresses as JSON, there while the service answers", kServe, kServeVerb, "ready.json",
          "Serving", true}),
    // What the program prints.
    {"arrow", kFlag, "false", "print the Arrow schema", kSchemaOutput, kSchema, "true", "Output", true},
    {"json", kFlag, "false", "one JSON document on stdout; progress as JSON lines on stderr", kOutput, kAll, "true", "Output", true},
    {"metrics_port", kInteger, "none", "Prometheus metrics on this loopback port; 0 is any free one", kOutput, kRuns, "9464", "Output"},
    {"price_per_tib", kNumber, "none", "what a TiB read costs you; plan then shows the price", kOutput, kPlan, "1.1", "Output"},
    {"quiet", kFlag, "false", "no progress and no report, only errors and warnings", kOutput, kRuns, "true", "Output", true},
    // How the program is called.
    File({"config", kText, "none", "TOML or JSON file with options; the command line wins over it", kCommandLine, kEverywhere,
          "nightly.toml", "Configuration", true}),
    {"print_config", kFlag, "false", "print the options in effect as such a file, and do nothing else", kCommandLine, kEverywhere, "true",
     "Configuration", true},
    {"fail_point", kText, "none", "die at this step, for tests", kJob, kRuns, "checkpoint.renamed", "Running", false, true},
};

struct Named {
  unsigned bit;
  std::string_view name;
};
constexpr Named kPlaces[] = {{kBigQuerySource, "a BigQuery source"}, {kFileSource, "a file source"},
                             {kFileSink, "a file destination"},      {kJob, "a job"},
                             {kServe, "the local service"},          {kSchemaOutput, "a printed schema"},
                             {kOutput, "the program's output"},      {kCommandLine, "the command line"},
                             {kMeasurement, "a measurement"}};
constexpr Named kVerbs[] = {{kCopy, "copy"},     {kResume, "resume"}, {kPlan, "plan"},
                            {kSchema, "schema"}, {kBench, "bench"},   {kServeVerb, "serve"}};

std::string Names(std::span<const Named> all, unsigned bits, std::string_view separator) {
  std::string text;
  for (const Named& named : all) {
    if ((bits & named.bit) == 0) continue;
    if (!text.empty()) text += separator;
    text += named.name;
  }
  return text;
}

}  // namespace

std::span<const Option> Options() { return kOptions; }

const Option* FindOption(std::string_view name) {
  auto found = std::ranges::find(kOptions, name, &Option::name);
  return found == std::end(kOptions) ? nullptr : found;
}

std::string CommandLineName(std::string_view name) {
  std::string text = "--";
  for (char c : name) text += c == '_' ? '-' : c;
  return text;
}

std::string LibraryName(std::string_view command_line_name) {
  while (command_line_name.starts_with('-')) command_line_name.remove_prefix(1);
  std::string text(command_line_name);
  std::ranges::replace(text, '-', '_');
  return text;
}

std::string_view ValueName(const Option& option) {
  switch (option.kind) {
    case kText:
      if (option.path == PathHint::kNone || !option.words.empty()) return "TEXT";
      return option.path == PathHint::kFile ? "FILE" : "DIR";
    case kInteger:
    case kNumber:
      return "N";
    case kBytes:
      return "SIZE";
    case kDuration:
      return "TIME";
    case kFlag:
      return "";
    case kBool:
      return "BOOL";
    case kList:
      return "A,B,..";
    case kTime:
      return "TIME";
    case kEach:
      return "ITEM";
  }
  return "";
}

std::string_view VerbName(OptionVerb verb) {
  auto found = std::ranges::find(kVerbs, static_cast<unsigned>(verb), &Named::bit);
  return found == std::end(kVerbs) ? "" : found->name;
}

std::string PlacesText(unsigned places) { return Names(kPlaces, places, " and "); }
std::string VerbsText(unsigned verbs) { return Names(kVerbs, verbs, ", "); }

std::optional<std::string> NearestOption(std::string_view name, unsigned verbs) {
  std::vector<std::string_view> names;
  for (const Option& option : kOptions) {
    if (!option.hidden && (option.verbs & verbs) != 0) names.push_back(option.name);
  }
  auto nearest = NearestWord(name, names);
  return nearest ? std::optional<std::string>(*nearest) : std::nullopt;
}

arrow::Status RefuseOption(std::string_view name, OptionVerb verb) {
  std::string shown = CommandLineName(name);
  const Option* option = FindOption(name);
  if (option != nullptr && !option->hidden) {
    if (verb == kResume) {
      return InvalidOption(std::string(name),
                           fmt::format("{} is fixed when a job starts and cannot change when it resumes (it applies to: {})", shown,
                                       VerbsText(option->verbs)));
    }
    return InvalidOption(std::string(name),
                         fmt::format("{} does not apply to {}, only to: {}", shown, VerbName(verb), VerbsText(option->verbs)));
  }
  if (verb != kServeVerb) ARROW_RETURN_NOT_OK(bigquery::RefuseUnbuiltOption(name));
  auto nearest = NearestOption(name, verb);
  return InvalidOption(std::string(name),
                       fmt::format("there is no option {}{}; 'headrace {} --help-all' lists them", shown,
                                   nearest ? fmt::format(", did you mean {}?", CommandLineName(*nearest)) : "", VerbName(verb)));
}

}  // namespace headrace::catalog
