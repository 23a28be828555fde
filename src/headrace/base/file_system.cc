#include "headrace/base/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <fmt/format.h>
#include <openssl/evp.h>

namespace headrace {
namespace {

arrow::Status SystemError(int error, std::string_view verb, const std::string& path) {
  ErrorInfo info{.code = Code::kUnknown, .service = "local files", .method = std::string(verb), .resource = path};
  const char* advice = "";
  switch (error) {
    case ENOENT:
      info.code = Code::kNotFound;
      break;
    case EEXIST:
    case ENOTEMPTY:
      info.code = Code::kAlreadyExists;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      info.code = Code::kPermissionDenied;
      break;
    case EISDIR:
      info.code = Code::kFailedPrecondition;
      info.reason = "IS_DIRECTORY";
      return MakeError(std::move(info), fmt::format("cannot {} {}: it is a directory, and a file is wanted here", verb, path));
    case ENOTDIR:
      info.code = Code::kFailedPrecondition;
      info.reason = "NOT_A_DIRECTORY";
      return MakeError(std::move(info),
                       fmt::format("cannot {} {}: it, or a part of its path, is a file, and a directory is wanted there", verb, path));
    case EMFILE:
    case ENFILE:
      info.code = Code::kResourceExhausted;
      info.reason = "TOO_MANY_FILES";
      advice = "; raise the limit (ulimit -n), or use fewer readers and writers";
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      info.code = Code::kResourceExhausted;
      info.reason = "DISK_FULL";
      advice = "; free some space and run again (a job with a checkpoint directory can be resumed)";
      break;
    default:
      break;
  }
  return MakeError(std::move(info), fmt::format("cannot {} {}: {}{}", verb, path, std::strerror(error), advice));
}

/// Of a file that is open: bytes can be read at any place of it.
arrow::Status CheckRandomAccess(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError(errno, "look at", path);
  if (S_ISDIR(info.st_mode)) return SystemError(EISDIR, "open", path);
  if (lseek(fd, 0, SEEK_CUR) >= 0) return arrow::Status::OK();
  return MakeError(
      {.code = Code::kFailedPrecondition, .service = "local files", .method = "open", .resource = path, .reason = "NOT_SEEKABLE"},
      fmt::format("{} is a pipe or a device, which is read from its beginning and once, and files are read in parts: read it as "
                  "standard input (-), or put its content into a file",
                  path));
}

class PosixFile final : public WritableFile {
 public:
  PosixFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixFile() override {
    if (fd_ >= 0) close(fd_);
  }
  arrow::Status Write(const void* data, int64_t size) override {
    const char* next = static_cast<const char*>(data);
    while (size > 0) {
      ssize_t done = write(fd_, next, static_cast<size_t>(size));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return SystemError(errno, "write", path_);
      next += done;
      size -= done;
    }
    return arrow::Status::OK();
  }
  arrow::Status Sync() override { return fsync(fd_) == 0 ? arrow::Status::OK() : SystemError(errno, "sync", path_); }
  arrow::Status Close() override {
    int result = close(std::exchange(fd_, -1));
    return result == 0 ? arrow::Status::OK() : SystemError(errno, "close", path_);
  }

 private:
  int fd_;
  std::string path_;
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(int fd) : fd_(fd) {}
  ~PosixLock() override { close(fd_); }

 private:
  int fd_;
};

class PosixFileSystem final : public FileSystem {
 public:
  arrow::Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return SystemError(errno, "create", path);
    return std::make_unique<PosixFile>(fd, path);
  }

