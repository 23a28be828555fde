// The part of Receiver that goes on with the near half of a stream that the service has split.
#include <algorithm>
#include <cmath>
#include <utility>

#include <arrow/compare.h>
#include <fmt/format.h>

#include "headrace/base/fail_point.h"
#include "headrace/base/short_name.h"
#include "headrace/bigquery/read/internal/decoder.h"
#include "headrace/bigquery/read/internal/receiver.h"
#include "headrace/bigquery/read/internal/row_decoder.h"

namespace headrace::bigquery {
namespace {

// The primary's first response must be there within this time (spec, "Cut"): until then nothing is received of this stream.
constexpr Duration kProofLimit = std::chrono::seconds{5};
// Responses without rows and without progress that may come before it.
constexpr size_t kMostTellingNothing = 100;

}  // namespace

void Receiver::OpenPrimary(const CutStreams& streams, MemoryReservation memory) {
  // For a moment both are open.
  auto permit = shared_->streams.TryAcquire(room_);
  if (!permit.has_value()) {
    RefuseCut(streams, "the memory limit allows no further stream");
    return;
  }
  auto primary = StartCall(streams.primary);
  rpc::ByteStream* const opened = primary.get();
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (stop_.stop_requested()) return;
    primary_ = std::move(primary);
  }
  auto messages = Probe(opened, streams);
  if (!messages.has_value()) return DropPrimary();
  int64_t bytes = 0;
  for (const auto& message : *messages) bytes += message.wire_bytes;
  memory.Resize(bytes);
  largest_recent_ = std::max(bytes, largest_recent_ - largest_recent_ / 8);
  pending_.emplace(
      PendingCut{.streams = streams, .messages = *std::move(messages), .memory = std::move(memory), .permit = *std::move(permit)});
}

void Receiver::DropPrimary() {
  std::unique_ptr<rpc::ByteStream> dropped;
  std::lock_guard<std::mutex> guard(mutex_);
  dropped = std::move(primary_);
}

void Receiver::DropPendingCut(std::string_view why) {
  if (!pending_.has_value()) return;
  RefuseCut(pending_->streams, why);
  DropPrimary();
  pending_.reset();
}

std::optional<std::vector<ReadRowsMessage>> Receiver::RefuseCut(const CutStreams& streams, std::string_view why) {
  if (stop_.stop_requested()) return std::nullopt;
  cutter_.Refuse();
  if (context_.metrics != nullptr) context_.metrics->counter("cutsRefused")->Add();
  context_.logger->Log(LogLevel::kInfo,
                       fmt::format("the cut of {} into {} and {} is not made at offset {}: {}; reading goes on as before",
                                   ShortName(stream_.stream), ShortName(streams.primary), ShortName(streams.remainder), received_, why));
  return std::nullopt;
}

std::optional<std::vector<ReadRowsMessage>> Receiver::Probe(rpc::ByteStream* primary, const CutStreams& streams) {
  std::vector<ReadRowsMessage> messages;
  const MonotonicTime until = RealClock()->Monotonic() + kProofLimit;  // as ByteStream::Read: it is the network that is waited for
  while (messages.size() < kMostTellingNothing) {
    const Duration left = until - RealClock()->Monotonic();
    if (left <= Duration::zero()) return RefuseCut(streams, "no response that tells its place within 5 s");
    rpc::StreamEvent event = primary->Read(left);
    // A clean end proves nothing: the same is seen when a call is cut short on its way (tests/wire).
    if (std::holds_alternative<rpc::StreamEnd>(event)) return RefuseCut(streams, "the near part ended before any row came");
    if (const auto* failure = std::get_if<rpc::RpcFailure>(&event)) {
      return RefuseCut(streams, fmt::format("{}: {}", CodeName(failure->code), failure->message));
    }
    auto message = ParseReadRowsResponse(std::get<rpc::ByteMessage>(event), ArrowDecoder::Pool());
    if (!message.ok()) return RefuseCut(streams, message.status().message());
    const Proof proof = CheckPrimary(*message, streams);
    if (proof == Proof::kRefused) return std::nullopt;
    messages.push_back(*std::move(message));
    if (proof == Proof::kGood) return messages;
  }
  return RefuseCut(streams, "its responses tell nothing");
}

Receiver::Proof Receiver::CheckPrimary(const ReadRowsMessage& message, const CutStreams& streams) {
  if (message.row_count == 0) return Proof::kNone;
  if (received_ > 0 && seen_fraction_ <= 0) {
    RefuseCut(streams, "the original's progress is not known");
    return Proof::kRefused;
  }
  if (message.progress_end <= 0) {
    cutter_.Forbid(
        fmt::format("the server tells no progress of {}, so nothing shows whether it began at row {}", streams.primary, received_));
    RefuseCut(streams, "its progress is not told");
    return Proof::kRefused;
  }
  // A fraction of the primary is no smaller than the same place's fraction of the whole: what begins before it was already received.
  constexpr double kSame = 1e-9;
  if (message.progress_start + kSame < seen_fraction_) {
    const std::string found = fmt::format("it was opened at offset {}, beyond fraction {:.6g}, but the server began at {:.6g}", received_,
                                          seen_fraction_, message.progress_start);
    if (message.progress_start < seen_fraction_ / 2) cutter_.Forbid(fmt::format("{}: the server ignores offsets", found));
    RefuseCut(streams, found);
    return Proof::kRefused;
  }
  return Proof::kGood;
}

