#include "headrace/bigquery/read/internal/receiver.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <google/cloud/bigquery/storage/v1/storage.pb.h>

#include "headrace/base/short_name.h"
#include "headrace/bigquery/read/internal/decoder.h"

namespace headrace::bigquery {
namespace {

namespace api = google::cloud::bigquery::storage::v1;

constexpr char kMethod[] = "/google.cloud.bigquery.storage.v1.BigQueryRead/ReadRows";
constexpr char kService[] = "BigQuery Storage Read";
// Messages queued ahead of the decoder: four of the usual 1 MiB. A link with delay stays full by gRPC's window, which goes on while nothing
// is asked for (measured: 2 and 16 MiB are as fast there), and more would only be colder memory when its turn comes.
constexpr int64_t kPrefetchBytes = int64_t{4} << 20;
// From so many bytes on it is worth to wake the decoder at once.
constexpr int64_t kTellAtBytes = int64_t{256} << 10;
constexpr int64_t kFirstGuess = int64_t{1} << 20;  // the usual size of a response
constexpr double kNowhere = std::numeric_limits<double>::infinity();
// What a server says alike so often is so, and not the work of a fault that struck again and again.
constexpr int kProof = 3;

int64_t MillisSinceEpoch(SystemTime time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count(); }

std::string FormatTime(int64_t ms) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(ms / 1000))); }

/// The budget of callers that gave none; nothing waits for it. Never destroyed: batches may outlive everything else.
MemoryBudget* UnlimitedBudget() {
  static auto* budget = new MemoryBudget(std::numeric_limits<int64_t>::max() / 2);
  return budget;
}

bool SaysExpired(const rpc::RpcFailure& failure) {
  return failure.code != Code::kUnauthenticated && failure.message.find("session expired") != std::string::npos;
}

void Count(MetricRegistry* metrics, std::string_view name, int64_t delta = 1) {
  if (metrics != nullptr) metrics->counter(name)->Add(delta);
}

}  // namespace

Receiver::Receiver(std::shared_ptr<rpc::ChannelPool> pool, const SourceOptions& options, const JobContext& context, StreamState stream,
                   std::shared_ptr<arrow::Schema> schema, StreamPosition start, std::shared_ptr<SharedByReaders> shared)
    : pool_(std::move(pool)),
      options_(options),
      context_(context),
      name_(stream.stream),
      schema_(std::move(schema)),
      shared_(std::move(shared)),
      room_(OpenStreams::RoomOf(context.memory, context.readers)),
      stream_(std::move(stream)),
      received_(start.rows),
      seen_fraction_(start.low),
      latest_(start.high < 0 ? kNowhere : start.high),
      inside_(start.high > start.low),
      place_{.seen = start.low, .is_known = start.rows == 0},
      cutter_(pool_, context, {shared_, &shared_->cuts}, name_) {}

Receiver::~Receiver() { Cancel(); }  // the thread is joined by its own destructor, before the members above it go

void Receiver::Start() {
  opened_at_ = context_.clock->Monotonic();
  try {
    thread_ = std::jthread([this] { Run(); });
  } catch (const std::system_error& error) {
    Finish(MakeError({.code = Code::kResourceExhausted, .resource = "threads", .reason = "TOO_MANY_THREADS"},
                     fmt::format("cannot start the thread that receives {}: {}. Give fewer readers", ShortName(name_), error.what())));
  }
}

void Receiver::Cancel() {
  stop_.request_stop();
  cutter_.Cancel();
  std::lock_guard<std::mutex> guard(mutex_);
  if (call_ != nullptr) call_->Cancel();
  if (primary_ != nullptr) primary_->Cancel();
  changed_.NotifyAll();
}

bool Receiver::can_cut() const {
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (finished_ || !place_.is_open || !place_.is_known || place_.seen >= 1) return false;
  }
  return shared_->streams.has_room(room_) && cutter_.can_ask();
}

void Receiver::RequestCut(double fraction) {
  if (!can_cut()) return;
  Place place;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    place = place_;
  }
  // What the next two messages bring stays here: they are on their way when the answer comes.
  const double near = std::max((1 - place.seen) * fraction, 2 * place.step);
  cutter_.Ask(place.seen + near);
}

