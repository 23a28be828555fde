// Plans made over a real connection with a scripted server.
#include "headrace/bigquery/read/internal/enumerator.h"

#include <thread>

#include <arrow/builder.h>
#include <arrow/ipc/writer.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/cloud/bigquery/storage/v1/storage.pb.h>
#include <gtest/gtest.h>

#include "headrace/bigquery/read/internal/scripted_server_testing.h"
#include "headrace/bigquery/read/source.h"

namespace headrace::bigquery {
namespace {

namespace api = google::cloud::bigquery::storage::v1;
using testing::AllOf;
using testing::HasSubstr;

std::shared_ptr<arrow::Schema> WireSchema() {
  return arrow::schema({arrow::field("Id", arrow::int64()), arrow::field("name", arrow::utf8()),
                        arrow::field("place", arrow::struct_({arrow::field("x", arrow::int64()), arrow::field("y", arrow::int64())}))});
}

ServedTable Streams(int count, std::shared_ptr<arrow::Schema> schema = WireSchema()) {
  ServedTable table{.schema = schema};
  for (int i = 0; i < count; ++i) table.streams.push_back(*arrow::RecordBatch::MakeEmpty(schema));
  return table;
}

class WarningCounter final : public Logger {
 public:
  void Log(LogLevel level, std::string_view message) override {
    if (level != LogLevel::kWarning) return;
    if (message.find("expired") != std::string_view::npos) ++expired;
    if (message.find("no streams although") != std::string_view::npos) ++no_streams;
    if (message.find("they are read in") != std::string_view::npos) ++other_format;
    if (message.find("without compression") != std::string_view::npos) ++without_compression;
  }
  std::atomic<int> expired{0};
  std::atomic<int> no_streams{0};
  std::atomic<int> other_format{0};
  std::atomic<int> without_compression{0};
};

struct Bench {
  explicit Bench(const ScriptedServer& server, SourceOptions options = {}) {
    clock.set_auto_advance(true);
    options.table = "p.d.t";
    options.bigquery_storage_endpoint = server.endpoint();
    source = *Source::Make(options);
    context.clock = &clock;
    context.random = &random;
    context.metrics = &metrics;
    context.logger = &logger;
  }
  std::unique_ptr<SplitEnumerator> New() const { return *source->CreateEnumerator(context); }
  std::unique_ptr<SplitEnumerator> Restore(const std::string& state) const { return *source->RestoreEnumerator(context, state); }
  int64_t sessions() { return metrics.counter("readSessionsCreated")->value(); }

