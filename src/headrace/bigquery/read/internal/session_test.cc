#include "headrace/bigquery/read/internal/session.h"

#include <gmock/gmock.h>
#include <google/cloud/bigquery/storage/v1/storage.pb.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

namespace api = google::cloud::bigquery::storage::v1;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const TableName kTable{"p", "d", "t"};

api::CreateReadSessionRequest Build(const SourceOptions& options) {
  api::CreateReadSessionRequest request;
  EXPECT_TRUE(request.ParseFromString(BuildCreateReadSession(options, kTable, options.source_format, "nightly")));
  return request;
}

// Spec 8: nothing is sent that was not asked for. Only the precision is, without which the service cuts TIMESTAMPs with picoseconds, and
// who asks.
TEST(CreateReadSessionRequest, DefaultsLeaveEverythingUnset) {
  api::CreateReadSessionRequest expected;
  expected.set_parent("projects/p");
  expected.mutable_read_session()->set_table("projects/p/datasets/d/tables/t");
  expected.mutable_read_session()->set_data_format(api::ARROW);
  expected.mutable_read_session()->set_trace_id("headrace:nightly");
  expected.mutable_read_session()->mutable_read_options()->mutable_arrow_serialization_options()->set_picos_timestamp_precision(
      api::ArrowSerializationOptions::TIMESTAMP_PRECISION_PICOS);
  EXPECT_EQ(BuildCreateReadSession({.table = "p.d.t"}, kTable, SourceFormat::kArrow, "nightly"), expected.SerializeAsString());
}

// At most 256 bytes of UTF-8 (stream.proto), also of a name that is longer or no UTF-8.
TEST(CreateReadSessionRequest, TraceIdsAreOfTheJob) {
  EXPECT_EQ(TraceId(""), "headrace");
  EXPECT_EQ(TraceId("nightly names"), "headrace:nightly names");
  EXPECT_EQ(TraceId("n\xff\xc3\xa9"), "headrace:n?\xc3\xa9");
  EXPECT_EQ(TraceId(std::string(1000, 'x')), "headrace:" + std::string(247, 'x'));
  EXPECT_EQ(TraceId(std::string(246, 'x') + "\xc3\xa9"), "headrace:" + std::string(246, 'x')) << "no half of a letter";
}