arrow::Result<Receiver::Item> Receiver::Pop() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.Wait(lock, stop_.get_token(), [&] { return finished_ || !queue_.empty(); });
  // The flag decides, not the stream: a cancelled call may look failed or cleanly ended (specs 28, 29).
  if (stop_.stop_requested()) return arrow::Status::Cancelled("the reader of ", name_, " was cancelled");
  if (queue_.empty()) {
    if (!final_status_.ok()) return final_status_;
    return Item(StreamDone{});
  }
  Item next = std::move(queue_.front());
  queue_.pop_front();
  if (const auto* received = std::get_if<Received>(&next)) queued_bytes_ -= received->message.wire_bytes;
  lock.unlock();
  changed_.NotifyAll();
  return next;
}

void Receiver::Finish(arrow::Status status) {
  std::lock_guard<std::mutex> guard(mutex_);
  finished_ = true;
  final_status_ = std::move(status);
  changed_.NotifyAll();
}

void Receiver::Run() {
  waits_here_ = true;
  const auto permit = shared_->streams.Acquire(room_, stop_.get_token());
  waits_here_ = false;
  if (!permit.has_value()) return Finish(arrow::Status::Cancelled("cancelled"));
  {
    std::lock_guard<std::mutex> guard(mutex_);
    place_.is_open = true;
  }
  ReceiveUntilDone();
}

void Receiver::ReceiveUntilDone() {
  rpc::RetryState retry(options_.retry_max_attempts.value_or(kDefaultRetryMaxAttempts), context_.random);
  while (true) {
    Outcome outcome = ReceiveAll(&retry);
    Tell();
    DropPendingCut("the call of the stream itself ended first");
    CloseStream();
    if (stop_.stop_requested() || std::holds_alternative<Stopped>(outcome)) return Finish(arrow::Status::Cancelled("cancelled"));
    if (std::holds_alternative<rpc::StreamEnd>(outcome)) {
      if (!EndsTooEarly()) return Finish(arrow::Status::OK());
      continue;
    }
    if (auto* gap = std::get_if<Gap>(&outcome)) {
      if (auto status = ReopenAfterGap(*gap, &retry); !status.ok()) return Finish(std::move(status));
      continue;
    }
    if (auto* error = std::get_if<arrow::Status>(&outcome)) return Finish(std::move(*error));
    if (auto status = WaitToReopen(std::get<rpc::RpcFailure>(outcome), &retry); !status.ok()) return Finish(std::move(status));
  }
}

std::unique_ptr<rpc::ByteStream> Receiver::StartCall(const std::string& stream) {
  api::ReadRowsRequest request;
  request.set_read_stream(stream);
  if (received_ > 0) request.set_offset(received_);  // unset for 0 (spec 24)
  return rpc::ByteStream::Open(pool_->Acquire(room_.window), {.method = kMethod,
                                                              .request = request.SerializeAsString(),
                                                              .routing = rpc::RoutingParameter("read_stream", stream),
                                                              .attempt_limit = Within(options_.attempt_limit)});
}

rpc::ByteStream* Receiver::Open() {
  offset_unproven_ = received_ > 0;
  call_end_ = 0;
  auto call = StartCall(stream_.stream);
  std::lock_guard<std::mutex> guard(mutex_);
  // Cancel either saw the call under this lock, or its flag is seen here: no call is left running (spec 29).
  if (stop_.stop_requested()) return nullptr;
  call_ = std::move(call);
  return call_.get();
}

void Receiver::CloseStream() {
  std::unique_ptr<rpc::ByteStream> call;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    call = std::move(call_);
  }
}

Duration Receiver::Within(Duration limit) const {
  if (options_.total_limit.count() == 0) return limit;
  const Duration left =
      std::max<Duration>(opened_at_ + Duration(options_.total_limit) - context_.clock->Monotonic(), std::chrono::milliseconds{1});
  return limit.count() == 0 ? left : std::min(limit, left);
}

