#include "headrace/files/internal/file_committer.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/base/fail_point.h"
#include "headrace/files/internal/part_name.h"
#include "headrace/files/internal/sink_state.h"

namespace headrace {
namespace {

CommitResult Failed(arrow::Status error) { return {CommitOutcome::kFailed, std::move(error)}; }

arrow::Status Lost(const std::string& path, std::string message) {
  return MakeError({.code = Code::kDataLoss, .service = "local files", .resource = path, .reason = "FILE_LOST"}, std::move(message));
}

}  // namespace

FileCommitter::FileCommitter(FileSystem* files, std::string directory, std::string single_name, std::string run_id, bool replace)
    : files_(files),
      directory_(std::move(directory)),
      single_name_(std::move(single_name)),
      run_id_(std::move(run_id)),
      replace_(replace) {}

arrow::Result<bool> FileCommitter::IsThere(const ManifestFile& file, const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto entry, files_->Stat(path));
  if (!entry || entry->is_directory || entry->size != file.bytes) return false;
  ARROW_ASSIGN_OR_RAISE(auto sha256, Sha256OfFile(files_, path));
  return sha256 == file.sha256;
}

CommitResult FileCommitter::Rename(const ManifestFile& file, const std::string& temp, const std::string& final_path) {
  auto renamed = files_->Rename(temp, final_path, replace_);
  if (renamed.ok()) {
    FailPoint("file.renamed");
    return {};
  }
  if (CodeOf(renamed) != Code::kAlreadyExists) return Failed(std::move(renamed));
  // Both names: a file system without an atomic rename that does not replace died between link and unlink. Or it is somebody else's file.
  auto there = IsThere(file, final_path);
  if (!there.ok()) return Failed(there.status());
  if (!*there) return Failed(std::move(renamed));
  auto removed = files_->Remove(temp);
  return removed.ok() ? CommitResult{CommitOutcome::kAlready} : Failed(std::move(removed));
}

CommitResult FileCommitter::CommitOne(const Committable& committable) {
  auto decoded = DecodeCommittable(committable);
  if (!decoded.ok()) return Failed(decoded.status());
  const ManifestFile& file = *decoded;
  const bool ours = single_name_.empty() ? IsPartNameOf(file.name, run_id_) : file.name == single_name_;
  if (!ours) {
    return Failed(
        Lost(file.name, fmt::format("the checkpoint names the file {}, which is not one that job {} writes", file.name, run_id_)));
  }
  const std::string final_path = JoinPath(directory_, file.name);
  const std::string temp = JoinPath(directory_, single_name_.empty() ? TempPartName(file.name) : TempSingleName(file.name, run_id_));
  auto entry = files_->Stat(temp);
  if (!entry.ok()) return Failed(entry.status());
  if (entry->has_value() && (*entry)->size == file.bytes) return Rename(file, temp, final_path);
  if (entry->has_value()) {
    return Failed(
        Lost(temp, fmt::format("{} has {} bytes, the checkpoint says {}: it was changed after it was written, and its {} rows are lost",
                               temp, (*entry)->size, file.bytes, file.rows)));
  }
  auto there = IsThere(file, final_path);
  if (!there.ok()) return Failed(there.status());
  if (*there) return {CommitOutcome::kAlready};
  return Failed(Lost(final_path, fmt::format("{} with {} rows is lost: neither it nor {} is the file that the checkpoint names", final_path,
                                             file.rows, temp)));
}

std::vector<CommitResult> FileCommitter::Commit(const std::vector<Committable>& committables) {
  std::vector<CommitResult> results;
  for (const auto& committable : committables) {
    results.push_back(CommitOne(committable));
    FailPoint("commit.item");
  }
  if (committables.empty()) return results;
  if (auto synced = files_->SyncDirectory(directory_); !synced.ok()) {
    for (auto& result : results) {
      if (result.outcome != CommitOutcome::kFailed) result = Failed(synced);
    }
  }
  return results;
}

}  // namespace headrace
