// The manifest of a directory result: the file that is written last and makes the directory a result. docs/formats/manifest.md is its
// document.
//
// Free functions and plain values, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type.h>

#include "headrace/base/error.h"
#include "headrace/base/file_system.h"

namespace headrace {

inline constexpr std::string_view kManifestName = "_headrace_manifest.json";
/// The version this release writes, and the only one so far.
inline constexpr int kManifestVersion = 1;
/// What is read of a manifest at most: about half a million files.
inline constexpr int64_t kMaxManifestBytes = int64_t{128} << 20;

struct ManifestFile {
  std::string name{};  // within the directory
  int64_t rows = 0;
  int64_t bytes = 0;
  std::string sha256{};  // lower-case hexadecimal

  bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
  std::string format{};  // "parquet"
  std::string job_name{};
  std::string run_id{};
  std::vector<ManifestFile> files{};  // in the order in which the job wrote them: within one writer, that of the rows
  int64_t total_rows = 0;
  int64_t total_bytes = 0;
  std::shared_ptr<arrow::Schema> schema{};
  std::map<std::string, std::string> facts{};  // of the job's report: session, snapshot time ...
};

/// The manifest as text, ending in a newline. UNIMPLEMENTED when the schema has a type that the type table does not know.
arrow::Result<std::string> ManifestToJson(const Manifest& manifest);
/// Checked throughout: version, names without a directory part, counts not negative, totals that add up. DATA_LOSS when it is damaged,
/// UNIMPLEMENTED naming both versions when it is of another version.
arrow::Result<Manifest> ManifestFromJson(std::string_view json, const std::string& path);

/// FAILED_PRECONDITION with the reason NOT_A_RESULT when the directory has no manifest.
arrow::Result<Manifest> ReadManifest(FileSystem* files, const std::string& directory);
/// That each of these files of a job is in `directory` and has its size; DATA_LOSS with the reason FILE_LOST when not. Reads none of them.
arrow::Status CheckFilesThere(FileSystem* files, const std::string& directory, const std::vector<ManifestFile>& list);
/// The same of the result that the run `run_id` of a job has finished: its manifest, and the files that this names.
arrow::Status CheckResultThere(FileSystem* files, const std::string& directory, const std::string& run_id);
/// Reads every file that the manifest names: DATA_LOSS when one is missing or has another size or SHA-256.
arrow::Status VerifyManifest(FileSystem* files, const std::string& directory, const Manifest& manifest);

}  // namespace headrace