  ManualClock clock;
  SeededRandom random{1};
  MetricRegistry metrics;
  WarningCounter logger;
  JobContext context;
  std::shared_ptr<const Source> source;
};

std::vector<Split> Take(SplitEnumerator* enumerator) {
  std::vector<Split> splits;
  while (true) {
    auto next = *enumerator->Next();
    if (next.kind != NextSplit::Kind::kSplit) return splits;
    splits.push_back(std::move(next.split));
  }
}

// Spec 13.
TEST(StreamEnumerator, PlansOneSessionAndASplitPerStreamInOrder) {
  ScriptedServer server(Streams(3));
  Bench bench(server);
  auto enumerator = bench.New();
  EXPECT_EQ(enumerator->Next()->kind, NextSplit::Kind::kNoneNow);
  ASSERT_TRUE(enumerator->Start().ok());
  EXPECT_EQ(bench.sessions(), 1);
  EXPECT_EQ(server.session_requests().size(), 1U);
  EXPECT_TRUE(enumerator->schema()->Equals(*WireSchema()));
  EXPECT_EQ(enumerator->queued(), 3);
  EXPECT_EQ(enumerator->estimated_rows(), 0);
  EXPECT_EQ(enumerator->facts().at("read_session"), "projects/p/locations/us/sessions/s1");
  auto splits = Take(enumerator.get());
  ASSERT_EQ(splits.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    const Split& split = splits[static_cast<size_t>(i)];
    EXPECT_EQ(ParseStreamState(split.descriptor)->stream, server.StreamName(i));
    EXPECT_EQ(split.position, "");
    EXPECT_NEAR(split.estimated_bytes, 1000.0 / 3, 1e-6);
  }
  EXPECT_EQ(enumerator->Next()->kind, NextSplit::Kind::kNoneEver);
  splits[1].position = "7";
  enumerator->AddSplitsBack({splits[1], splits[0]});
  EXPECT_EQ(Take(enumerator.get()), (std::vector<Split>{splits[1], splits[0]}));
}

TEST(StreamEnumerator, ZeroStreamsStillGiveTheSchema) {
  ScriptedServer server(Streams(0));
  Bench bench(server);
  auto enumerator = bench.New();
  ASSERT_TRUE(enumerator->Start().ok());
  EXPECT_EQ(enumerator->Next()->kind, NextSplit::Kind::kNoneEver);
  EXPECT_TRUE(bench.Restore(enumerator->Snapshot())->schema()->Equals(*WireSchema()));
}

// Facts 6.1: a job over a table with rows must not end without any in silence.
TEST(StreamEnumerator, NoStreamsOfATableWithRowsWarn) {
  for (const int64_t rows : {0, 5}) {
    auto table = Streams(0);
    table.estimated_rows = rows;
    ScriptedServer server(table);
    Bench bench(server);
    auto enumerator = bench.New();
    ASSERT_TRUE(enumerator->Start().ok());
    EXPECT_EQ(bench.logger.no_streams, rows > 0 ? 1 : 0);
    ASSERT_TRUE(bench.Restore(enumerator->Snapshot())->Start().ok());
    EXPECT_EQ(bench.logger.no_streams, rows > 0 ? 1 : 0);
  }
}

TEST(StreamEnumerator, AStreamNamedTwiceIsRefused) {
  auto table = Streams(2);
  table.one_stream_name = true;
  ScriptedServer server(table);
  Bench bench(server);
  const auto status = bench.New()->Start();
  EXPECT_EQ(CodeOf(status), Code::kInternal);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("streams/0"), HasSubstr("twice")));
}

/// What of a plan of another release is restored here.
std::string PlanOf(const std::shared_ptr<arrow::Schema>& schema, bool as_sent) {
  return SerializePlanState({.planned = true,
                             .session = "s",
                             .schema = (*arrow::ipc::SerializeSchema(*schema))->ToString(),
                             .wire_columns = {0},
                             .queue = {{.id = "s/0", .descriptor = SerializeStreamState({.stream = "s/0"})}},
                             .schema_as_sent = as_sent});
}

// The result has the canonical types whatever the wire's are; a job that began with the wire's own goes on with them.
TEST(StreamEnumerator, CanonicalTypes) {
  const auto wire = arrow::schema({arrow::field("c", arrow::dictionary(arrow::int8(), arrow::utf8()))});
  ScriptedServer server(Streams(1, wire));
  Bench bench(server);
  auto enumerator = bench.New();
  ASSERT_TRUE(enumerator->Start().ok());
  EXPECT_TRUE(enumerator->schema()->Equals(*arrow::schema({arrow::field("c", arrow::utf8())})));
  EXPECT_TRUE(bench.Restore(enumerator->Snapshot())->schema()->Equals(*enumerator->schema()));
  EXPECT_TRUE(bench.Restore(PlanOf(wire, true))->schema()->Equals(*wire));
  EXPECT_EQ(ParseStreamState(Take(bench.Restore(PlanOf(wire, true)).get())[0].descriptor)->wire_schema, "");
}

// A split that is handed out can be read by whoever knows the job's schema; the plan holds the session's schema once.
TEST(StreamEnumerator, SplitsCarryTheSessionsSchemaOnlyWhileTheyAreOut) {
  ScriptedServer server(Streams(3));
  Bench bench(server);
  auto enumerator = bench.New();
  ASSERT_TRUE(enumerator->Start().ok());
  const std::string schema = (*arrow::ipc::SerializeSchema(*WireSchema()))->ToString();
  const std::string before = enumerator->Snapshot();
  auto splits = Take(enumerator.get());
  for (const Split& split : splits) EXPECT_EQ(ParseStreamState(split.descriptor)->wire_schema, schema);
  enumerator->AddSplitsBack(splits);
  EXPECT_EQ(enumerator->Snapshot(), before);
  const PlanState plan = *ParsePlanState(before);
  for (const Split& split : plan.queue) EXPECT_EQ(ParseStreamState(split.descriptor)->wire_schema, "");
  EXPECT_EQ(Take(bench.Restore(before).get()), splits);
}

