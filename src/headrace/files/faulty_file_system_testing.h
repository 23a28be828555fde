// A FileSystem for tests that lets the n-th operation fail, plays the death of the process at it, or fills the disk. Syncing is
// counted but not done: no test pulls the plug. One thread.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/file_system.h"

namespace headrace {

/// What happens at the operation.
enum class Fault {
  kError,        // it fails; the process goes on and may clean up
  kDeathBefore,  // it does not happen, nor anything after it
  kDeathAfter,   // it happens, nothing after it does
};

class FaultyFileSystem final : public FileSystem {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  explicit FaultyFileSystem(int64_t fault_at = kNever, Fault fault = Fault::kError) : fault_at_(fault_at), fault_(fault) {}

  /// Operations that change something, so far.
  int64_t operations() const { return operations_; }
  bool dead() const { return dead_; }
  /// Bytes that still fit on the disk.
  void set_room(int64_t bytes) { room_ = bytes; }
  /// What somebody else does just before a file gets the name.
  void set_before_rename(std::function<void(const std::string& to)> act) { before_rename_ = std::move(act); }

  arrow::Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    std::unique_ptr<WritableFile> file;
    ARROW_RETURN_NOT_OK(Do([&]() -> arrow::Status {
      ARROW_ASSIGN_OR_RAISE(file, real_->Create(path));
      return arrow::Status::OK();
    }));
    return std::make_unique<File>(this, std::move(file), path);
  }
  arrow::Result<std::string> ReadAll(const std::string& path, int64_t limit) override {
    ARROW_RETURN_NOT_OK(Alive());
    return real_->ReadAll(path, limit);
  }
  arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> Open(const std::string& path) override {
    ARROW_RETURN_NOT_OK(Alive());
    return real_->Open(path);
  }
  arrow::Status Rename(const std::string& from, const std::string& to, bool replace) override {
    if (before_rename_) before_rename_(to);
    return Do([&] { return real_->Rename(from, to, replace); });
  }
  arrow::Status SyncDirectory(const std::string& path) override {
    return Do([&] { return real_->List(path).status(); });
  }
  arrow::Result<std::vector<FileEntry>> List(const std::string& path) override {
    ARROW_RETURN_NOT_OK(Alive());
    return real_->List(path);
  }
  arrow::Result<std::optional<FileEntry>> Stat(const std::string& path) override {
    ARROW_RETURN_NOT_OK(Alive());
    return real_->Stat(path);
  }
  arrow::Status Remove(const std::string& path) override {
    return Do([&] { return real_->Remove(path); });
  }
  arrow::Status CreateDirectories(const std::string& path) override {
    return Do([&] { return real_->CreateDirectories(path); });
  }
  arrow::Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override { return real_->Lock(path); }

 private:
  class File final : public WritableFile {
   public:
    File(FaultyFileSystem* files, std::unique_ptr<WritableFile> file, std::string path)
        : files_(files), file_(std::move(file)), path_(std::move(path)) {}
    arrow::Status Write(const void* data, int64_t size) override {
      return files_->Do([&]() -> arrow::Status {
        if (size > files_->room_) {
          return MakeError({.code = Code::kResourceExhausted, .resource = path_, .reason = "DISK_FULL"},
                           "cannot write " + path_ + ": disk full");
        }
        files_->room_ -= size;
        return file_->Write(data, size);
      });
    }
    arrow::Status Sync() override {
      return files_->Do([] { return arrow::Status::OK(); });
    }
    arrow::Status Close() override {
      return files_->Do([&] { return file_->Close(); });
    }

   private:
    FaultyFileSystem* files_;
    std::unique_ptr<WritableFile> file_;
    std::string path_;
  };

  static arrow::Status Injected() {
    return MakeError({.code = Code::kUnknown, .service = "local files", .reason = "INJECTED"}, "injected fault");
  }
  arrow::Status Alive() const { return dead_ ? Injected() : arrow::Status::OK(); }

  template <typename Operation>
  arrow::Status Do(Operation operation) {
    ARROW_RETURN_NOT_OK(Alive());
    if (operations_++ != fault_at_) return operation();
    dead_ = fault_ != Fault::kError;
    if (fault_ == Fault::kDeathAfter) (void)operation();
    return Injected();
  }

  FileSystem* const real_ = LocalFileSystem();
  const int64_t fault_at_;
  const Fault fault_;
  std::function<void(const std::string& to)> before_rename_{};
  int64_t operations_ = 0;
  int64_t room_ = kNever;
  bool dead_ = false;
};

}  // namespace headrace
