#include "headrace/runtime/internal/writer_loop.h"

#include <stop_token>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/fail_point.h"

namespace headrace {

void WriterLoop::Run() {
  auto status = Work();
  if (status.ok()) return;
  writer_->Abort();
  if (!events_->writers().stop_requested() || CodeOf(status) != Code::kCancelled) {
    events_->Fail(WithContext(status, fmt::format("writer {}", index_)));
  }
}

arrow::Status WriterLoop::Work() {
  const std::stop_callback cancel(events_->writers(), [this] { writer_->Cancel(); });
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto item, queue_->Pop(events_->writers()));
    if (!item) return arrow::Status::OK();
    if (auto* batch = std::get_if<Batch>(&*item)) {
      ARROW_RETURN_NOT_OK(Write(std::move(*batch)));
      continue;
    }
    auto barrier = std::get<Barrier>(*item);
    ARROW_ASSIGN_OR_RAISE(auto answer, AnswerBarrier(barrier.checkpoint));
    events_->Answer(index_, std::move(answer));
    FailPoint("checkpoint.writer_prepared");
    if (barrier.last) return arrow::Status::OK();
  }
}

arrow::Status WriterLoop::Write(Batch batch) {
  records_in_ += batch.rows->num_rows();
  return writer_->Write(batch);  // the batch leaves the budget here, whatever the writer keeps of its buffers
}

arrow::Result<WriterAnswer> WriterLoop::AnswerBarrier(uint64_t checkpoint) {
  ARROW_RETURN_NOT_OK(writer_->Flush());
  WriterAnswer answer{.checkpoint = checkpoint};
  ARROW_ASSIGN_OR_RAISE(answer.committables, writer_->PrepareCommit());
  ARROW_ASSIGN_OR_RAISE(answer.state, writer_->Snapshot(checkpoint));
  answer.counts = {
      .records_in = records_in_, .written = writer_->written(), .rejected = writer_->rejected(), .bytes_written = writer_->bytes_written()};
  auto& counts = answer.counts;
  if (counts.written < 0) counts.written = counts.records_in - counts.rejected;
  if (counts.written + counts.rejected != counts.records_in) {
    return MakeError({.code = Code::kInternal, .resource = "sink", .reason = "ROWS_UNACCOUNTED"},
                     fmt::format("{} rows were given to the sink, but {} are written and {} rejected. This is a defect: please report it",
                                 counts.records_in, counts.written, counts.rejected));
  }
  return answer;
}

}  // namespace headrace