TEST(StreamEnumerator, SchemasThatBigQueryHasNotAreRefusedByColumn) {
  for (const auto& wire : {arrow::schema({arrow::field("a", arrow::int64()), arrow::field("A", arrow::int64())}),
                           arrow::schema({arrow::field("A", arrow::list(arrow::list(arrow::int64())))})}) {
    ScriptedServer server(Streams(0, wire));
    const auto status = Bench(server).New()->Start();
    EXPECT_FALSE(status.ok());
    ASSERT_NE(GetErrorInfo(status), nullptr);
    EXPECT_EQ(GetErrorInfo(status)->column, "A");
  }
}

TEST(StreamEnumerator, AStreamWithoutANameIsRefused) {
  auto table = Streams(1);
  table.nameless_stream = true;
  ScriptedServer server(table);
  Bench bench(server);
  EXPECT_THAT(bench.New()->Start().message(), HasSubstr("without a name"));
}

// Spec 14: a restored plan is never made again, also with an empty queue; an unplanned one is.
TEST(StreamEnumerator, ARestoredPlanIsNeverMadeAgain) {
  ScriptedServer server(Streams(3));
  Bench bench(server);
  auto first = bench.New();
  const std::string unplanned = first->Snapshot();
  ASSERT_TRUE(first->Start().ok());
  std::vector<std::string> states{first->Snapshot()};
  for (int left = 2; left >= 0; --left) {
    EXPECT_TRUE(first->Next().ok());
    states.push_back(first->Snapshot());
  }
  for (size_t taken = 0; taken < states.size(); ++taken) {
    auto restored = bench.Restore(states[taken]);
    EXPECT_TRUE(restored->schema()->Equals(*WireSchema())) << "before Start";
    ASSERT_TRUE(restored->Start().ok());
    EXPECT_EQ(restored->queued(), static_cast<int64_t>(3 - taken));
    EXPECT_EQ(restored->Snapshot(), states[taken]);
  }
  EXPECT_EQ(bench.sessions(), 1);
  EXPECT_EQ(server.session_requests().size(), 1U);
  ASSERT_TRUE(bench.Restore(unplanned)->Start().ok());
  EXPECT_EQ(server.session_requests().size(), 2U);
  EXPECT_EQ(CodeOf(bench.source->RestoreEnumerator(bench.context, "").status()), Code::kUnimplemented) << "no version";
  EXPECT_FALSE(bench.source->RestoreEnumerator(bench.context, "garbage").ok());
}

// Spec 22.
TEST(StreamEnumerator, ARestoredExpiredSessionWarnsOnce) {
  auto table = Streams(1);
  table.expire_seconds = 1'700'000'000 + 3600;  // ManualClock starts at 1,700,000,000
  ScriptedServer server(table);
  Bench bench(server);
  auto first = bench.New();
  ASSERT_TRUE(first->Start().ok());
  EXPECT_EQ(ParseStreamState(Take(first.get())[0].descriptor)->session_expires_ms, (1'700'000'000 + 3600) * int64_t{1000});
  ASSERT_TRUE(bench.Restore(first->Snapshot())->Start().ok());
  EXPECT_EQ(bench.logger.expired, 0);
  bench.clock.Advance(std::chrono::hours{2});
  ASSERT_TRUE(bench.Restore(first->Snapshot())->Start().ok());
  EXPECT_EQ(bench.logger.expired, 1);
}

TEST(StreamEnumerator, RetriesForTenMinutes) {
  {
    ScriptedServer server(Streams(1));
    server.ScriptSessions(
        {{.code = Code::kUnavailable}, {.code = Code::kDeadlineExceeded}, {.code = Code::kInternal, .message = "RST_STREAM"}});
    Bench bench(server);
    EXPECT_TRUE(bench.New()->Start().ok());
    EXPECT_EQ(server.session_requests().size(), 4U);
    EXPECT_EQ(bench.sessions(), 1);
  }
  for (const Code code : {Code::kInvalidArgument, Code::kNotFound, Code::kPermissionDenied, Code::kInternal, Code::kResourceExhausted,
                          Code::kUnauthenticated}) {
    ScriptedServer server(Streams(1));
    server.ScriptSessions({{.code = code}});
    Bench bench(server);
    EXPECT_EQ(CodeOf(bench.New()->Start()), code);
    EXPECT_EQ(server.session_requests().size(), 1U);
    EXPECT_EQ(bench.sessions(), 0);
  }
  ScriptedServer server(Streams(1));
  server.ScriptSessions(std::vector<Fault>(1000));
  Bench bench(server);
  const auto status = bench.New()->Start();
  EXPECT_EQ(CodeOf(status), Code::kUnavailable);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("10 minutes"), HasSubstr("p.d.t")));
  EXPECT_LE(bench.clock.Monotonic(), Duration(std::chrono::minutes{10}));
  EXPECT_GE(bench.clock.Monotonic(), Duration(std::chrono::minutes{8}));
}

