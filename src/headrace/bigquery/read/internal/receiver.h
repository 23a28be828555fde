// Receives the responses of one read stream ahead of their consumer, within the memory budget, reopens the stream after faults, and cuts it
// in two when asked to.
//
// Owns one thread, and one more while the service is asked for a cut. Start, Pop and the destructor belong to the consumer's thread;
// Cancel, throttled, can_cut and RequestCut may come from any thread. Destroying it cancels the calls and waits for its threads.
//
// A cut (docs/decisions/0020-cuts-of-read-streams.md): the service is asked to split the stream while receiving goes on. With its answer,
// and between two messages, the primary is opened at the row reached. Only when its first message holds the rows that the original goes on
// with are the rows up to there known to be the primary's; then receiving goes on from the primary. Without that proof the original, which
// was kept open, goes on as if nothing had been asked.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "headrace/base/condition.h"
#include "headrace/base/memory_budget.h"
#include "headrace/bigquery/read/internal/position.h"
#include "headrace/bigquery/read/internal/shared_by_readers.h"
#include "headrace/bigquery/read/internal/state.h"
#include "headrace/bigquery/read/internal/stream_cutter.h"
#include "headrace/bigquery/read/internal/wire.h"
#include "headrace/bigquery/read/options.h"
#include "headrace/rpc/byte_stream.h"
#include "headrace/rpc/channel.h"
#include "headrace/runtime/source.h"

namespace headrace::bigquery {

struct Received {
  ReadRowsMessage message{};
  MemoryReservation memory{};
  bool fractions_rise = true;  // false: the server's fractions cannot tell where in the stream it is
};

/// From here on the messages are those of `near`, and the rows behind them are those of `far`, from its start.
struct StreamCut {
  std::string near{};
  std::string far{};
  double near_share = 0;     // about what the near part is of the stream that was cut, 0..1
  double near_fraction = 0;  // of the near part, where the next row lies
};

struct StreamDone {};

class Receiver {
 public:
  /// Reads `stream`, whose rows are handed out in `schema`, from `start` on. `pool`, the context's objects and `options` outlive the
  /// receiver.
  Receiver(std::shared_ptr<rpc::ChannelPool> pool, const SourceOptions& options, const JobContext& context, StreamState stream,
           std::shared_ptr<arrow::Schema> schema, StreamPosition start, std::shared_ptr<SharedByReaders> shared);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// A thread that cannot be started is the error that Pop answers.
  void Start();
  using Item = std::variant<Received, StreamCut, StreamDone>;
  /// The next response or cut, in their order, or the end of the stream. An error comes after everything that was received before it.
  /// Cancelled after Cancel, whatever the stream looked like to gRPC then.
  arrow::Result<Item> Pop();
  void Cancel();
  /// A request would be tried: see StreamCutter::can_ask; and there is something left to receive, the server tells where it is, and one
  /// more stream may be open.
  bool can_cut() const;
  /// Asks for a cut that leaves here about `fraction` of what is still to be received. Nothing happens when can_cut is false.
  void RequestCut(double fraction);
  bool cancelled() const { return stop_.stop_requested(); }
  bool throttled() const { return throttled_.load(std::memory_order_relaxed); }
  /// It waits for memory, or until it may open its stream.
  bool waits_here() const { return waits_here_.load(std::memory_order_relaxed); }

 private:
  struct Stopped {};
  /// Messages of the call are missing, doubled or out of order: `text` says how that shows.
  struct Gap {
    std::string text;
  };
  using Outcome = std::variant<rpc::StreamEnd, Stopped, rpc::RpcFailure, Gap, arrow::Status>;

  /// What a message says of its place.
  struct Span {
    double start = 0;
    double end = 0;
    int64_t rows = 0;

    bool operator==(const Span&) const = default;
  };
  /// Where the rest of a stream can be cut.
  struct Place {
    double seen = 0;       // fraction of the stream that was received
    double step = 0;       // fraction that the last message moved
    bool is_known = true;  // nothing was received yet, or the server tells fractions
    bool is_open = false;  // it is being received, not waiting until it may be opened
  };

  /// A cut whose primary was opened at row received_ and has answered: what the original goes on with decides about it.
  struct PendingCut {
    CutStreams streams{};
    std::vector<ReadRowsMessage> messages{};  // of the primary; only the last has rows
    MemoryReservation memory{};
    OpenStreams::Permit permit;
  };

