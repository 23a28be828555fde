// A service on loopback and a plain gRPC client of it, for the tests of this folder.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <google/cloud/bigquery/storage/v1/storage.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/local/service.h"

namespace headrace::local {

namespace storage = google::cloud::bigquery::storage::v1;

// id, name ("n0", every fifth null), Value; rows 0 to rows-1, in two chunks.
inline std::shared_ptr<arrow::Table> Numbers(int64_t rows) {
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  auto schema =
      arrow::schema({arrow::field("id", arrow::int64()), arrow::field("name", arrow::utf8()), arrow::field("Value", arrow::float64())});
  for (auto [begin, end] : {std::pair<int64_t, int64_t>(0, rows / 3), {rows / 3, rows}}) {
    arrow::Int64Builder id;
    arrow::StringBuilder name;
    arrow::DoubleBuilder value;
    for (int64_t i = begin; i < end; ++i) {
      EXPECT_TRUE(id.Append(i).ok() && (i % 5 == 0 ? name.AppendNull() : name.Append("n" + std::to_string(i))).ok() &&
                  value.Append(i / 2.0).ok());
    }
    batches.push_back(arrow::RecordBatch::Make(schema, end - begin, {*id.Finish(), *name.Finish(), *value.Finish()}));
  }
  return *arrow::Table::FromRecordBatches(schema, batches);
}

struct Outcome {
  grpc::Status status;
  std::vector<storage::ReadRowsResponse> messages;
  std::vector<int64_t> ids;
};

class ServiceTest : public ::testing::Test {
 protected:
  void Start(ServiceOptions options) {
    stub_.reset();
    channel_.reset();
    service_ = std::make_unique<Service>(std::move(options));
    auto bound = service_->Start();
    ASSERT_TRUE(bound.ok()) << bound.status();
    bound_ = *bound;
    Connect();
  }
  ServiceOptions Options(int64_t rows) {
    ServiceOptions options;
    options.tables = {{"p.d.t", Numbers(rows)}};
    options.views = {"p.d.v"};
    options.clock = &clock_;
    options.message_rows = 4;
    options.streams_as_asked = true;
    return options;
  }
  void Connect() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(bound_.grpc, grpc::InsecureChannelCredentials(), arguments);
    stub_ = storage::BigQueryRead::NewStub(channel_);
  }

  static storage::CreateReadSessionRequest Request(int streams = 1) {
    storage::CreateReadSessionRequest request;
    request.set_parent("projects/billing");
    request.mutable_read_session()->set_table("projects/p/datasets/d/tables/t");
    request.mutable_read_session()->set_data_format(storage::ARROW);
    request.set_max_stream_count(streams);
    return request;
  }
  grpc::Status Create(const storage::CreateReadSessionRequest& request, storage::ReadSession* session) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context.set_wait_for_ready(true);
    return stub_->CreateReadSession(&context, request, session);
  }
  storage::ReadSession Session(const storage::CreateReadSessionRequest& request) {
    storage::ReadSession session;
    grpc::Status status = Create(request, &session);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return session;
  }
  Outcome Read(const std::string& stream, int64_t offset = 0) {
    Outcome outcome = Receive(stream, offset);
    Decode(&outcome);
    return outcome;
  }
  // Without the ids.
  Outcome Receive(const std::string& stream, int64_t offset = 0) {
    storage::ReadRowsRequest request;
    request.set_read_stream(stream);
    request.set_offset(offset);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context.set_wait_for_ready(true);
    auto reader = stub_->ReadRows(&context, request);
    Outcome outcome;
    storage::ReadRowsResponse response;
    while (reader->Read(&response)) outcome.messages.push_back(response);
    outcome.status = reader->Finish();
    return outcome;
  }
  grpc::Status Split(const std::string& stream, double fraction, storage::SplitReadStreamResponse* response) {
    storage::SplitReadStreamRequest request;
    request.set_name(stream);
    request.set_fraction(fraction);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context.set_wait_for_ready(true);
    return stub_->SplitReadStream(&context, request, response);
  }
  // The first column of every message, which is id.
  void Decode(Outcome* outcome) {
    for (const auto& message : outcome->messages) {
      if (message.has_arrow_schema()) {
        arrow::io::BufferReader in(arrow::Buffer::FromString(message.arrow_schema().serialized_schema()));
        schema_ = arrow::ipc::ReadSchema(&in, &memo_).ValueOrDie();
      }
      arrow::io::BufferReader in(arrow::Buffer::FromString(message.arrow_record_batch().serialized_record_batch()));
      auto batch = arrow::ipc::ReadRecordBatch(schema_, &memo_, arrow::ipc::IpcReadOptions::Defaults(), &in).ValueOrDie();
      ASSERT_TRUE(batch->ValidateFull().ok());
      ASSERT_EQ(batch->num_rows(), message.row_count());
      if (batch->num_columns() == 0 || batch->schema()->field(0)->type()->id() != arrow::Type::INT64) continue;
      for (int64_t i = 0; i < batch->num_rows(); ++i)
        outcome->ids.push_back(static_cast<const arrow::Int64Array&>(*batch->column(0)).Value(i));
    }
  }
  nlohmann::json Counters() { return nlohmann::json::parse(service_->CountersJson()); }
  void SetFaults(const std::string& rules) {
    auto status = service_->SetFaults("{\"rules\":[" + rules + "]}");
    ASSERT_TRUE(status.ok()) << status;
  }

  ManualClock clock_;
  std::unique_ptr<Service> service_;
  BoundAddresses bound_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<storage::BigQueryRead::Stub> stub_;
  std::shared_ptr<arrow::Schema> schema_;
  arrow::ipc::DictionaryMemo memo_;
};

inline std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> range;
  for (int64_t i = begin; i < end; ++i) range.push_back(i);
  return range;
}

}  // namespace headrace::local
