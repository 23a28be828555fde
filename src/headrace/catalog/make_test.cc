#include "headrace/catalog/make.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/random.h"
#include "headrace/catalog/nearest_word.h"
#include "headrace/runtime/job.h"

namespace headrace::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Address kTable{AddressKind::kBigQuery, "bq:p.d.t", "p.d.t"};
const Address kDirectory{AddressKind::kLocalPath, "/tmp/out/", "/tmp/out/"};

// One row per option and place: the value given, and whether it arrived. A new option without a row fails EveryOptionHasARow.
struct SourceRow {
  std::string name;
  std::string text;
  std::function<bool(const bigquery::SourceOptions&)> arrived;
};
const SourceRow kSourceRows[] = {
    {"selected_fields", "b.c,a", [](auto& o) { return o.selected_fields == std::vector<std::string>{"b.c", "a"}; }},
    {"row_restriction", "x > 1", [](auto& o) { return o.row_restriction == "x > 1"; }},
    {"snapshot_time", "1970-01-01T01:00:00+01:00", [](auto& o) { return o.snapshot_time == SystemTime{}; }},
    {"sample_percentage", "12.5", [](auto& o) { return o.sample_percentage == 12.5; }},
    {"max_stream_count", "7", [](auto& o) { return o.max_stream_count == 7; }},
    {"preferred_min_stream_count", "3", [](auto& o) { return o.preferred_min_stream_count == 3; }},
    {"ordered", "true", [](auto& o) { return o.ordered; }},
    {"source_format", "avro", [](auto& o) { return o.source_format == bigquery::SourceFormat::kAvro; }},
    {"compression", "zstd", [](auto& o) { return o.compression == bigquery::Compression::kZstd; }},
    {"response_compression", "lz4", [](auto& o) { return o.response_compression == bigquery::ResponseCompression::kLz4; }},
    {"timestamp_precision", "nanos", [](auto& o) { return o.timestamp_precision == TimestampPrecision::kNanos; }},
    {"max_rows_per_batch", "10", [](auto& o) { return o.max_rows_per_batch == 10; }},
    {"max_bytes_per_batch", "4MiB", [](auto& o) { return o.max_bytes_per_batch == 4 << 20; }},
    {"retry_max_attempts", "2", [](auto& o) { return o.retry_max_attempts == 2; }},
    {"billing_project", "payer", [](auto& o) { return o.billing_project == "payer"; }},
    {"quota_project", "quota", [](auto& o) { return o.quota_project == "quota"; }},
    {"credentials", "none", [](auto& o) { return o.credentials == "none"; }},
    {"ca_bundle", "ca.pem", [](auto& o) { return o.ca_bundle == "ca.pem"; }},
    {"bigquery_storage_endpoint", "http://h:1", [](auto& o) { return o.bigquery_storage_endpoint == "http://h:1"; }},
    {"channels", "5", [](auto& o) { return o.channels == 5; }},
    {"connect_limit", "3s", [](auto& o) { return o.connect_limit.count() == 3000; }},
    {"attempt_limit", "4s", [](auto& o) { return o.attempt_limit.count() == 4000; }},
    {"idle_limit", "5s", [](auto& o) { return o.idle_limit.count() == 5000; }},
    {"total_limit", "6s", [](auto& o) { return o.total_limit.count() == 6000; }},
};

const Address kFiles{AddressKind::kLocalPath, "/tmp/in/", "/tmp/in/"};

struct FileSourceRow {
  std::string name;
  std::string text;
  std::function<bool(const FileSourceOptions&)> arrived;
};
const FileSourceRow kFileSourceRows[] = {
    {"from_format", "ndjson", [](auto& o) { return o.from_format == "ndjson"; }},
    {"selected_fields", "b,a", [](auto& o) { return o.selected_fields == std::vector<std::string>{"b", "a"}; }},
    {"schema", "[]", [](auto& o) { return o.schema == "[]"; }},
    {"csv_header", "false", [](auto& o) { return o.csv_header == false; }},
    {"csv_null_values", ",NA", [](auto& o) { return o.csv_null_values == std::vector<std::string>{"", "NA"}; }},
    {"max_rows_per_batch", "10", [](auto& o) { return o.max_rows_per_batch == 10; }},
    {"max_bytes_per_batch", "4MiB", [](auto& o) { return o.max_bytes_per_batch == 4 << 20; }},
    {"strict", "true", [](auto& o) { return o.strict == true; }},
    {"rounding", "half_even", [](auto& o) { return o.rounding == "half_even"; }},
    {"epoch_unit", "millis", [](auto& o) { return o.epoch_unit == "millis"; }},
    {"ignore_unknown_values", "true", [](auto& o) { return o.ignore_unknown_values == true; }},
    {"split_bytes", "1MiB", [](auto& o) { return o.split_bytes == 1 << 20; }},
};