arrow::Result<rpc::ByteStream*> Receiver::DecideCut(const ReadRowsMessage& next, rpc::RetryState* retry) {
  if (const auto difference = DifferenceOf(pending_->messages.back(), next)) {
    DropPendingCut(*difference);
    return nullptr;
  }
  PendingCut cut = *std::move(pending_);
  pending_.reset();
  return GoOnWith(std::move(cut), retry);
}

std::optional<std::string> Receiver::DifferenceOf(const ReadRowsMessage& near, const ReadRowsMessage& next) {
  auto alike = BeginAlike(near, next);
  if (!alike.ok()) return fmt::format("its first rows cannot be compared: {}", alike.status().message());
  if (!*alike) return "its first rows are not those that the stream itself goes on with";
  if (near.row_count != next.row_count || next.progress_end <= 0 || is_filtered()) return std::nullopt;
  // Rows may be alike all over a table. But where the same response begins and ends in both streams is in one proportion; from one response
  // to the next the products differ by as much as the product of their lengths.
  const double off = std::abs(near.progress_start * next.progress_end - near.progress_end * next.progress_start);
  const double next_response = (near.progress_end - near.progress_start) * (next.progress_end - next.progress_start);
  constexpr double kRounding = 1e-15;
  if (off <= next_response / 2 + kRounding) return std::nullopt;
  return fmt::format("its first response, from {:.9g} to {:.9g} of it, is not the one from {:.9g} to {:.9g} of the stream itself",
                     near.progress_start, near.progress_end, next.progress_start, next.progress_end);
}

arrow::Result<bool> Receiver::BeginAlike(const ReadRowsMessage& near, const ReadRowsMessage& next) {
  const auto same_bytes = [&] {
    if (near.rows == nullptr || next.rows == nullptr) return near.rows == next.rows;
    return near.uncompressed_bytes == next.uncompressed_bytes && near.rows->Equals(*next.rows);
  };
  if (near.row_count == next.row_count && same_bytes()) return true;
  // The server may divide the rows of a new call into other responses.
  const auto decode = [&](const ReadRowsMessage& message) -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
    ARROW_ASSIGN_OR_RAISE(const auto decoder, RowDecoder::Make(stream_, schema_));
    if (!message.schema.empty()) ARROW_RETURN_NOT_OK(decoder->SetWireSchema(message.schema));
    ARROW_ASSIGN_OR_RAISE(const auto bytes, RowBytes(message, stream_));
    return decoder->DecodeRows(bytes, message.row_count);
  };
  ARROW_ASSIGN_OR_RAISE(const auto near_rows, decode(near));
  ARROW_ASSIGN_OR_RAISE(const auto next_rows, decode(next));
  const int64_t both = std::min(near_rows->num_rows(), next_rows->num_rows());
  return near_rows->Slice(0, both)->Equals(*next_rows->Slice(0, both), /*check_metadata=*/false,
                                           arrow::EqualOptions::Defaults().nans_equal(true).signed_zeros_equal(false));
}

arrow::Result<rpc::ByteStream*> Receiver::GoOnWith(PendingCut cut, rpc::RetryState* retry) {
  FailPoint("cut.proven");
  const CutStreams& streams = cut.streams;
  std::unique_ptr<rpc::ByteStream> original;
  rpc::ByteStream* call = nullptr;
  const ReadRowsMessage& first = cut.messages.back();
  const double start = first.progress_start;
  // Where the border really lies follows from one row's fraction of both; else it is about where it was asked for.
  const bool told = seen_fraction_ > 0 && start >= seen_fraction_;
  const double near_share = std::clamp(told ? seen_fraction_ / start : streams.fraction, 0.0, 1.0);
  {
    std::lock_guard<std::mutex> guard(mutex_);
    place_ = {.seen = start, .step = first.progress_end - start, .is_open = true};
  }
  cutter_.Accept(streams.primary);
  {
    std::lock_guard<std::mutex> guard(mutex_);
    original = std::exchange(call_, std::move(primary_));
    call = call_.get();
    queue_.emplace_back(StreamCut{.near = streams.primary, .far = streams.remainder, .near_share = near_share, .near_fraction = start});
    changed_.NotifyAll();
  }
  original.reset();
  stream_.stream = streams.primary;
  // From here on fractions are of the primary.
  seen_fraction_ = start;
  latest_ = start;
  inside_ = false;
  offset_unproven_ = false;
  call_end_ = 0;
  gap_start_ = -1;
  end_asked_at_ = -1;
  end_is_told_ = false;
  for (auto& message : cut.messages) {
    MemoryReservation part = cut.memory.Split(message.wire_bytes);
    ARROW_RETURN_NOT_OK(Accept(std::move(message), std::move(part), retry));
  }
  return call;
}

}  // namespace headrace::bigquery