arrow::Result<MemoryReservation> Receiver::ReserveForNext() {
  const int64_t expected = largest_recent_ > 0 ? largest_recent_ : kFirstGuess;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto has_room = [&] { return queue_.empty() || queued_bytes_ + expected <= kPrefetchBytes; };
    if (!has_room()) changed_.NotifyAll();
    changed_.Wait(lock, stop_.get_token(), has_room);
  }
  MemoryBudget* budget = context_.memory != nullptr ? context_.memory : UnlimitedBudget();
  if (auto reserved = budget->TryReserve(expected)) return *std::move(reserved);
  Tell();
  waits_here_ = true;
  auto reserved = budget->Reserve(expected, stop_.get_token());
  waits_here_ = false;
  return reserved;
}

Receiver::Outcome Receiver::ReceiveAll(rpc::RetryState* retry) {
  rpc::ByteStream* call = Open();
  if (call == nullptr) return Stopped{};
  const std::function<void()> tell = [this] { Tell(); };
  while (true) {
    // While a cut is pending nothing is waited for: what it holds would be held meanwhile.
    arrow::Result<MemoryReservation> memory = pending_.has_value() ? MemoryReservation() : ReserveForNext();
    if (!memory.ok()) return Stopped{};
    if (const auto streams = cutter_.Take()) {
      Tell();
      OpenPrimary(*streams, *std::move(memory));
      continue;
    }
    rpc::StreamEvent event = call->Read(Within(options_.idle_limit), tell);
    if (stop_.stop_requested()) return Stopped{};
    if (std::holds_alternative<rpc::StreamEnd>(event)) return rpc::StreamEnd{};
    if (auto* failure = std::get_if<rpc::RpcFailure>(&event)) {
      // Asked past its end, a stream of the service ends cleanly (fact R1); other servers say that the offset is beyond it. An expired
      // session may answer with the same codes, and says nothing of rows.
      const bool past_end = failure->code == Code::kOutOfRange || failure->code == Code::kFailedPrecondition;
      if (end_asked_at_ == received_ && past_end && !IsPastExpiry() && !SaysExpired(*failure)) return rpc::StreamEnd{};
      if (failure->stalled) call->MarkConnectionBroken();  // a new attempt on the same dead path would stall again (facts U65, U72)
      return std::move(*failure);
    }
    const auto& bytes = std::get<rpc::ByteMessage>(event);
    if (pending_.has_value()) {
      const int64_t held = pending_->memory.bytes();
      pending_->memory.Resize(held + bytes.size);
      memory = pending_->memory.Split(bytes.size);
    } else {
      memory->Resize(bytes.size);
    }
    shared_->streams.Note(bytes.size);
    largest_recent_ = std::max(bytes.size, largest_recent_ - largest_recent_ / 8);
    auto message = ParseReadRowsResponse(bytes, ArrowDecoder::Pool());
    if (!message.ok()) {
      // Bytes that were broken on the way come whole the next time; who sends them again and again means them.
      malformed_ = std::exchange(malformed_at_, received_) == received_ ? malformed_ + 1 : 1;
      if (malformed_ < kProof) return Gap{message.status().message()};
      return WithContext(message.status(), fmt::format("stream {} at offset {}", ShortName(stream_.stream), received_));
    }
    // A server that begins anew where it was only asked whether more rows come ignores offsets: it had said all.
    if (end_asked_at_ == received_ && message->progress_end > 0 && message->progress_start < seen_fraction_ / 2) {
      end_is_told_ = true;
      return rpc::StreamEnd{};
    }
    if (auto gap = FindGap(*message)) return Gap{*std::move(gap)};
    if (pending_.has_value() && message->row_count > 0) {
      auto next = DecideCut(*message, retry);
      if (!next.ok()) return next.status();
      if (*next != nullptr) {
        call = *next;
        continue;
      }
    }
    auto accepted = Accept(*std::move(message), *std::move(memory), retry);
    if (!accepted.ok()) return accepted;
  }
}