struct MeasureRow {
  std::string name;
  std::string text;
  std::function<bool(const MeasureOptions&)> arrived;
};
const MeasureRow kMeasureRows[] = {
    {"ordered", "true", [](auto& o) { return o.ordered; }},
    {"readers", "3", [](auto& o) { return o.readers == 3; }},
    {"memory_limit", "1GiB", [](auto& o) { return o.memory_limit == 1 << 30; }},
    {"duration", "5s", [](auto& o) { return o.duration == std::chrono::seconds{5}; }},
};

struct SinkRow {
  std::string name;
  std::string text;
  std::function<bool(const FileSinkOptions&)> arrived;
};
const SinkRow kSinkRows[] = {
    {"overwrite", "true", [](auto& o) { return o.overwrite; }},
    {"format", "csv", [](auto& o) { return o.format == "csv"; }},
    {"parquet_compression", "gzip", [](auto& o) { return o.parquet_compression == "gzip"; }},
    {"parquet_row_group_rows", "11", [](auto& o) { return o.parquet_row_group_rows == 11; }},
    {"parquet_row_group_bytes", "1MiB", [](auto& o) { return o.parquet_row_group_bytes == 1 << 20; }},
    {"arrow_compression", "lz4", [](auto& o) { return o.arrow_compression == "lz4"; }},
    {"avro_compression", "zstd", [](auto& o) { return o.avro_compression == "zstd"; }},
    {"csv_compression", "gzip", [](auto& o) { return o.csv_compression == "gzip"; }},
    {"csv_null_value", "NULL", [](auto& o) { return o.csv_null_value == "NULL"; }},
    {"csv_nested", "json", [](auto& o) { return o.csv_nested == "json"; }},
    {"ndjson_compression", "zstd", [](auto& o) { return o.ndjson_compression == "zstd"; }},
    {"max_file_bytes", "2MiB", [](auto& o) { return o.max_file_bytes == 2 << 20; }},
};

struct JobRow {
  std::string name;
  std::string text;
  std::function<bool(const JobOptions&)> arrived;
};
const JobRow kJobRows[] = {
    {"job_name", "nightly", [](auto& o) { return o.job_name == "nightly"; }},
    {"ordered", "true", [](auto& o) { return o.ordered; }},
    {"readers", "3", [](auto& o) { return o.readers == 3; }},
    {"writers", "2", [](auto& o) { return o.writers == 2; }},
    {"work_sharing", "false", [](auto& o) { return !o.work_sharing; }},
    {"memory_limit", "1GiB", [](auto& o) { return o.memory_limit == 1 << 30; }},
    {"checkpoint", "./c", [](auto& o) { return o.checkpoint == "./c"; }},
    {"checkpoint_interval", "250ms", [](auto& o) { return o.checkpoint_interval.count() == 250; }},
    {"restart_attempts", "4", [](auto& o) { return o.restart_attempts == 4; }},
    {"restart_delay", "2s", [](auto& o) { return o.restart_delay.count() == 2000; }},
    {"max_rows_per_second", "100.5", [](auto& o) { return o.max_rows_per_second == 100.5; }},
    {"max_bytes_per_second", "1MiB", [](auto& o) { return o.max_bytes_per_second == 1048576.0; }},
};

template <typename Rows>
std::set<std::string> NamesOf(const Rows& rows) {
  std::set<std::string> names;
  for (const auto& row : rows) names.insert(row.name);
  return names;
}

