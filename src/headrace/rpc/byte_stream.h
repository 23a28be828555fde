// A server-streaming call whose messages arrive as bytes: no generated message stands between the socket and a decoder.
//
// A call over a channel with credentials carries an access token of its own. gRPC sends it over an encrypted channel only.
//
// One thread reads; Cancel may come from any thread at any time. Each stream has a completion queue of its own, so a wait for a message
// ends at its deadline, at Cancel, or when the message is there, and never hangs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/rpc/channel.h"
#include "headrace/rpc/retry.h"

namespace headrace::rpc {

/// The bytes of one message, in the pieces in which they were received. The pieces live as long as any copy of the message.
struct ByteMessage {
  std::vector<std::span<const uint8_t>> pieces{};
  int64_t size = 0;
  std::shared_ptr<const void> owner{};
};

/// The call ended with the status OK.
struct StreamEnd {};

using StreamEvent = std::variant<ByteMessage, StreamEnd, RpcFailure>;

struct CallOptions {
  std::string method{};       // "/package.Service/Method"
  std::string request{};      // the serialized request message
  std::string routing{};      // x-goog-request-params, percent-encoded values
  Duration attempt_limit{0};  // deadline of the whole call; zero = none
};

class ByteStream {
 public:
  /// Starts the call; does not wait. Over a channel that could not connect the first Read starts it, and gives the channel up to 1.5 s; so
  /// it does when there is no valid access token yet, for which it waits within `idle_limit` and the attempt's limit.
  static std::unique_ptr<ByteStream> Open(ChannelPool::Lease lease, const CallOptions& options);
  /// Cancels what still runs and waits for gRPC to let go of it.
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// The next message, the end, or a failure, in whose text the access token does not appear whatever the peer says; after the latter two
  /// it is not called again. `idle_limit` bounds the wait for it (zero = none): when it passes, the call is cancelled and the failure is
  /// marked `stalled`. The limit is of real time, since it is the network that is waited for. `before_waiting` is called, at most once,
  /// when nothing has come yet; where it is given the network is looked at once more without waiting.
  StreamEvent Read(Duration idle_limit, const std::function<void()>& before_waiting = nullptr);
  void Cancel();
  /// The connection behind the stream does not answer; later calls get another. Read does so itself when the attempt limit passed without
  /// any message.
  void MarkConnectionBroken();

 private:
  struct State;
  explicit ByteStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A call with one answer: its bytes, or how it failed. Cancelled (code CANCELLED) as soon as `stop` is requested.
std::variant<std::string, RpcFailure> UnaryCall(ChannelPool::Lease lease, const CallOptions& options, const std::stop_token& stop);

/// "name=value" with the value percent-encoded, as x-goog-request-params wants it.
std::string RoutingParameter(std::string_view name, std::string_view value);

}  // namespace headrace::rpc