arrow::Status Receiver::Accept(ReadRowsMessage message, MemoryReservation memory, rpc::RetryState* retry) {
  const auto where = [this] { return fmt::format("stream {} at offset {}", ShortName(stream_.stream), received_); };
  const bool avro = stream_.format == SourceFormat::kAvro;
  if (avro ? message.has_arrow : message.has_avro) {
    return MakeError(
        {.code = Code::kDataLoss, .service = kService, .method = "ReadRows", .resource = stream_.stream, .reason = "CORRUPT_RESPONSE"},
        fmt::format("{}: the session is of {}, but the service answered in {}", where(), avro ? "Avro" : "Arrow", avro ? "Arrow" : "Avro"));
  }
  ARROW_RETURN_NOT_OK(CheckResumed(message));
  if (message.row_count > std::numeric_limits<int64_t>::max() - received_) return arrow::Status::CapacityError(where(), ": too many rows");
  if (message.row_count > 0 || message.progress_end > seen_fraction_) retry->Progress();
  const Place place{.seen = std::max(seen_fraction_, message.progress_end),
                    .step = std::max(message.progress_end - seen_fraction_, 0.0),
                    .is_known = message.progress_end > 0 && fractions_rise_,
                    .is_open = true};
  seen_fraction_ = place.seen;
  received_ += message.row_count;
  // A message without rows and place changes nothing.
  if (message.row_count > 0 || message.progress_end > 0) {
    call_end_ = message.progress_end;
    last_ = {message.progress_start, message.progress_end, message.row_count};
    latest_ = message.progress_end > 0 ? seen_fraction_ : kNowhere;
    inside_ = false;
  }
  throttled_.store(message.throttle_percent > 0, std::memory_order_relaxed);
  // Under the lock: who sees the count finds the place and the rows, too.
  std::unique_lock<std::mutex> lock(mutex_);
  Count(context_.metrics, "responses");
  Count(context_.metrics, "rowsRead", message.row_count);
  Count(context_.metrics, "bytesRead", message.row_count > 0 ? message.wire_bytes : 0);  // the same as Batch::wire_bytes
  if (message.row_count > 0 || message.progress_end > 0) place_ = place;
  queued_bytes_ += message.wire_bytes;
  untold_bytes_ += std::max<int64_t>(message.wire_bytes, 1);
  queue_.emplace_back(Received{.message = std::move(message), .memory = std::move(memory), .fractions_rise = fractions_rise_});
  lock.unlock();
  if (untold_bytes_ >= kTellAtBytes) Tell();
  return arrow::Status::OK();
}

void Receiver::Tell() {
  // Without the lock, which who wakes wants: everything was queued under it.
  if (std::exchange(untold_bytes_, 0) > 0) changed_.NotifyAll();
}

arrow::Status Receiver::CheckResumed(const ReadRowsMessage& message) {
  // A server that ignores offsets begins anew at fraction 0. Half of what was seen is proof enough, and leaves room for a service that
  // counts by block.
  const bool falls = message.progress_end > 0 && message.progress_start < seen_fraction_ / 2;
  // Messages without rows may come first and tell nothing: the check ends with the first rows.
  if (falls && offset_unproven_ && fractions_rise_) return OffsetIgnored(message.progress_start);
  // Within a call the offset is not in question: this server's fractions fall by themselves, so they prove nothing.
  if (falls && !offset_unproven_) fractions_rise_ = false;
  if (message.row_count > 0) offset_unproven_ = false;
  return arrow::Status::OK();
}

bool Receiver::is_filtered() const { return !options_.row_restriction.empty() || options_.sample_percentage.has_value(); }