// Specs 2, 7, 9 and the other options: each one changes the request.
TEST(CreateReadSessionRequest, EachOption) {
  EXPECT_EQ(Build({.billing_project = "payer"}).parent(), "projects/payer");
  EXPECT_THAT(Build({.selected_fields = {"b", "a.x"}}).read_session().read_options().selected_fields(), ElementsAre("b", "a.x"));
  EXPECT_THAT(Build({.selected_fields = {"a.x", "`b`.y", "A"}}).read_session().read_options().selected_fields(), ElementsAre("a", "b.y"));
  EXPECT_EQ(Build({.row_restriction = "a > 'x' "}).read_session().read_options().row_restriction(), "a > 'x' ");
  const auto snapshot = Build({.snapshot_time = SystemTime{std::chrono::nanoseconds{1'700'000'000'123'456'789}}})
                            .read_session()
                            .table_modifiers()
                            .snapshot_time();
  EXPECT_EQ(snapshot.seconds(), 1'700'000'000);
  EXPECT_EQ(snapshot.nanos(), 123'456'789);
  const auto lz4 = Build({.compression = Compression::kLz4}).read_session().read_options().arrow_serialization_options();
  EXPECT_EQ(lz4.buffer_compression(), api::ArrowSerializationOptions::LZ4_FRAME);
  const auto zstd = Build({.compression = Compression::kZstd}).read_session().read_options().arrow_serialization_options();
  EXPECT_EQ(zstd.buffer_compression(), api::ArrowSerializationOptions::ZSTD);
  EXPECT_FALSE(Build({}).read_session().read_options().has_response_compression_codec());
  EXPECT_EQ(Build({.response_compression = ResponseCompression::kLz4}).read_session().read_options().response_compression_codec(),
            api::ReadSession::TableReadOptions::RESPONSE_COMPRESSION_CODEC_LZ4);
  const auto nanos = Build({.timestamp_precision = TimestampPrecision::kNanos}).read_session().read_options();
  EXPECT_EQ(nanos.arrow_serialization_options().picos_timestamp_precision(), api::ArrowSerializationOptions::TIMESTAMP_PRECISION_NANOS);
  const auto micros = Build({.timestamp_precision = TimestampPrecision::kMicros}).read_session().read_options();
  EXPECT_EQ(micros.arrow_serialization_options().picos_timestamp_precision(), api::ArrowSerializationOptions::TIMESTAMP_PRECISION_MICROS);
  EXPECT_EQ(Build({.max_stream_count = 7}).max_stream_count(), 7);
  EXPECT_EQ(Build({.preferred_min_stream_count = 3}).preferred_min_stream_count(), 3);
  EXPECT_EQ(Build({.ordered = true}).max_stream_count(), 1);
  EXPECT_TRUE(Build({.sample_percentage = 12.5}).read_session().read_options().has_sample_percentage());
  EXPECT_EQ(Build({.sample_percentage = 12.5}).read_session().read_options().sample_percentage(), 12.5);
}

TEST(CreateReadSessionRequest, Avro) {
  const auto session = Build({.source_format = SourceFormat::kAvro,
                              .response_compression = ResponseCompression::kLz4,
                              .timestamp_precision = TimestampPrecision::kNanos,
                              .sample_percentage = 12.5})
                           .read_session();
  EXPECT_EQ(session.data_format(), api::AVRO);
  EXPECT_FALSE(session.read_options().has_arrow_serialization_options());
  EXPECT_TRUE(session.read_options().avro_serialization_options().enable_display_name_attribute());
  EXPECT_EQ(session.read_options().avro_serialization_options().picos_timestamp_precision(),
            api::AvroSerializationOptions::TIMESTAMP_PRECISION_NANOS);
  EXPECT_EQ(session.read_options().response_compression_codec(), api::ReadSession::TableReadOptions::RESPONSE_COMPRESSION_CODEC_LZ4);
  EXPECT_EQ(session.read_options().sample_percentage(), 12.5);
}

// Only a refusal of the format sends the same read off in the other one.
TEST(RefusesFormat, OnlyTextsAboutTheFormat) {
  struct Case {
    Code code;
    std::string text;
    bool refuses_arrow;
    bool refuses_avro;
  };
  for (const Case& c : {
           Case{Code::kInvalidArgument, "request failed: ARROW format is not supported for this table", true, false},
           Case{Code::kUnimplemented, "The local service does not serve the AVRO format yet. Ask for Arrow.", true, true},
           Case{Code::kUnimplemented, "Avro is not implemented", false, true},
           Case{Code::kInvalidArgument, "column c cannot be serialized as Arrow: unsupported type", true, false},
           Case{Code::kInvalidArgument, "Arrow", false, false},
           Case{Code::kInvalidArgument, "Unknown field: arrow", false, false},
           Case{Code::kInvalidArgument, "arrow_serialization_options.buffer_compression is not supported", false, false},
           Case{Code::kInvalidArgument, "narrow format", false, false},
           Case{Code::kInvalidArgument, "this format is not supported", false, false},
           Case{Code::kNotFound, "Arrow format is not supported", false, false},
           Case{Code::kPermissionDenied, "Arrow format is not supported", false, false},
           Case{Code::kUnavailable, "Arrow format is not supported", false, false},
           Case{Code::kInternal, "Arrow format is not supported", false, false},
       }) {
    EXPECT_EQ(RefusesFormat({.code = c.code, .message = c.text}, SourceFormat::kArrow), c.refuses_arrow) << c.text;
    EXPECT_EQ(RefusesFormat({.code = c.code, .message = c.text}, SourceFormat::kAvro), c.refuses_avro) << c.text;
  }
}

// Spec 23, facts R14, R15, U109, U110.
TEST(SessionError, SaysWhatToDo) {
  const auto say = [](Code code, const std::string& text) { return SessionError({.code = code, .message = text}, kTable, "payer"); };
  const auto view = say(Code::kInvalidArgument, "request failed: Non-Table Entities cannot be read with the storage API");
  EXPECT_THAT(view.message(), AllOf(HasSubstr("view"), HasSubstr("query"), HasSubstr("materialize_views"), HasSubstr("p.d.t")));
  EXPECT_EQ(GetErrorInfo(view)->reason, "VIEW_NOT_READABLE");
  for (const auto& other :
       {say(Code::kInvalidArgument, "bad restriction"), say(Code::kNotFound, "non-table entities"), say(Code::kInvalidArgument, "")}) {
    EXPECT_THAT(other.message(), Not(HasSubstr("materialize_views")));
  }
  const auto complex = say(Code::kInvalidArgument, "request failed: the filter is too complex to be processed in filtering");
  EXPECT_THAT(complex.message(), AllOf(HasSubstr("source_format"), HasSubstr("row_restriction")));
  EXPECT_EQ(GetErrorInfo(complex)->reason, "RESTRICTION_TOO_COMPLEX");
  EXPECT_THAT(say(Code::kPermissionDenied, "no").message(),
              AllOf(HasSubstr("bigquery.readsessions.create"), HasSubstr("roles/bigquery.readSessionUser"),
                    HasSubstr("billing project payer"), HasSubstr("getData")));
  EXPECT_THAT(say(Code::kNotFound, "no").message(), AllOf(HasSubstr("NOT_FOUND"), HasSubstr("p.d.t"), HasSubstr("Check the project")));
  EXPECT_EQ(CodeOf(say(Code::kNotFound, "no")), Code::kNotFound);
  EXPECT_THAT(say(Code::kUnimplemented, "Received http2 header with status: 404").message(),
              AllOf(HasSubstr("no gRPC service"), HasSubstr("bigquery_storage_endpoint")));
  EXPECT_TRUE(GetErrorInfo(say(Code::kUnavailable, "x"))->retryable);
}

}  // namespace
}  // namespace headrace::bigquery