TEST(Make, EveryOptionHasARow) {
  auto source = NamesOf(kSourceRows);
  auto files = NamesOf(kFileSourceRows);
  auto sink = NamesOf(kSinkRows);
  auto job = NamesOf(kJobRows);
  auto measure = NamesOf(kMeasureRows);
  for (const Option& option : Options()) {
    std::string name(option.name);
    if (option.hidden) continue;  // armed by the program; tests/kill sees it work
    if ((option.places & kBigQuerySource) != 0) {
      EXPECT_EQ(source.erase(name), 1u) << name << " has no row in kSourceRows";
    }
    if ((option.places & kFileSource) != 0) {
      EXPECT_EQ(files.erase(name), 1u) << name << " has no row in kFileSourceRows";
    }
    if ((option.places & kFileSink) != 0) {
      EXPECT_EQ(sink.erase(name), 1u) << name << " has no row in kSinkRows";
    }
    if ((option.places & kJob) != 0) {
      EXPECT_EQ(job.erase(name), 1u) << name << " has no row in kJobRows";
    }
    if ((option.places & kMeasurement) != 0) {
      EXPECT_EQ(measure.erase(name), 1u) << name << " has no row in kMeasureRows";
    }
  }
  EXPECT_TRUE(source.empty() && files.empty() && sink.empty() && job.empty() && measure.empty())
      << "a row for an option that does not exist";
}

TEST(Make, EveryOptionArrivesAndIsNotThereByDefault) {
  for (const SourceRow& row : kSourceRows) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.arrived(*MakeSourceOptions(kTable, {})));
    auto made = MakeSourceOptions(kTable, {{row.name, row.text}});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->table, "p.d.t");
    EXPECT_TRUE(row.arrived(*made));
  }
  for (const FileSourceRow& row : kFileSourceRows) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.arrived(*MakeFileSourceOptions(kFiles, {})));
    auto made = MakeFileSourceOptions(kFiles, {{row.name, row.text}});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->paths, std::vector<std::string>{"/tmp/in/"});
    EXPECT_TRUE(row.arrived(*made));
  }
  for (const SinkRow& row : kSinkRows) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.arrived(*MakeSinkOptions(kDirectory, {})));
    auto made = MakeSinkOptions(kDirectory, {{row.name, row.text}});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->path, "/tmp/out/");
    EXPECT_TRUE(row.arrived(*made));
  }
  for (const MeasureRow& row : kMeasureRows) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.arrived(*MakeMeasureOptions({})));
    auto made = MakeMeasureOptions({{row.name, row.text}});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(row.arrived(*made));
  }
  for (const JobRow& row : kJobRows) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.arrived(*MakeJobOptions(kTable, kDirectory, {})));
    auto made = MakeJobOptions(kTable, kDirectory, {{row.name, row.text}});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(row.arrived(*made));
  }
}

TEST(Make, WrongValuesAreRefusedAlone) {
  struct Case {
    std::string name;
    std::string text;
  };
  for (const Case& one : {
           Case{"selected_fields", "a,,b"},
           Case{"selected_fields", "a,A"},
           Case{"selected_fields", "a..b"},
           Case{"row_restriction", "  "},
           Case{"snapshot_time", "yesterday"},
           Case{"snapshot_time", "2024-05-01T10:00:00"},
           Case{"sample_percentage", "0"},
           Case{"sample_percentage", "100"},
           Case{"sample_percentage", "half"},
           Case{"max_stream_count", "-1"},
           Case{"max_stream_count", "99999999999"},
           Case{"preferred_min_stream_count", "-1"},
           Case{"ordered", "maybe"},
           Case{"source_format", "csv"},
           Case{"compression", "gzip"},
           Case{"response_compression", "zstd"},
           Case{"timestamp_precision", "millis"},
           Case{"max_rows_per_batch", "0"},
           Case{"max_bytes_per_batch", "0"},
           Case{"retry_max_attempts", "0"},
           Case{"billing_project", "a/b"},
           Case{"quota_project", " a"},
           Case{"credentials", "token:"},
           Case{"bigquery_storage_endpoint", "http://h:0"},
           Case{"bigquery_storage_endpoint", "http://h:1x"},
           Case{"channels", "-1"},
           Case{"connect_limit", "soon"},
           Case{"attempt_limit", "-1s"},
           Case{"idle_limit", "1 s"},
           Case{"total_limit", "x"},
       }) {
    SCOPED_TRACE(one.name + " = " + one.text);
    auto status = MakeSource(kTable, {{one.name, one.text}}).status();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(GetErrorInfo(status)->resource, one.name) << status;
    EXPECT_THAT(status.message(), HasSubstr(one.name));
  }
  for (const Case& one : {Case{"from_format", "word"}, Case{"selected_fields", "a,,b"}, Case{"selected_fields", "a,A"},
                          Case{"schema", "[{}]"}, Case{"csv_header", "maybe"}, Case{"strict", "1"}, Case{"rounding", "up"},
                          Case{"epoch_unit", "hours"}, Case{"ignore_unknown_values", "no"}, Case{"csv_header", "false"},
                          Case{"max_rows_per_batch", "0"}, Case{"max_bytes_per_batch", "0"}, Case{"split_bytes", "0"}}) {
    SCOPED_TRACE(one.name + " = " + one.text);
    EXPECT_FALSE(MakeSource(kFiles, {{one.name, one.text}}).ok());
  }
  for (const Case& one :
       {Case{"format", "word"}, Case{"arrow_compression", "gzip"}, Case{"overwrite", "1"}, Case{"parquet_compression", "lzo"},
        Case{"parquet_row_group_rows", "0"}, Case{"parquet_row_group_bytes", "-1"}, Case{"max_file_bytes", "-5"}}) {
    SCOPED_TRACE(one.name + " = " + one.text);
    EXPECT_FALSE(MakeSink(kDirectory, {{one.name, one.text}}).ok());
  }
}

