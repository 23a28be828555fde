#include "headrace/catalog/make.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headrace/base/file_system.h"
#include "headrace/bigquery/read/source.h"
#include "headrace/catalog/option_value.h"

namespace headrace::catalog {
namespace {

// Each setter turns the text of one option into the member that carries it; the tests walk the option table and fail for an option without
// one.
template <typename Options>
struct Setter {
  std::string_view name;
  arrow::Status (*set)(Options& options, std::string_view text);
};

// Setters are made from a parser and a member, so that a row of the tables below says all there is to say.
template <auto kMember, typename Options>
arrow::Status SetText(Options& options, std::string_view text) {
  options.*kMember = std::string(text);
  return arrow::Status::OK();
}

arrow::Result<int> SmallInteger(std::string_view name, std::string_view text) {
  ARROW_ASSIGN_OR_RAISE(int64_t value, ParseInteger(name, text));
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
    return InvalidOption(std::string(name), fmt::format("{} is {}: that is beyond any sensible number", name, text));
  }
  return static_cast<int>(value);
}

using SourceOptions = bigquery::SourceOptions;

constexpr Setter<SourceOptions> kSourceSetters[] = {
    {"selected_fields",
     [](SourceOptions& options, std::string_view text) {
       options.selected_fields = ParseList(text);
       return arrow::Status::OK();
     }},
    {"row_restriction", SetText<&SourceOptions::row_restriction, SourceOptions>},
    {"snapshot_time", [](SourceOptions& options,
                         std::string_view text) { return bigquery::ParseSnapshotTime(text).Value(&options.snapshot_time.emplace()); }},
    {"sample_percentage",
     [](SourceOptions& options, std::string_view text) {
       return ParseNumber("sample_percentage", text).Value(&options.sample_percentage.emplace());
     }},
    {"max_stream_count",
     [](SourceOptions& options, std::string_view text) { return SmallInteger("max_stream_count", text).Value(&options.max_stream_count); }},
    {"preferred_min_stream_count",
     [](SourceOptions& options, std::string_view text) {
       return SmallInteger("preferred_min_stream_count", text).Value(&options.preferred_min_stream_count);
     }},
    {"ordered", [](SourceOptions& options, std::string_view text) { return ParseFlag("ordered", text).Value(&options.ordered); }},
    {"source_format",
     [](SourceOptions& options, std::string_view text) { return bigquery::ParseSourceFormat(text).Value(&options.source_format); }},
    {"compression",
     [](SourceOptions& options, std::string_view text) { return bigquery::ParseCompression(text).Value(&options.compression); }},
    {"response_compression",
     [](SourceOptions& options, std::string_view text) {
       return bigquery::ParseResponseCompression(text).Value(&options.response_compression);
     }},
    {"timestamp_precision",
     [](SourceOptions& options, std::string_view text) {
       return bigquery::ParseTimestampPrecision(text).Value(&options.timestamp_precision);
     }},
    {"max_rows_per_batch",
     [](SourceOptions& options, std::string_view text) {
       return ParseInteger("max_rows_per_batch", text).Value(&options.max_rows_per_batch);
     }},
    {"max_bytes_per_batch",
     [](SourceOptions& options, std::string_view text) {
       return ParseBytes("max_bytes_per_batch", text).Value(&options.max_bytes_per_batch);
     }},
    {"retry_max_attempts",
     [](SourceOptions& options, std::string_view text) {
       return SmallInteger("retry_max_attempts", text).Value(&options.retry_max_attempts.emplace());
     }},
    {"billing_project", SetText<&SourceOptions::billing_project, SourceOptions>},
    {"quota_project", SetText<&SourceOptions::quota_project, SourceOptions>},
    {"credentials", SetText<&SourceOptions::credentials, SourceOptions>},
    {"ca_bundle", SetText<&SourceOptions::ca_bundle, SourceOptions>},
    {"bigquery_storage_endpoint", SetText<&SourceOptions::bigquery_storage_endpoint, SourceOptions>},
    {"channels", [](SourceOptions& options, std::string_view text) { return SmallInteger("channels", text).Value(&options.channels); }},
    {"connect_limit",
     [](SourceOptions& options, std::string_view text) { return ParseDuration("connect_limit", text).Value(&options.connect_limit); }},
    {"attempt_limit",
     [](SourceOptions& options, std::string_view text) { return ParseDuration("attempt_limit", text).Value(&options.attempt_limit); }},
    {"idle_limit",
     [](SourceOptions& options, std::string_view text) { return ParseDuration("idle_limit", text).Value(&options.idle_limit); }},
    {"total_limit",
     [](SourceOptions& options, std::string_view text) { return ParseDuration("total_limit", text).Value(&options.total_limit); }},
};

constexpr Setter<FileSourceOptions> kFileSourceSetters[] = {
    {"from_format", SetText<&FileSourceOptions::from_format, FileSourceOptions>},
    {"selected_fields",
     [](FileSourceOptions& options, std::string_view text) {
       options.selected_fields = ParseList(text);
       return arrow::Status::OK();
     }},
    {"schema", SetText<&FileSourceOptions::schema, FileSourceOptions>},
    {"csv_header",
     [](FileSourceOptions& options, std::string_view text) { return ParseFlag("csv_header", text).Value(&options.csv_header.emplace()); }},
    {"csv_null_values",
     [](FileSourceOptions& options, std::string_view text) {
       options.csv_null_values = ParseList(text);
       return arrow::Status::OK();
     }},
    {"max_rows_per_batch",
     [](FileSourceOptions& options, std::string_view text) {
       return ParseInteger("max_rows_per_batch", text).Value(&options.max_rows_per_batch);
     }},
    {"max_bytes_per_batch",
     [](FileSourceOptions& options, std::string_view text) {
       return ParseBytes("max_bytes_per_batch", text).Value(&options.max_bytes_per_batch);
     }},
    {"strict",
     [](FileSourceOptions& options, std::string_view text) { return ParseFlag("strict", text).Value(&options.strict.emplace()); }},
    {"rounding", SetText<&FileSourceOptions::rounding, FileSourceOptions>},
    {"epoch_unit", SetText<&FileSourceOptions::epoch_unit, FileSourceOptions>},
    {"ignore_unknown_values",
     [](FileSourceOptions& options, std::string_view text) {
       return ParseFlag("ignore_unknown_values", text).Value(&options.ignore_unknown_values.emplace());
     }},
    {"split_bytes", [](FileSourceOptions& options,
                       std::string_view text) { return ParseBytes("split_bytes", text).Value(&options.split_bytes.emplace()); }},
};

constexpr Setter<FileSinkOptions> kSinkSetters[] = {
    {"overwrite", [](FileSinkOptions& options, std::string_view text) { return ParseFlag("overwrite", text).Value(&options.overwrite); }},
    {"format", SetText<&FileSinkOptions::format, FileSinkOptions>},
    {"parquet_compression", SetText<&FileSinkOptions::parquet_compression, FileSinkOptions>},
    {"parquet_row_group_rows",
     [](FileSinkOptions& options, std::string_view text) {
       return ParseInteger("parquet_row_group_rows", text).Value(&options.parquet_row_group_rows.emplace());
     }},
    {"parquet_row_group_bytes",
     [](FileSinkOptions& options, std::string_view text) {
       return ParseBytes("parquet_row_group_bytes", text).Value(&options.parquet_row_group_bytes.emplace());
     }},
    {"arrow_compression", SetText<&FileSinkOptions::arrow_compression, FileSinkOptions>},
    {"avro_compression", SetText<&FileSinkOptions::avro_compression, FileSinkOptions>},
    {"csv_compression", SetText<&FileSinkOptions::csv_compression, FileSinkOptions>},
    {"csv_null_value",
     [](FileSinkOptions& options, std::string_view text) {
       options.csv_null_value = std::string(text);
       return arrow::Status::OK();
     }},
    {"csv_nested", SetText<&FileSinkOptions::csv_nested, FileSinkOptions>},
    {"ndjson_compression", SetText<&FileSinkOptions::ndjson_compression, FileSinkOptions>},
    {"max_file_bytes",
     [](FileSinkOptions& options, std::string_view text) { return ParseBytes("max_file_bytes", text).Value(&options.max_file_bytes); }},
};

constexpr Setter<JobOptions> kJobSetters[] = {
    {"job_name", SetText<&JobOptions::job_name, JobOptions>},
    {"ordered", [](JobOptions& options, std::string_view text) { return ParseFlag("ordered", text).Value(&options.ordered); }},
    {"readers", [](JobOptions& options, std::string_view text) { return SmallInteger("readers", text).Value(&options.readers); }},
    {"writers", [](JobOptions& options, std::string_view text) { return SmallInteger("writers", text).Value(&options.writers); }},
    {"work_sharing",
     [](JobOptions& options, std::string_view text) { return ParseFlag("work_sharing", text).Value(&options.work_sharing); }},
    {"memory_limit",
     [](JobOptions& options, std::string_view text) { return ParseBytes("memory_limit", text).Value(&options.memory_limit); }},
    {"checkpoint", SetText<&JobOptions::checkpoint, JobOptions>},
    {"checkpoint_interval",
     [](JobOptions& options, std::string_view text) {
       return ParseDuration("checkpoint_interval", text).Value(&options.checkpoint_interval);
     }},
    {"restart_attempts",
     [](JobOptions& options, std::string_view text) { return SmallInteger("restart_attempts", text).Value(&options.restart_attempts); }},
    {"restart_delay",
     [](JobOptions& options, std::string_view text) { return ParseDuration("restart_delay", text).Value(&options.restart_delay); }},
    {"max_rows_per_second",
     [](JobOptions& options, std::string_view text) {
       return ParseNumber("max_rows_per_second", text).Value(&options.max_rows_per_second);
     }},
    {"max_bytes_per_second",
     [](JobOptions& options, std::string_view text) {
       ARROW_ASSIGN_OR_RAISE(int64_t bytes, ParseBytes("max_bytes_per_second", text));
       options.max_bytes_per_second = static_cast<double>(bytes);
       return arrow::Status::OK();
     }},
    // Armed by the program, not carried by the job.
    {"fail_point", [](JobOptions&, std::string_view) { return arrow::Status::OK(); }},
};

constexpr Setter<MeasureOptions> kMeasureSetters[] = {
    {"ordered", [](MeasureOptions& options, std::string_view text) { return ParseFlag("ordered", text).Value(&options.ordered); }},
    {"readers", [](MeasureOptions& options, std::string_view text) { return SmallInteger("readers", text).Value(&options.readers); }},
    {"memory_limit",
     [](MeasureOptions& options, std::string_view text) { return ParseBytes("memory_limit", text).Value(&options.memory_limit); }},
    {"duration", [](MeasureOptions& options, std::string_view text) { return ParseDuration("duration", text).Value(&options.duration); }},
};

template <typename Options, size_t kCount>
arrow::Status Apply(const Setter<Options> (&setters)[kCount], const OptionValues& values, Options& options) {
  for (const Setter<Options>& setter : setters) {
    auto value = values.find(std::string(setter.name));
    if (value != values.end()) ARROW_RETURN_NOT_OK(setter.set(options, value->second));
  }
  return arrow::Status::OK();
}

/// Options of one run of the program: where checkpoints lie, what is printed. They are no part of what the job is.
bool ConcernsOneRun(const Option& option) {
  return option.hidden || option.name == "checkpoint" ||
         (option.places & ~unsigned{kOutput | kCommandLine | kServe | kSchemaOutput | kMeasurement}) == 0;
}

/// True for an option whose text is the path of a file that each process reads anew.
bool IsPath(std::string_view name, const std::string& text) {
  if (name == "ca_bundle") return true;
  return name == "credentials" && text != "adc" && text != "none" && text.find(':') == std::string::npos;
}

bool IsFiles(const Address& address) { return address.kind != AddressKind::kBigQuery; }

/// The key of the n-th file of a list in a configuration; no option's name has a space.
std::string SourceKey(size_t n) { return n == 1 ? "source" : fmt::format("source {}", n); }

/// What a run is made of, for options that act beside others only.
struct Setting {
  const Address& source;
  const OptionValues& values;  // all that are in effect
  bool checkpoints;

