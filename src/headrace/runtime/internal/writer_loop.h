// One writer thread of a job: takes batches and barriers from its queue. Run belongs to the thread.
#pragma once

#include <memory>

#include "headrace/runtime/internal/reader_loop.h"
#include "headrace/runtime/internal/run_events.h"
#include "headrace/runtime/sink.h"

namespace headrace {

class WriterLoop {
 public:
  WriterLoop(int index, std::unique_ptr<SinkWriter> writer, WriterQueue* queue, RunEvents* events)
      : index_(index), writer_(std::move(writer)), queue_(queue), events_(events) {}

  /// Until the last barrier, or a stop or failure, which it answers with SinkWriter::Abort.
  void Run();

 private:
  arrow::Status Work();
  arrow::Status Write(Batch batch);
  arrow::Result<WriterAnswer> AnswerBarrier(uint64_t checkpoint);

  const int index_;
  const std::unique_ptr<SinkWriter> writer_;
  WriterQueue* const queue_;
  RunEvents* const events_;
  int64_t records_in_ = 0;
};

}  // namespace headrace
