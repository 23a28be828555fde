#include "headrace/runtime/memory_files_testing.h"

#include <utility>

#include <arrow/buffer.h>
#include <arrow/io/memory.h>

namespace headrace::testing {
namespace {

arrow::Status FileError(Code code, const std::string& path, std::string reason = "") {
  std::string text = path + ": " + std::string(CodeName(code));
  return MakeError({.code = code, .service = "local files", .resource = path, .reason = std::move(reason)}, text);
}

class MemoryLock final : public FileLock {
 public:
  MemoryLock(std::shared_ptr<std::set<std::string>> locks, std::string path) : locks_(std::move(locks)), path_(std::move(path)) {}
  ~MemoryLock() override { locks_->erase(path_); }

 private:
  std::shared_ptr<std::set<std::string>> locks_;
  std::string path_;
};

}  // namespace

class MemoryFile final : public WritableFile {
 public:
  MemoryFile(MemoryFiles* files, std::shared_ptr<MemoryFiles::File> file, std::string path)
      : files_(files), file_(std::move(file)), path_(std::move(path)) {}
  arrow::Status Write(const void* data, int64_t size) override {
    std::lock_guard<std::mutex> guard(files_->mutex_);
    ARROW_RETURN_NOT_OK(files_->CheckAlive());
    if (files_->writes_left_ == 0 && files_->failures_left_-- > 0) return FileError(Code::kResourceExhausted, path_, "DISK_FULL");
    if (files_->writes_left_ > 0) --files_->writes_left_;
    file_->content.append(static_cast<const char*>(data), static_cast<size_t>(size));
    return arrow::Status::OK();
  }
  arrow::Status Sync() override {
    std::lock_guard<std::mutex> guard(files_->mutex_);
    ARROW_RETURN_NOT_OK(files_->CheckAlive());
    file_->synced = file_->content;
    return arrow::Status::OK();
  }
  arrow::Status Close() override { return arrow::Status::OK(); }

 private:
  MemoryFiles* files_;
  std::shared_ptr<MemoryFiles::File> file_;
  std::string path_;
};

arrow::Status MemoryFiles::CheckAlive() const { return dead_ ? arrow::Status::IOError("the process is dead") : arrow::Status::OK(); }

arrow::Result<std::unique_ptr<WritableFile>> MemoryFiles::Create(const std::string& path) {
  std::lock_guard<std::mutex> guard(mutex_);
  ARROW_RETURN_NOT_OK(CheckAlive());
  if (files_.contains(path)) return FileError(Code::kAlreadyExists, path);
  auto file = std::make_shared<File>();
  files_[path] = file;
  return std::make_unique<MemoryFile>(this, std::move(file), path);
}

arrow::Result<std::string> MemoryFiles::ReadAll(const std::string& path, int64_t limit) {
  std::lock_guard<std::mutex> guard(mutex_);
  auto found = files_.find(path);
  if (found == files_.end()) return FileError(Code::kNotFound, path);
  if (static_cast<int64_t>(found->second->content.size()) > limit) return FileError(Code::kResourceExhausted, path);
  return found->second->content;
}

arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> MemoryFiles::Open(const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto content, ReadAll(path, INT64_MAX));
  return std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(std::move(content)));
}

arrow::Status MemoryFiles::Rename(const std::string& from, const std::string& to, bool replace) {
  std::lock_guard<std::mutex> guard(mutex_);
  ARROW_RETURN_NOT_OK(CheckAlive());
  if (!replace && files_.contains(to)) return FileError(Code::kAlreadyExists, to);
  auto found = files_.find(from);
  if (found == files_.end()) return FileError(Code::kNotFound, from);
  files_[to] = found->second;
  files_.erase(from);
  return arrow::Status::OK();
}

arrow::Status MemoryFiles::SyncDirectory(const std::string& path) {
  std::lock_guard<std::mutex> guard(mutex_);
  ARROW_RETURN_NOT_OK(CheckAlive());
  std::erase_if(durable_, [&](const auto& entry) { return DirectoryOf(entry.first) == path; });
  for (const auto& [name, file] : files_) {
    if (DirectoryOf(name) == path) durable_[name] = file;
  }
  return arrow::Status::OK();
}

arrow::Result<std::vector<FileEntry>> MemoryFiles::List(const std::string& path) {
  std::lock_guard<std::mutex> guard(mutex_);
  std::vector<FileEntry> entries;
  if (empty_lists_ > 0) {
    --empty_lists_;
    return entries;
  }
  for (const auto& [name, file] : files_) {
    if (DirectoryOf(name) == path) entries.push_back({BaseNameOf(name), static_cast<int64_t>(file->content.size()), false});
  }
  return entries;
}

arrow::Result<std::optional<FileEntry>> MemoryFiles::Stat(const std::string& path) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (directories_.contains(path)) return std::optional<FileEntry>({BaseNameOf(path), 0, true});
  auto found = files_.find(path);
  if (found == files_.end() && locks_->contains(path)) return std::optional<FileEntry>({BaseNameOf(path), 0, false});
  if (found == files_.end()) return std::optional<FileEntry>();
  return std::optional<FileEntry>({BaseNameOf(path), static_cast<int64_t>(found->second->content.size()), false});
}

arrow::Status MemoryFiles::Remove(const std::string& path) {
  std::lock_guard<std::mutex> guard(mutex_);
  ARROW_RETURN_NOT_OK(CheckAlive());
  files_.erase(path);
  return arrow::Status::OK();
}

arrow::Status MemoryFiles::CreateDirectories(const std::string& path) {
  std::lock_guard<std::mutex> guard(mutex_);
  ARROW_RETURN_NOT_OK(CheckAlive());
  directories_.insert(path);
  return arrow::Status::OK();
}

arrow::Result<std::unique_ptr<FileLock>> MemoryFiles::Lock(const std::string& path) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!locks_->insert(path).second) return FileError(Code::kUnavailable, path, "LOCKED");
  return std::make_unique<MemoryLock>(locks_, path);
}

void MemoryFiles::EmptyLists(int n) {
  std::lock_guard<std::mutex> guard(mutex_);
  empty_lists_ = n;
}

void MemoryFiles::FillDiskAtWrite(int n, int writes) {
  std::lock_guard<std::mutex> guard(mutex_);
  writes_left_ = n - 1;
  failures_left_ = writes;
}

void MemoryFiles::Die() {
  std::lock_guard<std::mutex> guard(mutex_);
  dead_ = true;
}

void MemoryFiles::Revive(bool power_lost) {
  std::lock_guard<std::mutex> guard(mutex_);
  dead_ = false;
  if (!power_lost) return;
  files_.clear();
  for (auto& [name, file] : durable_) files_[name] = std::make_shared<File>(File{file->synced, file->synced});
  durable_ = files_;
}

std::vector<std::string> MemoryFiles::Names(const std::string& directory) {
  std::vector<std::string> names;
  for (auto& entry : *List(directory)) names.push_back(entry.name);
  return names;
}

void MemoryFiles::Damage(const std::string& path, size_t offset) {
  std::lock_guard<std::mutex> guard(mutex_);
  files_.at(path)->content.at(offset) ^= 1;
}

void MemoryFiles::Put(const std::string& path, const std::string& content) {
  std::lock_guard<std::mutex> guard(mutex_);
  files_[path] = std::make_shared<File>(File{content, content});
}

}  // namespace headrace::testing
