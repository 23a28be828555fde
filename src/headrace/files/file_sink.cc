#include "headrace/files/file_sink.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/fail_point.h"
#include "headrace/files/internal/file_committer.h"
#include "headrace/files/internal/file_encoding.h"
#include "headrace/files/internal/file_writer.h"
#include "headrace/files/internal/output_file.h"
#include "headrace/files/internal/part_name.h"
#include "headrace/files/internal/sink_state.h"
#include "headrace/files/internal/standard_stream.h"
#include "headrace/files/internal/target.h"
#include "headrace/files/manifest.h"

namespace headrace {
namespace {

Target TargetOf(const FileSinkOptions& options, bool single_file, const SinkContext& context) {
  return {.path = options.path,
          .single_file = single_file,
          .overwrite = options.overwrite,
          .run_id = context.run_id,
          .checkpoint_directory = context.checkpoint_directory};
}

/// Removes everything that `removable` says; syncs the directory when anything went.
template <typename Predicate>
arrow::Status RemoveFiles(FileSystem* files, const std::string& directory, Predicate removable) {
  ARROW_ASSIGN_OR_RAISE(auto entries, files->List(directory));
  bool any = false;
  for (const auto& entry : entries) {
    if (entry.is_directory || !removable(entry.name)) continue;
    ARROW_RETURN_NOT_OK(files->Remove(JoinPath(directory, entry.name)));
    any = true;
  }
  return any ? files->SyncDirectory(directory) : arrow::Status::OK();
}

/// The names in the directory's manifest when this very job wrote it; nothing else.
arrow::Result<std::set<std::string>> NamesInOwnManifest(FileSystem* files, const std::string& directory, const std::string& run_id) {
  std::set<std::string> names;
  ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(JoinPath(directory, kManifestName)));
  if (!entry) return names;
  ARROW_ASSIGN_OR_RAISE(auto manifest, ReadManifest(files, directory));
  if (manifest.run_id != run_id) return names;
  for (const auto& file : manifest.files) names.insert(file.name);
  return names;
}

/// An empty table still has all its columns: a file without rows.
arrow::Result<ManifestFile> WriteEmptyFile(FileSystem* files, const std::string& directory, const std::string& name,
                                           const std::string& temp_name, const std::shared_ptr<arrow::Schema>& schema,
                                           const FileEncoding& encoding, bool replace) {
  const std::string temp = JoinPath(directory, temp_name);
  ARROW_RETURN_NOT_OK(files->Remove(temp));
  ARROW_ASSIGN_OR_RAISE(auto file, OutputFile::Create(files, temp, schema, encoding));
  ARROW_ASSIGN_OR_RAISE(auto written, file->Close());
  ARROW_RETURN_NOT_OK(files->Rename(temp, JoinPath(directory, name), replace));
  FailPoint("file.renamed");
  ARROW_RETURN_NOT_OK(files->SyncDirectory(directory));
  written.name = name;
  return written;
}

arrow::Status WriteEmptyOutput(int descriptor, const std::shared_ptr<arrow::Schema>& schema, const FileEncoding& encoding) {
  ARROW_ASSIGN_OR_RAISE(auto file, OutputFile::Over(OpenOutputDescriptor(descriptor), schema, encoding));
  return file->Close().status();
}

/// The manifest may only replace none, the one that Prepare saw, or that of an earlier Finish of this job.
arrow::Result<bool> HasManifestToReplace(FileSystem* files, const std::string& directory, const std::string& run_id,
                                         const FileJobState& state) {
  ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(JoinPath(directory, kManifestName)));
  if (!entry) return false;
  ARROW_ASSIGN_OR_RAISE(auto manifest, ReadManifest(files, directory));
  if (manifest.run_id == run_id || (!state.replaced_run_id.empty() && manifest.run_id == state.replaced_run_id)) return true;
  return MakeError({.code = Code::kAlreadyExists, .service = "local files", .resource = directory, .reason = "TARGET_EXISTS"},
                   fmt::format("another job (run {}) has finished in {} while this one ran: its result is left as it is, and the files "
                               "part-{}-* are not part of a result",
                               manifest.run_id, directory, run_id));
}

}  // namespace

