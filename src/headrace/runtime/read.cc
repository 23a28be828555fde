#include "headrace/runtime/read.h"

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>

#include "headrace/runtime/internal/reader_loop.h"
#include "headrace/runtime/internal/split_threads.h"

namespace headrace {
namespace {

class SplitStream final : public arrow::RecordBatchReader {
 public:
  SplitStream(std::shared_ptr<const Source> source, const ReadOptions& options)
      : threads_(std::move(source), options), queue_(std::min(options.memory_limit, kMostQueuedBytes)) {
    threads_.parts().queues = {&queue_};
    on_stop_.emplace(options.stop, Halt{this});
  }
  ~SplitStream() override { Stop(); }

  arrow::Status Start() {
    ARROW_RETURN_NOT_OK(threads_.Plan(nullptr));
    return threads_.Start([this](const arrow::Status& status) { queue_.Fail(status); }, [this] { queue_.Close(); });
  }

  std::shared_ptr<arrow::Schema> schema() const override { return threads_.schema(); }

  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    out->reset();
    if (closed_) return arrow::Status::Invalid("the reader is closed");
    ARROW_ASSIGN_OR_RAISE(auto item, queue_.Pop({}));
    // The batch leaves the budget here, whatever the caller keeps: reading a table larger than the limit ends.
    if (item) *out = std::move(std::get<Batch>(*item).rows);
    return arrow::Status::OK();
  }

  arrow::Status Close() override {
    closed_ = true;
    Stop();
    return arrow::Status::OK();
  }

 private:
  struct Halt {
    SplitStream* stream;
    void operator()() const { stream->RequestStop("the read was stopped"); }
  };

  void RequestStop(const char* why) {
    threads_.RequestStop();
    queue_.Fail(arrow::Status::Cancelled(why));
  }

  void Stop() {
    on_stop_.reset();  // waits for it where it runs
    RequestStop("the reader is closed");
    threads_.Stop();
  }

  SplitThreads threads_;
  WriterQueue queue_;  // goes before the budget that its batches hold of
  bool closed_ = false;
  std::optional<std::stop_callback<Halt>> on_stop_;
};

}  // namespace

arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> Read(std::shared_ptr<const Source> source, const ReadOptions& options) {
  ARROW_RETURN_NOT_OK(CheckReadOptions(*source, options));
  auto stream = std::make_shared<SplitStream>(std::move(source), options);
  ARROW_RETURN_NOT_OK(stream->Start());
  return stream;
}

}  // namespace headrace
