#include "headrace/bigquery/read/internal/reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include <arrow/util/byte_size.h>
#include <fmt/format.h>

#include "headrace/base/short_name.h"
#include "headrace/bigquery/read/internal/decoder.h"
#include "headrace/bigquery/read/internal/response_lz4.h"
#include "headrace/bigquery/read/internal/slicer.h"

namespace headrace::bigquery {

arrow::Result<std::unique_ptr<StreamReader>> StreamReader::Open(std::shared_ptr<rpc::ChannelPool> pool,
                                                                std::shared_ptr<const SourceOptions> options, const JobContext& context,
                                                                const std::shared_ptr<arrow::Schema>& schema, const Split& split,
                                                                std::shared_ptr<SharedByReaders> shared) {
  ARROW_ASSIGN_OR_RAISE(StreamState stream, ParseStreamState(split.descriptor));
  ARROW_ASSIGN_OR_RAISE(StreamPosition start, ParseStreamPosition(split.position));
  if (stream.cut_rows > 0 && start.rows <= stream.cut_rows) {
    // Its fractions are of the whole stream, and smaller than those of the near part.
    start.high = -1;
    if (start.rows == stream.cut_rows) start.low = start.high = stream.cut_fraction;
  }
  int64_t end_row = std::numeric_limits<int64_t>::max();
  if (!split.end_position.empty()) {
    ARROW_ASSIGN_OR_RAISE(const StreamPosition end, ParseStreamPosition(split.end_position));
    end_row = end.rows;
  }
  ARROW_ASSIGN_OR_RAISE(auto decoder, RowDecoder::Make(stream, schema));
  std::unique_ptr<StreamReader> reader(new StreamReader(std::move(pool), std::move(options), context, std::move(stream), schema, start,
                                                        end_row, split.estimated_bytes, std::move(decoder), std::move(shared)));
  reader->receiver_.Start();
  return reader;
}

StreamReader::StreamReader(std::shared_ptr<rpc::ChannelPool> pool, std::shared_ptr<const SourceOptions> options, const JobContext& context,
                           StreamState stream, const std::shared_ptr<arrow::Schema>& schema, StreamPosition start, int64_t end_row,
                           double estimated_bytes, std::unique_ptr<RowDecoder> decoder, std::shared_ptr<SharedByReaders> shared)
    : options_(std::move(options)),
      context_(context),
      stream_(stream),
      end_row_(end_row),
      estimated_bytes_(estimated_bytes),
      decoder_(std::move(decoder)),
      delivered_(start.rows),
      fraction_before_(start.low),
      fraction_(start.low),
      receiver_(std::move(pool), *options_, context, std::move(stream), schema, start, std::move(shared)) {}

arrow::Result<ReadResult> StreamReader::Next() {
  if (const double share = std::exchange(near_share_, 0); share > 0) {
    std::lock_guard<std::mutex> guard(progress_mutex_);
    fraction_ = std::min(fraction_ / share, 1.0);
  }
  while (rows_ == nullptr && delivered_ < end_row_) {
    ARROW_ASSIGN_OR_RAISE(auto instead, Load());
    if (instead.has_value()) return *std::move(instead);
  }
  if (receiver_.cancelled()) return arrow::Status::Cancelled("the reader of ", ShortName(stream_.stream), " was cancelled");
  if (rows_ == nullptr) return Finish();
  ARROW_ASSIGN_OR_RAISE(Batch batch, Slice());
  return ReadResult(std::move(batch));
}

ReadResult StreamReader::Finish() {
  SetFraction(1);
  receiver_.Cancel();  // of a split with an end position the stream may go on
  return End{};
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> StreamReader::Decode(Received* received) {
  const ReadRowsMessage& message = received->message;
  if (!message.schema.empty()) ARROW_RETURN_NOT_OK(decoder_->SetWireSchema(message.schema));
  if (message.rows == nullptr && message.row_count == 0) return nullptr;
  if (message.uncompressed_bytes > 0 && stream_.response_compression != ResponseCompression::kNone)
    received->memory.Resize(message.wire_bytes + std::min(message.uncompressed_bytes, kLargestUncompressedResponse));
  ARROW_ASSIGN_OR_RAISE(const auto bytes, RowBytes(message, stream_));
  return decoder_->DecodeRows(bytes, message.row_count);
}

void StreamReader::RequestCut(double fraction) {
  if (end_row_ == std::numeric_limits<int64_t>::max()) receiver_.RequestCut(fraction);
}

arrow::Result<std::optional<ReadResult>> StreamReader::Load() {
  ARROW_ASSIGN_OR_RAISE(auto item, receiver_.Pop());
  if (std::holds_alternative<StreamDone>(item)) return std::optional<ReadResult>(Finish());
  if (const auto* cut = std::get_if<StreamCut>(&item)) return std::optional<ReadResult>(MakeCut(*cut));
  ARROW_RETURN_NOT_OK(LoadRows(&std::get<Received>(item)));
  return std::nullopt;
}

Cut StreamReader::MakeCut(const StreamCut& cut) {
  StreamState far = stream_;
  far.stream = cut.far;
  far.cut_rows = 0;
  far.cut_fraction = 0;
  stream_.stream = cut.near;
  stream_.cut_rows = delivered_;
  stream_.cut_fraction = cut.near_fraction;
  const double all = estimated_bytes_;
  if (all >= 0) estimated_bytes_ = all * cut.near_share;
  Cut answer{.near_descriptor = SerializeStreamState(stream_), .far = {}, .near_estimated_bytes = estimated_bytes_};
  answer.far.push_back({.descriptor = SerializeStreamState(far), .estimated_bytes = all < 0 ? all : all - estimated_bytes_});
  // The same place is further on in the near part. It is told once the cut is applied, which it is when more is asked for.
  fraction_before_ = std::max(fraction_before_, cut.near_fraction);
  near_share_ = cut.near_share;
  return answer;
}

arrow::Status StreamReader::Undecodable(const arrow::Status& status) const {
  arrow::Status named = WithContext(status, fmt::format("stream {} at offset {}", ShortName(stream_.stream), delivered_));
  constexpr std::array<std::string_view, 3> kAtFault = {"BAD_AVRO_DATA", "CORRUPT_RESPONSE", "ROW_COUNT"};
  const ErrorInfo* info = GetErrorInfo(status);
  if (info == nullptr || std::ranges::find(kAtFault, std::string_view(info->reason)) == kAtFault.end()) return named;
  return named.WithMessage(named.message(),
                           ". The service's response is at fault: run it again, and report it to whoever runs the service if it stays");
}

arrow::Status StreamReader::LoadRows(Received* received) {
  const ReadRowsMessage& message = received->message;
  auto decoded = Decode(received);
  if (!decoded.ok()) return Undecodable(decoded.status());
  std::shared_ptr<arrow::RecordBatch> rows = *std::move(decoded);
  const int64_t count = rows == nullptr ? 0 : rows->num_rows();
  if (decoder_->saw_full_stream() && !std::exchange(told_full_stream_, true)) {
    context_.logger->Log(LogLevel::kInfo, fmt::format("stream {}: the server sends a whole Arrow IPC stream in each response; accepted",
                                                      ShortName(stream_.stream)));
  }
  response_start_ = std::max(message.progress_start, fraction_before_);
  response_end_ = std::max(message.progress_end, response_start_);
  response_told_ = message.progress_end > 0;
  fractions_rise_ = received->fractions_rise;
  if (count == 0) {
    fraction_before_ = response_end_;
    SetFraction(response_end_);
    return arrow::Status::OK();
  }
  rows_ = std::move(rows);
  first_ = 0;
  wire_bytes_ = message.wire_bytes;
  memory_ = std::move(received->memory);
  // What the rows hold from here on: their buffers (decompressed), not the message.
  const int64_t held = arrow::util::TotalBufferSize(*rows_);
  memory_.Resize(held);
  whole_fits_ = held <= options_->max_bytes_per_batch;
  return arrow::Status::OK();
}

arrow::Result<Batch> StreamReader::Slice() {
  const int64_t most = std::min(options_->max_rows_per_batch, end_row_ - delivered_);
  int64_t count = 0;
  if (stream_.format == SourceFormat::kAvro) {
    count = NextBatchRows(decoder_->row_ends(), first_, most, options_->max_bytes_per_batch);
  } else {
    count = NextBatchRows(*rows_, first_, most, options_->max_bytes_per_batch, whole_fits_);
  }
  const int64_t left = rows_->num_rows() - first_;
  const bool last = count == left;
  Batch batch;
  batch.rows = rows_->num_rows() == count ? rows_ : rows_->Slice(first_, count);
  // Slices share the response's buffers; each carries its part by rows, the last one the rest, so that the sum is right.
  const int64_t part =
      last ? memory_.bytes()
           : static_cast<int64_t>(static_cast<double>(memory_.bytes()) * static_cast<double>(count) / static_cast<double>(left));
  batch.memory = memory_.Split(part);
  batch.wire_bytes = std::exchange(wire_bytes_, 0);
  first_ += count;
  delivered_ += count;
  const double share = static_cast<double>(first_) / static_cast<double>(rows_->num_rows());
  SetFraction(response_start_ + (response_end_ - response_start_) * share);
  // Inside a response the service may go on from the response's own start.
  fraction_before_ = last ? response_end_ : response_start_;
  StreamPosition position{.rows = delivered_};
  if (fractions_rise_) {
    position.low = fraction_before_;
    position.high = response_told_ ? response_end_ : -1;
  }
  last_position_ = position.ToString();
  last_start_ = fractions_rise_ ? response_start_ : 0;
  batch.position = last_position_;
  if (last || delivered_ >= end_row_) {
    rows_.reset();
    memory_.Release();
  }
  return batch;
}

arrow::Result<std::string> StreamReader::PositionAt(const Batch& batch, int64_t row) {
  const int64_t count = batch.rows->num_rows();
  if (row < 0 || row > count) return arrow::Status::IndexError("row ", row, " of a batch of ", count, " rows");
  if (row == count) return batch.position;
  ARROW_ASSIGN_OR_RAISE(StreamPosition position, ParseStreamPosition(batch.position));
  if (position.rows < count) return arrow::Status::Invalid("the batch is not of this reader");
  position.rows -= count - row;
  // Only of the latest batch is it known where its response began; that it ends no earlier than the batch is known of each.
  position.low = batch.position == last_position_ ? last_start_ : 0;
  return position.ToString();
}

SplitProgress StreamReader::Progress() const {
  const bool can_cut = end_row_ == std::numeric_limits<int64_t>::max() && receiver_.can_cut();
  std::lock_guard<std::mutex> guard(progress_mutex_);
  return {.fraction = fraction_, .throttled = receiver_.throttled(), .waits_here = receiver_.waits_here(), .can_cut = can_cut};
}

void StreamReader::SetFraction(double fraction) {
  std::lock_guard<std::mutex> guard(progress_mutex_);
  fraction_ = std::max(fraction_, fraction);
}

}  // namespace headrace::bigquery
