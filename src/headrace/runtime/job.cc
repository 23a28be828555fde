#include "headrace/runtime/job.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "headrace/runtime/checkpoint_store.h"
#include "headrace/runtime/internal/job_options.h"
#include "headrace/runtime/internal/local_job.h"

namespace headrace {
namespace {

/// Nothing was persisted there: the job died before that, or the directory is another one.
arrow::Status NoCheckpoint(const std::string& directory) {
  return MakeError({.code = Code::kNotFound, .service = "checkpoints", .resource = directory, .reason = "NO_CHECKPOINT"},
                   fmt::format("{} holds no checkpoint to resume from; if this is the right directory, the job ended before it had read "
                               "anything: start it again as it was started first",
                               directory));
}

constexpr int kRunIdDigits = 8;  // SinkContext::run_id

arrow::Status RefuseExisting(const std::optional<StoredCheckpoint>& newest, const std::string& directory) {
  if (!newest) return arrow::Status::OK();
  return MakeError({.code = Code::kAlreadyExists, .service = "checkpoints", .resource = directory, .reason = "CHECKPOINT_EXISTS"},
                   fmt::format("{} already holds checkpoint {} of job {}. Resume that job, or give another checkpoint directory", directory,
                               newest->state.checkpoint, newest->state.job_name));
}

}  // namespace

arrow::Result<std::unique_ptr<Job>> Job::Make(std::shared_ptr<const Source> source, std::shared_ptr<const Sink> sink, JobOptions options,
                                              JobEnvironment environment) {
  ARROW_RETURN_NOT_OK(CheckJobOptions(options, *source, *sink));
  const std::string directory = options.checkpoint;
  if (!directory.empty()) {
    ARROW_ASSIGN_OR_RAISE(auto newest, ReadNewestCheckpoint(environment.files, directory));
    ARROW_RETURN_NOT_OK(RefuseExisting(newest, directory));
  }
  StoredCheckpoint start;
  start.state.job_name = options.job_name;
  start.state.run_id = environment.random->Hex(kRunIdDigits);
  start.state.configuration = options.configuration;
  auto job =
      std::make_unique<LocalJob>(std::move(source), std::move(sink), std::move(options), environment, nullptr, std::move(start), false);
  // Before the checkpoint directory is made: a job that is refused leaves nothing behind.
  ARROW_RETURN_NOT_OK(job->CheckTarget());
  if (!directory.empty()) {
    ARROW_ASSIGN_OR_RAISE(auto store, CheckpointStore::Open(environment.files, directory));
    ARROW_ASSIGN_OR_RAISE(auto newest, store->Newest());  // once more, now that nobody else can write there
    ARROW_RETURN_NOT_OK(RefuseExisting(newest, directory));
    job->UseStore(std::move(store));
  }
  return job;
}

arrow::Result<std::unique_ptr<Job>> Job::Restore(std::shared_ptr<const Source> source, std::shared_ptr<const Sink> sink, JobOptions options,
                                                 JobEnvironment environment) {
  if (options.checkpoint.empty()) return InvalidOption("checkpoint", "a job is restored from a checkpoint directory: give checkpoint");
  ARROW_RETURN_NOT_OK(CheckJobOptions(options, *source, *sink));
  ARROW_ASSIGN_OR_RAISE(auto exists, environment.files->Stat(options.checkpoint));
  if (!exists) return NoCheckpoint(options.checkpoint);
  ARROW_ASSIGN_OR_RAISE(auto store, CheckpointStore::Open(environment.files, options.checkpoint));
  ARROW_ASSIGN_OR_RAISE(auto newest, store->Newest());
  if (!newest) return NoCheckpoint(options.checkpoint);
  if (!options.job_name.empty() && options.job_name != newest->state.job_name) {
    return InvalidOption("job_name", fmt::format("{} holds the job {}, not {}. Leave job_name out to resume it", options.checkpoint,
                                                 newest->state.job_name, options.job_name));
  }
  if (!options.configuration.empty()) newest->state.configuration = options.configuration;
  return std::make_unique<LocalJob>(std::move(source), std::move(sink), std::move(options), environment, std::move(store),
                                    std::move(*newest), true);
}

arrow::Result<PersistedJob> ReadPersistedJob(FileSystem* files, const std::string& directory) {
  ARROW_ASSIGN_OR_RAISE(auto newest, ReadNewestCheckpoint(files, directory));
  if (!newest) return NoCheckpoint(directory);
  return PersistedJob{.configuration = std::move(newest->state.configuration),
                      .job_name = std::move(newest->state.job_name),
                      .run_id = std::move(newest->state.run_id),
                      .finished = newest->finished,
                      .checkpoint = newest->state.checkpoint};
}

}  // namespace headrace
