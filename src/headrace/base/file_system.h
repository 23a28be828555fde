// The seam to files: everything that Headrace persists or writes goes through a FileSystem, so that tests can fill a disk or lose a write.
//
// LocalFileSystem is the real one. All functions may be called from any thread; a WritableFile belongs to one thread at a time. Errors
// carry the path and the operating system's text; "no space left" has the code RESOURCE_EXHAUSTED and the reason DISK_FULL.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/io/interfaces.h>

#include "headrace/base/error.h"

namespace headrace {

class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes without syncing
  virtual arrow::Status Write(const void* data, int64_t size) = 0;
  virtual arrow::Status Sync() = 0;  // fsync
  virtual arrow::Status Close() = 0;
};

/// Held until destroyed, or until the process ends in any way.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

struct FileEntry {
  std::string name;  // within its directory
  int64_t size = 0;
  bool is_directory = false;
  int64_t modified_ns = 0;  // last change of the content, since 1970
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// A new file; ALREADY_EXISTS when there is one.
  virtual arrow::Result<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  /// The whole content; RESOURCE_EXHAUSTED when longer than `limit` bytes, NOT_FOUND when absent.
  virtual arrow::Result<std::string> ReadAll(const std::string& path, int64_t limit) = 0;
  virtual arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> Open(const std::string& path) = 0;
  /// Atomic. With `replace` an existing `to` is replaced, else it is ALREADY_EXISTS.
  virtual arrow::Status Rename(const std::string& from, const std::string& to, bool replace) = 0;
  /// fsync of a directory: makes renames and removals in it durable.
  virtual arrow::Status SyncDirectory(const std::string& path) = 0;
  /// Sorted by name; "." and ".." left out.
  virtual arrow::Result<std::vector<FileEntry>> List(const std::string& path) = 0;
  /// nullopt when there is nothing of that name.
  virtual arrow::Result<std::optional<FileEntry>> Stat(const std::string& path) = 0;
  /// A file, or an empty directory; removing what is not there is no error.
  virtual arrow::Status Remove(const std::string& path) = 0;
  /// With parents, each made durable; an existing directory is no error.
  virtual arrow::Status CreateDirectories(const std::string& path) = 0;
  /// Exclusive among processes and within this one; UNAVAILABLE at once, with the reason LOCKED, when somebody holds it. Makes the file.
  virtual arrow::Result<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

/// The operating system's files; never destroyed.
FileSystem* LocalFileSystem();

/// Directory part of a path ("." when it has none) and the last part.
std::string DirectoryOf(std::string_view path);
std::string BaseNameOf(std::string_view path);
std::string JoinPath(std::string_view directory, std::string_view name);
/// The path from the working directory on, without "." and empty parts; a slash at its end stays. ".." stays too: behind a symbolic link it
/// is not the part before it that it leads back to. No file is looked at. As it is when there is no working directory.
std::string AbsolutePath(const std::string& path);

/// Writes `content` to `path` so that a reader sees all of it or the old state: temporary name in the same directory, fsync, rename, fsync
/// of the directory. `after_temp`, when given, is called between the write and the rename (a fail point). `temp_name`: where two may write
/// the same file at once, each gives its own; empty = .NAME.tmp.
arrow::Status WriteFileAtomically(FileSystem* files, const std::string& path, std::string_view content, bool replace,
                                  void (*after_temp)() = nullptr, const std::string& temp_name = {});

/// An Arrow output stream over a WritableFile, which it owns; counts bytes and hashes them (SHA-256) as they pass.
class HashingOutputStream final : public arrow::io::OutputStream {
 public:
  explicit HashingOutputStream(std::unique_ptr<WritableFile> file);
  ~HashingOutputStream() override;
  arrow::Status Write(const void* data, int64_t size) override;
  using arrow::io::OutputStream::Write;
  arrow::Status Flush() override { return arrow::Status::OK(); }
  /// fsync, then close.
  arrow::Status Close() override;
  arrow::Status Abort() override;  // close without fsync
  arrow::Result<int64_t> Tell() const override { return written_; }
  bool closed() const override { return file_ == nullptr; }
  /// Lower-case hexadecimal SHA-256 of everything written; call once, after Close.
  arrow::Result<std::string> Sha256();

 private:
  struct Hash;
  std::unique_ptr<WritableFile> file_;
  std::unique_ptr<Hash> hash_;
  int64_t written_ = 0;
};

/// Lower-case hexadecimal SHA-256 of a file's content, read in pieces.
arrow::Result<std::string> Sha256OfFile(FileSystem* files, const std::string& path);

}  // namespace headrace
