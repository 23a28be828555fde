#include <array>
#include <cstring>
#include <utility>

#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/sha.h>

#include "headrace/runtime/checkpoint_store.h"
#include "headrace/runtime/state.pb.h"

namespace headrace {
namespace {

// docs/formats/checkpoint.md: magic, version, payload length (both little-endian), payload, SHA-256 of all before it.
constexpr std::string_view kMagic = "HDRCHKPT";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 8 + 4 + 8;
constexpr size_t kChecksumBytes = SHA256_DIGEST_LENGTH;

template <typename T>
void AppendLittleEndian(std::string* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out->push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

template <typename T>
T LittleEndianAt(std::string_view bytes, size_t offset) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  return value;
}

std::string Sha256(std::string_view bytes) {
  std::array<unsigned char, kChecksumBytes> digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

void ToProto(const LedgerSnapshot& ledger, runtime::LedgerState* out) {
  out->set_enumerator(ledger.enumerator);
  for (const auto& held : ledger.assigned) {
    auto* assigned = out->add_assigned();
    auto* split = assigned->mutable_split();
    split->set_id(held.split.id);
    split->set_source_descriptor(held.split.descriptor);
    split->set_position(held.split.position);
    split->set_end_position(held.split.end_position);
    if (held.split.estimated_bytes >= 0) split->set_estimated_bytes(held.split.estimated_bytes);
    assigned->set_writer(static_cast<uint32_t>(held.writer));
    assigned->set_attempt(held.attempt);
  }
  out->set_next_attempt(ledger.next_attempt);
  out->set_rows(ledger.counts.rows);
  out->set_wire_bytes(ledger.counts.wire_bytes);
  out->set_memory_bytes(ledger.counts.memory_bytes);
  out->set_finished(ledger.counts.finished);
  out->set_cuts(ledger.counts.cuts);
}

LedgerSnapshot FromProto(const runtime::LedgerState& in) {
  LedgerSnapshot ledger{.enumerator = in.enumerator(), .next_attempt = in.next_attempt()};
  for (const auto& assigned : in.assigned()) {
    const auto& split = assigned.split();
    ledger.assigned.push_back({.split = {.id = split.id(),
                                         .descriptor = split.source_descriptor(),
                                         .position = split.position(),
                                         .end_position = split.end_position(),
                                         .estimated_bytes = split.has_estimated_bytes() ? split.estimated_bytes() : -1},
                               .writer = static_cast<int>(assigned.writer()),
                               .attempt = assigned.attempt()});
  }
  ledger.counts = {
      .rows = in.rows(), .wire_bytes = in.wire_bytes(), .memory_bytes = in.memory_bytes(), .finished = in.finished(), .cuts = in.cuts()};
  return ledger;
}

void ToProto(const ReportCounts& report, runtime::ReportState* out) {
  out->set_records_in(report.records_in);
  out->set_rows_written(report.rows_written);
  out->set_rows_rejected(report.rows_rejected);
  out->set_rows_skipped(report.rows_skipped);
  out->set_bytes_written(report.bytes_written);
  out->set_restarts(report.restarts);
  out->set_fraction(report.fraction);
  out->mutable_facts()->insert(report.facts.begin(), report.facts.end());
  for (const auto& warning : report.warnings) out->add_warnings(warning);
}

ReportCounts FromProto(const runtime::ReportState& in) {
  return {.records_in = in.records_in(),
          .rows_written = in.rows_written(),
          .rows_rejected = in.rows_rejected(),
          .rows_skipped = in.rows_skipped(),
          .bytes_written = in.bytes_written(),
          .restarts = in.restarts(),
          .fraction = in.fraction(),
          .facts = {in.facts().begin(), in.facts().end()},
          .warnings = {in.warnings().begin(), in.warnings().end()}};
}

}  // namespace

arrow::Status DamagedCheckpoint(const std::string& name, std::string_view what) {
  return MakeError(
      {.code = Code::kDataLoss, .service = "checkpoints", .resource = name, .reason = "CHECKPOINT_DAMAGED"},
      fmt::format(
          "checkpoint {} cannot be read: {}. An older checkpoint is not taken in its place, since the rows of this one may already be "
          "visible. Restore this file from a backup; or remove the checkpoint directory and what the job has written, and start "
          "the job anew",
          name, what));
}

arrow::Result<std::string> EncodeCheckpoint(const CheckpointState& state) {
  runtime::CheckpointState proto;
  proto.set_checkpoint(state.checkpoint);
  proto.set_job_name(state.job_name);
  proto.set_run_id(state.run_id);
  proto.mutable_configuration()->insert(state.configuration.begin(), state.configuration.end());
  proto.set_planned(state.planned);
  proto.set_prepared(state.prepared);
  proto.set_final(state.final);
  ToProto(state.ledger, proto.mutable_ledger());
  if (state.schema != nullptr) {
    ARROW_ASSIGN_OR_RAISE(auto schema, arrow::ipc::SerializeSchema(*state.schema));
    proto.set_schema(schema->ToString());
  }
  proto.set_sink_state(state.sink_state);
  for (const auto& writer : state.writer_states) proto.add_writer_states(writer);
  for (const auto& committable : state.committables) proto.add_committables(committable);
  ToProto(state.report, proto.mutable_report());

  if (proto.ByteSizeLong() > static_cast<size_t>(kMaxCheckpointBytes) - kHeaderBytes - kChecksumBytes) {
    return MakeError({.code = Code::kResourceExhausted, .service = "checkpoints", .reason = "CHECKPOINT_TOO_LARGE"},
                     fmt::format("the state of checkpoint {} has {} bytes; at most {} are kept. Checkpoint more often or read fewer splits",
                                 state.checkpoint, proto.ByteSizeLong(), kMaxCheckpointBytes));
  }
  std::string payload;
  {
    google::protobuf::io::StringOutputStream stream(&payload);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    if (!proto.SerializeToCodedStream(&coded)) return arrow::Status::OutOfMemory("the state of a checkpoint cannot be serialized");
  }
  std::string bytes(kMagic);
  AppendLittleEndian(&bytes, kVersion);
  AppendLittleEndian(&bytes, static_cast<uint64_t>(payload.size()));
  bytes += payload;
  bytes += Sha256(bytes);
  return bytes;
}

arrow::Result<CheckpointState> DecodeCheckpoint(std::string_view bytes, const std::string& name) {
  if (bytes.size() < kHeaderBytes + kChecksumBytes) return DamagedCheckpoint(name, fmt::format("it has only {} bytes", bytes.size()));
  if (bytes.substr(0, kMagic.size()) != kMagic) return DamagedCheckpoint(name, "it does not begin as a checkpoint does");
  auto version = LittleEndianAt<uint32_t>(bytes, kMagic.size());
  if (version != kVersion) {
    return MakeError(
        {.code = Code::kUnimplemented, .service = "checkpoints", .resource = name, .reason = "CHECKPOINT_VERSION"},
        fmt::format("checkpoint {} has version {}; this program reads version {}. Resume the job with the program that wrote it", name,
                    version, kVersion));
  }
  auto length = LittleEndianAt<uint64_t>(bytes, kMagic.size() + 4);
  if (length != bytes.size() - kHeaderBytes - kChecksumBytes) {
    return DamagedCheckpoint(
        name, fmt::format("it should have {} bytes of state and has {}", length, bytes.size() - kHeaderBytes - kChecksumBytes));
  }
  auto checked = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (Sha256(checked) != bytes.substr(checked.size())) return DamagedCheckpoint(name, "its checksum is wrong");

  runtime::CheckpointState proto;
  auto payload = checked.substr(kHeaderBytes);
  if (!proto.ParseFromArray(payload.data(), static_cast<int>(payload.size())))
    return DamagedCheckpoint(name, "its state is not a valid message");
  CheckpointState state{.checkpoint = proto.checkpoint(),
                        .job_name = proto.job_name(),
                        .run_id = proto.run_id(),
                        .configuration = {proto.configuration().begin(), proto.configuration().end()},
                        .planned = proto.planned(),
                        .prepared = proto.prepared(),
                        .final = proto.final(),
                        .ledger = FromProto(proto.ledger()),
                        .sink_state = proto.sink_state(),
                        .writer_states = {proto.writer_states().begin(), proto.writer_states().end()},
                        .committables = {proto.committables().begin(), proto.committables().end()},
                        .report = FromProto(proto.report())};
  if (!proto.schema().empty()) {
    arrow::io::BufferReader reader(arrow::Buffer::FromString(proto.schema()));
    arrow::ipc::DictionaryMemo dictionaries;
    auto schema = arrow::ipc::ReadSchema(&reader, &dictionaries);
    if (!schema.ok()) return DamagedCheckpoint(name, fmt::format("its schema is not valid ({})", schema.status().message()));
    state.schema = *schema;
  }
  if (state.planned && state.schema == nullptr) return DamagedCheckpoint(name, "it has a plan but no schema");
  return state;
}

}  // namespace headrace
