// A job's checkpoint directory: writes and finds checkpoints, records commits, keeps other processes out. docs/formats/checkpoint.md
// describes every file in it.
//
// One thread at a time. A store that is open holds the directory's lock until it is destroyed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type.h>

#include "headrace/base/file_system.h"
#include "headrace/runtime/ledger.h"

namespace headrace {

/// The report's counters as of a checkpoint (those of the ledger are in its snapshot).
struct ReportCounts {
  int64_t records_in = 0;
  int64_t rows_written = 0;
  int64_t rows_rejected = 0;
  int64_t rows_skipped = 0;
  int64_t bytes_written = 0;
  int64_t restarts = 0;
  double fraction = 0;
  std::map<std::string, std::string> facts{};
  std::vector<std::string> warnings{};
};

/// Everything that a job needs to go on. No credentials and no rows.
struct CheckpointState {
  uint64_t checkpoint = 0;
  std::string job_name{};
  std::string run_id{};
  std::map<std::string, std::string> configuration{};
  bool planned = false;
  bool prepared = false;
  bool final = false;
  LedgerSnapshot ledger{};
  std::shared_ptr<arrow::Schema> schema{};
  std::string sink_state{};
  std::vector<std::string> writer_states{};
  std::vector<std::string> committables{};
  ReportCounts report{};
};

/// The bytes of a checkpoint file, the same for the same state.
arrow::Result<std::string> EncodeCheckpoint(const CheckpointState& state);
/// The inverse. `name` is the file's, for the error: DATA_LOSS for damaged bytes, UNIMPLEMENTED for another version.
arrow::Result<CheckpointState> DecodeCheckpoint(std::string_view bytes, const std::string& name);
/// The error for a checkpoint that cannot be read: says what is wrong with it and what to do.
arrow::Status DamagedCheckpoint(const std::string& name, std::string_view what);

/// The largest checkpoint that is written or read. Ten thousand streams with a kilobyte of state each make 10 MB; a file beyond this is
/// damaged.
inline constexpr int64_t kMaxCheckpointBytes = int64_t{256} << 20;

struct StoredCheckpoint {
  CheckpointState state{};
  bool committed = false;  // its committables are known to be committed
  bool finished = false;   // the job is done
};

/// The newest checkpoint in `directory`, without its lock; nothing when there is none.
arrow::Result<std::optional<StoredCheckpoint>> ReadNewestCheckpoint(FileSystem* files, const std::string& directory);

class CheckpointStore {
 public:
  /// Makes the directory when it is missing and takes its lock: UNAVAILABLE (LOCKED) when somebody has it.
  static arrow::Result<std::unique_ptr<CheckpointStore>> Open(FileSystem* files, std::string directory);

  arrow::Result<std::optional<StoredCheckpoint>> Newest() const { return ReadNewestCheckpoint(files_, directory_); }
  /// Removes what an interrupted write left under a temporary name, and checkpoints older than the newest committed one.
  arrow::Status RemoveLeftovers();
  /// Durable when it answers OK. Otherwise it may or may not be there.
  arrow::Status Write(const CheckpointState& state);
  /// Records that the committables of `checkpoint` are committed and removes older checkpoints.
  arrow::Status RecordCommitted(uint64_t checkpoint);
  arrow::Status RecordFinished(uint64_t checkpoint);
  /// Forgets checkpoint 0 of a job that never planned, so that the corrected job can use the directory.
  arrow::Status RemoveUnplanned();

  const std::string& directory() const { return directory_; }

 private:
  CheckpointStore(FileSystem* files, std::string directory, std::unique_ptr<FileLock> lock)
      : files_(files), directory_(std::move(directory)), lock_(std::move(lock)) {}
  arrow::Status RemoveOlderThan(uint64_t checkpoint);

  FileSystem* files_;
  std::string directory_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace headrace
