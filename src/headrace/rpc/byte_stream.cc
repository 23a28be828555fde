#include "headrace/rpc/byte_stream.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

namespace headrace::rpc {
namespace {

// gRPC measures a deadline by another clock, in milliseconds, and the server by its own: either may be over a little before ours.
constexpr std::chrono::milliseconds kClocksDiffer{50};

/// Tags of the operations that can be pending at once.
enum Tag : uintptr_t { kStart = 1, kWrite, kRead, kFinish, kConnection };
void* AsPointer(Tag tag) { return reinterpret_cast<void*>(tag); }  // NOLINT(performance-no-int-to-ptr): gRPC's tags are opaque words

// A channel whose last attempt failed gets this long to connect before a call fails with that attempt's error: longer than the channel's
// own longest wait between attempts (one second and a fifth), so that each call sees a new one.
constexpr Duration kReconnectWait = std::chrono::milliseconds{1'500};
constexpr Duration kReconnectLook = std::chrono::milliseconds{20};  // Cancel is seen this soon

gpr_timespec In(Duration wait) { return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(wait.count(), GPR_TIMESPAN)); }

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return {&slice, 1};
}

ByteMessage ToMessage(const grpc::ByteBuffer& buffer) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  ByteMessage message;
  if (!buffer.Dump(slices.get()).ok()) return message;
  message.pieces.reserve(slices->size());
  for (const grpc::Slice& slice : *slices) {
    message.pieces.emplace_back(slice.begin(), slice.size());
    message.size += static_cast<int64_t>(slice.size());
  }
  message.owner = std::move(slices);
  return message;
}

RpcFailure ToFailure(const grpc::Status& status) {
  const auto code = static_cast<int>(status.error_code());
  const bool canonical = code >= 0 && code <= static_cast<int>(Code::kUnauthenticated);
  RpcFailure failure{.code = canonical ? static_cast<Code>(code) : Code::kUnknown,
                     .message = status.error_message(),
                     .server_delay = ParseRetryInfo(status.error_details())};
  if (failure.code == Code::kUnavailable && IsCertificateText(failure.message)) {
    failure.message += " (the server's certificate is not trusted; ca_bundle names a file of those that are)";
  }
  failure.unreached = failure.code == Code::kUnavailable && IsUnreachedText(failure.message);
  return failure;
}

}  // namespace

struct ByteStream::State {
  ChannelPool::Lease lease;
  std::optional<AccessToken> token;
  std::stop_source stop;  // requested by Cancel: ends the wait for a token
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  grpc::ByteBuffer incoming;
  grpc::Status status;
  std::string method;
  std::string request;
  std::chrono::steady_clock::time_point deadline{};
  bool has_deadline = false;
  bool started = false;
  bool unconnected = false;  // when it was opened
  bool any_message = false;
  std::atomic<bool> cancelled{false};
  bool read_pending = false;
  bool finished = false;

  enum class Waited { kDone, kNotDone, kTimeout };

  /// The service let the call in.
  void NoteAnswer() {
    if (!any_message && token.has_value()) lease.tokens()->Accepted(token->number);
    any_message = true;
  }

  /// Waits for `wanted`, taking note of the other operations on the way. kDone / kNotDone is the operation's own success.
  Waited WaitFor(Tag wanted, Duration limit) {
    return WaitUntil(wanted, limit.count() > 0 ? In(limit) : gpr_inf_future(GPR_CLOCK_MONOTONIC));
  }
  Waited WaitUntil(Tag wanted, gpr_timespec until) {
    while (true) {
      void* tag = nullptr;
      bool ok = false;
      const auto next = queue.AsyncNext(&tag, &ok, until);
      if (next == grpc::CompletionQueue::TIMEOUT) return Waited::kTimeout;
      if (next == grpc::CompletionQueue::SHUTDOWN) return Waited::kNotDone;
      if (tag == AsPointer(kRead)) read_pending = false;
      if (tag == AsPointer(wanted)) return ok ? Waited::kDone : Waited::kNotDone;
    }
  }

