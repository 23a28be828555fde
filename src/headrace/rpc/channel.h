// Connections to one service endpoint. Each channel is a socket of its own; a stream leases the channel with the fewest streams on it.
//
// Any thread may call. A Lease belongs to one thread at a time and keeps the pool alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/rpc/credentials.h"
#include "headrace/rpc/endpoint.h"
#include "headrace/rpc/token_source.h"

namespace grpc {
class Channel;
class ChannelCredentials;
}  // namespace grpc

namespace headrace::rpc {

/// How much a stream of a channel may receive without anybody having asked for it.
enum class Window {
  /// A known size for each stream. But of the bytes of a connection only 64 KiB, and what the readers wait for, are under way at once:
  /// small
  /// messages cost twice the CPU, and a link with delay is not filled.
  kFixed,
  /// gRPC finds out what the path holds, by pings, and widens its windows to that.
  kProbed,
};
/// What a stream's window may hold at most. Fixed: the size that is set. Probed: gRPC knows no limit; over loopback, where a ping takes as
/// long as what is queued before it, up to 36 MiB a stream were seen (bench/, docs/performance.md).
constexpr int64_t WindowBytes(Window window) { return window == Window::kFixed ? int64_t{8} << 20 : int64_t{40} << 20; }

struct ChannelOptions {
  Endpoint endpoint{};
  Credentials credentials{};
  std::string quota_project{};                 // sent with every call as x-goog-user-project; empty = an authorized user's own, else none
  std::string ca_bundle{};                     // PEM file of the certificates that are trusted; empty = the system's
  int channels = 0;                            // 0 = one per two streams, at most eight of each kind of window
  std::chrono::milliseconds connect_limit{0};  // zero = gRPC's own twenty seconds
};

/// "headrace/VERSION".
std::string UserAgent();

class ChannelPool : public std::enable_shared_from_this<ChannelPool> {
 public:
  /// Reads the credentials and ca_bundle through `files`; opens no connection and fetches no token. Tokens expire by `clock`, which
  /// outlives the pool.
  static arrow::Result<std::shared_ptr<ChannelPool>> Make(ChannelOptions options, FileSystem* files, Clock* clock = RealClock());
  ~ChannelPool();

  class Lease {
   public:
    Lease() = default;
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease() { Return(); }
    const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
    const ChannelOptions& options() const { return pool_->options(); }
    /// What gives each call its token; null when calls go without one, or when gRPC itself adds it (adc without a file of ours).
    TokenSource* tokens() const { return pool_->tokens_.get(); }
    /// The connection behind it does not answer: later leases get a new one.
    void MarkBroken();

   private:
    friend class ChannelPool;
    void Return();
    std::shared_ptr<ChannelPool> pool_;
    std::shared_ptr<grpc::Channel> channel_;
  };

  /// A place on the channel of that kind that has the fewest streams. For calls of small answers the kind does not matter.
  Lease Acquire(Window window = Window::kProbed);
  /// Channels made and not marked broken.
  int open_channels() const;
  const ChannelOptions& options() const { return options_; }
  TokenSource* tokens() const { return tokens_.get(); }

 private:
  struct Entry {
    std::shared_ptr<grpc::Channel> channel;
    Window window = Window::kProbed;
    int streams = 0;
  };
  ChannelPool(ChannelOptions options, std::shared_ptr<grpc::ChannelCredentials> credentials, std::unique_ptr<TokenSource> tokens);
  std::shared_ptr<grpc::Channel> Open(Window window);
  void Return(const grpc::Channel* channel);
  void Remove(const grpc::Channel* channel);

  const ChannelOptions options_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const std::unique_ptr<TokenSource> tokens_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace headrace::rpc
