// Real calls to a gRPC server in this program.
#include "headrace/rpc/byte_stream.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <google/cloud/bigquery/storage/v1/storage.grpc.pb.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

namespace headrace::rpc {
namespace {

namespace api = google::cloud::bigquery::storage::v1;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kReadRows[] = "/google.cloud.bigquery.storage.v1.BigQueryRead/ReadRows";
constexpr char kCreate[] = "/google.cloud.bigquery.storage.v1.BigQueryRead/CreateReadSession";

/// ReadRows answers `offset` messages and does then what the stream's name says.
class Server final : public api::BigQueryRead::Service {
 public:
  explicit Server(int wanted_port = 0) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(wanted_port), grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    builder.SetMaxSendMessageSize(-1);
    server_ = builder.BuildAndStart();
    endpoint_ = {.host = "127.0.0.1", .port = static_cast<uint16_t>(port), .plaintext = true, .given_by = "test"};
  }
  ~Server() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status ReadRows(grpc::ServerContext* context, const api::ReadRowsRequest* request,
                        grpc::ServerWriter<api::ReadRowsResponse>* writer) override {
    Note(context);
    if (request->read_stream() == "slow") std::this_thread::sleep_for(milliseconds{300});
    api::ReadRowsResponse response;
    for (int64_t i = 0; i < request->offset(); ++i) {
      response.set_row_count(i);
      response.mutable_arrow_record_batch()->set_serialized_record_batch(std::string(message_bytes, static_cast<char>('a' + i % 26)));
      writer->Write(response);
    }
    if (request->read_stream() == "hang") {
      while (!context->IsCancelled())
        std::this_thread::sleep_for(milliseconds{1});  // a server that never answers; bounded by the client's cancel
      ++cancelled;
      return grpc::Status::CANCELLED;
    }
    if (request->read_stream() == "exhausted") {
      google::rpc::RetryInfo info;
      info.mutable_retry_delay()->set_seconds(3);
      google::rpc::Status status;
      status.set_code(8);
      status.add_details()->PackFrom(info);
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "quota", status.SerializeAsString()};
    }
    if (request->read_stream() == "early") {  // a clock that is before the client's
      std::this_thread::sleep_until(context->deadline() - milliseconds{25});
      return {grpc::StatusCode::DEADLINE_EXCEEDED, "over"};
    }
    if (request->read_stream() == "own limit") return {grpc::StatusCode::DEADLINE_EXCEEDED, "over"};
    if (request->read_stream() == "missing") return {grpc::StatusCode::NOT_FOUND, "no stream"};
    return grpc::Status::OK;
  }

  grpc::Status CreateReadSession(grpc::ServerContext* context, const api::CreateReadSessionRequest* request,
                                 api::ReadSession* session) override {
    Note(context);
    if (request->parent() == "hang") {
      while (!context->IsCancelled()) std::this_thread::sleep_for(milliseconds{1});
      return grpc::Status::CANCELLED;
    }
    session->set_name(request->parent());
    return grpc::Status::OK;
  }

  std::shared_ptr<ChannelPool> Pool(int channels = 0) const {
    return *ChannelPool::Make(
        {.endpoint = endpoint_, .credentials = {.kind = CredentialKind::kNone}, .quota_project = "payer", .channels = channels},
        LocalFileSystem());
  }

  std::atomic<size_t> message_bytes = 10;
  std::atomic<int> cancelled{0};
  std::mutex mutex;
  std::multimap<std::string, std::string> metadata;
  std::set<std::string> peers;
  std::vector<std::chrono::system_clock::time_point> deadlines;
  Endpoint endpoint_;
  std::unique_ptr<grpc::Server> server_;

 private:
  void Note(grpc::ServerContext* context) {
    std::lock_guard<std::mutex> guard(mutex);
    peers.insert(context->peer());
    deadlines.push_back(context->deadline());
    for (const auto& [key, value] : context->client_metadata())
      metadata.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  }
};