TEST(StreamEnumerator, AttemptsAreCountedWhereTheyAreLimited) {
  ScriptedServer server(Streams(1));
  server.ScriptSessions(std::vector<Fault>(1000));
  Bench bench(server, {.retry_max_attempts = 4});
  const auto status = bench.New()->Start();
  EXPECT_EQ(CodeOf(status), Code::kUnavailable);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("4 attempts (retry_max_attempts)"), HasSubstr("p.d.t")));
  EXPECT_TRUE(GetErrorInfo(status)->retryable);
  EXPECT_EQ(server.session_requests().size(), 4U);
}

// docs/decisions/0023: nobody has ever answered there, so it may be the wrong place.
TEST(StreamEnumerator, AServiceThatNeverAnswersIsGivenUpSoon) {
  std::unique_ptr<Bench> bench;
  {
    ScriptedServer server(Streams(1));
    bench = std::make_unique<Bench>(server, SourceOptions{.connect_limit = std::chrono::milliseconds{300}});
  }
  const auto status = bench->New()->Start();
  EXPECT_EQ(CodeOf(status), Code::kUnavailable);
  EXPECT_EQ(GetErrorInfo(status)->reason, "UNREACHABLE");
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("has not answered one of"), HasSubstr("bigquery_storage_endpoint"), HasSubstr("connect_limit")));
  EXPECT_LT(bench->clock.Monotonic(), Duration(std::chrono::milliseconds{300}));
}

// Once it answered the table holds, whatever connect_limit says.
TEST(StreamEnumerator, AServiceThatAnsweredIsTriedForTenMinutes) {
  ScriptedServer server(Streams(1));
  server.ScriptSessions(std::vector<Fault>(1000));
  Bench bench(server, {.connect_limit = std::chrono::milliseconds{1}});
  EXPECT_THAT(bench.New()->Start().message(), HasSubstr("10 minutes"));
  EXPECT_GE(bench.clock.Monotonic(), Duration(std::chrono::minutes{8}));
}

TEST(StreamEnumerator, CancelEndsAPlanInProgress) {
  ScriptedServer server(Streams(1));
  server.ScriptSessions({{.kind = Fault::Kind::kHang}});
  Bench bench(server);
  auto enumerator = bench.New();
  std::jthread other([&] {
    EXPECT_TRUE(server.WaitForHanging(1));
    enumerator->Cancel();
  });
  EXPECT_EQ(enumerator->Start().code(), arrow::StatusCode::Cancelled);
  EXPECT_EQ(enumerator->queued(), 0);
  EXPECT_EQ(bench.sessions(), 0);
}

// selected_fields: the order asked, any case, the service's spelling; nested paths keep the service's order inside.
TEST(StreamEnumerator, ColumnsComeInTheOrderAsked) {
  ScriptedServer server(Streams(1));
  Bench bench(server, {.selected_fields = {"PLACE.y", "id", "Place.x", "name"}});
  auto enumerator = bench.New();
  ASSERT_TRUE(enumerator->Start().ok());
  EXPECT_EQ(enumerator->schema()->field_names(), (std::vector<std::string>{"place", "Id", "name"}));
  const auto split = Take(enumerator.get())[0];
  EXPECT_EQ(ParseStreamState(split.descriptor)->result_columns, (std::vector<uint32_t>{1, 2, 0}));
  EXPECT_TRUE(bench.Restore(enumerator->Snapshot())->schema()->Equals(*enumerator->schema()));
  // The reader decodes the service's order into the result's.
  auto reader = *bench.source->OpenReader(bench.context, enumerator->schema(), split);
  EXPECT_TRUE(std::holds_alternative<End>(*reader->Next()));
}

