// For tests of the Parquet sink: a temporary directory, batches, and an engine of one thread that takes checkpoints as the real one does.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/table.h>

#include "headrace/files/file_sink.h"

namespace headrace {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "headrace-files-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Names in a directory, sorted; empty when there is none.
inline std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::shared_ptr<arrow::Schema> IdSchema() { return arrow::schema({arrow::field("id", arrow::int64(), false)}); }

inline Batch Ids(int64_t first, int64_t count) {
  arrow::Int64Builder builder;
  for (int64_t i = 0; i < count; ++i) (void)builder.Append(first + i);
  return {.rows = arrow::RecordBatch::Make(IdSchema(), count, {builder.Finish().ValueOrDie()}), .position = {}};
}

inline SinkContext TestContext(FileSystem* files = LocalFileSystem()) {
  SinkContext context;
  context.job_name = "test";
  context.files = files;
  context.run_id = "cafe0123";
  return context;
}

inline std::shared_ptr<const FileSink> MakeSink(FileSinkOptions options) { return FileSink::Make(std::move(options)).ValueOrDie(); }

/// What a checkpoint file would hold; survives the death of the engine.
struct EngineStore {
  bool prepared = false;
  std::string job_state{};
  uint64_t checkpoint = 0;
  int64_t position = 0;
  std::vector<std::string> states{};
  std::vector<Committable> committables{};
  bool finished = false;
};

/// Copies ids 0 .. total-1, `batch_rows` at a time, a checkpoint after every `interval` batches. All state that must survive is in the
/// store.
struct Engine {
  std::shared_ptr<const FileSink> sink{};
  FileSystem* files = LocalFileSystem();
  std::string run_id = "cafe0123";
  int64_t total = 60;
  int64_t batch_rows = 5;
  int interval = 3;

  SinkContext Context(const EngineStore& store, int writer = 0) const {
    SinkContext context;
    context.job_name = "test";
    context.files = files;
    context.run_id = run_id;
    context.writer_index = writer;
    context.checkpointed = true;
    context.first_checkpoint = store.checkpoint + 1;
    return context;
  }

  arrow::Status Run(EngineStore* store, int writers) const {
    if (!store->prepared) {
      ARROW_RETURN_NOT_OK(sink->Check(Context(*store)));
      ARROW_ASSIGN_OR_RAISE(store->job_state, sink->Prepare(Context(*store), IdSchema()));
      store->prepared = true;
    }
    ARROW_ASSIGN_OR_RAISE(auto committer, sink->CreateCommitter(Context(*store), store->job_state));
    ARROW_RETURN_NOT_OK(Commit(committer.get(), store));
    ARROW_RETURN_NOT_OK(sink->RemoveOrphans(Context(*store), store->job_state, store->states));
    std::vector<std::unique_ptr<SinkWriter>> made;
    for (int i = 0; i < writers; ++i) {
      // The states are dealt out: some writers take over several, some none.
      std::vector<std::string> share;
      for (size_t s = 0; s < store->states.size(); ++s) {
        if (static_cast<int>(s) % writers == i) share.push_back(store->states[s]);
      }
      ARROW_ASSIGN_OR_RAISE(auto writer, sink->RestoreWriter(Context(*store, i), store->job_state, IdSchema(), share));
      made.push_back(std::move(writer));
    }
    auto status = Copy(store, committer.get(), made);
    if (!status.ok()) {
      for (auto& writer : made) writer->Abort();
    }
    return status;
  }

 private:
  static arrow::Status Commit(Committer* committer, EngineStore* store) {
    for (const auto& result : committer->Commit(store->committables)) {
      if (result.outcome == CommitOutcome::kFailed || result.outcome == CommitOutcome::kRetryLater) return result.error;
    }
    return arrow::Status::OK();
  }

  arrow::Status Copy(EngineStore* store, Committer* committer, const std::vector<std::unique_ptr<SinkWriter>>& writers) const {
    int64_t position = store->position;
    while (true) {
      for (int i = 0; i < interval && position < total; ++i, position += batch_rows) {
        ARROW_RETURN_NOT_OK(writers[static_cast<size_t>(i) % writers.size()]->Write(Ids(position, std::min(batch_rows, total - position))));
      }
      EngineStore next = *store;
      next.checkpoint++;
      next.position = position;
      next.states.clear();
      next.committables.clear();
      for (const auto& writer : writers) {
        ARROW_RETURN_NOT_OK(writer->Flush());
        ARROW_ASSIGN_OR_RAISE(auto committables, writer->PrepareCommit());
        next.committables.insert(next.committables.end(), committables.begin(), committables.end());
        ARROW_ASSIGN_OR_RAISE(auto state, writer->Snapshot(next.checkpoint));
        next.states.push_back(std::move(state));
      }
      *store = std::move(next);
      ARROW_RETURN_NOT_OK(Commit(committer, store));
      if (position >= total) break;
    }
    ARROW_RETURN_NOT_OK(sink->Finish(Context(*store), store->job_state, IdSchema(), store->states, {}));
    store->finished = true;
    return arrow::Status::OK();
  }
};

}  // namespace headrace
