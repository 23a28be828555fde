#include "headrace/local/read_service.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>
#include <grpcpp/server_context.h>

namespace headrace::local {
namespace {

namespace storage = google::cloud::bigquery::storage::v1;

// How soon a waiting call sees that its client is gone: gRPC's synchronous calls have no other notice.
constexpr auto kCancelNotice = std::chrono::milliseconds(50);

grpc::Status ToGrpc(const arrow::Status& status) { return {static_cast<grpc::StatusCode>(CodeOf(status)), status.message()}; }

grpc::Status ToGrpc(const StatusFault& fault) {
  google::rpc::Status details;
  details.set_code(static_cast<int>(fault.code));
  details.set_message(fault.message);
  if (fault.retry_delay_ms) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(*fault.retry_delay_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(*fault.retry_delay_ms % 1000 * 1'000'000));
    details.add_details()->PackFrom(retry);
  }
  return {static_cast<grpc::StatusCode>(fault.code), fault.message, details.SerializeAsString()};
}

grpc::ByteBuffer ToByteBuffer(Pieces pieces, int64_t* size) {
  std::vector<grpc::Slice> slices;
  slices.reserve(pieces.size());
  *size = 0;
  for (auto& piece : pieces) {
    *size += piece->size();
    auto* owner = new std::shared_ptr<arrow::Buffer>(std::move(piece));
    // gRPC only reads the bytes; its type has no const.
    slices.emplace_back(
        const_cast<uint8_t*>((*owner)->data()), static_cast<size_t>((*owner)->size()),
        [](void* held) { delete static_cast<std::shared_ptr<arrow::Buffer>*>(held); }, owner);
  }
  return {slices.data(), slices.size()};
}

// The descriptor of a connection that was handed to gRPC as one; -1 when the peer is none.
int DescriptorOf(const std::string& peer) {
  constexpr std::string_view kPrefix = "fd:";
  if (!peer.starts_with(kPrefix)) return -1;
  int fd = -1;
  std::from_chars(peer.data() + kPrefix.size(), peer.data() + peer.size(), fd);
  return fd;
}

// "p.d.t" for fault rules; empty when the name is none.
std::string TableOf(const std::string& resource) {
  auto name = ParseResourceTableName(resource);
  return name.ok() ? name->Dotted() : "";
}

}  // namespace

struct ReadService::Call {
  grpc::ServerContext* context = nullptr;
  std::string stream{};
  CallFaults faults{};
  std::shared_ptr<Throttle> throttle{};  // of a fault rule
  Duration began{};
  Duration waited{};
  RowEncoding encoding{};
  std::unique_ptr<avro::Encoder> avro{};
};

ReadService::ReadService(ReadServiceParts parts) : parts_(std::move(parts)) {
  using grpc::internal::RpcMethod;
  using grpc::internal::RpcServiceMethod;
  AddMethod(
      new RpcServiceMethod("/google.cloud.bigquery.storage.v1.BigQueryRead/CreateReadSession", RpcMethod::NORMAL_RPC,
                           new grpc::internal::RpcMethodHandler<ReadService, storage::CreateReadSessionRequest, storage::ReadSession>(
                               [](ReadService* service, grpc::ServerContext* context, const storage::CreateReadSessionRequest* request,
                                  storage::ReadSession* response) { return service->CreateReadSession(context, request, response); },
                               this)));
  AddMethod(new RpcServiceMethod("/google.cloud.bigquery.storage.v1.BigQueryRead/ReadRows", RpcMethod::SERVER_STREAMING,
                                 new grpc::internal::ServerStreamingHandler<ReadService, storage::ReadRowsRequest, grpc::ByteBuffer>(
                                     [](ReadService* service, grpc::ServerContext* context, const storage::ReadRowsRequest* request,
                                        Writer* writer) { return service->ReadRows(context, request, writer); },
                                     this)));
  AddMethod(new RpcServiceMethod(
      "/google.cloud.bigquery.storage.v1.BigQueryRead/SplitReadStream", RpcMethod::NORMAL_RPC,
      new grpc::internal::RpcMethodHandler<ReadService, storage::SplitReadStreamRequest, storage::SplitReadStreamResponse>(
          [](ReadService* service, grpc::ServerContext* context, const storage::SplitReadStreamRequest* request,
             storage::SplitReadStreamResponse* response) { return service->SplitReadStream(context, request, response); },
          this)));
}

