// What the file sink persists, as plain values, and its bytes. Free functions, any thread. state.proto has the wire form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/files/manifest.h"

namespace headrace {

/// The version of every message that this release writes, and the only one so far.
inline constexpr uint32_t kSinkStateVersion = 1;

struct FileJobState {
  bool directory_created = false;
  std::string replaced_run_id{};
  std::vector<std::string> replaced_files{};
};

std::string EncodeCommittable(const ManifestFile& file);
std::string EncodeWriterState(const std::vector<ManifestFile>& files);
std::string EncodeJobState(const FileJobState& state);

/// DATA_LOSS for bytes that are no such message, UNIMPLEMENTED naming both versions for those of another version.
arrow::Result<ManifestFile> DecodeCommittable(std::string_view bytes);
arrow::Result<std::vector<ManifestFile>> DecodeWriterState(std::string_view bytes);
arrow::Result<FileJobState> DecodeJobState(std::string_view bytes);

/// Every file that the states name, in PartOrder; DATA_LOSS when two of them say different things of one file.
arrow::Result<std::vector<ManifestFile>> FilesOfStates(const std::vector<std::string>& writer_states);

}  // namespace headrace