// The service says that a name is wrong; what would be right is looked up, in a session that nobody reads.
TEST(StreamEnumerator, NamesThatDoNotExistAreAnsweredWithThoseThatDo) {
  struct Case {
    std::vector<std::string> fields;
    Fault fault;
    std::string says;
    size_t sessions;
  };
  const Fault unknown{.code = Code::kInvalidArgument, .message = "request failed: The following selected fields do not exist: nothere"};
  Fault not_found = unknown;
  not_found.code = Code::kNotFound;
  for (const Case& c : {Case{{"id", "nothere"}, unknown, "it has Id, name, place", 2},
                        Case{{"id", "PLACE.z"}, unknown, "\"PLACE\" of p.d.t has no such column; it has x, y", 2},
                        Case{{"id", "name"}, unknown, "could not be created", 2},  // they are all there: the service means something else
                        Case{{}, unknown, "could not be created", 1}, Case{{"nothere"}, not_found, "could not be created", 1},
                        Case{{"nothere"}, {.code = Code::kInvalidArgument, .message = "bad restriction"}, "could not be created", 1}}) {
    ScriptedServer server(Streams(1));
    server.ScriptSessions({c.fault});
    Bench bench(server, {.selected_fields = c.fields, .row_restriction = "id > 5"});
    const auto status = bench.New()->Start();
    EXPECT_EQ(CodeOf(status), c.fault.code);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(c.fault.message), HasSubstr(c.says)));
    ASSERT_EQ(server.session_requests().size(), c.sessions);
    EXPECT_EQ(bench.sessions(), 0);
    google::cloud::bigquery::storage::v1::CreateReadSessionRequest last;
    ASSERT_TRUE(last.ParseFromString(server.session_requests().back()));
    EXPECT_EQ(last.read_session().read_options().row_restriction().empty(), c.sessions == 2);
    EXPECT_EQ(last.read_session().read_options().selected_fields().empty(), c.sessions == 2 || c.fields.empty());
  }
  // The look-up may fail as well; then the service's own words stand alone.
  ScriptedServer server(Streams(1));
  server.ScriptSessions({unknown, {.code = Code::kPermissionDenied}});
  EXPECT_THAT(Bench(server, {.selected_fields = {"nothere"}}).New()->Start().message(), HasSubstr("could not be created"));
}

// What the manifest and the report say of the moment that was read.
TEST(StreamEnumerator, FactsHaveTheTimeOfTheSnapshot) {
  ScriptedServer server(Streams(1));
  Bench given(server, {.snapshot_time = *ParseSnapshotTime("2026-01-31T12:00:00.123456+01:00")});
  auto enumerator = given.New();
  EXPECT_FALSE(enumerator->facts().contains("snapshot_time"));
  ASSERT_TRUE(enumerator->Start().ok());
  EXPECT_EQ(enumerator->facts().at("snapshot_time"), "2026-01-31T11:00:00.123456Z");
  Bench bench(server);
  enumerator = bench.New();
  ASSERT_TRUE(enumerator->Start().ok());
  const std::string created = FormatSnapshotTime(bench.clock.Now());
  EXPECT_EQ(enumerator->facts().at("snapshot_time"), created) << "when the session was made";
  const auto state = enumerator->Snapshot();
  bench.clock.Advance(std::chrono::hours{1});
  EXPECT_EQ(bench.Restore(state)->facts().at("snapshot_time"), created);
}

// Spec runtime 55: the name of the job appears in labels.
TEST(StreamEnumerator, TheServiceIsToldTheNameOfTheJob) {
  ScriptedServer server(Streams(1));
  Bench bench(server);
  bench.context.job_name = "nightly-names";
  ASSERT_TRUE(bench.New()->Start().ok());
  api::CreateReadSessionRequest request;
  ASSERT_TRUE(request.ParseFromString(server.session_requests().at(0)));
  EXPECT_EQ(request.read_session().trace_id(), "headrace:nightly-names");
}

