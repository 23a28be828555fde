// google.cloud.bigquery.storage.v1.BigQueryRead over gRPC. ReadRows answers ready-made byte buffers, so the generated service class is not
// used.
//
// gRPC calls it from its own threads. Everything it is given must outlive the server that it is registered with.
#pragma once

#include <stop_token>
#include <string>

#include <google/cloud/bigquery/storage/v1/storage.pb.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/sync_stream.h>

#include "headrace/base/clock.h"
#include "headrace/local/counters.h"
#include "headrace/local/faults.h"
#include "headrace/local/listener.h"
#include "headrace/local/read_api.h"
#include "headrace/local/response_cache.h"
#include "headrace/local/row_message.h"
#include "headrace/local/served_call.h"
#include "headrace/local/throttle.h"

namespace headrace::local {

struct ReadServiceParts {
  ReadApi* api = nullptr;
  FaultScript* faults = nullptr;
  Counters* counters = nullptr;
  Listener* listener = nullptr;
  Throttle* throttle = nullptr;         // of all calls; null = no limit
  int64_t stream_bytes_per_second = 0;  // of each ReadRows call; 0 = no limit
  Clock* clock = nullptr;
  MessageLimits limits{};
  ResponseCache* kept = nullptr;  // null = none are kept
  std::stop_token stop{};
};

class ReadService final : public grpc::Service {
 public:
  explicit ReadService(ReadServiceParts parts);

 private:
  using Writer = grpc::ServerWriter<grpc::ByteBuffer>;
  // Where the messages of one call go, and in which form.
  struct Sending {
    std::string stream{};
    int64_t opening = -1;  // for the counters
    Writer* writer = nullptr;
    RowEncoding encoding{};
  };

  grpc::Status CreateReadSession(grpc::ServerContext* context,
                                 const google::cloud::bigquery::storage::v1::CreateReadSessionRequest* request,
                                 google::cloud::bigquery::storage::v1::ReadSession* response);
  grpc::Status ReadRows(grpc::ServerContext* context, const google::cloud::bigquery::storage::v1::ReadRowsRequest* request, Writer* writer);
  grpc::Status SplitReadStream(grpc::ServerContext* context, const google::cloud::bigquery::storage::v1::SplitReadStreamRequest* request,
                               google::cloud::bigquery::storage::v1::SplitReadStreamResponse* response);

  ServedCall Serve(grpc::ServerContext* context, const FaultCall& call);
  grpc::Status Split(ServedCall* call, const arrow::Result<StreamName>& name, double fraction,
                     google::cloud::bigquery::storage::v1::SplitReadStreamResponse* response, bool* accepted);
  grpc::Status SendRows(ServedCall* call, const OpenedStream& stream, Sending* to);
  /// A response that was sent before, if it is kept.
  std::optional<KeptResponse> FindKept(const OpenedStream& stream, int64_t offset, const Sending& to) const;
  arrow::Result<grpc::Status> SendMessage(ServedCall* call, const OpenedStream& stream, const arrow::RecordBatch& rows, int64_t offset,
                                          const MessageFaults& faults, Sending* to);
  grpc::Status SendEncoded(ServedCall* call, const KeptResponse& response, const MessageFaults& faults, const Sending& to);

  const ReadServiceParts parts_;
  ExpiredSessions expired_;
};

}  // namespace headrace::local