grpc::Status ReadService::Gone() const {
  // At shutdown it is gRPC that ends what still runs: that is no wish of the client, who may try again.
  if (parts_.stop.stop_requested()) return {grpc::StatusCode::UNAVAILABLE, "the local service is shutting down"};
  return {grpc::StatusCode::CANCELLED, "the client is gone"};
}

grpc::Status ReadService::SleepFor(Call* call, Duration duration) {
  MonotonicTime start = parts_.clock->Monotonic();
  grpc::Status status = grpc::Status::OK;
  while (status.ok()) {
    Duration left = start + duration - parts_.clock->Monotonic();
    if (left <= Duration::zero()) break;
    if (call->context->IsCancelled()) status = Gone();
    if (!parts_.clock->SleepFor(std::min<Duration>(left, kCancelNotice), parts_.stop)) {
      status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the local service is shutting down");
    }
  }
  call->waited += parts_.clock->Monotonic() - start;
  return status;
}

grpc::Status ReadService::Apply(Call* call, std::vector<CallFaults::Fired> fired) {
  for (auto& fault : fired) {
    if (const auto* status = std::get_if<StatusFault>(&fault.action)) return ToGrpc(*status);
    if (std::holds_alternative<DropFault>(fault.action)) {
      // A cancelled call may have lost its connection already, and the descriptor's number may be another connection's by now.
      if (!call->context->IsCancelled()) parts_.listener->Break(DescriptorOf(call->context->peer()));
      return {grpc::StatusCode::UNAVAILABLE, "Scripted fault: connection dropped"};
    }
    if (fault.throttle != nullptr) call->throttle = fault.throttle;
    if (const auto* delay = std::get_if<DelayFault>(&fault.action)) {
      grpc::Status status = SleepFor(call, std::chrono::milliseconds(delay->milliseconds));
      if (!status.ok()) return status;
    }
  }
  return grpc::Status::OK;
}

grpc::Status ReadService::CreateReadSession(grpc::ServerContext* context, const storage::CreateReadSessionRequest* request,
                                            storage::ReadSession* response) {
  std::string table = TableOf(request->read_session().table());
  Call call{.context = context, .faults = parts_.faults->Begin({.method = "CreateReadSession", .table = table})};
  grpc::Status fault = Apply(&call, call.faults.AfterMessages(0));
  if (!fault.ok()) return fault;
  auto session = parts_.api->CreateReadSession(*request);
  if (!session.ok()) return ToGrpc(session.status());
  parts_.counters->SessionCreated(table);
  *response = std::move(*session);
  return grpc::Status::OK;
}

grpc::Status ReadService::SplitReadStream(grpc::ServerContext* context, const storage::SplitReadStreamRequest* request,
                                          storage::SplitReadStreamResponse* response) {
  auto name = ParseStreamName(request->name());
  FaultCall matched{.method = "SplitReadStream"};
  int64_t asked = -1;
  if (name.ok()) {
    matched.table = name->session.table();
    matched.stream = name->index;
    asked = parts_.counters->SplitAsked(request->name(), *name, request->fraction());
  }
  Call call{.context = context, .faults = parts_.faults->Begin(matched)};
  grpc::Status status = Apply(&call, call.faults.AfterMessages(0));
  if (status.ok() && !name.ok()) status = ToGrpc(name.status());
  bool accepted = false;
  if (status.ok()) {
    auto split = parts_.api->Split(*name, request->fraction());
    if (!split.ok()) status = ToGrpc(split.status());
    accepted = split.ok() && split->has_value();
    if (accepted) {
      response->mutable_primary_stream()->set_name((*split)->primary);
      response->mutable_remainder_stream()->set_name((*split)->remainder);
    }
  }
  if (name.ok()) parts_.counters->SplitAnswered(request->name(), asked, accepted, static_cast<Code>(status.error_code()));
  return status;
}