CallOptions Call(const std::string& name, int64_t messages) {
  api::ReadRowsRequest request;
  request.set_read_stream(name);
  request.set_offset(messages);
  return {.method = kReadRows, .request = request.SerializeAsString(), .routing = RoutingParameter("read_stream", name)};
}

std::string Join(const ByteMessage& message) {
  std::string bytes;
  for (auto piece : message.pieces) bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return bytes;
}

TEST(ByteStream, EveryMessageThenTheEnd) {
  Server server;
  server.message_bytes = 5 << 20;  // above gRPC's default limit of 4 MiB (ADR-0081's fault)
  auto stream = ByteStream::Open(server.Pool()->Acquire(), Call("s", 3));
  std::vector<ByteMessage> kept;
  for (int i = 0; i < 3; ++i) {
    auto event = stream->Read(std::chrono::seconds{30});
    ASSERT_TRUE(std::holds_alternative<ByteMessage>(event));
    kept.push_back(std::get<ByteMessage>(event));
  }
  EXPECT_TRUE(std::holds_alternative<StreamEnd>(stream->Read(std::chrono::seconds{30})));
  stream.reset();
  for (int i = 0; i < 3; ++i) {  // the bytes outlive the stream
    api::ReadRowsResponse response;
    ASSERT_TRUE(response.ParseFromString(Join(kept[static_cast<size_t>(i)])));
    EXPECT_EQ(response.row_count(), i);
    EXPECT_EQ(response.arrow_record_batch().serialized_record_batch().size(), server.message_bytes.load());
    EXPECT_EQ(kept[static_cast<size_t>(i)].size, static_cast<int64_t>(response.ByteSizeLong()));
  }
}

TEST(ByteStream, FailureCarriesCodeTextAndTheServersDelay) {
  Server server;
  auto stream = ByteStream::Open(server.Pool()->Acquire(), Call("exhausted", 1));
  EXPECT_TRUE(std::holds_alternative<ByteMessage>(stream->Read(std::chrono::seconds{30})));
  auto failure = std::get<RpcFailure>(stream->Read(std::chrono::seconds{30}));
  EXPECT_EQ(failure.code, Code::kResourceExhausted);
  EXPECT_EQ(failure.message, "quota");
  EXPECT_EQ(failure.server_delay, Duration(std::chrono::seconds{3}));
  EXPECT_FALSE(failure.stalled);
  auto missing = ByteStream::Open(server.Pool()->Acquire(), Call("missing", 0));
  EXPECT_EQ(std::get<RpcFailure>(missing->Read(std::chrono::seconds{30})).code, Code::kNotFound);
}

TEST(ByteStream, IdleLimitEndsAStalledStream) {
  Server server;
  auto stream = ByteStream::Open(server.Pool()->Acquire(), Call("hang", 1));
  EXPECT_TRUE(std::holds_alternative<ByteMessage>(stream->Read(std::chrono::seconds{30})));
  auto failure = std::get<RpcFailure>(stream->Read(milliseconds{50}));
  EXPECT_TRUE(failure.stalled);
}

TEST(ByteStream, AttemptLimitIsTold) {
  Server server;
  auto options = Call("hang", 0);
  options.attempt_limit = milliseconds{50};
  auto failure = std::get<RpcFailure>(ByteStream::Open(server.Pool()->Acquire(), options)->Read(std::chrono::seconds{30}));
  EXPECT_EQ(failure.code, Code::kDeadlineExceeded);
  EXPECT_TRUE(failure.attempt_limit);
  EXPECT_FALSE(failure.stalled);
}

// The service's clock and gRPC's are not ours: a limit that they see reached a moment before we do is the same limit.
TEST(ByteStream, AttemptLimitIsToldThoughTheServerMeetsItEarlier) {
  Server server;
  auto options = Call("early", 0);
  options.attempt_limit = milliseconds{500};
  auto failure = std::get<RpcFailure>(ByteStream::Open(server.Pool()->Acquire(), options)->Read(std::chrono::seconds{30}));
  EXPECT_EQ(failure.code, Code::kDeadlineExceeded);
  EXPECT_TRUE(failure.attempt_limit);
}