TEST(Make, CombinationsAreRefused) {
  // spec options: preferred above max.
  auto streams = MakeSource(kTable, {{"max_stream_count", "2"}, {"preferred_min_stream_count", "3"}}).status();
  EXPECT_THAT(streams.message(), HasSubstr("preferred_min_stream_count"));
  EXPECT_THAT(streams.message(), HasSubstr("max_stream_count"));
  EXPECT_FALSE(MakeSource(kTable, {{"ordered", "true"}, {"max_stream_count", "2"}}).ok());
  EXPECT_FALSE(MakeSource(kTable, {{"credentials", "adc"}, {"bigquery_storage_endpoint", "http://h:1"}}).ok());
  EXPECT_FALSE(MakeSource(kTable, {{"ca_bundle", "ca.pem"}, {"bigquery_storage_endpoint", "http://h:1"}}).ok());
  Address file{AddressKind::kLocalPath, "a.parquet", "a.parquet"};
  EXPECT_FALSE(MakeSink(file, {{"max_file_bytes", "1MiB"}}).ok());
}

TEST(Make, StandardStreamsNeedAFormat) {
  Address stream{AddressKind::kStandardStream, "-", "-"};
  EXPECT_EQ(GetErrorInfo(MakeSource(stream, {}).status())->resource, "from_format");
  EXPECT_EQ(GetErrorInfo(MakeSink(stream, {}).status())->resource, "format");
  EXPECT_TRUE(MakeSource(stream, {{"from_format", "arrows"}}).ok());
  EXPECT_TRUE(MakeSink(stream, {{"format", "arrows"}}).ok());
}

TEST(Make, OptionsOfOtherFormatsAreRefusedByName) {
  struct Case {
    std::string format;
    std::string name;
    std::string text;
  };
  for (const Case& one :
       {Case{"csv", "parquet_compression", "zstd"}, Case{"ndjson", "csv_null_value", "NULL"}, Case{"avro", "csv_nested", "json"},
        Case{"csv", "ndjson_compression", "gzip"}, Case{"parquet", "csv_compression", "gzip"}, Case{"arrows", "avro_compression", "zstd"},
        Case{"parquet", "arrow_compression", "zstd"}, Case{"arrow", "parquet_row_group_rows", "5"}}) {
    auto status = MakeSink(kDirectory, {{"format", one.format}, {one.name, one.text}}).status();
    EXPECT_THAT(status.message(), HasSubstr(one.name + " does nothing here: the format is " + one.format));
  }
  for (const Case& one : {Case{"parquet", "csv_null_values", "NA"}, Case{"avro", "schema", "[]"}}) {
    auto status = MakeSource(kFiles, {{"from_format", one.format}, {one.name, one.text}}).status();
    EXPECT_THAT(status.message(), HasSubstr(one.name + " does nothing here: the format is " + one.format));
  }
}

