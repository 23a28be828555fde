#include "headrace/bigquery/read/internal/scripted_server_testing.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>

#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <google/cloud/bigquery/storage/v1/storage.grpc.pb.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/grpcpp.h>

#include "headrace/avro/encoder.h"
#include "headrace/avro/table_schema.h"
#include "headrace/bigquery/read/internal/session_schema.h"
#include "headrace/types/type_table.h"

namespace headrace::bigquery {
namespace {

namespace api = google::cloud::bigquery::storage::v1;
constexpr char kSession[] = "projects/p/locations/us/sessions/s1";
constexpr auto kLongestWait = std::chrono::seconds{30};

grpc::Status ToStatus(const Fault& fault) {
  const auto code = static_cast<grpc::StatusCode>(fault.code);
  if (fault.retry_delay_ms < 0) return {code, fault.message};
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(fault.retry_delay_ms / 1000);
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(fault.retry_delay_ms % 1000) * 1'000'000);
  google::rpc::Status status;
  status.set_code(static_cast<int>(fault.code));
  status.add_details()->PackFrom(info);
  return {code, fault.message, status.SerializeAsString()};
}

std::string ToText(const std::shared_ptr<arrow::Buffer>& buffer) { return buffer->ToString(); }

std::string ArrowSchemaOf(const arrow::Schema& schema) { return ToText(*arrow::ipc::SerializeSchema(schema)); }

std::string AvroSchemaOf(const arrow::Schema& schema) {
  return *avro::ToAvroSchema(*FromArrowSchema(schema), {.dialect = avro::Dialect::kStorageRead, .display_names = true});
}

std::string Lz4Block(const std::string& bytes) {
  const auto codec = *arrow::util::Codec::Create(arrow::Compression::LZ4);
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const auto size = static_cast<int64_t>(bytes.size());
  std::string block(static_cast<size_t>(codec->MaxCompressedLen(size, data)), '\0');
  block.resize(
      static_cast<size_t>(*codec->Compress(size, data, static_cast<int64_t>(block.size()), reinterpret_cast<uint8_t*>(block.data()))));
  return block;
}

}  // namespace

class ScriptedServer::Impl final : public api::BigQueryRead::Service {
 public:
  explicit Impl(ServedTable served) : table(std::move(served)), format(table.format) { Listen(); }
  ~Impl() override {
    server->Shutdown(std::chrono::system_clock::now());
    server->Wait();
    // The threads of gRPC, which is not instrumented, are over; the mutex lets the thread sanitizer see it too.
    std::lock_guard<std::mutex> guard(mutex);
  }

  void Listen() {
    grpc::ServerBuilder builder;
    int bound = 0;
    builder.AddListeningPort(fmt::format("127.0.0.1:{}", port), grpc::InsecureServerCredentials(), &bound);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(this);
    builder.SetMaxSendMessageSize(-1);
    server = builder.BuildAndStart();
    if (server == nullptr) MustBeOk(arrow::Status::IOError("cannot listen on port ", port));
    port = bound;
  }

  grpc::Status CreateReadSession(grpc::ServerContext* context, const api::CreateReadSessionRequest* request,
                                 api::ReadSession* session) override {
    std::optional<Fault> fault;
    {
      std::lock_guard<std::mutex> guard(mutex);
      session_requests.push_back(request->SerializeAsString());
      const size_t call = session_requests.size() - 1;
      if (call < session_faults.size()) fault = session_faults[call];
    }
    if (fault.has_value()) return fault->kind == Fault::Kind::kHang ? Hang(context) : ToStatus(*fault);
    session->set_name(kSession);
    session->set_table(request->read_session().table());
    if (table.expire_seconds > 0) session->mutable_expire_time()->set_seconds(table.expire_seconds);
    const bool avro = request->read_session().data_format() == api::AVRO;
    {
      std::lock_guard<std::mutex> guard(mutex);
      format = avro ? SourceFormat::kAvro : SourceFormat::kArrow;
    }
    if (avro != table.other_session) {
      session->mutable_avro_schema()->set_schema(AvroSchemaOf(*table.schema));
    } else {
      session->mutable_arrow_schema()->set_serialized_schema(ArrowSchemaOf(*table.schema));
    }
    for (size_t i = 0; i < table.streams.size(); ++i) {
      session->add_streams()->set_name(fmt::format("{}/streams/{}", kSession, table.one_stream_name ? 0 : i));
      session->set_estimated_row_count(session->estimated_row_count() + table.streams[i]->num_rows());
    }
    if (table.nameless_stream) session->mutable_streams(0)->clear_name();
    if (table.estimated_rows >= 0) session->set_estimated_row_count(table.estimated_rows);
    session->set_estimated_total_bytes_scanned(1000);
    return grpc::Status::OK;
  }