// A plan is of one table and one question. Restored for another one it would go on with the old one, and nobody would notice.
TEST(StreamEnumerator, AStateOfAnotherSourceIsRefusedByOption) {
  ScriptedServer server(Streams(2));
  const SourceOptions first{.selected_fields = {"id", "name", "place"}, .row_restriction = "id > 1", .sample_percentage = 10};
  Bench bench(server, first);
  auto enumerator = bench.New();
  ASSERT_TRUE(enumerator->Start().ok());
  const auto state = enumerator->Snapshot();
  const struct {
    std::function<void(SourceOptions*)> change;
    const char* name;  // "" = it may change
    std::vector<std::string> says;
  } cases[] = {
      {[](auto*) {}, "", {}},
      {[](auto* o) { o->table = "p.d.u"; }, "table", {"'p.d.t'", "'p.d.u'"}},
      {[](auto* o) { o->row_restriction = "id > 2"; }, "row_restriction", {"'id > 1'", "'id > 2'"}},
      {[](auto* o) { o->row_restriction = ""; }, "row_restriction", {"'id > 1'", "not given"}},
      {[](auto* o) { o->selected_fields = {"name", "id", "place"}; }, "selected_fields", {"'id,name,place'", "'name,id,place'"}},
      {[](auto* o) { o->sample_percentage = 20; }, "sample_percentage", {"'10'", "'20'"}},
      {[](auto* o) { o->snapshot_time = SystemTime{}; }, "snapshot_time", {"not given", "'1970-01-01T00:00:00Z'"}},
      {[](auto* o) { o->timestamp_precision = TimestampPrecision::kNanos; }, "timestamp_precision", {"'nanos'"}},
      // How the rows are had, and by whom. The form on the wire is the session's.
      {[](auto* o) { o->billing_project = "payer"; }, "", {}},
      {[](auto* o) { o->source_format = SourceFormat::kAvro; }, "", {}},
      {[](auto* o) { o->max_rows_per_batch = 7; }, "", {}},
      {[](auto* o) { o->channels = 3; }, "", {}},
      {[](auto* o) { o->retry_max_attempts = 1; }, "", {}},
  };
  for (const auto& [change, name, says] : cases) {
    SCOPED_TRACE(name);
    SourceOptions options = first;
    options.table = "p.d.t";
    options.bigquery_storage_endpoint = server.endpoint();
    change(&options);
    auto restored = (*Source::Make(options))->RestoreEnumerator(bench.context, state);
    EXPECT_EQ(restored.ok(), *name == '\0') << restored.status();
    if (*name == '\0') continue;
    EXPECT_EQ(CodeOf(restored.status()), Code::kFailedPrecondition);
    EXPECT_EQ(GetErrorInfo(restored.status())->reason, "SOURCE_CHANGED");
    EXPECT_EQ(GetErrorInfo(restored.status())->resource, name);
    for (const auto& part : says) EXPECT_THAT(std::string(restored.status().message()), testing::HasSubstr(part));
  }
  auto earlier = *ParsePlanState(state);
  earlier.reads.clear();
  Bench other(server, {.row_restriction = "id > 2"});
  EXPECT_TRUE(other.source->RestoreEnumerator(other.context, SerializePlanState(earlier)).ok()) << "a state that says nothing of it";
}

// Both formats give the same schema, and the state says which one it is: the option may change, or another format may have been taken.
TEST(StreamEnumerator, SessionsInAvro) {
  ScriptedServer server(Streams(2));
  Bench arrow(server, {.selected_fields = {"PLACE", "id", "name"}});
  Bench avro(server, {.selected_fields = {"PLACE", "id", "name"},
                      .source_format = SourceFormat::kAvro,
                      .response_compression = ResponseCompression::kLz4});
  auto enumerator = avro.New();
  ASSERT_TRUE(enumerator->Start().ok());
  EXPECT_EQ(enumerator->facts().at("source_format"), "avro");
  EXPECT_EQ(enumerator->schema()->field_names(), (std::vector<std::string>{"place", "Id", "name"}));
  const auto wire = WireSchema();
  for (const auto& field : wire->fields()) {
    EXPECT_TRUE(enumerator->schema()->GetFieldByName(field->name())->Equals(*field)) << field->ToString();
  }
  auto restored = arrow.Restore(enumerator->Snapshot());
  EXPECT_EQ(restored->facts().at("source_format"), "avro");
  EXPECT_TRUE(restored->schema()->Equals(*enumerator->schema()));
  const auto split = Take(restored.get())[0];
  const auto stream = *ParseStreamState(split.descriptor);
  EXPECT_EQ(stream.format, SourceFormat::kAvro);
  EXPECT_EQ(stream.response_compression, ResponseCompression::kLz4);
  EXPECT_THAT(stream.wire_schema, HasSubstr("__root__"));
  auto reader = *arrow.source->OpenReader(arrow.context, restored->schema(), split);
  EXPECT_TRUE(std::holds_alternative<End>(*reader->Next()));
}