  bool IsOn(const std::string& name) const {
    const auto found = values.find(name);
    return found != values.end() && found->second != "false" && found->second != "0";
  }
};

/// An option that is given where `acts` says no would do nothing.
struct Condition {
  std::string_view name;
  bool (*acts)(const Setting& setting);
  std::string_view why;
};
constexpr Condition kConditions[] = {
    {"checkpoint_interval", [](const Setting& setting) { return setting.checkpoints; },
     "it is the time between checkpoints, and there are none: give --checkpoint as well"},
    {"restart_delay", [](const Setting& setting) { return setting.IsOn("restart_attempts"); },
     "it is the wait before a restart, and there is none: give --restart-attempts as well"},
    {"work_sharing", [](const Setting& setting) { return !IsFiles(setting.source); },
     "readers share the streams of BigQuery, and the source is of files"},
    {"price_per_tib", [](const Setting& setting) { return !IsFiles(setting.source); }, "reading files costs nothing"},
    {"work_sharing", [](const Setting& setting) { return !setting.IsOn("ordered"); }, "--ordered has one reader, which shares with nobody"},
};

arrow::Status CheckConditions(const OptionValues& given, const Setting& setting) {
  for (const auto& [name, acts, why] : kConditions) {
    if (!given.contains(std::string(name)) || acts(setting)) continue;
    return InvalidOption(std::string(name), fmt::format("{} does nothing here: {}", CommandLineName(name), why));
  }
  return arrow::Status::OK();
}

// Far above any table's: BigQuery takes 10,000 columns, and a line of bq's JSON is about a hundred bytes.
constexpr int64_t kMaxSchemaBytes = int64_t{16} << 20;

}  // namespace