arrow::Result<std::shared_ptr<const FileSink>> FileSink::Make(FileSinkOptions options) {
  if (options.path.empty()) return InvalidOption("path", "the target has no path");
  if (options.max_file_bytes < 0) return InvalidOption("max_file_bytes", "max_file_bytes must be 0 (no bound) or more");
  bool directory = options.path.back() == '/';
  while (options.path.size() > 1 && options.path.back() == '/') options.path.pop_back();
  directory = (directory || !HasExtension(BaseNameOf(options.path))) && options.path != "-";
  ARROW_ASSIGN_OR_RAISE(auto kind, KindOfOptions(options, !directory));
  ARROW_ASSIGN_OR_RAISE(auto encoding, EncodingOfOptions(options, kind, !directory, 0));
  if (!directory && options.max_file_bytes > 0) {
    return InvalidOption("max_file_bytes", fmt::format("max_file_bytes applies to a directory, and {} is {}", options.path,
                                                       options.path == "-" ? "standard output" : "a single file"));
  }
  if (options.path == "-" && options.overwrite)
    return InvalidOption("overwrite", "overwrite does nothing here: the target is standard output");
  return std::shared_ptr<const FileSink>(new FileSink(std::move(options), !directory, encoding.kind));
}

Lineage FileSink::lineage() const {
  if (standard_output()) return {.datasets = {{.namespace_name = "file", .name = "-"}}};
  // Only the process's working directory is asked, no file.
  std::error_code ignored;
  auto path = std::filesystem::absolute(options_.path, ignored).lexically_normal().string();
  return {.datasets = {{.namespace_name = "file", .name = path.empty() ? options_.path : path}}};
}

int FileSink::max_writers() const { return single_file_ ? 1 : 0; }

arrow::Status FileSink::SupportsCheckpoints() const {
  if (!single_file_) return arrow::Status::OK();
  if (standard_output()) {
    return InvalidOption("checkpoint",
                         "what went to standard output cannot be continued after a checkpoint: write to a directory (./name/) "
                         "instead, or leave the checkpoint out");
  }
  const std::string name = BaseNameOf(options_.path);
  const std::string directory = options_.path.substr(0, options_.path.size() - name.size() + name.find('.', 1));
  return InvalidOption("checkpoint",
                       fmt::format("{} is a single file, which cannot be continued after a checkpoint: write to the directory {}/ "
                                   "instead, or leave the checkpoint out",
                                   options_.path, directory));
}

std::map<std::string, std::string> FileSink::facts(std::string_view /*job_state*/) const {
  if (standard_output()) return {{"output", "standard output"}};
  // A checkpoint and the manifest keep them, and are read where the working directory is another one.
  const std::string path = AbsolutePath(options_.path);
  if (single_file_) return {{"output", path}};
  return {{"output", JoinPath(path, "")}, {"manifest", JoinPath(path, kManifestName)}};
}

arrow::Status FileSink::Check(const SinkContext& context) const {
  if (standard_output()) return arrow::Status::OK();
  return LookAtTarget(context.files, TargetOf(options_, single_file_, context)).status();
}

arrow::Result<std::string> FileSink::Prepare(const SinkContext& context, const std::shared_ptr<arrow::Schema>& schema) const {
  ARROW_ASSIGN_OR_RAISE(auto encoding, EncodingOfOptions(options_, kind_, single_file_, 0));
  ARROW_RETURN_NOT_OK(CheckFormatSchema(encoding, *schema));
  if (standard_output()) return EncodeJobState({});
  ARROW_ASSIGN_OR_RAISE(auto found, LookAtTarget(context.files, TargetOf(options_, single_file_, context)));
  FileJobState state;
  if (found.replaced) {
    state.replaced_run_id = found.replaced->run_id;
    for (const auto& file : found.replaced->files) state.replaced_files.push_back(file.name);
  }
  if (!single_file_ && !found.exists) {
    state.directory_created = true;
    ARROW_RETURN_NOT_OK(context.files->CreateDirectories(options_.path));
    ARROW_RETURN_NOT_OK(context.files->SyncDirectory(DirectoryOf(options_.path)));
  }
  return EncodeJobState(state);
}

