// Gives prepared files their final names. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "headrace/base/file_system.h"
#include "headrace/files/manifest.h"
#include "headrace/runtime/sink.h"

namespace headrace {

class FileCommitter final : public Committer {
 public:
  /// `single_name` is empty for part files. `replace`: a single file may replace an older one.
  FileCommitter(FileSystem* files, std::string directory, std::string single_name, std::string run_id, bool replace);

  std::vector<CommitResult> Commit(const std::vector<Committable>& committables) override;

 private:
  CommitResult CommitOne(const Committable& committable);
  CommitResult Rename(const ManifestFile& file, const std::string& temp, const std::string& final_path);
  /// Whether `path` is that very file.
  arrow::Result<bool> IsThere(const ManifestFile& file, const std::string& path);

  FileSystem* const files_;
  const std::string directory_;
  const std::string single_name_;
  const std::string run_id_;
  const bool replace_;
};

}  // namespace headrace