arrow::Status RefuseSecrets(const OptionValues& values) {
  auto given = values.find("credentials");
  if (given == values.end()) return arrow::Status::OK();
  const std::string& text = given->second;
  bool looks_secret = text.find('{') != std::string::npos || text.find('\n') != std::string::npos || text.starts_with("ya29.") ||
                      text.find("PRIVATE KEY") != std::string::npos;
  if (!looks_secret) return arrow::Status::OK();
  return InvalidOption("credentials",
                       "credentials holds a key or token itself: put a key into a file and give its path, or a token into an "
                       "environment variable and give token:ENV_NAME");
}

arrow::Status CheckOptions(OptionVerb verb, const std::optional<Address>& source, const std::optional<Address>& destination,
                           const OptionValues& values) {
  unsigned places = kOutput | kCommandLine;
  if (source) places |= IsFiles(*source) ? kFileSource : kBigQuerySource;
  if (destination) places |= kFileSink;
  if (verb == kCopy || verb == kResume) places |= kJob;
  if (verb == kSchema) places |= kSchemaOutput;
  if (verb == kBench) places |= kMeasurement;
  if (verb == kServeVerb) places |= kServe;
  for (const auto& [name, text] : values) {
    const Option* option = FindOption(name);
    if (option == nullptr || (option->verbs & verb) == 0) return RefuseOption(name, verb);
    ARROW_RETURN_NOT_OK(CheckValue(*option, text));
    if ((option->places & places) == 0) {
      return InvalidOption(name, fmt::format("{} does nothing here: it applies to {}, and there is none", CommandLineName(name),
                                             PlacesText(option->places)));
    }
  }
  // Of a resume it is known only beside what the checkpoint says.
  if ((verb == kCopy || verb == kPlan) && source)
    ARROW_RETURN_NOT_OK(CheckConditions(values, {*source, values, values.contains("checkpoint")}));
  return RefuseSecrets(values);
}

