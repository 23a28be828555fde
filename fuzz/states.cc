// What sources and sinks persist in a checkpoint: plans, splits and positions of the BigQuery source and of the file source, committables,
// writer states and job states of the file sink. To the checkpoint file they are opaque bytes, so checkpoint.cc does not reach them.
#include <arrow/api.h>
#include <arrow/ipc/api.h>

#include "fuzz/fuzz_target.h"
#include "headrace/bigquery/read/internal/position.h"
#include "headrace/bigquery/read/internal/state.h"
#include "headrace/bigquery/read/source.h"
#include "headrace/files/file_source.h"
#include "headrace/files/internal/sink_state.h"
#include "headrace/files/internal/source_state.h"

namespace headrace::fuzz {
namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

/// What is accepted is written again as it is read again.
template <typename Value>
void ReadTwice(std::string_view bytes, arrow::Result<Value> (*read)(std::string_view), std::string (*write)(const Value&)) {
  const auto value = read(bytes);
  if (!value.ok()) return;
  const std::string written = write(*value);
  const auto again = read(written);
  Require(again.ok() && write(*again) == written);
}

/// A plan, as a resumed job takes it: with its schema, and every split handed out. Connects to nothing and reads no file.
void Restore(const Source& source, std::string_view bytes) {
  auto enumerator = source.RestoreEnumerator({}, bytes);
  if (!enumerator.ok()) return;
  const std::string snapshot = (*enumerator)->Snapshot();
  auto again = source.RestoreEnumerator({}, snapshot);
  Require(again.ok() && (*again)->Snapshot() == snapshot);
  const auto schema = (*again)->schema();
  Require(schema == nullptr ? (*enumerator)->schema() == nullptr : schema->Equals(*(*enumerator)->schema()));
  if (schema == nullptr) return;  // not planned: what is next would be looked for
  for (auto next = (*again)->Next(); next.ok() && next->kind == NextSplit::Kind::kSplit; next = (*again)->Next()) {
    (void)bigquery::ParseStreamState(next->split.descriptor);
    (void)DecodeFilePart(next->split.descriptor);
  }
}

std::shared_ptr<const Source> BigQuery() {
  return bigquery::Source::Make({.table = "p.d.t", .bigquery_storage_endpoint = "http://localhost:1"}).ValueOrDie();
}
std::shared_ptr<const Source> Files() {
  return FileSource::Make({.paths = {"rows.ndjson"}, .schema = R"([{"name":"n","type":"INT64"}])"}).ValueOrDie();
}

std::string SchemaBytes() {
  const auto schema = arrow::schema({arrow::field("n", arrow::int64()), arrow::field("s", arrow::utf8())});
  return arrow::ipc::SerializeSchema(*schema).ValueOrDie()->ToString();
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  static const auto table = BigQuery();
  static const auto files = Files();
  ReadTwice(bytes, bigquery::ParseStreamState, bigquery::SerializeStreamState);
  ReadTwice(bytes, bigquery::ParsePlanState, bigquery::SerializePlanState);
  if (const auto position = bigquery::ParseStreamPosition(bytes); position.ok()) {
    Require(bigquery::ParseStreamPosition(position->ToString()).ValueOrDie() == *position);
  }
  ReadTwice(bytes, DecodeFilePart, EncodeFilePart);
  ReadTwice(bytes, DecodeFilePlan, EncodeFilePlan);
  if (const auto rows = ParseFilePosition(bytes); rows.ok()) Require(*rows >= 0);
  ReadTwice(bytes, DecodeCommittable, EncodeCommittable);
  ReadTwice(bytes, DecodeWriterState, EncodeWriterState);
  ReadTwice(bytes, DecodeJobState, EncodeJobState);
  (void)FilesOfStates({std::string(bytes), std::string(bytes)});
  Restore(*table, bytes);
  Restore(*files, bytes);
}

std::vector<std::string> Seeds() {
  const bigquery::StreamState stream{.stream = "projects/p/locations/us/sessions/s/streams/t",
                                     .session_created_ms = 1'700'000'000'000,
                                     .session_expires_ms = 1'700'021'600'000,
                                     .result_columns = {1, 0},
                                     .cut_rows = 10,
                                     .cut_fraction = 0.25};
  bigquery::PlanState plan{.planned = true,
                           .session = "projects/p/locations/us/sessions/s",
                           .schema = SchemaBytes(),
                           .wire_columns = {1, 0},
                           .estimated_rows = 20};
  plan.queue = {
      {.id = stream.stream, .descriptor = bigquery::SerializeStreamState(stream), .position = "5@0.1..0.2", .estimated_bytes = 100}};
  bigquery::PlanState avro{.planned = true,
                           .session = "s",
                           .schema = R"({"type":"record","name":"r","fields":[{"name":"n","type":["null","long"]}]})",
                           .wire_columns = {0}};
  avro.format = bigquery::SourceFormat::kAvro;
  const FilePart part{
      .file = {.path = "a.csv", .kind = {.format = FileFormat::kCsv}, .size = 100, .modified_ns = 5}, .begin = 0, .end = 50, .bytes = 50};
  FilePlanState file_plan{.planned = true, .schema = SchemaBytes(), .files = 1, .bytes = 100};
  file_plan.queue = {{.id = "000000", .descriptor = EncodeFilePart(part), .position = "7", .estimated_bytes = 50}};
  const ManifestFile file{.name = "part-0123abcd-00000-0001.parquet", .rows = 7, .bytes = 100, .sha256 = std::string(64, 'a')};
  return {"",
          "5@0.1..0.2",
          "17",
          bigquery::SerializeStreamState(stream),
          bigquery::SerializePlanState({}),
          bigquery::SerializePlanState(plan),
          bigquery::SerializePlanState(avro),
          EncodeFilePart(part),
          EncodeFilePlan({}),
          EncodeFilePlan(file_plan),
          EncodeCommittable(file),
          EncodeWriterState({file}),
          EncodeJobState({.directory_created = true, .replaced_run_id = "0123abcd", .replaced_files = {file.name}})};
}

}  // namespace headrace::fuzz