std::optional<std::string> Receiver::FindGap(const ReadRowsMessage& message) {
  if (is_filtered()) return std::nullopt;
  if (message.progress_end <= 0 || !fractions_rise_ || !fractions_meet_) return std::nullopt;
  // Fractions are quotients of whole numbers, computed anew for each response.
  constexpr double kSame = 1e-9;
  const double gap = std::exchange(gap_start_, -1);
  // A call that was opened inside a block may go back to the block's start, but must not skip anything.
  const bool first = call_end_ <= 0;
  const double expected = first ? latest_ : call_end_;
  const bool begins_well = !first    ? std::abs(message.progress_start - expected) <= kSame
                           : inside_ ? message.progress_start < latest_
                                     : message.progress_start <= latest_ + kSame;
  if (begins_well) return std::nullopt;
  const bool again = !first && message.row_count > 0 && last_ == Span{message.progress_start, message.progress_end, message.row_count};
  // A server of falling fractions: see CheckResumed. But the same place twice is the same message twice.
  if (message.progress_start < seen_fraction_ / 2 && !again) return std::nullopt;
  // Reopened calls begin with this message again and again, so nothing lay before it: this server's fractions do not meet. Once is not
  // enough: the same message may be lost twice.
  gap_repeats_ = gap >= 0 && std::abs(gap - message.progress_start) <= kSame ? gap_repeats_ + 1 : 0;
  if (gap_repeats_ >= kProof) {
    fractions_meet_ = false;
    return std::nullopt;
  }
  gap_start_ = message.progress_start;
  return fmt::format("a response begins at fraction {:.9g} of the stream, but what came before it ended at {:.9g}", message.progress_start,
                     expected);
}

bool Receiver::EndsTooEarly() {
  constexpr double kAll = 1 - 1e-9;
  if (seen_fraction_ >= kAll || !fractions_rise_ || end_is_told_) return false;
  // Rows whose place nobody told. But where nothing has come at all, the one response of the stream may have been lost.
  if (seen_fraction_ <= 0 && received_ > 0) return false;
  if (std::exchange(end_asked_at_, received_) != received_) end_asks_ = 0;
  // Nothing may be lost where a filter let no more rows through: then the calls that ask bring none. One is not enough: what was lost may
  // be lost again.
  if (++end_asks_ > kProof) return false;
  context_.logger->Log(LogLevel::kInfo,
                       fmt::format("ReadRows of {} ended at offset {}, at fraction {:.3g} of the stream; it is opened again "
                                   "to see whether more rows come",
                                   ShortName(stream_.stream), received_, seen_fraction_));
  return true;
}

arrow::Status Receiver::ReopenAfterGap(const Gap& gap, rpc::RetryState* retry) {
  const auto wait = retry->Next(rpc::FaultKind::kTransport, {});
  if (!wait.has_value()) {
    return MakeError(
        {.code = Code::kDataLoss, .service = kService, .method = "ReadRows", .resource = stream_.stream, .reason = "MESSAGES_LOST"},
        fmt::format(
            "ReadRows of stream {} at offset {}: {}, {} times in a row (retry_max_attempts): responses are lost or doubled on the way "
            "here. Check what lies between here and the service",
            ShortName(stream_.stream), received_, gap.text, retry->failures()));
  }
  Count(context_.metrics, "readRetries");
  Count(context_.metrics, fmt::format("readRetries.{}", CodeName(Code::kDataLoss)));
  context_.logger->Log(LogLevel::kWarning,
                       fmt::format("ReadRows of {} at offset {}: {}; it is opened again", ShortName(stream_.stream), received_, gap.text));
  if (!context_.clock->SleepFor(*wait, stop_.get_token())) return arrow::Status::Cancelled("cancelled");
  return arrow::Status::OK();
}

arrow::Status Receiver::WaitToReopen(const rpc::RpcFailure& failure, rpc::RetryState* retry) {
  const auto wait = retry->Next(rpc::ClassifyReadRows(failure), failure);
  if (!wait.has_value()) {
    const bool gave_up = rpc::ClassifyReadRows(failure) != rpc::FaultKind::kPermanent;
    return ReadError(failure, gave_up
                                  ? fmt::format("failed {} times without progress (retry_max_attempts), at last with", retry->failures())
                                  : "failed with");
  }
  const MonotonicTime now = context_.clock->Monotonic();
  if (options_.total_limit.count() > 0 && now + *wait >= opened_at_ + Duration(options_.total_limit)) {
    return ReadError(failure, fmt::format("did not end within total_limit ({} ms); its last fault was", options_.total_limit.count()));
  }
  Count(context_.metrics, "readRetries");
  Count(context_.metrics, fmt::format("readRetries.{}", CodeName(failure.code)));
  context_.logger->Log(
      failure.stalled ? LogLevel::kWarning : LogLevel::kInfo,
      fmt::format("ReadRows of {} at offset {}: {}: {}; it is opened again in {} ms (attempt {} of {})", ShortName(stream_.stream),
                  received_, CodeName(failure.code), failure.message, std::chrono::duration_cast<std::chrono::milliseconds>(*wait).count(),
                  retry->failures() + 1, options_.retry_max_attempts.value_or(kDefaultRetryMaxAttempts)));
  if (!context_.clock->SleepFor(*wait, stop_.get_token())) return arrow::Status::Cancelled("cancelled");
  return arrow::Status::OK();
}