arrow::Result<bigquery::SourceOptions> MakeSourceOptions(const Address& source, const OptionValues& values) {
  ARROW_RETURN_NOT_OK(RefuseSecrets(values));
  bigquery::SourceOptions options{.table = source.target};
  ARROW_RETURN_NOT_OK(Apply(kSourceSetters, values, options));
  return options;
}

arrow::Result<FileSourceOptions> MakeFileSourceOptions(const Address& source, const OptionValues& values) {
  // Absolute, as a resumed job may start in another directory and the plan in the checkpoint names the files.
  Address absolute = Absolute(source, AddressRole::kSource);
  FileSourceOptions options{.paths = {absolute.target}};
  options.paths.insert(options.paths.end(), absolute.further.begin(), absolute.further.end());
  ARROW_RETURN_NOT_OK(Apply(kFileSourceSetters, values, options));
  return options;
}

arrow::Result<FileSinkOptions> MakeSinkOptions(const Address& destination, const OptionValues& values) {
  FileSinkOptions options{.path = destination.target};
  ARROW_RETURN_NOT_OK(Apply(kSinkSetters, values, options));
  return options;
}

arrow::Result<JobOptions> MakeJobOptions(const Address& source, const Address& destination, const OptionValues& values) {
  JobOptions options;
  ARROW_RETURN_NOT_OK(Apply(kJobSetters, values, options));
  if (options.job_name.empty()) options.job_name = StableJobName(source, destination, values);
  options.configuration = ToMap({source, destination, values});
  return options;
}

arrow::Result<MeasureOptions> MakeMeasureOptions(const OptionValues& values) {
  MeasureOptions options;
  ARROW_RETURN_NOT_OK(Apply(kMeasureSetters, values, options));
  return options;
}

arrow::Status ReadNamedFiles(FileSystem* files, OptionValues* values) {
  auto schema = values->find("schema");
  if (schema == values->end()) return arrow::Status::OK();
  size_t first = schema->second.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (schema->second[first] == '[' || schema->second[first] == '{')) return arrow::Status::OK();
  ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(schema->second));
  if (!entry) return InvalidOption("schema", fmt::format("schema names the file '{}', which does not exist", schema->second));
  auto content = files->ReadAll(schema->second, kMaxSchemaBytes);
  if (!content.ok()) return InvalidOption("schema", fmt::format("schema names a file that cannot be used: {}", content.status().message()));
  schema->second = *std::move(content);
  return arrow::Status::OK();
}