  grpc::Status ReadRows(grpc::ServerContext* context, const api::ReadRowsRequest* request,
                        grpc::ServerWriter<api::ReadRowsResponse>* writer) override {
    Fault fault{.after_messages = -1};
    {
      std::lock_guard<std::mutex> guard(mutex);
      const std::chrono::duration<double> left = context->deadline() - std::chrono::system_clock::now();
      reads.push_back({request->read_stream(), request->offset(), left.count()});
      const size_t call = reads.size() - 1;
      if (call < read_faults.size()) fault = read_faults[call];
      if (fault_of_all.has_value()) fault = *fault_of_all;
      if (const auto found = faults_of.find(request->read_stream()); found != faults_of.end()) fault = found->second;
    }
    const grpc::Status status = Serve(context, *request, fault, writer);
    std::lock_guard<std::mutex> guard(mutex);
    ++finished;
    changed.notify_all();
    return status;
  }

  grpc::Status SplitReadStream(grpc::ServerContext* context, const api::SplitReadStreamRequest* request,
                               api::SplitReadStreamResponse* response) override {
    std::optional<Fault> fault;
    {
      std::lock_guard<std::mutex> guard(mutex);
      const std::chrono::duration<double> left = context->deadline() - std::chrono::system_clock::now();
      splits.push_back({request->name(), request->fraction(), left.count()});
      const size_t call = splits.size() - 1;
      if (call < split_faults.size()) fault = split_faults[call];
    }
    grpc::Status status = grpc::Status::OK;
    if (fault.has_value() && fault->kind == Fault::Kind::kHang) {
      status = Hang(context);
    } else if (fault.has_value() && fault->kind == Fault::Kind::kStatus) {
      status = ToStatus(*fault);
    } else if (!fault.has_value()) {
      status = Split(*request, response);
    }
    std::lock_guard<std::mutex> guard(mutex);
    ++answered_splits;
    changed.notify_all();
    return status;
  }

  grpc::Status Split(const api::SplitReadStreamRequest& request, api::SplitReadStreamResponse* response) {
    if (!table.can_split) return {grpc::StatusCode::UNIMPLEMENTED, "no splits here"};
    const std::shared_ptr<arrow::RecordBatch> rows = RowsOf(request.name());
    if (rows == nullptr) return {grpc::StatusCode::NOT_FOUND, "no such stream"};
    if (table.splits_into_itself) {
      response->mutable_primary_stream()->set_name(request.name());
      response->mutable_remainder_stream()->set_name(Remainder(request.name()));
      return grpc::Status::OK;
    }
    const double at = table.split_at >= 0 ? table.split_at : request.fraction();
    // A border of the service's storage, as it says of its own (storage.proto).
    const auto border = static_cast<int64_t>(at * static_cast<double>(rows->num_rows())) / table.rows_per_message * table.rows_per_message;
    std::lock_guard<std::mutex> guard(mutex);
    parts[Primary(request.name())] = rows->Slice(0, border);
    parts[Remainder(request.name())] = rows->Slice(border);
    response->mutable_primary_stream()->set_name(Primary(request.name()));
    response->mutable_remainder_stream()->set_name(Remainder(request.name()));
    return grpc::Status::OK;
  }

  std::shared_ptr<arrow::RecordBatch> RowsOf(const std::string& stream) {
    std::lock_guard<std::mutex> guard(mutex);
    if (const auto found = parts.find(stream); found != parts.end()) return found->second;
    const size_t slash = stream.rfind('/');
    const size_t index = slash == std::string::npos ? SIZE_MAX : std::strtoul(stream.c_str() + slash + 1, nullptr, 10);
    return index < table.streams.size() ? table.streams[index] : nullptr;
  }