  void Run();
  void ReceiveUntilDone();
  /// Reads one call to its end.
  Outcome ReceiveAll(rpc::RetryState* retry);
  /// Takes note of a message and queues it; an error is final.
  arrow::Status Accept(ReadRowsMessage message, MemoryReservation memory, rpc::RetryState* retry);
  /// Wakes who waits for what was queued. Small messages that come together wake it once; always called before this thread waits.
  void Tell();
  /// An error when a reopened stream began anew instead of at the offset.
  arrow::Status CheckResumed(const ReadRowsMessage& message);
  /// How a message that does not begin where the one before it ended shows that something lies between; nothing when all is well.
  std::optional<std::string> FindGap(const ReadRowsMessage& message);
  /// A call ended well before the end of the stream, as far as the fractions tell: it is asked once more.
  bool EndsTooEarly();
  /// Waits before the next attempt; an error is final.
  arrow::Status WaitToReopen(const rpc::RpcFailure& failure, rpc::RetryState* retry);
  arrow::Status ReopenAfterGap(const Gap& gap, rpc::RetryState* retry);
  /// Opens the stream at the rows received so far; null when cancelled.
  rpc::ByteStream* Open();
  std::unique_ptr<rpc::ByteStream> StartCall(const std::string& stream);
  void CloseStream();
  /// Opens the primary of `streams` beside the original, and waits for its first rows: pending_ then, unless the cut is refused.
  void OpenPrimary(const CutStreams& streams, MemoryReservation memory);
  /// The primary's messages up to the first with rows; nothing when the cut is refused.
  std::optional<std::vector<ReadRowsMessage>> Probe(rpc::ByteStream* primary, const CutStreams& streams);
  enum class Proof { kGood, kNone, kRefused };
  Proof CheckPrimary(const ReadRowsMessage& message, const CutStreams& streams);
  std::optional<std::vector<ReadRowsMessage>> RefuseCut(const CutStreams& streams, std::string_view why);
  /// Decides about pending_ by `next`, the original's next rows. Returns the call that is read from now on: the primary's, whose messages
  /// are queued then in place of `next`; null when the cut was refused. An error is final.
  arrow::Result<rpc::ByteStream*> DecideCut(const ReadRowsMessage& next, rpc::RetryState* retry);
  /// What shows that `near`, the primary's first rows, are not those of `next`; nothing when they are.
  std::optional<std::string> DifferenceOf(const ReadRowsMessage& near, const ReadRowsMessage& next);
  arrow::Result<bool> BeginAlike(const ReadRowsMessage& near, const ReadRowsMessage& next);
  arrow::Result<rpc::ByteStream*> GoOnWith(PendingCut cut, rpc::RetryState* retry);
  void DropPrimary();
  /// Refuses what is pending, if anything is.
  void DropPendingCut(std::string_view why);
  /// A restriction or a sample: responses need not begin where the ones before them ended (storage.proto, StreamStats.Progress).
  bool is_filtered() const;
  arrow::Result<MemoryReservation> ReserveForNext();
  /// `limit`, or what is left of total_limit if that is less; zero = none.
  Duration Within(Duration limit) const;
  /// By this clock and what the plan was told.
  bool IsPastExpiry() const;
  arrow::Status ReadError(const rpc::RpcFailure& failure, std::string_view what) const;
  arrow::Status OffsetIgnored(double at) const;
  void Finish(arrow::Status status);

  const std::shared_ptr<rpc::ChannelPool> pool_;
  const SourceOptions& options_;
  const JobContext context_;
  const std::string name_;  // of the stream at first, for Pop
  const std::shared_ptr<arrow::Schema> schema_;
  const std::shared_ptr<SharedByReaders> shared_;
  const OpenStreams::Room room_;
  std::stop_source stop_;

  // Of the receiving thread.
  StreamState stream_;
  int64_t received_;              // rows: where the stream is reopened
  double seen_fraction_;          // the furthest the service said it was
  bool offset_unproven_ = false;  // reopened at an offset, and no row has come since
  bool fractions_rise_ = true;    // no message began far before the end of the one before it
  bool fractions_meet_ = true;    // each message begins where the one before it ended, but for faults on the way
  double latest_;                 // fraction at which row received_ lies at the latest; infinite = not known
  bool inside_;                   // row received_ lies before latest_, not at it
  double call_end_ = 0;           // fraction at the end of the call's last message; 0 = none, or the server does not say
  Span last_;                     // of the call's last message
  double gap_start_ = -1;         // where the message behind a gap began, until the reopened call has answered; negative = no gap
  int gap_repeats_ = 0;           // reopened calls in a row that began with that same message
  int64_t end_asked_at_ = -1;     // rows at which calls were opened only to see whether more come
  int end_asks_ = 0;              // so many of them
  bool end_is_told_ = false;      // and the server told that there are none
  int64_t largest_recent_ = 0;    // bytes of a message
  int malformed_ = 0;             // responses in a row that were no messages of the service, at row malformed_at_
  int64_t malformed_at_ = -1;
  int64_t untold_bytes_ = 0;  // queued, and who waits for them was not woken yet
  MonotonicTime opened_at_{0};
  std::optional<PendingCut> pending_;

  mutable std::mutex mutex_;
  Condition changed_;
  // Made and dropped by the receiving thread; cancelled by any, under mutex_.
  std::unique_ptr<rpc::ByteStream> call_;
  std::unique_ptr<rpc::ByteStream> primary_;  // while it is not proven
  std::deque<Item> queue_;
  Place place_;  // for RequestCut
  int64_t queued_bytes_ = 0;
  bool finished_ = false;
  arrow::Status final_status_;
  std::atomic<bool> throttled_{false};
  std::atomic<bool> waits_here_{false};

  StreamCutter cutter_;
  std::jthread thread_;
};

}  // namespace headrace::bigquery
