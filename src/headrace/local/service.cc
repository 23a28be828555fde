#include "headrace/local/service.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>

#include "headrace/files/read_table.h"
#include "headrace/local/http_server.h"
#include "headrace/local/read_service.h"
#include "headrace/local/rest_api.h"
#include "headrace/types/schema_json.h"

namespace headrace::local {
namespace {

constexpr int64_t kLargestMessage = int64_t{64} << 20;
constexpr int64_t kLongestScript = 4 << 20;
constexpr int64_t kLongestSchema = 16 << 20;
constexpr int kFewestThreads = 4;  // gRPC's own pollers and a call
// What a call in progress gets at Shutdown before its connection is closed under it.
constexpr auto kShutdownGrace = std::chrono::milliseconds(500);
constexpr int kPingIntervalMs = 5000;

// When its last user goes, gRPC 1.51 waits for its own threads, one of which sleeps for ten seconds where a connection had more to send
// than its client took: a service that is told to stop would linger that long. So the process keeps gRPC once it has had a service.
void KeepGrpc() { [[maybe_unused]] static const bool kept = (grpc_init(), true); }

arrow::Status CheckRange(std::string option, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return arrow::Status::OK();
  std::string text = fmt::format("{} is {}. It must be from {} to {}.", option, value, least, most);
  return InvalidOption(std::move(option), std::move(text));
}

arrow::Status CheckOptions(const ServiceOptions& options) {
  constexpr int64_t kAny = INT64_MAX;
  ARROW_RETURN_NOT_OK(CheckRange("grpc_port", options.grpc_port, 0, 65535));
  ARROW_RETURN_NOT_OK(CheckRange("port", options.port, 0, 65535));
  ARROW_RETURN_NOT_OK(CheckRange("message_bytes", options.message_bytes, 1, kLargestMessage));
  ARROW_RETURN_NOT_OK(CheckRange("message_rows", options.message_rows, 1, kAny));
  ARROW_RETURN_NOT_OK(CheckRange("throttle_bytes_per_second", options.throttle_bytes_per_second, 0, kAny));
  ARROW_RETURN_NOT_OK(CheckRange("stream_throttle_bytes_per_second", options.stream_throttle_bytes_per_second, 0, kAny));
  ARROW_RETURN_NOT_OK(CheckRange("response_cache_bytes", options.response_cache_bytes, 0, kAny));
  ARROW_RETURN_NOT_OK(CheckRange("empty_table_streams", options.empty_table_streams, 0, 1));
  ARROW_RETURN_NOT_OK(CheckRange("cache_bytes", options.cache_bytes, 0, kAny));
  return CheckRange("max_threads", options.max_threads, kFewestThreads, 100'000);
}

}  // namespace

struct Service::Impl {
  explicit Impl(ServiceOptions given)
      : options(std::move(given)), faults(options.clock), tables(options.clock), rest(&tables, options.clock) {}

  ServiceOptions options;
  FaultScript faults;
  Counters counters;
  TableStore tables;
  RestApi rest;
  std::stop_source stop;
  std::unique_ptr<ReadApi> api;
  std::unique_ptr<Throttle> throttle;
  std::unique_ptr<ResponseCache> kept;
  Listener listener;
  std::unique_ptr<ReadService> read_service;
  std::unique_ptr<grpc::Server> server;
  HttpServer http;

  bool loaded = false;

  std::mutex mutex;
  std::condition_variable_any ended;