  /// Waits until a call that has sent so many messages may send one more.
  bool AwaitAllowed(grpc::ServerContext* context, int64_t sent) {
    std::unique_lock<std::mutex> lock(mutex);
    const auto deadline = std::chrono::steady_clock::now() + kLongestWait;
    while (sent >= allowed_messages && !context->IsCancelled() && std::chrono::steady_clock::now() < deadline)
      changed.wait_for(lock, std::chrono::milliseconds{2});
    return !context->IsCancelled();
  }

  grpc::Status Serve(grpc::ServerContext* context, const api::ReadRowsRequest& request, const Fault& fault,
                     grpc::ServerWriter<api::ReadRowsResponse>* writer) {
    const std::shared_ptr<arrow::RecordBatch> rows = RowsOf(request.read_stream());
    if (rows == nullptr) return {grpc::StatusCode::NOT_FOUND, "no such stream"};
    const bool is_primary = request.read_stream().ends_with("-a");
    int64_t row = table.ignore_offsets || (is_primary && table.primaries_ignore_offsets) ? 0 : request.offset();
    if (row > rows->num_rows()) return {grpc::StatusCode::FAILED_PRECONDITION, fmt::format("offset {} has not been allocated yet", row)};
    for (int sent = 0;; ++sent) {
      const bool struck = sent == fault.after_messages;
      if (struck && fault.kind == Fault::Kind::kStatus) return ToStatus(fault);
      if (struck && fault.kind == Fault::Kind::kHang) return Hang(context);
      if (struck && fault.kind == Fault::Kind::kCleanEnd) return grpc::Status::OK;
      if (row >= rows->num_rows()) {
        api::ReadRowsResponse empty;
        empty.mutable_stats()->mutable_progress()->set_at_response_start(1);
        empty.mutable_stats()->mutable_progress()->set_at_response_end(1);
        if (table.empty_message_at_end) writer->Write(empty);
        return grpc::Status::OK;
      }
      // A message ends where the service's block ends, also when the read began inside it.
      const int64_t block =
          is_primary && table.rows_per_message_of_primaries > 0 ? table.rows_per_message_of_primaries : table.rows_per_message;
      const int64_t end = std::min(rows->num_rows(), (row / block + 1) * block);
      api::ReadRowsResponse response = Message(rows->Slice(row, end - row), row, end, rows->num_rows(), sent == 0);
      if (struck && fault.kind == Fault::Kind::kSkip) {
        row = end;
        continue;
      }
      if (struck) Spoil(fault, &response);
      if (table.empty_messages) {
        api::ReadRowsResponse empty;
        *empty.mutable_stats() = response.stats();
        empty.mutable_stats()->mutable_progress()->set_at_response_end(response.stats().progress().at_response_start());
        if (table.empty_tell_nothing) empty.clear_stats();
        writer->Write(empty);
        if (struck && fault.kind == Fault::Kind::kDouble) {
          writer->Write(response);
          writer->Write(empty);
        }
      } else if (struck && fault.kind == Fault::Kind::kDouble) {
        writer->Write(response);
      }
      if (!AwaitAllowed(context, sent)) return grpc::Status::CANCELLED;
      if (!writer->Write(response)) return grpc::Status::CANCELLED;
      row = end;
    }
  }

  api::ReadRowsResponse Message(const std::shared_ptr<arrow::RecordBatch>& rows, int64_t begin, int64_t end, int64_t all, bool first) {
    api::ReadRowsResponse response;
    const bool avro = Format() == SourceFormat::kAvro;
    std::string* bytes = avro ? response.mutable_avro_rows()->mutable_serialized_binary_rows()
                              : response.mutable_arrow_record_batch()->mutable_serialized_record_batch();
    *bytes = (avro ? SerializeAvro(*rows) : SerializeArrow(rows)) + table.behind_rows;
    if (table.response_lz4) {
      std::string block = Lz4Block(*bytes);
      response.set_uncompressed_byte_size(block.size() < bytes->size() ? static_cast<int64_t>(bytes->size()) : -1);
      if (block.size() < bytes->size()) bytes->swap(block);
    }
    response.set_row_count(end - begin);
    if (table.report_progress) {
      if (!table.progress_end_only)
        response.mutable_stats()->mutable_progress()->set_at_response_start(static_cast<double>(begin) / static_cast<double>(all));
      response.mutable_stats()->mutable_progress()->set_at_response_end(static_cast<double>(end) / static_cast<double>(all) *
                                                                        table.progress_end_share);
    }
    response.mutable_throttle_state()->set_throttle_percent(table.throttle_percent);
    if (first && table.schema_in_first && avro) response.mutable_avro_schema()->set_schema(AvroSchemaOf(*table.schema));
    if (first && table.schema_in_first && !avro) response.mutable_arrow_schema()->set_serialized_schema(ArrowSchemaOf(*table.schema));
    return response;
  }

