// Asks the service to split a read stream (SplitReadStream), beside the reading of it.
//
// A StreamCutter belongs to one stream reader. Ask and can_ask may be called from any thread; Take, Refuse and Accept belong to the thread
// that receives. The call runs on a thread of its own, at most one at a time; destroying the cutter or Cancel ends it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "headrace/rpc/channel.h"
#include "headrace/rpc/retry.h"
#include "headrace/runtime/source.h"

namespace headrace::bigquery {

/// What the readers of a source have learnt about its server. Any thread.
class CutPolicy {
 public:
  bool allowed() const { return allowed_.load(std::memory_order_relaxed); }
  /// No stream of this source is cut any more; the reason is logged once.
  void Forbid(Logger* logger, std::string_view reason);

 private:
  std::atomic<bool> allowed_{true};
};

/// The two streams that a stream was split into: its rows are those of `primary`, then those of `remainder`.
struct CutStreams {
  std::string primary{};
  std::string remainder{};
  double fraction = 0;  // of the rows in storage, that was asked for: about what the primary holds
};

class StreamCutter {
 public:
  StreamCutter(std::shared_ptr<rpc::ChannelPool> pool, const JobContext& context, std::shared_ptr<CutPolicy> policy, std::string stream);
  ~StreamCutter();
  StreamCutter(const StreamCutter&) = delete;
  StreamCutter& operator=(const StreamCutter&) = delete;

  /// No request is being answered, none was refused for good, and the last refusal was long enough ago.
  bool can_ask() const;
  /// Asks for a split at `fraction` (0 < fraction < 1) of the whole stream. Nothing happens when can_ask is false.
  void Ask(double fraction);

  /// The service's answer, once it is there. Until Accept or Refuse no other request is sent.
  std::optional<CutStreams> Take();
  /// The reader goes on with `stream`, which may be split again.
  void Accept(std::string stream);
  /// The reader goes on as before; it may be asked again later.
  void Refuse();
  /// For good, for the whole source: the server breaks the rules of split streams.
  void Forbid(std::string_view reason) { policy_->Forbid(context_.logger, reason); }
  void Cancel() { stop_.request_stop(); }

 private:
  enum class State { kIdle, kAsking, kAnswered, kNever };

  void Run(const std::string& stream, double fraction);
  /// The outcome of the call; an empty answer when there is nothing to try.
  std::optional<CutStreams> Call(const std::string& stream, double fraction);
  std::optional<CutStreams> Check(const std::string& stream, double fraction, const std::string& bytes);
  void NoteFailure(const std::string& stream, const rpc::RpcFailure& failure);
  void Finish(State state);
  void RefuseLocked();

  const std::shared_ptr<rpc::ChannelPool> pool_;
  const JobContext context_;
  const std::shared_ptr<CutPolicy> policy_;
  std::stop_source stop_;

  mutable std::mutex mutex_;
  State state_ = State::kIdle;
  std::string stream_;
  std::optional<CutStreams> answer_;
  int refusals_ = 0;  // in a row
  MonotonicTime not_before_{0};
  std::jthread thread_;
};

}  // namespace headrace::bigquery