TEST(ByteStream, ADeadlineOfTheServersOwnIsNotTheAttemptLimit) {
  Server server;
  auto options = Call("own limit", 0);
  options.attempt_limit = std::chrono::seconds{60};
  auto failure = std::get<RpcFailure>(ByteStream::Open(server.Pool()->Acquire(), options)->Read(std::chrono::seconds{30}));
  EXPECT_EQ(failure.code, Code::kDeadlineExceeded);
  EXPECT_FALSE(failure.attempt_limit);
}

// Spec connection.md: four limits with one meaning each, zero means none. (The total limit is of a reader, with all its attempts.)
TEST(ByteStream, ZeroIsNoLimit) {
  Server server;
  const auto options = Call("slow", 1);
  EXPECT_EQ(options.attempt_limit, Duration{0});
  auto stream = ByteStream::Open(server.Pool()->Acquire(), options);
  EXPECT_TRUE(std::holds_alternative<ByteMessage>(stream->Read(Duration{0})));
  EXPECT_TRUE(std::holds_alternative<StreamEnd>(stream->Read(Duration{0})));
  auto limited = options;
  limited.attempt_limit = std::chrono::hours{1};
  EXPECT_TRUE(std::holds_alternative<ByteMessage>(ByteStream::Open(server.Pool()->Acquire(), limited)->Read(Duration{0})));
  auto idle = ByteStream::Open(server.Pool()->Acquire(), Call("hang", 0));
  EXPECT_TRUE(std::get<RpcFailure>(idle->Read(milliseconds{50})).stalled);
  std::lock_guard<std::mutex> guard(server.mutex);
  const auto in_a_day = std::chrono::system_clock::now() + std::chrono::hours{24};
  EXPECT_GT(server.deadlines[0], in_a_day);
  EXPECT_LT(server.deadlines[1], in_a_day);
}

/// Accepts connections and never says a word.
class SilentServer {
 public:
  SilentServer() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_, 16), 0);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    endpoint = {.host = "127.0.0.1", .port = ntohs(address.sin_port), .plaintext = true, .given_by = "test"};
  }
  ~SilentServer() { close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  Endpoint endpoint;

 private:
  const int socket_;
};

TEST(ByteStream, ConnectLimitBoundsTheConnectionAlone) {
  SilentServer server;
  const auto pool = [&](milliseconds limit) {
    return *ChannelPool::Make({.endpoint = server.endpoint, .credentials = {.kind = CredentialKind::kNone}, .connect_limit = limit},
                              LocalFileSystem());
  };
  const auto started = std::chrono::steady_clock::now();
  auto failure = std::get<RpcFailure>(ByteStream::Open(pool(milliseconds{200})->Acquire(), Call("s", 0))->Read(std::chrono::seconds{15}));
  EXPECT_EQ(failure.code, Code::kUnavailable) << failure.message;
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds{10});
  // Zero: still connecting when the idle limit ends the wait.
  EXPECT_TRUE(
      std::get<RpcFailure>(ByteStream::Open(pool(milliseconds{0})->Acquire(), Call("s", 0))->Read(std::chrono::seconds{1})).stalled);
}

TEST(ByteStream, CancelFromAnotherThreadEndsTheWait) {
  Server server;
  auto stream = ByteStream::Open(server.Pool()->Acquire(), Call("hang", 1));
  EXPECT_TRUE(std::holds_alternative<ByteMessage>(stream->Read(std::chrono::seconds{30})));
  std::jthread other([&] { stream->Cancel(); });
  EXPECT_EQ(std::get<RpcFailure>(stream->Read(std::chrono::seconds{30})).code, Code::kCancelled);
}

