#include "headrace/files/internal/file_list.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "headrace/files/internal/part_name.h"

namespace headrace {
namespace {

arrow::Status Refused(Code code, std::string reason, const std::string& path, std::string message) {
  return MakeError({.code = code, .service = "local files", .resource = path, .reason = std::move(reason)}, std::move(message));
}

bool IsPattern(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

/// Names that directories have for their own purposes; the convention of Hadoop and of everybody since.
bool IsHidden(std::string_view name) { return name.starts_with('.') || name.starts_with('_'); }

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// `format` is what the option says, if anything.
arrow::Result<FileIdentity> IdentityOf(const std::string& path, const FileEntry& entry, std::optional<FileFormat> format) {
  auto kind = FileKindOfName(path);
  // A name that says another format than the option: the option decides, the name's end is then no more than an end.
  if (format && (!kind || kind->format != *format)) {
    const bool text = *format == FileFormat::kCsv || *format == FileFormat::kNdjson;
    kind = FileKind{.format = *format, .compression = text ? FileCompressionOfName(path) : FileCompression::kNone};
  }
  if (!kind && path.ends_with(".zip")) {
    return Refused(Code::kUnimplemented, "UNSUPPORTED", path,
                   fmt::format("{} is a zip archive, which is not read: unzip it and give the .csv or .parquet file in it", path));
  }
  if (!kind) {
    return Refused(Code::kUnimplemented, "UNSUPPORTED", path,
                   fmt::format("{}: the format is not known by its name; .parquet, .arrow, .feather, .arrows, .csv, .ndjson, .jsonl, .json "
                               "(text also with .gz or .zst) and .avro are, and the option from_format says it for other names",
                               path));
  }
  return FileIdentity{.path = path, .kind = *kind, .size = entry.size, .modified_ns = entry.modified_ns};
}

/// Not in a directory with a manifest: the names that a job of ours gives before its result is one.
bool LooksUnfinished(std::string_view name) {
  if (IsPartName(name)) return true;
  return name.starts_with('.') && name.ends_with(".tmp") && IsPartName(name.substr(1, name.size() - 1 - std::string_view(".tmp").size()));
}

arrow::Status ListResult(const FileAccess& access, const std::string& path, FileList* list) {
  ARROW_ASSIGN_OR_RAISE(auto manifest, ReadManifest(access.files, path));
  const auto format = FileFormatFromName(manifest.format);
  if (!format) {
    return Refused(
        Code::kUnimplemented, "UNSUPPORTED", path,
        fmt::format("the manifest of {} says the format {}, which is not read: {} are", path, manifest.format, FileFormatNames()));
  }
  for (const auto& file : manifest.files) {
    const std::string part = JoinPath(path, file.name);
    ARROW_ASSIGN_OR_RAISE(auto entry, access.files->Stat(part));
    if (!entry || entry->size != file.bytes) {
      return Refused(Code::kDataLoss, "FILE_DIFFERS", part,
                     fmt::format("{} is {}, the manifest says {} bytes: the result is damaged; restore the file, or write the result anew",
                                 part, entry ? fmt::format("{} bytes long", entry->size) : "missing", file.bytes));
    }
    ARROW_ASSIGN_OR_RAISE(auto identity, IdentityOf(part, *entry, format));
    list->files.push_back(std::move(identity));
  }
  list->manifest = std::move(manifest);
  return arrow::Status::OK();
}

arrow::Status ListDirectory(const FileAccess& access, const std::string& path, std::optional<FileFormat> format, FileList* list) {
  ARROW_ASSIGN_OR_RAISE(auto entries, access.files->List(path));
  const bool is_result = std::any_of(entries.begin(), entries.end(), [](const auto& entry) { return entry.name == kManifestName; });
  if (is_result) return ListResult(access, path, list);
  for (const auto& entry : entries) {
    if (LooksUnfinished(entry.name)) return ReadManifest(access.files, path).status();  // NOT_A_RESULT, and what to do
  }
  for (const auto& entry : entries) {
    if (IsHidden(entry.name)) continue;
    const auto kind = FileKindOfName(entry.name);
    if (entry.is_directory || !kind || (format && kind->format != *format)) {
      list->not_read.push_back(JoinPath(path, entry.name));
      continue;
    }
    ARROW_ASSIGN_OR_RAISE(auto identity, IdentityOf(JoinPath(path, entry.name), entry, format));
    list->files.push_back(std::move(identity));
  }
  if (!list->files.empty()) return arrow::Status::OK();
  return Refused(Code::kNotFound, "NO_FILES", path,
                 fmt::format("the directory {} has no manifest and no {}files{}", path,
                             format ? fmt::format("{} ", FileFormatName(*format)) : "", format ? "" : " of a known format"));
}

/// What a pattern passes over as a shell does: what is no directory has no files. Any other directory that cannot be read may have some.
bool IsNoDirectory(const arrow::Status& status) {
  const ErrorInfo* info = GetErrorInfo(status);
  return info != nullptr && (info->code == Code::kNotFound || info->reason == "NOT_A_DIRECTORY");
}

/// The paths that match, sorted; part after part of the pattern.
arrow::Result<std::vector<std::string>> Expand(FileSystem* files, const std::string& pattern) {
  std::vector<std::string> found = {pattern.starts_with('/') ? "/" : ""};
  size_t begin = pattern.find_first_not_of('/');
  while (begin != std::string::npos) {
    const size_t end = pattern.find('/', begin);
    const std::string part = pattern.substr(begin, end == std::string::npos ? end : end - begin);
    begin = end == std::string::npos ? end : pattern.find_first_not_of('/', end);
    std::vector<std::string> next;
    for (const auto& directory : found) {
      if (!IsPattern(part)) {
        ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(JoinPath(directory, part)));
        if (entry) next.push_back(JoinPath(directory, part));
        continue;
      }
      auto entries = files->List(directory.empty() ? "." : directory);
      if (IsNoDirectory(entries.status())) continue;
      ARROW_RETURN_NOT_OK(entries.status());
      for (const auto& entry : *entries) {
        if (fnmatch(part.c_str(), entry.name.c_str(), FNM_PERIOD) == 0) next.push_back(JoinPath(directory, entry.name));
      }
    }
    found = std::move(next);
  }
  std::sort(found.begin(), found.end());
  return found;
}

arrow::Status ListPattern(const FileAccess& access, const std::string& pattern, std::optional<FileFormat> format, FileList* list) {
  ARROW_ASSIGN_OR_RAISE(auto paths, Expand(access.files, pattern));
  for (const auto& path : paths) {
    ARROW_ASSIGN_OR_RAISE(auto entry, access.files->Stat(path));
    if (!entry || entry->is_directory) {
      list->not_read.push_back(path);
      continue;
    }
    ARROW_ASSIGN_OR_RAISE(auto identity, IdentityOf(path, *entry, format));
    list->files.push_back(std::move(identity));
  }
  if (!list->files.empty()) return arrow::Status::OK();
  return Refused(Code::kNotFound, "NO_FILES", pattern, fmt::format("no file matches {}", pattern));
}

arrow::Status ListPath(const FileAccess& access, const std::string& given, bool alone, FileList* list) {
  const auto format = FileFormatFromName(access.options->from_format);
  const std::string path = WithoutSlashes(given);
  ARROW_ASSIGN_OR_RAISE(auto entry, access.files->Stat(path));
  if (!entry && IsPattern(path)) return ListPattern(access, path, format, list);
  if (!entry) return Refused(Code::kNotFound, "NO_FILES", path, fmt::format("{} does not exist", path));
  if (entry->is_directory && !alone) {
    return Refused(Code::kInvalidArgument, "IS_DIRECTORY", path, fmt::format("{} is a directory, and a list is of files", path));
  }
  if (entry->is_directory) return ListDirectory(access, path, format, list);
  ARROW_ASSIGN_OR_RAISE(auto identity, IdentityOf(path, *entry, format));
  list->files.push_back(std::move(identity));
  return arrow::Status::OK();
}

arrow::Status CheckFiles(const FileList& list) {
  std::set<std::string_view> paths;
  for (const auto& file : list.files) {
    if (!paths.insert(file.path).second) {
      return Refused(Code::kInvalidArgument, "FILE_TWICE", file.path,
                     fmt::format("{} is named twice: its rows would be doubled", file.path));
    }
    if (file.kind.format == list.files.front().kind.format) continue;
    return Refused(
        Code::kInvalidArgument, "SEVERAL_FORMATS", file.path,
        fmt::format("{} is {} and {} is {}: the files of a source have one format; the option from_format chooses one",
                    list.files.front().path, FileFormatName(list.files.front().kind.format), file.path, FileFormatName(file.kind.format)));
  }
  return arrow::Status::OK();
}

}  // namespace

arrow::Result<FileList> ListFiles(const FileAccess& access) {
  const auto& options = *access.options;
  FileList list;
  if (options.paths.size() == 1 && options.paths.front() == "-") {
    list.files.push_back({.path = "-", .kind = {.format = *FileFormatFromName(options.from_format)}});  // checked by Make
    return list;
  }
  for (const auto& path : options.paths) ARROW_RETURN_NOT_OK(ListPath(access, path, options.paths.size() == 1, &list));
  ARROW_RETURN_NOT_OK(CheckFiles(list));
  return list;
}

arrow::Status CheckUnchanged(FileSystem* files, const FileIdentity& planned) {
  if (planned.path == "-") return arrow::Status::OK();
  ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(planned.path));
  if (entry && entry->size == planned.size && entry->modified_ns == planned.modified_ns) return arrow::Status::OK();
  return Refused(Code::kFailedPrecondition, "FILE_CHANGED", planned.path,
                 fmt::format("{} {} since the read was planned: its rows may be other ones now. Start the read anew", planned.path,
                             entry ? "was changed" : "was removed"));
}

}  // namespace headrace
