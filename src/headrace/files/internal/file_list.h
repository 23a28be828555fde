// Which files a source's paths mean. Free functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/log.h"
#include "headrace/files/internal/file_access.h"
#include "headrace/files/internal/file_part.h"
#include "headrace/files/manifest.h"

namespace headrace {

struct FileList {
  std::vector<FileIdentity> files{};    // all of one format, in the order in which their rows come
  std::optional<Manifest> manifest{};   // of a directory that has one
  std::vector<std::string> not_read{};  // in a directory without a manifest: what is of no format, and directories
};

/// NOT_FOUND when there is nothing, FAILED_PRECONDITION with the reason NOT_A_RESULT for a directory that a job of ours has not finished,
/// DATA_LOSS when a file of a manifest is missing or has another size, INVALID_ARGUMENT for files of several formats or of none.
arrow::Result<FileList> ListFiles(const FileAccess& access);

/// The file as it is now; an error with the reason FILE_CHANGED when it is not the one that was planned.
arrow::Status CheckUnchanged(FileSystem* files, const FileIdentity& planned);

}  // namespace headrace