grpc::Status ReadService::ReadRows(grpc::ServerContext* context, const storage::ReadRowsRequest* request, Writer* writer) {
  auto name = ParseStreamName(request->read_stream());
  FaultCall matched{.method = "ReadRows", .offset = request->offset()};
  int64_t opening = -1;
  if (name.ok()) {
    matched.table = name->session.table();
    matched.stream = name->index;
    opening = parts_.counters->StreamOpened(request->read_stream(), *name, request->offset());
  }
  Call call{
      .context = context, .stream = request->read_stream(), .faults = parts_.faults->Begin(matched), .began = parts_.clock->Monotonic()};
  grpc::Status status = Apply(&call, call.faults.AfterMessages(0));
  if (status.ok() && !name.ok()) status = ToGrpc(name.status());
  if (status.ok()) {
    auto opened = parts_.api->Open(*name, request->offset());
    status = opened.ok() ? SendRows(&call, *opened, opening, writer) : ToGrpc(opened.status());
  }
  if (name.ok()) parts_.counters->StreamEnded(request->read_stream(), opening, static_cast<Code>(status.error_code()));
  return status;
}

grpc::Status ReadService::SendRows(Call* call, const OpenedStream& stream, int64_t opening, Writer* writer) {
  const SessionState& session = stream.name.session;
  call->encoding = {.buffer_compression = session.compression(), .lz4 = session.response_compression() != 0};
  if (stream.avro_schema != nullptr) {
    auto encoder = avro::Encoder::Make(stream.avro_schema, stream.view->rows().schema);
    if (!encoder.ok()) return ToGrpc(encoder.status());
    call->avro = std::move(*encoder);
    call->encoding.avro = call->avro.get();
  }
  int64_t rows = stream.range.size();
  int64_t messages = 0;
  for (int64_t offset = stream.offset; offset < rows;) {
    if (parts_.stop.stop_requested()) return {grpc::StatusCode::UNAVAILABLE, "the local service is shutting down"};
    int64_t sent = 0;
    auto status = SendMessage(call, stream, offset, opening, &sent, writer);
    if (!status.ok()) return ToGrpc(status.status());
    if (!status->ok()) return *status;
    offset += sent;
    ++messages;
    grpc::Status fault = Apply(call, call->faults.AfterMessages(messages));
    if (!fault.ok()) return fault;
  }
  return Apply(call, call->faults.AfterLast());
}

arrow::Result<grpc::Status> ReadService::SendMessage(Call* call, const OpenedStream& stream, int64_t offset, int64_t opening,
                                                     int64_t* rows_sent, Writer* writer) {
  const RowBatches& rows = stream.view->rows();
  ARROW_ASSIGN_OR_RAISE(auto batch, NextMessageRows(rows, stream.range.begin + offset, stream.range.end, parts_.limits));
  ResponseFields fields;
  fields.progress_at_start = stream.ProgressBefore(offset);
  fields.progress_at_end = stream.ProgressAfter(offset + batch->num_rows());
  if (parts_.throttle != nullptr || call->throttle != nullptr) {
    Duration elapsed = std::max<Duration>(parts_.clock->Monotonic() - call->began, Duration(1));
    fields.throttle_percent = static_cast<int>(std::min<int64_t>(100, call->waited * 100 / elapsed));
  }
  if (offset == stream.offset) {
    if (stream.avro_schema != nullptr) {
      fields.schema = stream.avro_schema->ToJson();
    } else {
      ARROW_ASSIGN_OR_RAISE(fields.schema, SerializeSchema(*rows.schema));
    }
  }
  ARROW_ASSIGN_OR_RAISE(Pieces pieces, EncodeResponse(*batch, call->encoding, fields));
  int64_t bytes = 0;
  grpc::ByteBuffer message = ToByteBuffer(std::move(pieces), &bytes);
  for (Throttle* throttle : {parts_.throttle, call->throttle.get()}) {
    if (throttle == nullptr) continue;
    grpc::Status waited = SleepFor(call, throttle->Reserve(bytes));
    if (!waited.ok()) return waited;
  }
  if (!writer->Write(message)) return Gone();
  *rows_sent = batch->num_rows();
  parts_.counters->MessageSent(call->stream, opening, *rows_sent, bytes);
  return grpc::Status::OK;
}

}  // namespace headrace::local
