#include "headrace/files/internal/file_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/batch_size.h"
#include "headrace/files/internal/file_list.h"
#include "headrace/files/internal/source_state.h"

namespace headrace {

arrow::Result<std::unique_ptr<SplitReader>> FileReader::Open(FileAccess access, const JobContext& context,
                                                             const std::shared_ptr<arrow::Schema>& schema, const Split& split) {
  ARROW_ASSIGN_OR_RAISE(auto part, DecodeFilePart(split.descriptor));
  ARROW_ASSIGN_OR_RAISE(const int64_t position, ParseFilePosition(split.position));
  int64_t end_row = std::numeric_limits<int64_t>::max();
  if (!split.end_position.empty()) {
    ARROW_ASSIGN_OR_RAISE(end_row, ParseFilePosition(split.end_position));
  }
  ARROW_RETURN_NOT_OK(CheckUnchanged(access.files, part.file));
  std::unique_ptr<FileReader> reader(new FileReader(std::move(access), context, std::move(part), position, end_row));
  ARROW_ASSIGN_OR_RAISE(reader->stream_, OpenRowStream(reader->access_, reader->part_, schema));
  return reader;
}

FileReader::FileReader(FileAccess access, const JobContext& context, FilePart part, int64_t position, int64_t end_row)
    : access_(std::move(access)), context_(context), part_(std::move(part)), end_row_(end_row), delivered_(position) {}

arrow::Status FileReader::Cancelled() const { return arrow::Status::Cancelled("the reader of ", part_.file.path, " was cancelled"); }

void FileReader::Cancel() {
  stop_.request_stop();
  if (part_.file.path == "-") access_.input->Cancel();
}

arrow::Result<ReadResult> FileReader::Next() {
  while (rows_ == nullptr && delivered_ < end_row_) {
    if (stop_.stop_requested()) return Cancelled();
    ARROW_ASSIGN_OR_RAISE(const bool more, Load());
    if (stop_.stop_requested()) return Cancelled();  // what was interrupted may look like an end
    if (!more) return Finish(/*at_end=*/true);
  }
  if (stop_.stop_requested()) return Cancelled();
  if (rows_ == nullptr) return Finish(/*at_end=*/false);
  ARROW_ASSIGN_OR_RAISE(Batch batch, Slice());
  return ReadResult(std::move(batch));
}

arrow::Result<ReadResult> FileReader::Finish(bool at_end) {
  // Rows of a file that was changed while it was read may be anything.
  ARROW_RETURN_NOT_OK(CheckUnchanged(access_.files, part_.file));
  // What a damaged file lacks may look like its end: Arrow's reader of Parquet takes a column that ends early for that.
  if (at_end && part_.rows >= 0 && passed_ != part_.rows) {
    return MakeError({.code = Code::kDataLoss, .service = "local files", .resource = part_.file.path, .reason = "UNREADABLE_FILE"},
                     fmt::format("cannot read {}: the part that begins at row {} should have {} rows and has {}{}", part_.file.path,
                                 part_.first_row, part_.rows, passed_, kDamagedFile));
  }
  if (delivered_ > passed_ && delivered_ < end_row_) {
    return MakeError({.code = Code::kDataLoss, .service = "local files", .resource = part_.file.path, .reason = "CORRUPT_STATE"},
                     fmt::format("{}: {} rows of a part were read before, and it has only {}", part_.file.path, delivered_, passed_));
  }
  if (const auto warning = stream_->warning(); at_end && !warning.empty()) context_.logger->Log(LogLevel::kWarning, warning);
  fraction_ = 1;
  return ReadResult(End{});
}

arrow::Result<bool> FileReader::Load() {
  // Room for rows as large as the largest before they are read; what they take after that is held in any case.
  if (context_.memory != nullptr) {
    ARROW_ASSIGN_OR_RAISE(memory_, context_.memory->Reserve(largest_, stop_.get_token()));
  }
  ARROW_ASSIGN_OR_RAISE(auto rows, stream_->Next());
  const int64_t read = stream_->bytes_read();
  wire_bytes_ += std::max<int64_t>(read - std::exchange(bytes_read_, read), 0);
  if (rows == nullptr) {
    memory_.Release();
    return false;
  }
  const int64_t first = std::clamp<int64_t>(delivered_ - passed_, 0, rows->num_rows());
  passed_ += rows->num_rows();
  if (first == rows->num_rows()) {
    memory_.Release();
    return true;
  }
  rows_ = first == 0 ? std::move(rows) : rows->Slice(first);
  const int64_t bytes = ReferencedBytes(*rows_);
  largest_ = std::max(bytes, largest_ / 2);
  memory_.Resize(bytes);
  return true;
}

arrow::Result<Batch> FileReader::Slice() {
  const int64_t left = rows_->num_rows();
  int64_t count = std::min({left, access_.options->max_rows_per_batch, end_row_ - delivered_});
  // Halved until it fits, so that no batch is above the target but a single row that is.
  while (count > 1 && ReferencedBytes(*rows_->Slice(0, count)) > access_.options->max_bytes_per_batch) count = (count + 1) / 2;
  const bool last = count == left;
  Batch batch{.rows = last ? rows_ : rows_->Slice(0, count), .position = {}};
  batch.memory = memory_.Split(
      last ? memory_.bytes()
           : static_cast<int64_t>(static_cast<double>(memory_.bytes()) * static_cast<double>(count) / static_cast<double>(left)));
  // By the rows where their number is known, else all that was read for them with the first of them.
  if (bytes_read_ < 0 && part_.rows > 0) {
    wire_bytes_ = static_cast<int64_t>(static_cast<double>(part_.bytes) * static_cast<double>(count) / static_cast<double>(part_.rows));
  }
  batch.wire_bytes = std::exchange(wire_bytes_, 0);
  delivered_ += count;
  batch.position = fmt::format("{}", delivered_);
  if (part_.rows > 0) {
    fraction_ = std::min(1.0, static_cast<double>(delivered_) / static_cast<double>(part_.rows));
  } else if (bytes_read_ > 0 && part_.bytes > 0) {
    fraction_ = std::min(1.0, static_cast<double>(bytes_read_) / static_cast<double>(part_.bytes));
  }
  if (context_.metrics != nullptr) {
    context_.metrics->counter("rowsRead")->Add(count);
    context_.metrics->counter("bytesRead")->Add(batch.wire_bytes);
  }
  rows_ = last || delivered_ >= end_row_ ? nullptr : rows_->Slice(count);
  if (rows_ == nullptr) memory_.Release();
  return batch;
}

arrow::Result<std::string> FileReader::PositionAt(const Batch& batch, int64_t row) {
  const int64_t count = batch.rows->num_rows();
  if (row < 0 || row > count) return arrow::Status::IndexError("row ", row, " of a batch of ", count, " rows");
  ARROW_ASSIGN_OR_RAISE(const int64_t end, ParseFilePosition(batch.position));
  if (end < count) return arrow::Status::Invalid("the batch is not of this reader");
  return fmt::format("{}", end - count + row);
}

}  // namespace headrace