  SourceFormat Format() {
    std::lock_guard<std::mutex> guard(mutex);
    return format;
  }

  std::string SerializeAvro(const arrow::RecordBatch& rows) const {
    auto encoder = *avro::Encoder::Make(*avro::Schema::Parse(AvroSchemaOf(*table.schema)),
                                        *SessionSchema(SourceFormat::kArrow, ArrowSchemaOf(*table.schema)));
    std::string bytes;
    MustBeOk(encoder->Append(rows, 0, rows.num_rows(), &bytes));
    return bytes;
  }

  std::string SerializeArrow(const std::shared_ptr<arrow::RecordBatch>& rows) const {
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    if (table.codec != arrow::Compression::UNCOMPRESSED) options.codec = *arrow::util::Codec::Create(table.codec);
    auto sink = *arrow::io::BufferOutputStream::Create();
    auto writer = *arrow::ipc::MakeStreamWriter(sink, table.schema, options);
    MustBeOk(writer->WriteRecordBatch(*rows));
    const auto schema_size = (*arrow::ipc::SerializeSchema(*table.schema))->size();
    if (table.full_ipc_streams) {
      MustBeOk(writer->Close());
      return ToText(*sink->Finish());
    }
    // Without the schema and the end marker: bare messages, dictionary batches (if any) before the rows.
    return ToText(*sink->Finish()).substr(static_cast<size_t>(schema_size));
  }

  static void Spoil(const Fault& fault, api::ReadRowsResponse* response) {
    if (fault.kind == Fault::Kind::kGarbage) {
      std::string* bytes = response->has_avro_rows() ? response->mutable_avro_rows()->mutable_serialized_binary_rows()
                                                     : response->mutable_arrow_record_batch()->mutable_serialized_record_batch();
      for (size_t i = 8; i < std::min<size_t>(bytes->size(), 120); ++i) (*bytes)[i] = static_cast<char>(i * 37);
    }
    if (fault.kind == Fault::Kind::kWrongRowCount) response->set_row_count(response->row_count() + 1);
    if (fault.kind == Fault::Kind::kOtherFormat && response->has_avro_rows()) {
      response->mutable_arrow_record_batch()->set_serialized_record_batch("x");
    } else if (fault.kind == Fault::Kind::kOtherFormat) {
      response->mutable_avro_rows()->set_serialized_binary_rows("x");
    }
    if (fault.kind == Fault::Kind::kClaimsMore) response->set_uncompressed_byte_size(response->uncompressed_byte_size() + 1000);
  }

  grpc::Status Hang(grpc::ServerContext* context) {
    std::unique_lock<std::mutex> lock(mutex);
    ++hanging;
    changed.notify_all();
    const auto deadline = std::chrono::steady_clock::now() + kLongestWait;
    // gRPC's synchronous server tells of a cancelled call only when asked.
    while (!context->IsCancelled() && std::chrono::steady_clock::now() < deadline) changed.wait_for(lock, std::chrono::milliseconds{2});
    return grpc::Status::CANCELLED;
  }

  static void MustBeOk(const arrow::Status& status) {
    if (!status.ok()) status.Abort("in the scripted server");
  }

