// Whether a sink may write to a path: the checks before any work. Free functions, any thread.
#pragma once

#include <optional>
#include <string>

#include "headrace/base/file_system.h"
#include "headrace/files/manifest.h"

namespace headrace {

struct Target {
  std::string path{};
  bool single_file = false;
  bool overwrite = false;
  std::string run_id{};
  std::string checkpoint_directory{};  // empty = none
};

struct FoundTarget {
  bool exists = false;
  std::optional<Manifest> replaced{};  // of the result in a directory that is to be overwritten
};

/// ALREADY_EXISTS for a result that is there and not to be overwritten, FAILED_PRECONDITION for a directory whose files are not a result of
/// ours (nothing is ever deleted from it), NOT_FOUND without the parent directory, PERMISSION_DENIED where nothing can be written,
/// INVALID_ARGUMENT for checkpoints in the target. A file is made and removed to see whether it can.
arrow::Result<FoundTarget> LookAtTarget(FileSystem* files, const Target& target);

}  // namespace headrace