  arrow::Result<std::string> ReadAll(const std::string& path, int64_t limit) override {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return SystemError(errno, "open", path);
    PosixLock closer(fd);
    std::string content;
    std::array<char, 65536> buffer;
    while (true) {
      ssize_t got = read(fd, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return SystemError(errno, "read", path);
      if (got == 0) return content;
      content.append(buffer.data(), static_cast<size_t>(got));
      if (static_cast<int64_t>(content.size()) > limit) {
        return MakeError({.code = Code::kResourceExhausted, .service = "local files", .resource = path},
                         fmt::format("{} is longer than the {} bytes that are read of such a file", path, limit));
      }
    }
  }

  arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> Open(const std::string& path) override {
    // Without waiting for somebody who writes into a pipe.
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return SystemError(errno, "open", path);
    auto status = CheckRandomAccess(fd, path);
    auto file = status.ok() ? arrow::io::ReadableFile::Open(fd) : arrow::Result<std::shared_ptr<arrow::io::ReadableFile>>(status);
    if (!file.ok()) close(fd);
    ARROW_RETURN_NOT_OK(file.status());
    return std::shared_ptr<arrow::io::RandomAccessFile>(*file);
  }

  arrow::Status Rename(const std::string& from, const std::string& to, bool replace) override {
    int result = replace ? rename(from.c_str(), to.c_str())
                         : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE));
    if (result != 0 && !replace && (errno == EINVAL || errno == ENOSYS)) {
      // A file system without RENAME_NOREPLACE: a hard link fails on an existing name just as atomically.
      if (link(from.c_str(), to.c_str()) != 0) return SystemError(errno, fmt::format("rename {} to", from), to);
      return unlink(from.c_str()) == 0 ? arrow::Status::OK() : SystemError(errno, "remove", from);
    }
    return result == 0 ? arrow::Status::OK() : SystemError(errno, fmt::format("rename {} to", from), to);
  }

  arrow::Status SyncDirectory(const std::string& path) override {
    int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return SystemError(errno, "open", path);
    PosixLock closer(fd);
    return fsync(fd) == 0 ? arrow::Status::OK() : SystemError(errno, "sync", path);
  }

  arrow::Result<std::vector<FileEntry>> List(const std::string& path) override {
    DIR* directory = opendir(path.c_str());
    if (directory == nullptr) return SystemError(errno, "list", path);
    std::vector<std::string> names;
    int error = 0;
    while (true) {
      errno = 0;  // null is the end, and a failure as well
      const dirent* entry = readdir(directory);
      error = errno;
      if (entry == nullptr) break;
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
    closedir(directory);
    if (error != 0) return SystemError(error, "list", path);
    std::sort(names.begin(), names.end());
    std::vector<FileEntry> entries;
    for (const auto& name : names) {
      ARROW_ASSIGN_OR_RAISE(auto entry, Stat(JoinPath(path, name)));
      if (entry) entries.push_back(std::move(*entry));
    }
    return entries;
  }

  arrow::Result<std::optional<FileEntry>> Stat(const std::string& path) override {
    struct stat info;
    // A link that leads nowhere, to itself, or where nobody may look is there all the same: nothing can be created under its name.
    if (stat(path.c_str(), &info) != 0 && lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return std::optional<FileEntry>();
      return SystemError(errno, "look at", path);
    }
    return std::optional<FileEntry>(FileEntry{BaseNameOf(path), static_cast<int64_t>(info.st_size), S_ISDIR(info.st_mode),
                                              int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec});
  }

  arrow::Status Remove(const std::string& path) override {
    if (remove(path.c_str()) != 0 && errno != ENOENT) return SystemError(errno, "remove", path);
    return arrow::Status::OK();
  }

  arrow::Status CreateDirectories(const std::string& path) override {
    for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      std::string part = path.substr(0, end);
      if (mkdir(part.c_str(), 0777) == 0) {
        ARROW_RETURN_NOT_OK(SyncDirectory(DirectoryOf(part)));  // a directory that a crash takes away takes all in it
      } else {
        int error = errno;
        struct stat info;
        bool is_directory = stat(part.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
        if (!is_directory) return SystemError(error == EEXIST ? ENOTDIR : error, "create directory", part);
      }
      if (end == std::string::npos) return arrow::Status::OK();
    }
  }

  arrow::Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return SystemError(errno, "open", path);
    auto lock = std::make_unique<PosixLock>(fd);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return std::unique_ptr<FileLock>(std::move(lock));
    if (errno != EWOULDBLOCK) return SystemError(errno, "lock", path);
    return MakeError({.code = Code::kUnavailable, .service = "local files", .resource = path, .reason = "LOCKED"},
                     fmt::format("{} is locked: another process is using it", path));
  }
};