  void Start() {
    started = true;
    // gRPC refuses to send call credentials over a channel that is not encrypted.
    if (token.has_value()) context.set_credentials(grpc::AccessTokenCredentials(token->text));
    grpc::GenericStub stub(lease.channel());
    call = stub.PrepareCall(&context, method, &queue);
    call->StartCall(AsPointer(kStart));
    call->WriteLast(ToBuffer(request), grpc::WriteOptions(), AsPointer(kWrite));
  }

  /// Waits until the channel is connected, kReconnectWait at most. Without it a call over a channel whose last attempt failed would fail at
  /// once, and the channel would not get on with the next one: it does so only while somebody waits on a queue, and between the attempts of
  /// a reader nobody does (but for gRPC's own look every five seconds).
  void AwaitConnection(Duration limit) {
    auto until = std::chrono::steady_clock::now() + (limit.count() > 0 ? std::min(limit, kReconnectWait) : kReconnectWait);
    if (has_deadline) until = std::min(until, deadline);
    grpc_connectivity_state now = lease.channel()->GetState(true);
    while (now != GRPC_CHANNEL_READY && now != GRPC_CHANNEL_SHUTDOWN && !cancelled && std::chrono::steady_clock::now() < until) {
      lease.channel()->NotifyOnStateChange(now, In(kReconnectLook), &queue, AsPointer(kConnection));
      WaitFor(kConnection, Duration{0});
      now = lease.channel()->GetState(true);
    }
  }

  /// What is left of `limit` and of the time of the attempt; zero = no limit.
  Duration Left(Duration limit) const {
    if (!has_deadline) return limit;
    const auto left = std::max<Duration>(deadline - std::chrono::steady_clock::now(), std::chrono::nanoseconds{1});
    return limit.count() > 0 ? std::min(limit, left) : left;
  }

  /// Everything that Open could not do without waiting. The failure is that of the token: a connection's shows in the call itself.
  std::optional<RpcFailure> AwaitStart(Duration idle_limit) {
    if (unconnected) AwaitConnection(idle_limit);
    if (lease.tokens() != nullptr && !token.has_value()) {
      auto waited = lease.tokens()->Wait(Left(idle_limit), stop.get_token());
      if (auto* failure = std::get_if<RpcFailure>(&waited)) return std::move(*failure);
      token = std::get<AccessToken>(std::move(waited));
    }
    Start();
    return std::nullopt;
  }

  /// What a failure says of the token, and nothing that the token itself says.
  void JudgeToken(RpcFailure* failure) {
    if (!token.has_value()) return;
    for (size_t at = failure->message.find(token->text); at != std::string::npos; at = failure->message.find(token->text, at)) {
      failure->message.replace(at, token->text.size(), "...");
    }
    if (failure->code != Code::kUnauthenticated) return;
    const bool worthwhile = lease.tokens()->Refused(token->number);
    if (worthwhile) failure->token = TokenFault::kRefused;
    failure->message += fmt::format(" (the service refused {}{})", lease.tokens()->kind(), worthwhile ? "; it is fetched anew" : "");
  }

  /// After a read answered "no more": the status of the call.
  grpc::Status Finish(Duration limit) {
    finished = true;
    call->Finish(&status, AsPointer(kFinish));
    if (WaitFor(kFinish, limit) == Waited::kTimeout) {
      context.TryCancel();
      WaitFor(kFinish, Duration{0});  // gRPC completes every operation of a cancelled call
    }
    return status;
  }
};

ByteStream::ByteStream(std::unique_ptr<State> state) : state_(std::move(state)) {}

std::unique_ptr<ByteStream> ByteStream::Open(ChannelPool::Lease lease, const CallOptions& options) {
  auto state = std::make_unique<State>();
  state->lease = std::move(lease);
  if (!options.routing.empty()) state->context.AddMetadata("x-goog-request-params", options.routing);
  const ChannelOptions& channel = state->lease.options();
  if (!channel.quota_project.empty()) state->context.AddMetadata("x-goog-user-project", channel.quota_project);
  state->context.AddMetadata("x-goog-api-client",
                             fmt::format("gccl/{} grpc/{}", UserAgent().substr(UserAgent().find('/') + 1), grpc_version_string()));
  if (options.attempt_limit.count() > 0) {
    state->deadline = std::chrono::steady_clock::now() + options.attempt_limit;  // before gRPC's own
    state->context.set_deadline(In(options.attempt_limit));
    state->has_deadline = true;
  }
  // Headers, request and half-close leave in one batch, and the write's completion is the only one to wait for.
  state->context.set_initial_metadata_corked(true);
  state->method = options.method;
  state->request = options.request;
  if (state->lease.tokens() != nullptr) state->token = state->lease.tokens()->Current();
  state->unconnected = state->lease.channel()->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE;
  if (!state->unconnected && (state->lease.tokens() == nullptr || state->token.has_value())) state->Start();
  return std::unique_ptr<ByteStream>(new ByteStream(std::move(state)));
}