TEST(Make, ASchemaIsAFileOrItsContent) {
  std::string path = ::testing::TempDir() + "/schema-" + SystemRandom()->Hex(8) + ".json";
  std::ofstream(path) << R"([{"name": "a", "type": "INT64"}])";
  OptionValues named{{"schema", path}};
  ASSERT_TRUE(ReadNamedFiles(LocalFileSystem(), &named).ok());
  std::filesystem::remove(path);
  EXPECT_EQ(named["schema"], R"([{"name": "a", "type": "INT64"}])");
  OptionValues given{{"schema", R"( {"fields": []})"}};
  ASSERT_TRUE(ReadNamedFiles(LocalFileSystem(), &given).ok());
  EXPECT_EQ(given["schema"], R"( {"fields": []})");
  OptionValues absent{{"schema", "absent.json"}};
  EXPECT_THAT(ReadNamedFiles(LocalFileSystem(), &absent).message(), HasSubstr("'absent.json', which does not exist"));
  EXPECT_EQ(ToMap({kFiles, kDirectory, named})["schema"], named["schema"]) << "a resumed job reads what the first run read";
}

TEST(Make, OptionsThatActOnNothingAreRefused) {
  EXPECT_TRUE(CheckOptions(kCopy, kTable, kDirectory, {{"overwrite", "true"}, {"readers", "2"}, {"json", "true"}}).ok());
  auto load = CheckOptions(kCopy, kTable, kDirectory, {{"load", "a.b.c=d"}});
  EXPECT_THAT(load.message(), HasSubstr("--load does not apply to copy"));
  auto format = CheckOptions(kPlan, kTable, std::nullopt, {{"format", "parquet"}});
  EXPECT_THAT(format.message(), HasSubstr("--format does nothing here: it applies to a file destination"));
  auto restriction = CheckOptions(kSchema, Address{AddressKind::kLocalPath, "a.csv", "a.csv"}, std::nullopt, {{"row_restriction", "x"}});
  EXPECT_THAT(restriction.message(), HasSubstr("it applies to a BigQuery source"));
  auto header = CheckOptions(kCopy, kTable, kDirectory, {{"csv_header", "false"}});
  EXPECT_THAT(header.message(), HasSubstr("--csv-header does nothing here: it applies to a file source, and there is none"));
  EXPECT_TRUE(CheckOptions(kCopy, kFiles, kDirectory, {{"selected_fields", "a"}, {"from_format", "csv"}}).ok());
  auto unknown = CheckOptions(kCopy, kTable, kDirectory, {{"reeders", "2"}});
  EXPECT_THAT(unknown.message(), HasSubstr("did you mean --readers?"));
}

TEST(Make, OptionsThatActBesideOthersOnlyAreRefusedWithoutThem) {
  const struct {
    Address source;
    OptionValues values;
    std::string refused;  // "" = none
  } cases[] = {
      {kTable, {{"checkpoint_interval", "5s"}}, "checkpoint_interval"},
      {kTable, {{"checkpoint_interval", "5s"}, {"checkpoint", "c"}}, ""},
      {kTable, {{"restart_delay", "5s"}, {"checkpoint", "c"}}, "restart_delay"},
      {kTable, {{"restart_delay", "5s"}, {"restart_attempts", "0"}, {"checkpoint", "c"}}, "restart_delay"},
      {kTable, {{"restart_delay", "5s"}, {"restart_attempts", "2"}, {"checkpoint", "c"}}, ""},
      {kTable, {{"work_sharing", "false"}}, ""},
      {kTable, {{"work_sharing", "true"}}, ""},
      {kTable, {{"work_sharing", "true"}, {"ordered", "false"}}, ""},
      {kTable, {{"work_sharing", "true"}, {"ordered", "true"}}, "work_sharing"},
      {kFiles, {{"work_sharing", "true"}}, "work_sharing"},
      {kFiles, {{"work_sharing", "false"}}, "work_sharing"},
  };
  for (const auto& [source, values, refused] : cases) {
    SCOPED_TRACE(::testing::PrintToString(values));
    auto status = CheckOptions(kCopy, source, kDirectory, values);
    EXPECT_EQ(status.ok(), refused.empty()) << status;
    if (refused.empty()) continue;
    EXPECT_EQ(GetErrorInfo(status)->resource, refused);
    EXPECT_THAT(status.message(), HasSubstr(CommandLineName(refused) + " does nothing here"));
  }
}

TEST(Make, APriceIsOfBigQueryOnly) {
  EXPECT_TRUE(CheckOptions(kPlan, kTable, std::nullopt, {{"price_per_tib", "1.1"}}).ok());
  auto files = CheckOptions(kPlan, kFiles, std::nullopt, {{"price_per_tib", "1.1"}});
  EXPECT_THAT(files.message(), HasSubstr("--price-per-tib does nothing here: reading files costs nothing"));
}