  const ServedTable table;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  std::mutex mutex;
  std::condition_variable changed;
  SourceFormat format;  // of the last session
  std::vector<Fault> read_faults;
  std::vector<Fault> session_faults;
  std::vector<Fault> split_faults;
  std::optional<Fault> fault_of_all;
  std::map<std::string, Fault, std::less<>> faults_of;
  std::map<std::string, std::shared_ptr<arrow::RecordBatch>, std::less<>> parts;  // of split streams
  std::vector<Call> reads;
  std::vector<SplitCall> splits;
  std::vector<std::string> session_requests;
  int64_t finished = 0;
  int64_t hanging = 0;
  int64_t answered_splits = 0;
  int64_t allowed_messages = std::numeric_limits<int64_t>::max();
};

ScriptedServer::ScriptedServer(ServedTable table) : impl_(std::make_unique<Impl>(std::move(table))) {}
ScriptedServer::~ScriptedServer() = default;

std::string ScriptedServer::endpoint() const { return fmt::format("127.0.0.1:{}", impl_->port); }
std::string ScriptedServer::StreamName(int index) const { return fmt::format("{}/streams/{}", kSession, index); }

StreamState ScriptedServer::Descriptor(int index) const {
  const ServedTable& table = impl_->table;
  StreamState state{.stream = StreamName(index),
                    .format = table.format,
                    .response_compression = table.response_lz4 ? ResponseCompression::kLz4 : ResponseCompression::kNone};
  if (!table.schema_as_sent)
    state.wire_schema = table.format == SourceFormat::kAvro ? AvroSchemaOf(*table.schema) : ArrowSchemaOf(*table.schema);
  return state;
}

void ScriptedServer::ScriptReads(std::vector<Fault> faults) {
  std::lock_guard<std::mutex> guard(impl_->mutex);
  impl_->read_faults = std::move(faults);
}

void ScriptedServer::ScriptSessions(std::vector<Fault> faults) {
  std::lock_guard<std::mutex> guard(impl_->mutex);
  impl_->session_faults = std::move(faults);
}

void ScriptedServer::ScriptSplits(std::vector<Fault> faults) {
  std::lock_guard<std::mutex> guard(impl_->mutex);
  impl_->split_faults = std::move(faults);
}

void ScriptedServer::FailReadsOf(const std::string& stream, Fault fault) {
  std::lock_guard<std::mutex> guard(impl_->mutex);
  impl_->faults_of[stream] = std::move(fault);
}

void ScriptedServer::AllowMessages(int64_t of_each_call) {
  std::lock_guard<std::mutex> guard(impl_->mutex);
  impl_->allowed_messages = of_each_call;
  impl_->changed.notify_all();
}

std::vector<ScriptedServer::SplitCall> ScriptedServer::splits() const {
  std::lock_guard<std::mutex> guard(impl_->mutex);
  return impl_->splits;
}

bool ScriptedServer::WaitForSplits(int64_t splits) const {
  std::unique_lock<std::mutex> lock(impl_->mutex);
  return impl_->changed.wait_for(lock, kLongestWait, [&] { return impl_->answered_splits >= splits; });
}

void ScriptedServer::FailAllReads(Fault fault) {
  std::lock_guard<std::mutex> guard(impl_->mutex);
  impl_->fault_of_all = std::move(fault);
}

void ScriptedServer::Restart() {
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
  impl_->server.reset();
  impl_->Listen();
}

std::vector<ScriptedServer::Call> ScriptedServer::reads() const {
  std::lock_guard<std::mutex> guard(impl_->mutex);
  return impl_->reads;
}

std::vector<std::string> ScriptedServer::session_requests() const {
  std::lock_guard<std::mutex> guard(impl_->mutex);
  return impl_->session_requests;
}

int64_t ScriptedServer::finished_reads() const {
  std::lock_guard<std::mutex> guard(impl_->mutex);
  return impl_->finished;
}

bool ScriptedServer::WaitForFinished(int64_t reads) const {
  std::unique_lock<std::mutex> lock(impl_->mutex);
  return impl_->changed.wait_for(lock, kLongestWait, [&] { return impl_->finished >= reads; });
}

bool ScriptedServer::WaitForHanging(int64_t reads) const {
  std::unique_lock<std::mutex> lock(impl_->mutex);
  return impl_->changed.wait_for(lock, kLongestWait, [&] { return impl_->hanging >= reads; });
}

}  // namespace headrace::bigquery