arrow::Result<std::shared_ptr<const Source>> MakeSource(const Address& source, const OptionValues& values) {
  if (IsFiles(source)) {
    ARROW_ASSIGN_OR_RAISE(auto options, MakeFileSourceOptions(source, values));
    return FileSource::Make(std::move(options));
  }
  ARROW_ASSIGN_OR_RAISE(auto options, MakeSourceOptions(source, values));
  return bigquery::Source::Make(std::move(options));
}

arrow::Result<std::shared_ptr<const Sink>> MakeSink(const Address& destination, const OptionValues& values) {
  ARROW_ASSIGN_OR_RAISE(auto options, MakeSinkOptions(destination, values));
  return FileSink::Make(std::move(options));
}

std::string StableJobName(const Address& source, const Address& destination, const OptionValues& values) {
  // FNV-1a (draft-eastlake-fnv: 64-bit offset basis and prime): the name must be the same in every build, which std::hash does not promise.
  uint64_t hash = 0xcbf29ce484222325;
  auto add = [&hash](std::string_view text) {
    for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;  // no byte of UTF-8: keeps "ab","c" and "a","bc" apart
  };
  Address absolute = Absolute(source, AddressRole::kSource);
  add(absolute.target);
  for (const std::string& path : absolute.further) add(path);
  add(Absolute(destination, AddressRole::kDestination).target);
  for (const auto& [name, text] : values) {
    const Option* option = FindOption(name);
    if (option == nullptr || (option->places & (kBigQuerySource | kFileSource | kFileSink)) == 0 || (option->verbs & kResume) != 0)
      continue;
    add(name);
    add(text);
  }
  return fmt::format("headrace-copy-{:016x}", hash);
}

std::map<std::string, std::string> ToMap(const Configuration& configuration) {
  std::map<std::string, std::string> map;
  for (const auto& [name, text] : configuration.values) {
    const Option* option = FindOption(name);
    if (option != nullptr && ConcernsOneRun(*option)) continue;
    map[name] = IsPath(name, text) ? AbsolutePath(text) : text;
  }
  Address source = Absolute(configuration.source, AddressRole::kSource);
  map["source"] = source.text;
  for (size_t i = 0; i < source.further.size(); ++i) map[SourceKey(i + 2)] = source.further[i];
  map["destination"] = Absolute(configuration.destination, AddressRole::kDestination).text;
  return map;
}

arrow::Result<Configuration> FromMap(const std::map<std::string, std::string>& map) {
  Configuration configuration;
  auto damaged = [](std::string message) {
    return MakeError({.code = Code::kDataLoss, .service = "checkpoint", .reason = "BAD_CONFIGURATION"},
                     "the configuration in the checkpoint cannot be used: " + std::move(message));
  };
  for (const auto& [name, text] : map) {
    if (name == "source" || name.starts_with("source ") || name == "destination") continue;
    const Option* option = FindOption(name);
    if (option == nullptr) return damaged(fmt::format("it has the option '{}', which this version does not know", name));
    ARROW_RETURN_NOT_OK(CheckValue(*option, text));
    configuration.values[name] = text;
  }
  auto source = map.find("source");
  auto destination = map.find("destination");
  if (source == map.end() || destination == map.end()) {
    return damaged(fmt::format("it names no {}", source == map.end() ? "source" : "destination"));
  }
  std::vector<std::string> sources;
  for (; source != map.end(); source = map.find(SourceKey(sources.size() + 1))) sources.push_back(source->second);
  ARROW_ASSIGN_OR_RAISE(configuration.source, ParseSources(sources));
  ARROW_ASSIGN_OR_RAISE(configuration.destination, ParseAddress(destination->second, AddressRole::kDestination));
  return configuration;
}

arrow::Result<OptionValues> MergeForResume(const Configuration& persisted, const OptionValues& given) {
  ARROW_RETURN_NOT_OK(CheckOptions(kResume, persisted.source, persisted.destination, given));
  OptionValues merged = persisted.values;
  for (const auto& [name, text] : given) merged[name] = text;
  // Only what is new: the first run took what is persisted.
  OptionValues changed;
  std::ranges::set_difference(given, persisted.values, std::inserter(changed, changed.end()));
  ARROW_RETURN_NOT_OK(CheckConditions(changed, {persisted.source, merged, /*checkpoints=*/true}));
  return merged;
}

}  // namespace headrace::catalog