TEST(Make, AResumeIsRefusedForWhatIsGivenNotForWhatIsPersisted) {
  // The configuration of a copy with a checkpoint; an earlier release may have taken more.
  Configuration files{kFiles, kDirectory, {{"work_sharing", "true"}, {"restart_delay", "5s"}, {"checkpoint_interval", "5s"}}};
  EXPECT_TRUE(MergeForResume(files, {}).ok());
  EXPECT_TRUE(MergeForResume(files, {{"checkpoint_interval", "1s"}, {"restart_attempts", "2"}}).ok());
  EXPECT_TRUE(MergeForResume(files, {{"restart_attempts", "2"}, {"restart_delay", "1s"}}).ok());
  EXPECT_TRUE(MergeForResume(files, files.values).ok()) << "what --print-config says of it is taken back";
  EXPECT_THAT(MergeForResume(files, {{"restart_delay", "1s"}}).status().message(), HasSubstr("--restart-delay does nothing here"));
  EXPECT_THAT(MergeForResume(files, {{"work_sharing", "false"}}).status().message(), HasSubstr("--work-sharing does nothing here"));
  Configuration ordered{kTable, kDirectory, {{"ordered", "true"}, {"restart_attempts", "2"}}};
  EXPECT_TRUE(MergeForResume(ordered, {{"restart_delay", "1s"}}).ok());
  EXPECT_THAT(MergeForResume(ordered, {{"work_sharing", "false"}}).status().message(), HasSubstr("--ordered has one reader"));
}

TEST(Make, SecretsAreRefusedAndNotRepeated) {
  for (std::string secret : {R"({"type":"service_account","private_key":"S3CRET"})", "ya29.S3CRET", "-----BEGIN PRIVATE KEY-----S3CRET"}) {
    auto status = CheckOptions(kCopy, kTable, kDirectory, {{"credentials", secret}});
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.message(), Not(HasSubstr("S3CRET")));
    EXPECT_FALSE(MakeSourceOptions(kTable, {{"credentials", secret}}).ok());
  }
}

TEST(Make, ConfigurationSurvivesAndHasAbsolutePaths) {
  Configuration given{kTable,
                      {AddressKind::kLocalPath, "out/", "out/"},
                      {{"row_restriction", "x > 1"},
                       {"credentials", "key.json"},
                       {"ca_bundle", "ca.pem"},
                       {"json", "true"},
                       {"quiet", "true"},
                       {"checkpoint", "c"}}};
  auto map = ToMap(given);
  EXPECT_EQ(map.count("json") + map.count("quiet") + map.count("checkpoint"), 0u) << "these concern one run only";
  EXPECT_EQ(map["source"], "bq:p.d.t");
  EXPECT_THAT(map["destination"], ::testing::MatchesRegex("/.*out/"));
  EXPECT_THAT(map["credentials"], ::testing::MatchesRegex("/.*key.json"));
  EXPECT_THAT(map["ca_bundle"], ::testing::MatchesRegex("/.*ca.pem"));
  auto back = FromMap(map);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->source, kTable);
  EXPECT_EQ(back->values.at("row_restriction"), "x > 1");
  EXPECT_EQ(ToMap(*back), map);
}

TEST(Make, SourcesOfFilesSurvive) {
  Configuration given{{AddressKind::kLocalPath, "a.csv", "a.csv", {"b.csv", "/c/d.csv"}}, kDirectory, {{"from_format", "csv"}}};
  auto map = ToMap(given);
  EXPECT_THAT(map["source"], ::testing::MatchesRegex("/.*/a.csv"));
  auto back = FromMap(map);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->source.further.size(), 2u);
  EXPECT_EQ(back->source.further[1], "/c/d.csv");
  EXPECT_EQ(ToMap(*back), map);
  EXPECT_EQ(StableJobName(given.source, kDirectory, {}), StableJobName(back->source, kDirectory, {}));
  EXPECT_NE(StableJobName(given.source, kDirectory, {}), StableJobName({AddressKind::kLocalPath, "a.csv", "a.csv"}, kDirectory, {}));
}