  arrow::Status LoadTables();
  arrow::Status StartServer();
};

Service::Service(ServiceOptions options) {
  if (options.clock == nullptr) options.clock = RealClock();
  if (options.files == nullptr) options.files = LocalFileSystem();
  impl_ = std::make_unique<Impl>(std::move(options));
}

Service::~Service() { Shutdown(); }

arrow::Status Service::Impl::LoadTables() {
  for (const std::string& view : options.views) ARROW_RETURN_NOT_OK(tables.AddView(view));
  for (const TableData& table : options.tables) {
    if (table.rows == nullptr) return InvalidOption("tables", fmt::format("The table {} is null.", table.name));
    ARROW_RETURN_NOT_OK(tables.Add(table.name, table.rows));
  }
  for (const TableFile& file : options.load) {
    ARROW_RETURN_NOT_OK(ParseDottedTableName(file.name).status());
    ReadTableOptions read{.csv_null_values = options.csv_null_values};
    std::optional<TableSchema> schema;
    if (!file.schema.empty()) {
      ARROW_ASSIGN_OR_RAISE(read.schema, options.files->ReadAll(file.schema, kLongestSchema));
      auto parsed = SchemaFromJson(read.schema);
      if (!parsed.ok()) return WithContext(parsed.status(), file.schema);
      schema = std::move(*parsed);
    }
    auto rows = ReadTable(options.files, file.path, read);
    if (!rows.ok()) return WithContext(rows.status(), fmt::format("loading the table {}", file.name));
    ARROW_RETURN_NOT_OK(tables.Add(file.name, *rows, schema));
  }
  return arrow::Status::OK();
}

arrow::Status Service::Impl::StartServer() {
  api = std::make_unique<ReadApi>(&tables, ReadApiOptions{.empty_table_streams = options.empty_table_streams,
                                                          .streams_as_asked = options.streams_as_asked,
                                                          .ignore_offsets = options.ignore_offsets,
                                                          .seed = options.seed,
                                                          .cache_bytes = options.cache_bytes,
                                                          .clock = options.clock});
  if (options.throttle_bytes_per_second > 0) throttle = std::make_unique<Throttle>(options.clock, options.throttle_bytes_per_second);
  if (options.response_cache_bytes > 0) kept = std::make_unique<ResponseCache>(options.response_cache_bytes);
  read_service = std::make_unique<ReadService>(ReadServiceParts{.api = api.get(),
                                                                .faults = &faults,
                                                                .counters = &counters,
                                                                .listener = &listener,
                                                                .throttle = throttle.get(),
                                                                .stream_bytes_per_second = options.stream_throttle_bytes_per_second,
                                                                .clock = options.clock,
                                                                .limits = {.bytes = options.message_bytes, .rows = options.message_rows},
                                                                .kept = kept.get(),
                                                                .stop = stop.get_token()});
  KeepGrpc();
  grpc::ServerBuilder builder;
  builder.RegisterService(read_service.get());
  grpc::ResourceQuota quota("headrace local service");
  quota.SetMaxThreads(options.max_threads);
  builder.SetResourceQuota(quota);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  // A client may keep an idle connection alive with pings.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingIntervalMs);
  server = builder.BuildAndStart();
  if (server != nullptr) return arrow::Status::OK();
  return MakeError({.code = Code::kInternal, .service = "local service"}, "The gRPC server did not start.");
}

arrow::Status Service::Load() {
  impl_->loaded = true;
  ARROW_RETURN_NOT_OK(CheckOptions(impl_->options));
  ARROW_RETURN_NOT_OK(impl_->LoadTables());
  if (impl_->options.fault_script.empty()) return arrow::Status::OK();
  ARROW_ASSIGN_OR_RAISE(std::string script, impl_->options.files->ReadAll(impl_->options.fault_script, kLongestScript));
  return WithContext(SetFaults(script), impl_->options.fault_script);
}

arrow::Result<BoundAddresses> Service::Start() {
  if (!impl_->loaded) ARROW_RETURN_NOT_OK(Load());
  BoundAddresses bound;
  ARROW_ASSIGN_OR_RAISE(bound.grpc, impl_->listener.Bind(impl_->options.bind_address, impl_->options.grpc_port));
  ARROW_RETURN_NOT_OK(impl_->StartServer());
  ARROW_RETURN_NOT_OK(impl_->listener.Start([server = impl_->server.get()](int fd) { grpc::AddInsecureChannelFromFd(server, fd); }));
  ARROW_ASSIGN_OR_RAISE(
      bound.http,
      impl_->http.Start(impl_->options.port, {.counters = [this] { return CountersJson(); },
                                              .faults = [this] { return FaultsJson(); },
                                              .set_faults = [this](const std::string& json) { return SetFaults(json); },
                                              .rest = [this](const RestRequest& request) { return impl_->rest.Handle(request); }}));
  return bound;
}

void Service::Wait(const std::stop_token& stop) {
  std::unique_lock lock(impl_->mutex);
  impl_->ended.wait(lock, stop, [this] { return impl_->stop.stop_requested(); });
}

void Service::Shutdown() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stop.request_stop();
  }
  impl_->ended.notify_all();
  // The listener ends after the server: it still holds duplicates of the sockets, and Break may be called.
  if (impl_->server != nullptr) {
    // What has not ended by itself then (its client does not read on) loses its connection, which clients take for UNAVAILABLE. gRPC would
    // cancel it instead, and clients do not try again what was cancelled.
    std::jthread breaker([this](const std::stop_token& ended) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any().wait_for(lock, ended, kShutdownGrace, [&] { return ended.stop_requested(); });
      if (!ended.stop_requested()) impl_->listener.BreakAll();
    });
    impl_->server->Shutdown(std::chrono::system_clock::now() + 4 * kShutdownGrace);
    breaker.request_stop();
    impl_->server->Wait();
  }
  impl_->listener.Stop();
  impl_->server.reset();
  impl_->http.Stop();
}

std::string Service::CountersJson() const { return impl_->counters.ToJson(impl_->faults.Counts()); }

std::string Service::FaultsJson() const { return R"({"faults":)" + FaultCountsJson(impl_->faults.Counts()) + "}"; }

arrow::Status Service::SetFaults(const std::string& json) {
  ARROW_ASSIGN_OR_RAISE(auto rules, ParseFaultRules(json));
  impl_->faults.Replace(std::move(rules));
  return arrow::Status::OK();
}

}  // namespace headrace::local
