#include "headrace/local/read_service.h"

#include <memory>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>
#include <grpcpp/server_context.h>

namespace headrace::local {
namespace {

namespace storage = google::cloud::bigquery::storage::v1;

grpc::Status ToGrpc(const arrow::Status& status) { return {static_cast<grpc::StatusCode>(CodeOf(status)), status.message()}; }

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

// "p.d.t" for fault rules; empty when the name is none.
std::string TableOf(const std::string& resource) {
  auto name = ParseResourceTableName(resource);
  return name.ok() ? name->Dotted() : "";
}

arrow::Result<std::string> SchemaOf(const OpenedStream& stream, std::optional<SchemaChange> change) {
  if (stream.avro_schema != nullptr) {
    std::string json = stream.avro_schema->ToJson();
    return change ? AlteredAvroSchema(json, *change) : json;
  }
  const arrow::Schema& schema = *stream.view->rows().schema;
  return SerializeSchema(change ? *AlteredArrowSchema(schema, *change) : schema);
}

FaultCall FaultCallFor(std::string method, const std::string& stream_name, const arrow::Result<StreamName>& name) {
  FaultCall call{.method = std::move(method), .stream_name = stream_name};
  if (!name.ok()) return call;
  call.table = name->session.table();
  call.stream = name->index;
  call.part = name->part;
  call.stream_rows = fmt::format("{} {} {}-{}", call.table, name->index, name->rows.begin, name->rows.end);
  return call;
}

ResponseKey KeyOf(const OpenedStream& stream, int64_t offset, const RowEncoding& encoding) {
  return {.view = stream.view,
          .range = stream.range,
          .offset = offset,
          .has_schema = offset == stream.offset,
          .avro = encoding.avro != nullptr,
          .precision = PrecisionOf(stream.name.session),
          .buffer_compression = encoding.buffer_compression,
          .lz4 = encoding.lz4};
}

// Nothing but the rows and their places is in the next response.
bool IsPlain(const ServedCall& call, const MessageFaults& faults) {
  return faults.damages.empty() && !faults.schema && call.throttle_percent() == 0;
}

}  // namespace

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

ServedCall ReadService::Serve(grpc::ServerContext* context, const FaultCall& call) {
  return {{.clock = parts_.clock,
           .listener = parts_.listener,
           .throttle = parts_.throttle,
           .bytes_per_second = parts_.stream_bytes_per_second,
           .expired = &expired_,
           .stop = parts_.stop},
          context,
          parts_.faults->Begin(call)};
}

grpc::Status ReadService::CreateReadSession(grpc::ServerContext* context, const storage::CreateReadSessionRequest* request,
                                            storage::ReadSession* response) {
  std::string table = TableOf(request->read_session().table());
  ServedCall call = Serve(context, {.method = "CreateReadSession", .table = table});
  grpc::Status fault = call.AfterMessages(0);
  if (!fault.ok()) return fault;
  auto session = parts_.api->CreateReadSession(*request);
  if (!session.ok()) return ToGrpc(session.status());
  parts_.counters->SessionCreated(table);
  *response = std::move(*session);
  call.set_session(response->name(), true);
  return call.AfterLast();
}

grpc::Status ReadService::SplitReadStream(grpc::ServerContext* context, const storage::SplitReadStreamRequest* request,
                                          storage::SplitReadStreamResponse* response) {
  auto name = ParseStreamName(request->name());
  int64_t asked = -1;
  if (name.ok()) asked = parts_.counters->SplitAsked(request->name(), *name, request->fraction());
  ServedCall call = Serve(context, FaultCallFor("SplitReadStream", request->name(), name));
  bool accepted = false;
  grpc::Status status = Split(&call, name, request->fraction(), response, &accepted);
  if (name.ok()) parts_.counters->SplitAnswered(request->name(), asked, accepted, static_cast<Code>(status.error_code()));
  return status;
}

grpc::Status ReadService::Split(ServedCall* call, const arrow::Result<StreamName>& name, double fraction,
                                storage::SplitReadStreamResponse* response, bool* accepted) {
  if (name.ok()) call->set_session(name->session_name);
  grpc::Status fault = call->AfterMessages(0);
  if (!fault.ok()) return fault;
  if (!name.ok()) return ToGrpc(name.status());
  grpc::Status alive = call->MayGoOn();
  if (!alive.ok()) return alive;
  auto split = parts_.api->Split(*name, fraction);
  if (!split.ok()) return ToGrpc(split.status());
  *accepted = split->has_value();
  if (*accepted) {
    response->mutable_primary_stream()->set_name((*split)->primary);
    response->mutable_remainder_stream()->set_name((*split)->remainder);
  }
  return call->AfterLast();
}

grpc::Status ReadService::ReadRows(grpc::ServerContext* context, const storage::ReadRowsRequest* request, Writer* writer) {
  auto name = ParseStreamName(request->read_stream());
  int64_t opening = -1;
  if (name.ok()) opening = parts_.counters->StreamOpened(request->read_stream(), *name, request->offset());
  FaultCall matched = FaultCallFor("ReadRows", request->read_stream(), name);
  matched.offset = request->offset();
  ServedCall call = Serve(context, matched);
  if (name.ok()) call.set_session(name->session_name);
  grpc::Status status = call.AfterMessages(0);
  if (status.ok() && !name.ok()) status = ToGrpc(name.status());
  if (status.ok()) status = call.MayGoOn();
  if (status.ok()) {
    auto opened = parts_.api->Open(*name, request->offset());
    Sending to{.stream = request->read_stream(), .opening = opening, .writer = writer};
    status = opened.ok() ? SendRows(&call, *opened, &to) : ToGrpc(opened.status());
  }
  if (name.ok()) parts_.counters->StreamEnded(request->read_stream(), opening, static_cast<Code>(status.error_code()));
  return status;
}

grpc::Status ReadService::SendRows(ServedCall* call, const OpenedStream& stream, Sending* to) {
  const SessionState& session = stream.name.session;
  to->encoding = {.buffer_compression = session.compression(), .lz4 = session.response_compression() != 0};
  std::unique_ptr<avro::Encoder> avro;
  if (stream.avro_schema != nullptr) {
    auto encoder = avro::Encoder::Make(stream.avro_schema, stream.view->rows().schema);
    if (!encoder.ok()) return ToGrpc(encoder.status());
    avro = std::move(*encoder);
    to->encoding.avro = avro.get();
  }
  int64_t rows = stream.range.size();
  int64_t messages = 0;
  for (int64_t offset = stream.offset; offset < rows;) {
    grpc::Status status = call->MayGoOn();
    if (!status.ok()) return status;
    const std::optional<KeptResponse> kept = FindKept(stream, offset, *to);
    std::shared_ptr<arrow::RecordBatch> batch;
    const auto next_rows = [&] {
      return NextMessageRows(stream.view->rows(), stream.range.begin + offset, stream.range.end, parts_.limits).Value(&batch);
    };
    if (!kept) {
      const arrow::Status next = next_rows();
      if (!next.ok()) return ToGrpc(next);
    }
    const int64_t end = offset + (kept ? kept->rows : batch->num_rows());
    MessageFaults faults;
    status = call->BeforeMessage(messages, {offset, end}, &faults);
    if (!status.ok()) return status;
    if (!faults.skip && kept && IsPlain(*call, faults)) {
      parts_.counters->MessageWasKept();
      status = SendEncoded(call, *kept, faults, *to);
      if (!status.ok()) return status;
    } else if (!faults.skip) {
      const arrow::Status next = batch == nullptr ? next_rows() : arrow::Status::OK();
      if (!next.ok()) return ToGrpc(next);
      auto sent = SendMessage(call, stream, *batch, offset, faults, to);
      if (!sent.ok()) return ToGrpc(sent.status());
      if (!sent->ok()) return *sent;
    }
    offset = end;
    ++messages;
    status = call->AfterMessages(messages);
    if (!status.ok()) return status;
  }
  return call->AfterLast();
}

arrow::Result<grpc::Status> ReadService::SendMessage(ServedCall* call, const OpenedStream& stream, const arrow::RecordBatch& rows,
                                                     int64_t offset, const MessageFaults& faults, Sending* to) {
  ResponseFields fields;
  fields.progress_at_start = stream.ProgressBefore(offset);
  fields.progress_at_end = stream.ProgressAfter(offset + rows.num_rows());
  fields.throttle_percent = call->throttle_percent();
  fields.damages = faults.damages;
  if (offset == stream.offset || faults.schema) {
    ARROW_ASSIGN_OR_RAISE(fields.schema, SchemaOf(stream, faults.schema));
  }
  ARROW_ASSIGN_OR_RAISE(Pieces pieces, EncodeResponse(rows, to->encoding, fields));
  KeptResponse response{.rows = rows.num_rows()};
  response.message = ToByteBuffer(std::move(pieces), &response.bytes);
  if (parts_.kept != nullptr && IsPlain(*call, faults)) parts_.kept->Add(KeyOf(stream, offset, to->encoding), response);
  return SendEncoded(call, response, faults, *to);
}

grpc::Status ReadService::SendEncoded(ServedCall* call, const KeptResponse& response, const MessageFaults& faults, const Sending& to) {
  for (int copies = faults.duplicate ? 2 : 1; copies > 0; --copies) {
    grpc::Status written = call->Write(response.message, response.bytes, to.writer);
    if (!written.ok()) return written;
    parts_.counters->MessageSent(to.stream, to.opening, response.rows, response.bytes);
  }
  return grpc::Status::OK;
}

std::optional<KeptResponse> ReadService::FindKept(const OpenedStream& stream, int64_t offset, const Sending& to) const {
  if (parts_.kept == nullptr) return std::nullopt;
  return parts_.kept->Find(KeyOf(stream, offset, to.encoding));
}

}  // namespace headrace::local
