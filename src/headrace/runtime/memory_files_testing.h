// A file system in memory that can fill up, die in the middle, and lose what was not synced. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "headrace/base/file_system.h"

namespace headrace::testing {

class MemoryFiles final : public FileSystem {
 public:
  arrow::Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  arrow::Result<std::string> ReadAll(const std::string& path, int64_t limit) override;
  arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> Open(const std::string& path) override;
  arrow::Status Rename(const std::string& from, const std::string& to, bool replace) override;
  arrow::Status SyncDirectory(const std::string& path) override;
  arrow::Result<std::vector<FileEntry>> List(const std::string& path) override;
  arrow::Result<std::optional<FileEntry>> Stat(const std::string& path) override;
  arrow::Status Remove(const std::string& path) override;
  arrow::Status CreateDirectories(const std::string& path) override;
  arrow::Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

  /// The n-th write from now (1 = the next) and `writes` - 1 after it fail with DISK_FULL; 0 = none does.
  void FillDiskAtWrite(int n, int writes = 1'000'000);
  /// The next `n` lists have nothing: what was in them was removed while they were made.
  void EmptyLists(int n);
  /// Nothing changes any more, every call fails: the process is dead.
  void Die();
  /// The machine is up again. With `power_lost`, what was not synced is gone.
  void Revive(bool power_lost);

  std::vector<std::string> Names(const std::string& directory);
  void Damage(const std::string& path, size_t offset);
  void Put(const std::string& path, const std::string& content);

 private:
  friend class MemoryFile;
  struct File {
    std::string content{};
    std::string synced{};
  };
  arrow::Status CheckAlive() const;

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<File>> files_;    // by path
  std::map<std::string, std::shared_ptr<File>> durable_;  // as of the last sync of their directory
  std::set<std::string> directories_;
  std::shared_ptr<std::set<std::string>> locks_ = std::make_shared<std::set<std::string>>();
  int empty_lists_ = 0;
  int writes_left_ = -1;  // until the disk is full; negative = it is not going to be
  int failures_left_ = 0;
  bool dead_ = false;
};

}  // namespace headrace::testing
