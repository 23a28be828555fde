#include "headrace/runtime/checkpoint_store.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/fail_point.h"

namespace headrace {
namespace {

constexpr std::string_view kPrefix = "chk-";
constexpr std::string_view kCommittedSuffix = ".committed";
constexpr std::string_view kLockName = "lock";
constexpr std::string_view kFinishedName = "finished";
constexpr size_t kDigits = 10;  // sorts by name; at one checkpoint a second enough for three hundred years

std::string NameOf(uint64_t checkpoint) { return fmt::format("{}{:010}", kPrefix, checkpoint); }

/// The number in "chk-NNNNNNNNNN" followed by `suffix`; nothing for any other name.
std::optional<uint64_t> NumberIn(std::string_view name, std::string_view suffix) {
  if (name.size() != kPrefix.size() + kDigits + suffix.size() || !name.starts_with(kPrefix) || !name.ends_with(suffix)) return std::nullopt;
  auto digits = name.substr(kPrefix.size(), kDigits);
  uint64_t number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

bool IsTemporary(std::string_view name) { return name.starts_with(".chk-") || name == ".finished.tmp"; }

arrow::Result<std::optional<StoredCheckpoint>> ReadNewestOnce(FileSystem* files, const std::string& directory) {
  ARROW_ASSIGN_OR_RAISE(auto there, files->Stat(directory));
  if (!there) return std::optional<StoredCheckpoint>();
  ARROW_ASSIGN_OR_RAISE(auto entries, files->List(directory));
  std::optional<uint64_t> newest;
  const FileEntry* newest_entry = nullptr;
  for (const auto& entry : entries) {
    auto number = NumberIn(entry.name, "");
    if (number && (!newest || *number > *newest)) {
      newest = number;
      newest_entry = &entry;
    }
  }
  if (!newest) return std::optional<StoredCheckpoint>();
  auto path = JoinPath(directory, newest_entry->name);
  if (newest_entry->size > kMaxCheckpointBytes) {
    return DamagedCheckpoint(path, fmt::format("it has {} bytes, a checkpoint at most {}", newest_entry->size, kMaxCheckpointBytes));
  }
  ARROW_ASSIGN_OR_RAISE(auto bytes, files->ReadAll(path, kMaxCheckpointBytes));
  StoredCheckpoint stored;
  ARROW_ASSIGN_OR_RAISE(stored.state, DecodeCheckpoint(bytes, path));
  if (stored.state.checkpoint != *newest) {
    return DamagedCheckpoint(path, fmt::format("it holds checkpoint {}: the file was renamed or copied", stored.state.checkpoint));
  }
  for (const auto& entry : entries) {
    if (NumberIn(entry.name, kCommittedSuffix) == newest) stored.committed = true;
    if (entry.name == kFinishedName) stored.finished = true;
  }
  return std::optional<StoredCheckpoint>(std::move(stored));
}

}  // namespace

arrow::Result<std::optional<StoredCheckpoint>> ReadNewestCheckpoint(FileSystem* files, const std::string& directory) {
  // Whoever looks without the lock may see a name that the running job removes before it is opened; a newer one is there by then.
  constexpr int kLooks = 5;
  for (int look = 1;; ++look) {
    auto stored = ReadNewestOnce(files, directory);
    if (look == kLooks) return stored;
    if (!stored.ok() && CodeOf(stored.status()) != Code::kNotFound) return stored;
    // The one that was listed may be gone before it is looked at, and then it looks as if there were none.
    if (stored.ok()) {
      if (stored->has_value()) return stored;
      ARROW_ASSIGN_OR_RAISE(auto lock, files->Stat(JoinPath(directory, kLockName)));
      if (!lock) return stored;
    }
  }
}

arrow::Result<std::unique_ptr<CheckpointStore>> CheckpointStore::Open(FileSystem* files, std::string directory) {
  ARROW_RETURN_NOT_OK(files->CreateDirectories(directory));
  auto lock = files->Lock(JoinPath(directory, kLockName));
  if (!lock.ok()) {
    return WithContext(lock.status(),
                       fmt::format("checkpoint directory {} (is the same job still running? wait for it or stop it first)", directory));
  }
  return std::unique_ptr<CheckpointStore>(new CheckpointStore(files, std::move(directory), std::move(*lock)));
}

arrow::Status CheckpointStore::RemoveLeftovers() {
  ARROW_ASSIGN_OR_RAISE(auto entries, files_->List(directory_));
  std::optional<uint64_t> committed;
  for (const auto& entry : entries) {
    if (IsTemporary(entry.name)) ARROW_RETURN_NOT_OK(files_->Remove(JoinPath(directory_, entry.name)));
    if (auto number = NumberIn(entry.name, kCommittedSuffix)) committed = std::max(committed.value_or(0), *number);
  }
  return committed ? RemoveOlderThan(*committed) : arrow::Status::OK();
}

arrow::Status CheckpointStore::Write(const CheckpointState& state) {
  ARROW_ASSIGN_OR_RAISE(auto bytes, EncodeCheckpoint(state));
  auto path = JoinPath(directory_, NameOf(state.checkpoint));
  ARROW_RETURN_NOT_OK(WithContext(WriteFileAtomically(
                                      files_, path, bytes, false, +[] { FailPoint("checkpoint.temp_written"); }),
                                  fmt::format("checkpoint {} was not written", state.checkpoint)));
  FailPoint("checkpoint.renamed");
  return arrow::Status::OK();
}

arrow::Status CheckpointStore::RecordCommitted(uint64_t checkpoint) {
  auto path = JoinPath(directory_, NameOf(checkpoint) + std::string(kCommittedSuffix));
  ARROW_RETURN_NOT_OK(WithContext(WriteFileAtomically(files_, path, fmt::format("headrace checkpoint {} committed\n", checkpoint), true),
                                  fmt::format("the commit of checkpoint {} was not recorded", checkpoint)));
  FailPoint("commit.recorded");
  return RemoveOlderThan(checkpoint);
}

arrow::Status CheckpointStore::RecordFinished(uint64_t checkpoint) {
  auto path = JoinPath(directory_, kFinishedName);
  return WithContext(WriteFileAtomically(files_, path, fmt::format("headrace job finished with checkpoint {}\n", checkpoint), true),
                     "the end of the job was not recorded");
}

arrow::Status CheckpointStore::RemoveUnplanned() {
  ARROW_RETURN_NOT_OK(files_->Remove(JoinPath(directory_, NameOf(0))));
  return files_->SyncDirectory(directory_);
}

arrow::Status CheckpointStore::RemoveOlderThan(uint64_t checkpoint) {
  ARROW_ASSIGN_OR_RAISE(auto entries, files_->List(directory_));
  for (const auto& entry : entries) {
    auto number = NumberIn(entry.name, "");
    if (!number) number = NumberIn(entry.name, kCommittedSuffix);
    if (number && *number < checkpoint) ARROW_RETURN_NOT_OK(files_->Remove(JoinPath(directory_, entry.name)));
  }
  return arrow::Status::OK();
}

}  // namespace headrace
