#include "headrace/bigquery/read/options.h"

#include <cstdlib>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/bigquery/read/source.h"

namespace headrace::bigquery {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

SourceOptions Good() { return {.table = "p.d.t"}; }

struct Case {
  std::function<void(SourceOptions&)> change;
  std::string says;  // empty = accepted
  Code code = Code::kInvalidArgument;
};

// Specs 1, 6, 7, 10, 11, 12; facts 1.1.
TEST(SourceOptions, EachRefusalNamesItsOption) {
  const Case cases[] = {
      {[](auto&) {}, ""},
      {[](auto& o) { o.table = ""; }, "a table is required"},
      {[](auto& o) { o.table = "d.t"; }, "billing_project"},
      {[](auto& o) { o.table = "d.t", o.billing_project = "b"; }, ""},
      {[](auto& o) { o.table = "p.d.t$20260101"; }, "decorator", Code::kUnimplemented},
      {[](auto& o) { o.billing_project = " b"; }, "billing_project"},
      {[](auto& o) { o.billing_project = "a/b"; }, "billing_project"},
      {[](auto& o) { o.quota_project = "a/b"; }, "quota_project"},
      {[](auto& o) { o.selected_fields = {"a", "b.c", "b.d"}; }, ""},
      {[](auto& o) { o.selected_fields = {"a", ""}; }, "selected_fields holds a blank"},
      {[](auto& o) { o.selected_fields = {" \t"}; }, "selected_fields holds a blank"},
      {[](auto& o) { o.selected_fields = {"a", "b", "a"}; }, "selected_fields names \"a\" twice"},
      {[](auto& o) { o.selected_fields = {"Name", "name"}; }, "selected_fields names \"name\" twice"},
      {[](auto& o) { o.row_restriction = "  "; }, "row_restriction is blank"},
      {[](auto& o) { o.row_restriction = std::string(1 << 20, 'x'); }, ""},
      {[](auto& o) { o.row_restriction = std::string((1 << 20) + 1, 'x'); }, "row_restriction has 1048577 bytes"},
      {[](auto& o) { o.selected_fields = {"a.b", "c", "A"}; }, ""},
      {[](auto& o) { o.selected_fields = {"a..b"}; }, "selected_fields names \"a..b\""},
      {[](auto& o) { o.source_format = SourceFormat::kAvro; }, ""},
      {[](auto& o) { o.source_format = SourceFormat::kAvro, o.response_compression = ResponseCompression::kLz4; }, ""},
      {[](auto& o) { o.source_format = SourceFormat::kAvro, o.compression = Compression::kZstd; },
       "compression is of Arrow's buffers, which source_format avro does not have"},
      {[](auto& o) { o.response_compression = ResponseCompression::kLz4; }, ""},
      {[](auto& o) { o.response_compression = ResponseCompression::kLz4, o.compression = Compression::kLz4; },
       "compression and response_compression cannot be combined"},
      {[](auto& o) { o.max_stream_count = -1; }, "max_stream_count is -1"},
      {[](auto& o) { o.preferred_min_stream_count = -1; }, "preferred_min_stream_count is -1"},
      {[](auto& o) { o.preferred_min_stream_count = 5, o.max_stream_count = 3; },
       "preferred_min_stream_count 5 is above max_stream_count 3"},
      {[](auto& o) { o.preferred_min_stream_count = 5, o.max_stream_count = 5; }, ""},
      {[](auto& o) { o.preferred_min_stream_count = 5, o.max_stream_count = 0; }, ""},
      {[](auto& o) { o.ordered = true; }, ""},
      {[](auto& o) { o.ordered = true, o.max_stream_count = 1; }, ""},
      {[](auto& o) { o.ordered = true, o.max_stream_count = 2; }, "ordered reads one stream, but max_stream_count is 2"},
      {[](auto& o) { o.ordered = true, o.preferred_min_stream_count = 2; },
       "ordered reads one stream, but preferred_min_stream_count is 2"},
      {[](auto& o) { o.max_rows_per_batch = 0; }, "max_rows_per_batch is 0"},
      {[](auto& o) { o.max_bytes_per_batch = 0; }, "max_bytes_per_batch is 0"},
      {[](auto& o) { o.retry_max_attempts = 0; }, "retry_max_attempts is 0"},
      {[](auto& o) { o.sample_percentage = 0.5; }, ""},
      {[](auto& o) { o.sample_percentage = 0; }, "sample_percentage is 0"},
      {[](auto& o) { o.sample_percentage = 100; }, "sample_percentage is 100"},
      {[](auto& o) { o.sample_percentage = std::numeric_limits<double>::quiet_NaN(); }, "sample_percentage"},
      {[](auto& o) { o.channels = -1; }, "channels is -1"},
      {[](auto& o) { o.connect_limit = milliseconds{-1}; }, "connect_limit"},
      {[](auto& o) { o.attempt_limit = milliseconds{-1}; }, "attempt_limit"},
      {[](auto& o) { o.idle_limit = milliseconds{-1}; }, "idle_limit"},
      {[](auto& o) { o.total_limit = milliseconds::max(); }, "total_limit"},
      {[](auto& o) { o.bigquery_storage_endpoint = "host:0"; }, "bigquery_storage_endpoint \"host:0\""},
      {[](auto& o) { o.bigquery_storage_endpoint = "host:1", o.credentials = "adc"; }, "credentials cannot be sent"},
      {[](auto& o) { o.bigquery_storage_endpoint = "host:1", o.credentials = "none"; }, ""},
      {[](auto& o) { o.credentials = "impersonate:x"; }, "impersonate", Code::kUnimplemented},
      {[](auto& o) { o.bigquery_storage_endpoint = "https://host:1", o.credentials = "none", o.ca_bundle = "/no/such/ca.pem"; }, ""},
      {[](auto& o) { o.bigquery_storage_endpoint = "host:1", o.ca_bundle = "ca.pem"; }, "ca_bundle is about encrypted connections"},
      // Which refusal wins when several hold: values before combinations, credentials before stream counts.
      {[](auto& o) { o.table = "", o.max_stream_count = -1; }, "a table is required"},
      {[](auto& o) {
         o.bigquery_storage_endpoint = "h:1", o.credentials = "adc", o.preferred_min_stream_count = 5, o.max_stream_count = 3;
       },
       "credentials"},
  };
  ::unsetenv("BIGQUERY_STORAGE_EMULATOR_HOST");
  for (const Case& c : cases) {
    SourceOptions options = Good();
    c.change(options);
    auto source = Source::Make(options);
    if (c.says.empty()) {
      EXPECT_TRUE(source.ok()) << source.status();
      continue;
    }
    ASSERT_FALSE(source.ok()) << c.says;
    EXPECT_THAT(source.status().message(), HasSubstr(c.says));
    EXPECT_EQ(CodeOf(source.status()), c.code) << c.says;
  }
}

TEST(SourceOptions, WhatIsNotBuiltIsRefusedByName) {
  for (const char* name : {"query", "materialize_views", "query_location", "reuse_query_result_within", "method", "temp_location",
                           "bigquery_rest_endpoint", "max_rejects", "rejects", "bigtable_endpoint", "gcs_endpoint", "until"}) {
    const auto refusal = RefuseUnbuiltOption(name);
    EXPECT_EQ(CodeOf(refusal), Code::kUnimplemented);
    EXPECT_THAT(refusal.message(), HasSubstr(std::string(name) + " is not supported"));
  }
  EXPECT_TRUE(RefuseUnbuiltOption("table").ok());
  EXPECT_TRUE(RefuseUnbuiltOption("no_such_option").ok());
}

TEST(SourceOptions, SnapshotTimeIsRfc3339) {
  using std::chrono::nanoseconds;
  const auto at = [](int64_t seconds, int64_t nanos = 0) { return SystemTime{std::chrono::seconds{seconds} + nanoseconds{nanos}}; };
  EXPECT_EQ(*ParseSnapshotTime("2026-01-31T12:00:00Z"), at(1'769'860'800));
  EXPECT_EQ(*ParseSnapshotTime("2026-01-31T12:00:00.123456789Z"), at(1'769'860'800, 123'456'789));
  EXPECT_EQ(*ParseSnapshotTime("2026-01-31 12:00:00.5+02:30"), at(1'769'860'800 - 9000, 500'000'000));
  EXPECT_EQ(*ParseSnapshotTime("2026-01-31t12:00:00-00:30"), at(1'769'860'800 + 1800));
  EXPECT_EQ(*ParseSnapshotTime("2028-02-29T00:00:00z"), at(1'835'395'200));
  for (const char* text :
       {"", "2026-01-31", "2026-01-31T12:00:00", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z", "2026-01-31T12:00:61Z", "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00.1234567890Z", "2026-01-31T12:00:00Zx",
        "2026-01-31T12:00:00+2:00", "26-01-31T12:00:00Z", "1969-01-01T00:00:00Z", "2262-01-01T00:00:00Z", "2026-01-31T12:00:00+24:00"}) {
    EXPECT_THAT(ParseSnapshotTime(text).status().message(), HasSubstr("snapshot_time")) << text;
  }
}

TEST(SourceOptions, SnapshotTimeIsWrittenInUtc) {
  for (const auto& [given, written] : {std::pair{"2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"},
                                       {"2026-01-31T12:00:00.25+02:30", "2026-01-31T09:30:00.250Z"},
                                       {"2026-01-31T12:00:00.000001Z", "2026-01-31T12:00:00.000001Z"},
                                       {"2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00.123456789Z"},
                                       {"1970-01-01T00:00:00.5+01:00", "1969-12-31T23:00:00.500Z"}}) {
    EXPECT_EQ(FormatSnapshotTime(*ParseSnapshotTime(given)), written);
  }
}

TEST(SourceOptions, CompressionNames) {
  EXPECT_EQ(*ParseCompression("none"), Compression::kNone);
  EXPECT_EQ(*ParseCompression("lz4"), Compression::kLz4);
  EXPECT_EQ(*ParseCompression("zstd"), Compression::kZstd);
  EXPECT_THAT(ParseCompression("gzip").status().message(), HasSubstr("compression \"gzip\""));
  EXPECT_EQ(*ParseResponseCompression("none"), ResponseCompression::kNone);
  EXPECT_EQ(*ParseResponseCompression("lz4"), ResponseCompression::kLz4);
  EXPECT_THAT(ParseResponseCompression("zstd").status().message(), HasSubstr("response_compression \"zstd\""));
}

TEST(SourceOptions, FormatAndPrecisionNames) {
  for (const auto format : {SourceFormat::kArrow, SourceFormat::kAvro}) EXPECT_EQ(*ParseSourceFormat(SourceFormatName(format)), format);
  EXPECT_THAT(ParseSourceFormat("orc").status().message(), HasSubstr("source_format \"orc\""));
  EXPECT_EQ(*ParseTimestampPrecision("micros"), TimestampPrecision::kMicros);
  EXPECT_EQ(*ParseTimestampPrecision("nanos"), TimestampPrecision::kNanos);
  EXPECT_EQ(*ParseTimestampPrecision("picos"), TimestampPrecision::kPicos);
  EXPECT_THAT(ParseTimestampPrecision("millis").status().message(), HasSubstr("timestamp_precision \"millis\""));
}

// Spec runtime.md "Lineage": from the configuration alone; here no credential file exists and nothing listens.
TEST(Source, LineageTouchesNothing) {
  auto source = *Source::Make({.table = "p:d.t", .bigquery_storage_endpoint = "https://192.0.2.1:1", .credentials = "/no/such/key.json"});
  const auto lineage = source->lineage();
  ASSERT_EQ(lineage.datasets.size(), 1U);
  EXPECT_EQ(lineage.boundedness, Boundedness::kBounded);
  EXPECT_EQ(lineage.datasets[0].namespace_name, "bigquery");
  EXPECT_EQ(lineage.datasets[0].name, "p.d.t");
  const std::map<std::string, std::string> facet{{"type", "bigquery-table"}, {"project", "p"}, {"dataset", "d"}, {"table", "t"}};
  EXPECT_EQ(lineage.datasets[0].facets.at("gcp"), facet);
  EXPECT_EQ(source->endpoint(), "192.0.2.1:1");
  // The file is missed only now (spec 11).
  EXPECT_EQ(CodeOf((*source->CreateEnumerator({}))->Start()), Code::kUnauthenticated);
}

}  // namespace
}  // namespace headrace::bigquery