// Fact U75: an abandoned read cancels the call.
TEST(ByteStream, DestroyingItCancelsTheCall) {
  Server server;
  {
    auto unread = ByteStream::Open(server.Pool()->Acquire(), Call("hang", 0));
  }
  {
    auto half_read = ByteStream::Open(server.Pool()->Acquire(), Call("hang", 2));
    EXPECT_TRUE(std::holds_alternative<ByteMessage>(half_read->Read(std::chrono::seconds{30})));
  }
  server.server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds{30});  // waits for both handlers to see it
  EXPECT_GE(server.cancelled, 1);
}

TEST(ByteStream, NoServerIsUnavailableAtOnce) {
  std::shared_ptr<ChannelPool> pool;
  {
    Server server;
    pool = server.Pool();
  }
  const auto failure = std::get<RpcFailure>(ByteStream::Open(pool->Acquire(), Call("s", 0))->Read(std::chrono::seconds{30}));
  EXPECT_EQ(failure.code, Code::kUnavailable);
  EXPECT_TRUE(failure.unreached) << failure.message;
}

// Nobody polls a channel between two attempts; before each call waited for it, a channel that had failed once connected again only at
// gRPC's own look every five seconds, and the calls before that failed at once although the server was there.
TEST(ByteStream, TheCallAfterAFailedConnectionWaitsForTheNextOne) {
  std::shared_ptr<ChannelPool> pool;
  int port = 0;
  {
    Server server;
    port = server.endpoint_.port;
    pool = server.Pool();
  }
  EXPECT_EQ(std::get<RpcFailure>(ByteStream::Open(pool->Acquire(), Call("s", 0))->Read(std::chrono::seconds{30})).code, Code::kUnavailable);
  Server back(port);
  ASSERT_EQ(back.endpoint_.port, port);
  std::this_thread::sleep_for(milliseconds{300});  // a reader's wait before its next attempt: longer than the channel's own, and unpolled
  EXPECT_TRUE(std::holds_alternative<StreamEnd>(ByteStream::Open(pool->Acquire(), Call("s", 0))->Read(std::chrono::seconds{30})));
}

TEST(ByteStream, TheWaitForAConnectionEndsAndCanBeCancelled) {
  std::shared_ptr<ChannelPool> pool;
  {
    Server server;
    pool = server.Pool();
  }
  ByteStream::Open(pool->Acquire(), Call("s", 0))->Read(std::chrono::seconds{30});
  // What the connection failed with is told, however the wait ended.
  for (const Duration idle_limit : {Duration{0}, Duration{milliseconds{50}}}) {
    const auto started = std::chrono::steady_clock::now();
    const auto failure = std::get<RpcFailure>(ByteStream::Open(pool->Acquire(), Call("s", 0))->Read(idle_limit));
    EXPECT_EQ(failure.code, Code::kUnavailable) << failure.message;
    EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds{10});
  }
  Duration least = std::chrono::hours{1};
  for (int i = 0; i < 3; ++i) {
    auto stream = ByteStream::Open(pool->Acquire(), Call("s", 0));
    stream->Cancel();
    const auto started = std::chrono::steady_clock::now();
    EXPECT_TRUE(std::holds_alternative<RpcFailure>(stream->Read(Duration{0})));
    least = std::min<Duration>(least, std::chrono::steady_clock::now() - started);
  }
  EXPECT_LT(least, std::chrono::seconds{1}) << "a wait that nobody cancels takes one and a half";
  ByteStream::Open(pool->Acquire(), Call("s", 0));  // never read: nothing to wait for
}

