#include "headrace/files/internal/target.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "headrace/files/internal/part_name.h"

namespace headrace {
namespace {

constexpr std::string_view kProbePrefix = ".headrace-check-";

arrow::Status Refused(Code code, std::string reason, const std::string& path, std::string message) {
  return MakeError({.code = code, .service = "local files", .resource = path, .reason = std::move(reason)}, std::move(message));
}

arrow::Status Exists(const std::string& path, std::string_view what) {
  return Refused(
      Code::kAlreadyExists, "TARGET_EXISTS", path,
      fmt::format("the target {} exists already{}: name another one, or give --overwrite (option overwrite) to replace it", path, what));
}

std::string ProbeName(const Target& target) { return fmt::format("{}{}", kProbePrefix, target.run_id); }

// Permissions, read-only mounts, access lists and names that are too long all show in one attempt.
arrow::Status CheckWritable(FileSystem* files, const std::string& directory, const std::string& name) {
  const std::string probe = JoinPath(directory, name);
  auto file = files->Create(probe);
  if (!file.ok() && CodeOf(file.status()) != Code::kAlreadyExists) {
    return WithContext(file.status(), fmt::format("nothing can be written to the directory {}", directory));
  }
  if (file.ok()) ARROW_RETURN_NOT_OK((*file)->Close());
  return files->Remove(probe);
}

arrow::Status CheckParent(FileSystem* files, const Target& target) {
  const std::string parent = DirectoryOf(target.path);
  ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(parent));
  if (!entry || !entry->is_directory) {
    return Refused(Code::kNotFound, "NO_DIRECTORY", parent,
                   fmt::format("the target {} is in {}, which {}", target.path, parent,
                               entry ? "is a file" : "is not there: make that directory first"));
  }
  return CheckWritable(files, parent, target.single_file ? TempSingleName(BaseNameOf(target.path), target.run_id) : ProbeName(target));
}

/// `path` with the symbolic links of that part of it that exists resolved; without a slash at its end.
std::filesystem::path Resolved(const std::string& path) {
  std::error_code error;
  auto resolved = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  if (error) resolved = path;  // whoever opens it will say why
  return (resolved / "").lexically_normal().parent_path();
}

/// In the target, checkpoints would make the directory one that is not empty, and readers of all its files would meet them.
arrow::Status CheckCheckpointDirectory(const Target& target) {
  if (target.checkpoint_directory.empty() || target.single_file) return arrow::Status::OK();
  const auto inner = Resolved(target.checkpoint_directory);
  const auto outer = Resolved(target.path);
  if (std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first != outer.end()) return arrow::Status::OK();
  return InvalidOption("checkpoint", fmt::format("the checkpoint directory {} lies in the target {}: give one beside it, like {}.job",
                                                 target.checkpoint_directory, target.path, target.path));
}

arrow::Result<FoundTarget> LookAtFile(FileSystem* files, const Target& target) {
  ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(target.path));
  if (entry && entry->is_directory) {
    return Refused(Code::kFailedPrecondition, "IS_DIRECTORY", target.path,
                   fmt::format("{0} is a directory: write {0}/ for a directory of files, or name another file", target.path));
  }
  if (entry && !target.overwrite) return Exists(target.path, "");
  ARROW_RETURN_NOT_OK(CheckParent(files, target));
  return FoundTarget{.exists = entry.has_value()};
}

arrow::Result<FoundTarget> LookAtDirectory(FileSystem* files, const Target& target) {
  ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(target.path));
  if (!entry) {
    ARROW_RETURN_NOT_OK(CheckParent(files, target));
    return FoundTarget{};
  }
  if (!entry->is_directory) {
    return Refused(Code::kFailedPrecondition, "NOT_A_DIRECTORY", target.path,
                   fmt::format("{} is a file, and a target without an extension is a directory: name another directory, a file with the "
                               "extension of its format (.parquet, .csv ...), or - for standard output",
                               target.path));
  }
  ARROW_ASSIGN_OR_RAISE(auto entries, files->List(target.path));
  std::erase_if(entries, [](const FileEntry& file) { return file.name.starts_with(kProbePrefix); });
  FoundTarget found{.exists = true};
  if (std::any_of(entries.begin(), entries.end(), [](const FileEntry& file) { return file.name == kManifestName; })) {
    if (!target.overwrite) return Exists(target.path, fmt::format(" and holds a result ({})", kManifestName));
    ARROW_ASSIGN_OR_RAISE(found.replaced, ReadManifest(files, target.path));
  } else if (!entries.empty()) {
    return Refused(
        Code::kFailedPrecondition, "NOT_A_RESULT", target.path,
        fmt::format("the directory {} is not empty (it holds {}) and has no {}: nothing in it is overwritten. Empty it, or name another "
                    "directory",
                    target.path, entries.front().name, kManifestName));
  }
  ARROW_RETURN_NOT_OK(CheckWritable(files, target.path, ProbeName(target)));
  return found;
}

}  // namespace

arrow::Result<FoundTarget> LookAtTarget(FileSystem* files, const Target& target) {
  ARROW_RETURN_NOT_OK(CheckCheckpointDirectory(target));
  return target.single_file ? LookAtFile(files, target) : LookAtDirectory(files, target);
}

}  // namespace headrace
