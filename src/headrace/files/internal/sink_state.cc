#include "headrace/files/internal/sink_state.h"

#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "headrace/files/internal/part_name.h"
#include "headrace/files/state.pb.h"

namespace headrace {
namespace {

constexpr size_t kSha256Bytes = 32;

arrow::Status Corrupt(std::string_view what, std::string_view why) {
  return MakeError({.code = Code::kDataLoss, .service = "file sink", .resource = std::string(what), .reason = "CORRUPT_STATE"},
                   fmt::format("the {} in the checkpoint is damaged: {}", what, why));
}

template <typename Message>
arrow::Result<Message> Parse(std::string_view bytes, std::string_view what) {
  Message message;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Corrupt(what, "not a message of the right kind");
  }
  if (message.version() == 0) return Corrupt(what, "it has no version");
  if (message.version() != kSinkStateVersion) {
    return Unsupported(std::string(what),
                       fmt::format("the {} in the checkpoint has version {}, this program reads version {}: go on with the "
                                   "release that wrote it",
                                   what, message.version(), kSinkStateVersion));
  }
  return message;
}

std::string FromHex(std::string_view hex) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  return bytes;
}

std::string ToHex(std::string_view bytes) {
  std::string hex;
  for (char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

void Fill(const ManifestFile& file, files::PartFile* part) {
  part->set_name(file.name);
  part->set_bytes(file.bytes);
  part->set_sha256(FromHex(file.sha256));
  part->set_rows(file.rows);
}

arrow::Result<ManifestFile> FileOf(const files::PartFile& part, std::string_view what) {
  if (part.name().empty() || part.name().find('/') != std::string::npos)
    return Corrupt(what, "a file without a name, or with a directory in it");
  if (part.bytes() < 0 || part.rows() < 0) return Corrupt(what, "a negative size");
  if (part.sha256().size() != kSha256Bytes) return Corrupt(what, "a SHA-256 that has not 32 bytes");
  return ManifestFile{part.name(), part.rows(), part.bytes(), ToHex(part.sha256())};
}

}  // namespace

std::string EncodeCommittable(const ManifestFile& file) {
  files::FileCommittable message;
  message.set_version(kSinkStateVersion);
  Fill(file, message.mutable_file());
  return message.SerializeAsString();
}

std::string EncodeWriterState(const std::vector<ManifestFile>& list) {
  files::FileWriterState message;
  message.set_version(kSinkStateVersion);
  for (const auto& file : list) Fill(file, message.add_files());
  return message.SerializeAsString();
}

std::string EncodeJobState(const FileJobState& state) {
  files::FileJobState message;
  message.set_version(kSinkStateVersion);
  message.set_directory_created(state.directory_created);
  message.set_replaced_run_id(state.replaced_run_id);
  for (const auto& name : state.replaced_files) message.add_replaced_files(name);
  return message.SerializeAsString();
}

arrow::Result<ManifestFile> DecodeCommittable(std::string_view bytes) {
  ARROW_ASSIGN_OR_RAISE(auto message, Parse<files::FileCommittable>(bytes, "file committable"));
  return FileOf(message.file(), "file committable");
}

arrow::Result<std::vector<ManifestFile>> DecodeWriterState(std::string_view bytes) {
  ARROW_ASSIGN_OR_RAISE(auto message, Parse<files::FileWriterState>(bytes, "file writer state"));
  std::vector<ManifestFile> list;
  for (const auto& part : message.files()) {
    ARROW_ASSIGN_OR_RAISE(auto file, FileOf(part, "file writer state"));
    list.push_back(std::move(file));
  }
  return list;
}

arrow::Result<FileJobState> DecodeJobState(std::string_view bytes) {
  ARROW_ASSIGN_OR_RAISE(auto message, Parse<files::FileJobState>(bytes, "file job state"));
  return FileJobState{.directory_created = message.directory_created(),
                      .replaced_run_id = message.replaced_run_id(),
                      .replaced_files = {message.replaced_files().begin(), message.replaced_files().end()}};
}

arrow::Result<std::vector<ManifestFile>> FilesOfStates(const std::vector<std::string>& writer_states) {
  std::map<std::string, ManifestFile, PartOrder> by_name;
  for (const auto& state : writer_states) {
    ARROW_ASSIGN_OR_RAISE(auto list, DecodeWriterState(state));
    for (auto& file : list) {
      auto [found, added] = by_name.try_emplace(file.name, file);
      if (!added && found->second != file)
        return Corrupt("file writer state", fmt::format("it names {} twice, as different files", file.name));
    }
  }
  std::vector<ManifestFile> all;
  for (auto& [name, file] : by_name) all.push_back(std::move(file));
  return all;
}

}  // namespace headrace