// Facts U65, U72.
TEST(ByteStream, AnAttemptWithoutAByteGivesUpItsConnection) {
  Server server;
  auto pool = server.Pool();
  auto options = Call("hang", 1);
  options.attempt_limit = std::chrono::seconds{2};  // with the time to connect
  auto some = ByteStream::Open(pool->Acquire(), options);
  EXPECT_TRUE(std::holds_alternative<ByteMessage>(some->Read(std::chrono::seconds{30})));
  EXPECT_TRUE(std::get<RpcFailure>(some->Read(std::chrono::seconds{30})).attempt_limit);
  EXPECT_EQ(pool->open_channels(), 1);
  options.request = Call("hang", 0).request;
  options.attempt_limit = milliseconds{50};
  EXPECT_TRUE(std::get<RpcFailure>(ByteStream::Open(pool->Acquire(), options)->Read(std::chrono::seconds{30})).attempt_limit);
  EXPECT_EQ(pool->open_channels(), 0);
}

TEST(UnaryCall, AnswersFailsAndStops) {
  Server server;
  auto pool = server.Pool();
  api::CreateReadSessionRequest request;
  request.set_parent("projects/p");
  std::stop_source stop;
  auto answer = UnaryCall(pool->Acquire(), {.method = kCreate, .request = request.SerializeAsString()}, stop.get_token());
  api::ReadSession session;
  ASSERT_TRUE(session.ParseFromString(std::get<std::string>(answer)));
  EXPECT_EQ(session.name(), "projects/p");
  request.set_parent("hang");
  std::jthread other([&] { stop.request_stop(); });
  auto stopped = UnaryCall(pool->Acquire(), {.method = kCreate, .request = request.SerializeAsString()}, stop.get_token());
  EXPECT_EQ(std::get<RpcFailure>(stopped).code, Code::kCancelled);
}

TEST(ByteStream, SendsTheRequiredHeaders) {
  Server server;
  auto stream = ByteStream::Open(server.Pool()->Acquire(), Call("projects/p/locations/us/x y", 0));
  EXPECT_TRUE(std::holds_alternative<StreamEnd>(stream->Read(std::chrono::seconds{30})));
  std::lock_guard<std::mutex> guard(server.mutex);
  EXPECT_EQ(server.metadata.find("x-goog-request-params")->second, "read_stream=projects%2Fp%2Flocations%2Fus%2Fx%20y");
  EXPECT_EQ(server.metadata.find("x-goog-user-project")->second, "payer");
  EXPECT_THAT(server.metadata.find("user-agent")->second, StartsWith(UserAgent() + " "));
  EXPECT_THAT(server.metadata.find("x-goog-api-client")->second, HasSubstr("gccl/"));
}

TEST(ChannelPool, ChannelsAreSocketsOfTheirOwn) {
  Server server;
  auto pool = server.Pool(3);
  std::vector<std::unique_ptr<ByteStream>> streams;
  for (int i = 0; i < 6; ++i) {
    streams.push_back(ByteStream::Open(pool->Acquire(), Call("s", 1)));
    EXPECT_TRUE(std::holds_alternative<ByteMessage>(streams.back()->Read(std::chrono::seconds{30})));
  }
  EXPECT_EQ(pool->open_channels(), 3);
  std::lock_guard<std::mutex> guard(server.mutex);
  EXPECT_EQ(server.peers.size(), 3U);
}

TEST(ChannelPool, GrowsWithTheStreamsReusesAndReplacesBrokenOnes) {
  Server server;
  auto pool = server.Pool();
  std::vector<ChannelPool::Lease> leases;
  for (int i = 0; i < 40; ++i) {
    leases.push_back(pool->Acquire());
    EXPECT_EQ(pool->open_channels(), std::min(i / 2 + 1, 8));
  }
  leases.clear();
  auto one = pool->Acquire();
  EXPECT_EQ(pool->open_channels(), 8);
  auto broken = one.channel();
  one.MarkBroken();
  EXPECT_EQ(pool->open_channels(), 7);
  for (int i = 0; i < 40; ++i) {
    leases.push_back(pool->Acquire());
    EXPECT_NE(leases.back().channel(), broken);
  }
}

}  // namespace
}  // namespace headrace::rpc