ByteStream::~ByteStream() {
  state_->context.TryCancel();
  if (state_->read_pending) state_->WaitFor(kRead, Duration{0});
  if (state_->started && !state_->finished) state_->Finish(Duration{0});
  state_->queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (state_->queue.Next(&tag, &ok)) {
  }
}

StreamEvent ByteStream::Read(Duration idle_limit, const std::function<void()>& before_waiting) {
  if (!state_->started) {
    if (before_waiting) before_waiting();
    if (auto failure = state_->AwaitStart(idle_limit)) return *std::move(failure);
  }
  state_->incoming.Clear();
  state_->read_pending = true;
  state_->call->Read(&state_->incoming, AsPointer(kRead));
  auto waited = State::Waited::kTimeout;
  if (before_waiting) waited = state_->WaitUntil(kRead, gpr_inf_past(GPR_CLOCK_MONOTONIC));
  if (waited == State::Waited::kTimeout) {
    if (before_waiting) before_waiting();
    waited = state_->WaitFor(kRead, idle_limit);
  }
  if (waited == State::Waited::kDone) {
    state_->NoteAnswer();
    return ToMessage(state_->incoming);
  }
  if (waited == State::Waited::kTimeout) {
    state_->context.TryCancel();
    state_->WaitFor(kRead, Duration{0});
    state_->Finish(Duration{0});
    // A message that came at the last moment is dropped with the call: the reader's offset has not moved, so it comes again.
    return RpcFailure{.code = Code::kDeadlineExceeded, .message = "no message within the idle limit", .stalled = true};
  }
  const grpc::Status status = state_->Finish(idle_limit);
  if (status.ok()) {
    state_->NoteAnswer();
    return StreamEnd{};
  }
  RpcFailure failure = ToFailure(status);
  failure.attempt_limit = failure.code == Code::kDeadlineExceeded && state_->has_deadline &&
                          std::chrono::steady_clock::now() + kClocksDiffer >= state_->deadline;
  state_->JudgeToken(&failure);
  // Not a byte in the whole time of an attempt: the next one is not sent down the same dead path (facts U65, U72).
  if (failure.attempt_limit && !state_->any_message) MarkConnectionBroken();
  return failure;
}

void ByteStream::Cancel() {
  state_->cancelled = true;
  state_->stop.request_stop();
  state_->context.TryCancel();
}

void ByteStream::MarkConnectionBroken() { state_->lease.MarkBroken(); }

std::variant<std::string, RpcFailure> UnaryCall(ChannelPool::Lease lease, const CallOptions& options, const std::stop_token& stop) {
  auto stream = ByteStream::Open(std::move(lease), options);
  std::stop_callback on_stop(stop, [&] { stream->Cancel(); });
  StreamEvent event = stream->Read(Duration{0});
  if (auto* failure = std::get_if<RpcFailure>(&event)) return std::move(*failure);
  auto* message = std::get_if<ByteMessage>(&event);
  if (message == nullptr) return RpcFailure{.code = Code::kInternal, .message = "the service ended the call without an answer"};
  std::string answer;
  answer.reserve(static_cast<size_t>(message->size));
  for (auto piece : message->pieces) answer.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  event = stream->Read(Duration{0});
  if (auto* failure = std::get_if<RpcFailure>(&event)) return std::move(*failure);
  if (std::holds_alternative<ByteMessage>(event))
    return RpcFailure{.code = Code::kInternal, .message = "the service gave two answers to one call"};
  return answer;
}

std::string RoutingParameter(std::string_view name, std::string_view value) {
  std::string parameter = fmt::format("{}=", name);
  for (const char c : value) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      parameter += c;
    } else {
      parameter += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return parameter;
}

}  // namespace headrace::rpc