bool Receiver::IsPastExpiry() const {
  return stream_.session_expires_ms > 0 && MillisSinceEpoch(context_.clock->Now()) > stream_.session_expires_ms;
}

arrow::Status Receiver::ReadError(const rpc::RpcFailure& failure, std::string_view what) const {
  ErrorInfo info{.code = failure.code,
                 .service = kService,
                 .method = "ReadRows",
                 .resource = stream_.stream,
                 .retryable = rpc::ClassifyReadRows(failure) != rpc::FaultKind::kPermanent};
  std::string text = fmt::format("ReadRows of stream {} at offset {} {} {}: {}", ShortName(stream_.stream), received_, what,
                                 CodeName(failure.code), failure.message);
  // Which status an expired session answers was never measured (fact R7), so the clock, or the server's words, add the hint and decide
  // nothing.
  const bool is_over = IsPastExpiry();
  if (is_over || SaysExpired(failure)) {
    info.reason = "SESSION_EXPIRED";
    const int64_t lived = stream_.session_created_ms > 0 ? (stream_.session_expires_ms - stream_.session_created_ms) / 60'000 : 0;
    text += fmt::format(
        ". The read session {}{}: a resume would use the same session, so start the read anew, with more streams or fewer columns",
        is_over ? fmt::format("expired at {}", FormatTime(stream_.session_expires_ms)) : "is over",
        is_over && lived > 0 ? fmt::format(" after {} h {} min", lived / 60, lived % 60) : "");
    return MakeError(std::move(info), std::move(text));
  }
  if (failure.message.starts_with(rpc::kFrontEndText)) return MakeError(std::move(info), text + rpc::kFrontEndAdvice);
  if (failure.code == Code::kUnauthenticated) {
    // The text of a token that could not be fetched says itself what to do.
    info.reason = "CREDENTIALS";
    return MakeError(std::move(info), text + (failure.token == rpc::TokenFault::kNone ? ". Check the option credentials" : ""));
  }
  if (info.retryable) {
    return MakeError(std::move(info),
                     text +
                         ". Check the network between here and the service; a higher retry_max_attempts waits longer, and a job with a "
                         "checkpoint goes on with resume");
  }
  if (failure.code == Code::kResourceExhausted)
    text += ". The service gave no delay after which to try again; use fewer readers or ask for more quota";
  if (failure.code == Code::kPermissionDenied) {
    info.reason = "PERMISSION_DENIED";
    text += ". Needed: bigquery.readsessions.getData (role roles/bigquery.readSessionUser)";
  }
  if (failure.code == Code::kNotFound) {
    info.reason = "NOT_FOUND";
    text += ". The session or its stream does not exist (any more)";
  }
  if (failure.code == Code::kFailedPrecondition || failure.code == Code::kOutOfRange) {
    info.reason = "OFFSET";
    text += ". The offset may lie beyond the end of the stream: the position does not belong to this session";
  }
  return MakeError(std::move(info), std::move(text));
}

arrow::Status Receiver::OffsetIgnored(double at) const {
  return MakeError(
      {.code = Code::kDataLoss, .service = kService, .method = "ReadRows", .resource = stream_.stream, .reason = "OFFSET_IGNORED"},
      fmt::format(
          "stream {} was reopened at offset {} (fraction {:.3g} of it), but the server went on at fraction {:.3g}: it ignores offsets, "
          "so going on would double rows. Start the read anew",
          ShortName(stream_.stream), received_, seen_fraction_, at));
}

}  // namespace headrace::bigquery