arrow::Result<std::unique_ptr<SinkWriter>> FileSink::CreateWriter(const SinkContext& context, std::string_view job_state,
                                                                  const std::shared_ptr<arrow::Schema>& schema) const {
  return RestoreWriter(context, job_state, schema, {});
}

arrow::Result<std::unique_ptr<SinkWriter>> FileSink::RestoreWriter(const SinkContext& context, std::string_view /*job_state*/,
                                                                   const std::shared_ptr<arrow::Schema>& schema,
                                                                   const std::vector<std::string>& states) const {
  ARROW_ASSIGN_OR_RAISE(auto encoding, EncodingOfOptions(options_, kind_, single_file_, context.writer_memory));
  ARROW_RETURN_NOT_OK(CheckFormatSchema(encoding, *schema));
  // A single file, and a table that is read as one stream, have one writer for all cores.
  if (context.writers > 0) encoding.column_threads = static_cast<int>(std::thread::hardware_concurrency()) / context.writers;
  ARROW_ASSIGN_OR_RAISE(auto inherited, FilesOfStates(states));
  FileWriterSettings settings{.directory = directory(),
                              .single_name = single_name(),
                              .extension = std::string(ExtensionOf(kind_)),
                              .output_descriptor = standard_output() ? options_.output_descriptor : -1,
                              .run_id = context.run_id,
                              .writer_index = context.writer_index,
                              .first_checkpoint = context.first_checkpoint,
                              .max_file_bytes = options_.max_file_bytes,
                              .encoding = std::move(encoding)};
  return std::make_unique<FileSinkWriter>(context.files, std::move(settings), schema, std::move(inherited));
}

arrow::Result<std::unique_ptr<Committer>> FileSink::CreateCommitter(const SinkContext& context, std::string_view /*job_state*/) const {
  return std::make_unique<FileCommitter>(context.files, directory(), single_name(), context.run_id, single_file_ && options_.overwrite);
}

arrow::Status FileSink::RemoveOrphans(const SinkContext& context, std::string_view /*job_state*/,
                                      const std::vector<std::string>& writer_states) const {
  if (standard_output()) return arrow::Status::OK();
  FileSystem* files = context.files;
  if (single_file_) return files->Remove(JoinPath(directory(), TempSingleName(single_name(), context.run_id)));
  ARROW_ASSIGN_OR_RAISE(auto named, FilesOfStates(writer_states));
  // Not only when all the rest has been read: there is nothing that could bring them back.
  ARROW_RETURN_NOT_OK(CheckFilesThere(files, options_.path, named));
  // A job that died after its manifest finishes once more; until then the manifest must stay true.
  ARROW_ASSIGN_OR_RAISE(auto keep, NamesInOwnManifest(files, options_.path, context.run_id));
  for (auto& file : named) keep.insert(std::move(file.name));
  return RemoveFiles(files, options_.path, [&](std::string_view name) {
    if (!PartNameOfTemp(name, context.run_id).empty()) return true;  // those that the checkpoint names have their final names by now
    return IsPartNameOf(name, context.run_id) && !keep.contains(std::string(name));
  });
}