// The other format is tried once, only when the service refuses the one asked for, and it is said.
TEST(StreamEnumerator, FallsBackToTheOtherFormat) {
  const auto refuses = [](const std::string& format) {
    return Fault{.code = Code::kInvalidArgument, .message = "request failed: " + format + " format is not supported for this table"};
  };
  struct Case {
    SourceOptions options;
    std::string refused, used;
  };
  for (const Case& c : {Case{{}, "ARROW", "avro"}, Case{{.source_format = SourceFormat::kAvro}, "AVRO", "arrow"},
                        Case{{.compression = Compression::kZstd}, "ARROW", "avro"}}) {
    ScriptedServer server(Streams(1));
    server.ScriptSessions({refuses(c.refused)});
    Bench bench(server, c.options);
    auto enumerator = bench.New();
    ASSERT_TRUE(enumerator->Start().ok());
    EXPECT_EQ(enumerator->facts().at("source_format"), c.used);
    EXPECT_EQ(server.session_requests().size(), 2U);
    EXPECT_EQ(bench.sessions(), 1);
    EXPECT_EQ(bench.logger.other_format, 1);
    EXPECT_EQ(bench.logger.without_compression, c.options.compression == Compression::kNone ? 0 : 1);
    EXPECT_TRUE(enumerator->schema()->Equals(*WireSchema()));
  }
  // Other errors, and a text about the other format, send nothing off again.
  for (const Fault& fault : {Fault{.code = Code::kInvalidArgument, .message = "bad restriction"},
                             Fault{.code = Code::kPermissionDenied, .message = "ARROW format is not supported"}, refuses("AVRO")}) {
    ScriptedServer server(Streams(1));
    server.ScriptSessions({fault});
    Bench bench(server);
    EXPECT_EQ(CodeOf(bench.New()->Start()), fault.code);
    EXPECT_EQ(server.session_requests().size(), 1U);
    EXPECT_EQ(bench.logger.other_format, 0);
  }
  // Refused both ways: the error holds both answers.
  ScriptedServer server(Streams(1));
  server.ScriptSessions({refuses("ARROW"), refuses("AVRO")});
  Bench bench(server);
  EXPECT_THAT(bench.New()->Start().message(), AllOf(HasSubstr("ARROW format"), HasSubstr("AVRO format"), HasSubstr("neither")));
  EXPECT_EQ(server.session_requests().size(), 2U);
}

TEST(StreamEnumerator, AServerThatAnswersOtherColumnsIsRefused) {
  ScriptedServer server(Streams(1));
  Bench fewer(server, {.selected_fields = {"id"}});
  EXPECT_THAT(fewer.New()->Start().message(), HasSubstr("ignored selected_fields"));
  Bench absent(server, {.selected_fields = {"id", "name", "nothere"}});
  EXPECT_THAT(absent.New()->Start().message(), HasSubstr("nothere"));
  Bench whole(server, {.selected_fields = {"id", "name", "place.y"}});
  EXPECT_THAT(whole.New()->Start().message(), AllOf(HasSubstr("ignored selected_fields"), HasSubstr("\"place\"")));
  auto avro = Streams(1);
  avro.other_session = true;
  ScriptedServer avro_server(avro);
  EXPECT_THAT(Bench(avro_server).New()->Start().message(), HasSubstr("Avro"));
}

}  // namespace
}  // namespace headrace::bigquery