/// Of an absolute path: see AbsolutePath.
std::string WithoutDots(std::string_view path) {
  std::string text;
  bool ends_open = false;  // in a slash, or in "." as its last part
  while (!path.empty()) {
    path.remove_prefix(path.front() == '/' ? 1 : 0);
    std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(part.size());
    ends_open = part.empty() || part == ".";
    if (!ends_open) text += fmt::format("/{}", part);
  }
  return ends_open || text.empty() ? text + "/" : text;
}

}  // namespace

FileSystem* LocalFileSystem() {
  static PosixFileSystem* files = new PosixFileSystem;
  return files;
}

std::string DirectoryOf(std::string_view path) {
  auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, std::max<size_t>(slash, 1)));
}

std::string BaseNameOf(std::string_view path) {
  auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  return fmt::format("{}{}{}", directory, directory.back() == '/' ? "" : "/", name);
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : WithoutDots(absolute.string());
}

arrow::Status WriteFileAtomically(FileSystem* files, const std::string& path, std::string_view content, bool replace, void (*after_temp)(),
                                  const std::string& temp_name) {
  std::string directory = DirectoryOf(path);
  std::string temp = JoinPath(directory, temp_name.empty() ? "." + BaseNameOf(path) + ".tmp" : temp_name);
  ARROW_RETURN_NOT_OK(files->Remove(temp));
  auto write = [&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto file, files->Create(temp));
    ARROW_RETURN_NOT_OK(file->Write(content.data(), static_cast<int64_t>(content.size())));
    ARROW_RETURN_NOT_OK(file->Sync());
    ARROW_RETURN_NOT_OK(file->Close());
    if (after_temp != nullptr) after_temp();
    return files->Rename(temp, path, replace);
  };
  if (auto status = write(); !status.ok()) {
    (void)files->Remove(temp);  // the first error is the one to report
    return status;
  }
  return files->SyncDirectory(directory);
}

struct HashingOutputStream::Hash {
  Hash() : context(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context, EVP_sha256(), nullptr); }
  ~Hash() { EVP_MD_CTX_free(context); }
  std::string Finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned int length = 0;
    EVP_DigestFinal_ex(context, digest.data(), &length);
    std::string text;
    for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }
  EVP_MD_CTX* context;
};

HashingOutputStream::HashingOutputStream(std::unique_ptr<WritableFile> file) : file_(std::move(file)), hash_(std::make_unique<Hash>()) {}
HashingOutputStream::~HashingOutputStream() = default;

arrow::Status HashingOutputStream::Write(const void* data, int64_t size) {
  if (file_ == nullptr) return arrow::Status::Invalid("write to a closed file");
  ARROW_RETURN_NOT_OK(file_->Write(data, size));
  EVP_DigestUpdate(hash_->context, data, static_cast<size_t>(size));
  written_ += size;
  return arrow::Status::OK();
}

arrow::Status HashingOutputStream::Close() {
  if (file_ == nullptr) return arrow::Status::OK();
  ARROW_RETURN_NOT_OK(file_->Sync());
  auto file = std::move(file_);
  return file->Close();
}

arrow::Status HashingOutputStream::Abort() {
  file_.reset();
  return arrow::Status::OK();
}

arrow::Result<std::string> HashingOutputStream::Sha256() {
  if (file_ != nullptr) return arrow::Status::Invalid("the hash is known once the file is closed");
  return hash_->Finish();
}

arrow::Result<std::string> Sha256OfFile(FileSystem* files, const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto file, files->Open(path));
  struct Discard final : WritableFile {
    arrow::Status Write(const void*, int64_t) override { return arrow::Status::OK(); }
    arrow::Status Sync() override { return arrow::Status::OK(); }
    arrow::Status Close() override { return arrow::Status::OK(); }
  };
  HashingOutputStream hash(std::make_unique<Discard>());
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto piece, file->Read(1 << 20));
    if (piece->size() == 0) break;
    ARROW_RETURN_NOT_OK(hash.Write(piece->data(), piece->size()));
  }
  ARROW_RETURN_NOT_OK(hash.Close());
  return hash.Sha256();
}

}  // namespace headrace
