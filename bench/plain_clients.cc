#include "bench/plain_clients.h"

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/util/byte_size.h>
#include <google/cloud/bigquery/storage/v1/storage.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

namespace headrace::bench {
namespace {

namespace storage = google::cloud::bigquery::storage::v1;

arrow::Status ToArrow(const grpc::Status& status) {
  if (status.ok()) return arrow::Status::OK();
  return arrow::Status::IOError("status ", static_cast<int>(status.error_code()), ": ", status.error_message());
}

std::shared_ptr<grpc::Channel> Connect(const ReadPlan& plan, bool tuned) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (tuned) {
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 8 << 20);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  }
  return grpc::CreateCustomChannel(plan.endpoint, grpc::InsecureChannelCredentials(), arguments);
}

arrow::Result<storage::ReadSession> CreateSession(const ReadPlan& plan, const std::shared_ptr<grpc::Channel>& channel) {
  storage::CreateReadSessionRequest request;
  request.set_parent("projects/bench");
  request.mutable_read_session()->set_table(plan.table);
  request.mutable_read_session()->set_data_format(plan.avro ? storage::AVRO : storage::ARROW);
  if (plan.compression != "none") {
    auto* arrow = request.mutable_read_session()->mutable_read_options()->mutable_arrow_serialization_options();
    arrow->set_buffer_compression(plan.compression == "lz4" ? storage::ArrowSerializationOptions::LZ4_FRAME
                                                            : storage::ArrowSerializationOptions::ZSTD);
  }
  request.set_max_stream_count(plan.streams);
  grpc::ClientContext context;
  storage::ReadSession session;
  ARROW_RETURN_NOT_OK(ToArrow(storage::BigQueryRead::NewStub(channel)->CreateReadSession(&context, request, &session)));
  return session;
}

/// One thread for each stream, each with a connection of its own.
template <typename ReadOne>
arrow::Result<Work> ReadAll(const storage::ReadSession& session, ReadOne read_one) {
  std::vector<std::future<arrow::Result<Work>>> running;
  for (const auto& stream : session.streams()) running.push_back(std::async(std::launch::async, [&] { return read_one(stream.name()); }));
  Work all;
  arrow::Status first_error;
  for (auto& one : running) {
    auto work = one.get();
    if (!work.ok()) {
      first_error = first_error.ok() ? work.status() : first_error;
      continue;
    }
    all.rows += work->rows;
    all.bytes += work->bytes;
  }
  ARROW_RETURN_NOT_OK(first_error);
  return all;
}

/// As Headrace's files: ZSTD, the Arrow schema in the file.
arrow::Result<std::unique_ptr<parquet::arrow::FileWriter>> CreateParquet(const arrow::Schema& schema, const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto out, arrow::io::FileOutputStream::Open(path));
  auto properties = parquet::WriterProperties::Builder().compression(arrow::Compression::ZSTD)->build();
  auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  return parquet::arrow::FileWriter::Open(schema, arrow::default_memory_pool(), out, properties, arrow_properties);
}

}  // namespace

arrow::Result<Work> ReadBytes(const ReadPlan& plan) {
  ARROW_ASSIGN_OR_RAISE(const auto session, CreateSession(plan, Connect(plan, true)));
  auto read_one = [&](const std::string& stream) -> arrow::Result<Work> {
    const auto channel = Connect(plan, true);
    const grpc::internal::RpcMethod method("/google.cloud.bigquery.storage.v1.BigQueryRead/ReadRows",
                                           grpc::internal::RpcMethod::SERVER_STREAMING, channel);
    storage::ReadRowsRequest request;
    request.set_read_stream(stream);
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
        grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(channel.get(), method, &context, request));
    Work work;
    for (grpc::ByteBuffer message; reader->Read(&message);) work.bytes += static_cast<int64_t>(message.Length());
    ARROW_RETURN_NOT_OK(ToArrow(reader->Finish()));
    return work;
  };
  ARROW_ASSIGN_OR_RAISE(Work work, ReadAll(session, read_one));
  work.rows = session.estimated_row_count();
  return work;
}

arrow::Result<Work> ReadRawTcp(const ReadPlan& plan, const TcpSender& sender) {
  ARROW_ASSIGN_OR_RAISE(const auto session, CreateSession(plan, Connect(plan, true)));
  ARROW_RETURN_NOT_OK(sender.Receive(session.estimated_total_bytes_scanned()));
  return Work{.rows = session.estimated_row_count(), .bytes = session.estimated_total_bytes_scanned()};
}

arrow::Result<Work> ReadWithStub(const ReadPlan& plan, bool tuned) {
  if (plan.avro) return arrow::Status::NotImplemented("the plain client reads Arrow only");
  if (!plan.file.empty() && plan.streams != 1) return arrow::Status::NotImplemented("the plain client writes one stream to a file");
  ARROW_ASSIGN_OR_RAISE(const auto session, CreateSession(plan, Connect(plan, tuned)));
  auto read_one = [&](const std::string& stream) -> arrow::Result<Work> {
    arrow::ipc::DictionaryMemo memo;
    arrow::io::BufferReader schema_bytes(arrow::Buffer::FromString(session.arrow_schema().serialized_schema()));
    ARROW_ASSIGN_OR_RAISE(const auto schema, arrow::ipc::ReadSchema(&schema_bytes, &memo));
    std::unique_ptr<parquet::arrow::FileWriter> file;
    if (!plan.file.empty()) {
      ARROW_ASSIGN_OR_RAISE(file, CreateParquet(*schema, plan.file));
    }
    const auto stub = storage::BigQueryRead::NewStub(Connect(plan, tuned));
    storage::ReadRowsRequest request;
    request.set_read_stream(stream);
    grpc::ClientContext context;
    const auto reader = stub->ReadRows(&context, request);
    arrow::ipc::IpcReadOptions options;
    options.use_threads = false;
    Work work;
    for (storage::ReadRowsResponse response; reader->Read(&response);) {
      arrow::io::BufferReader bytes(
          arrow::Buffer::FromString(std::move(*response.mutable_arrow_record_batch()->mutable_serialized_record_batch())));
      ARROW_ASSIGN_OR_RAISE(const auto batch, arrow::ipc::ReadRecordBatch(schema, &memo, options, &bytes));
      if (file != nullptr) ARROW_RETURN_NOT_OK(file->WriteRecordBatch(*batch));
      work.rows += batch->num_rows();
      work.bytes += arrow::util::TotalBufferSize(*batch);
    }
    ARROW_RETURN_NOT_OK(ToArrow(reader->Finish()));
    if (file != nullptr) ARROW_RETURN_NOT_OK(file->Close());
    return work;
  };
  return ReadAll(session, read_one);
}

}  // namespace headrace::bench