TEST(Make, EverySetOptionOfAJobIsPersisted) {
  for (const Option& option : Options()) {
    bool belongs_to_the_job = !option.hidden && (option.verbs & kCopy) != 0 && (option.places & ~unsigned{kOutput | kCommandLine}) != 0;
    if (!belongs_to_the_job || option.name == "checkpoint") continue;
    auto map = ToMap({kTable, kDirectory, {{std::string(option.name), std::string(option.example)}}});
    EXPECT_EQ(map.count(std::string(option.name)), 1u) << option.name;
  }
  // How the program was called and what it prints are of one run.
  for (const char* name : {"config", "print_config", "json", "checkpoint"}) {
    EXPECT_EQ(ToMap({kTable, kDirectory, {{name, "true"}}}).count(name), 0u) << name;
  }
}

/// What the option's own part of the library says to a value, without the table's check before it.
arrow::Status TakenBy(const Option& option, const std::string& value) {
  std::string name(option.name);
  OptionValues values{{name, value}};
  if ((option.places & kBigQuerySource) != 0) return MakeSourceOptions(kTable, values).status();
  if ((option.places & kFileSource) != 0) {
    if (name != "from_format") values["from_format"] = "csv";
    return MakeSource(kFiles, values).status();
  }
  // parquet_compression acts on Parquet only, and so on.
  if (name != "format") values["format"] = name.substr(0, name.find('_'));
  return MakeSink(kDirectory, values).status();
}

TEST(Make, TheTablesWordsAreThoseOfTheLibrary) {
  int checked = 0;
  for (const Option& option : Options()) {
    if (!option.takes_only_words() || option.places == kServe) continue;
    ++checked;
    for (std::string_view word : SplitWords(option.words)) {
      EXPECT_EQ(TakenBy(option, std::string(word)), arrow::Status::OK()) << option.name << " " << word;
    }
    EXPECT_FALSE(TakenBy(option, "nonsense").ok()) << option.name;
  }
  EXPECT_EQ(checked, 14);
}

TEST(Make, DamagedConfigurationsAreRefused) {
  EXPECT_THAT(FromMap({{"source", "bq:p.d.t"}}).status().message(), HasSubstr("names no destination"));
  EXPECT_THAT(FromMap({{"destination", "/o/"}}).status().message(), HasSubstr("names no source"));
  EXPECT_THAT(FromMap({{"source", "bq:p.d.t"}, {"destination", "/o/"}, {"new_option", "1"}}).status().message(), HasSubstr("'new_option'"));
  EXPECT_FALSE(FromMap({{"source", "bq:p.d.t"}, {"destination", "/o/"}, {"readers", "many"}}).ok());
}

TEST(Make, ResumeTakesOnlyWhatMayChange) {
  Configuration persisted{kTable, kDirectory, {{"readers", "2"}, {"restart_attempts", "1"}, {"row_restriction", "x > 1"}}};
  auto merged = MergeForResume(persisted, {{"readers", "8"}, {"writers", "3"}});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(*merged, (OptionValues{{"readers", "8"}, {"restart_attempts", "1"}, {"writers", "3"}, {"row_restriction", "x > 1"}}));
  for (const Option& option : Options()) {
    if (option.hidden || (option.verbs & kCopy) == 0) continue;
    bool may_change = (option.verbs & kResume) != 0;
    auto status = MergeForResume(persisted, {{std::string(option.name), std::string(option.example)}}).status();
    EXPECT_EQ(status.ok(), may_change) << option.name << ": " << status;
    if (!may_change) {
      EXPECT_THAT(status.message(), HasSubstr(CommandLineName(option.name)));
    }
  }
}

TEST(Make, JobNamesFollowFromWhatIsCopied) {
  auto name = [](const OptionValues& values) { return StableJobName(kTable, kDirectory, values); };
  EXPECT_EQ(name({}), name({}));
  EXPECT_THAT(name({}), ::testing::MatchesRegex("headrace-copy-[0-9a-f]{16}"));
  EXPECT_NE(name({}), name({{"row_restriction", "x"}}));
  EXPECT_EQ(name({}), name({{"readers", "4"}, {"json", "true"}, {"credentials", "none"}})) << "how it runs is not what it copies";
  EXPECT_NE(name({}), StableJobName({AddressKind::kBigQuery, "bq:p.d.u", "p.d.u"}, kDirectory, {}));
  EXPECT_EQ(MakeJobOptions(kTable, kDirectory, {})->job_name, name({}));
}

}  // namespace
}  // namespace headrace::catalog