arrow::Status FileSink::Finish(const SinkContext& context, std::string_view job_state, const std::shared_ptr<arrow::Schema>& schema,
                               const std::vector<std::string>& writer_states, const Report& report) const {
  FileSystem* files = context.files;
  ARROW_ASSIGN_OR_RAISE(auto state, DecodeJobState(job_state));
  ARROW_ASSIGN_OR_RAISE(auto list, FilesOfStates(writer_states));
  ARROW_ASSIGN_OR_RAISE(auto encoding, EncodingOfOptions(options_, kind_, single_file_, context.writer_memory));
  if (standard_output()) return list.empty() ? WriteEmptyOutput(options_.output_descriptor, schema, encoding) : arrow::Status::OK();
  ARROW_RETURN_NOT_OK(CheckFilesThere(files, directory(), list));
  const std::string empty_name = single_file_ ? single_name() : PartName(context.run_id, 0, 0, 0, ExtensionOf(kind_));
  const std::string empty_temp = single_file_ ? TempSingleName(empty_name, context.run_id) : TempPartName(empty_name);
  bool replace = false;
  if (!single_file_) {
    ARROW_ASSIGN_OR_RAISE(replace, HasManifestToReplace(files, options_.path, context.run_id, state));
  }
  if (list.empty()) {
    ARROW_ASSIGN_OR_RAISE(
        auto empty, WriteEmptyFile(files, directory(), empty_name, empty_temp, schema, encoding, !single_file_ || options_.overwrite));
    list.push_back(std::move(empty));
  }
  if (single_file_) return arrow::Status::OK();
  Manifest manifest{.format = std::string(FileFormatName(kind_.format)),
                    .job_name = context.job_name,
                    .run_id = context.run_id,
                    .files = list,
                    .schema = schema,
                    .facts = report.facts};
  for (const auto& file : list) {
    manifest.total_rows += file.rows;
    manifest.total_bytes += file.bytes;
  }
  ARROW_ASSIGN_OR_RAISE(auto json, ManifestToJson(manifest));
  auto written = WriteFileAtomically(files, JoinPath(options_.path, kManifestName), json, replace, nullptr,
                                     TempSingleName(std::string(kManifestName), context.run_id));
  if (!written.ok()) {
    // One that came since it was looked for is another job's: that is the cause then.
    ARROW_RETURN_NOT_OK(HasManifestToReplace(files, options_.path, context.run_id, state).status());
    return written;
  }
  FailPoint("finish.manifest_written");
  std::set<std::string> replaced(state.replaced_files.begin(), state.replaced_files.end());
  for (const auto& file : list) replaced.erase(file.name);
  // Only names that a sink of ours gives: a manifest is a file that anybody may have written.
  return RemoveFiles(files, options_.path, [&](const std::string& name) { return IsPartName(name) && replaced.contains(name); });
}

arrow::Status FileSink::Abandon(const SinkContext& context, std::string_view job_state) const {
  if (standard_output()) return arrow::Status::OK();
  FileSystem* files = context.files;
  if (single_file_) return files->Remove(JoinPath(directory(), TempSingleName(single_name(), context.run_id)));
  if (job_state.empty()) return arrow::Status::OK();  // Prepare has failed: nothing was written
  ARROW_ASSIGN_OR_RAISE(auto state, DecodeJobState(job_state));
  ARROW_ASSIGN_OR_RAISE(auto keep, NamesInOwnManifest(files, options_.path, context.run_id));
  ARROW_RETURN_NOT_OK(RemoveFiles(files, options_.path, [&](std::string_view name) {
    return !PartNameOfTemp(name, context.run_id).empty() || (IsPartNameOf(name, context.run_id) && !keep.contains(std::string(name)));
  }));
  if (!state.directory_created) return arrow::Status::OK();
  ARROW_ASSIGN_OR_RAISE(auto left, files->List(options_.path));
  return left.empty() ? files->Remove(options_.path) : arrow::Status::OK();
}

std::string FileSink::single_name() const { return single_file_ ? BaseNameOf(options_.path) : ""; }

std::string FileSink::directory() const { return single_file_ ? DirectoryOf(options_.path) : options_.path; }

}  // namespace headrace
