#include "headrace/files/manifest.h"

#include <algorithm>
#include <set>
#include <utility>

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/base64.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/types/schema_json.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

arrow::Status Damaged(const std::string& path, std::string_view why) {
  return MakeError({.code = Code::kDataLoss, .service = "local files", .resource = path, .reason = "BAD_MANIFEST"},
                   fmt::format("the manifest {} is damaged: {}", path, why));
}

arrow::Status Lost(const std::string& path, std::string message) {
  return MakeError({.code = Code::kDataLoss, .service = "local files", .resource = path, .reason = "FILE_LOST"}, std::move(message));
}

const Json* Member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

arrow::Result<std::string> Text(const Json& object, const char* key, const std::string& path) {
  const Json* value = Member(object, key);
  if (value == nullptr || !value->is_string()) return Damaged(path, fmt::format("no text '{}'", key));
  return value->get<std::string>();
}

arrow::Result<int64_t> Count(const Json& object, const char* key, const std::string& path) {
  const Json* value = Member(object, key);
  // A negative number is not unsigned; one beyond 2^62 could overflow the totals.
  if (value == nullptr || !value->is_number_unsigned() || value->get<uint64_t>() > (uint64_t{1} << 62)) {
    return Damaged(path, fmt::format("no count '{}'", key));
  }
  return value->get<int64_t>();
}

arrow::Status ReadFile(const Json& json, const std::string& path, ManifestFile* file) {
  ARROW_ASSIGN_OR_RAISE(file->name, Text(json, "name", path));
  ARROW_ASSIGN_OR_RAISE(file->rows, Count(json, "rows", path));
  ARROW_ASSIGN_OR_RAISE(file->bytes, Count(json, "bytes", path));
  ARROW_ASSIGN_OR_RAISE(file->sha256, Text(json, "sha256", path));
  if (file->name.empty() || file->name == "." || file->name == ".." || file->name.find('/') != std::string::npos ||
      file->name.find('\0') != std::string::npos) {
    return Damaged(path, "a file name that is empty or has a directory in it");
  }
  const bool hex =
      std::all_of(file->sha256.begin(), file->sha256.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (file->sha256.size() != 64 || !hex) return Damaged(path, fmt::format("the sha256 of {} is not one", file->name));
  return arrow::Status::OK();
}

arrow::Status ReadFiles(const Json& json, const std::string& path, Manifest* manifest) {
  const Json* files = Member(json, "files");
  if (files == nullptr || !files->is_array()) return Damaged(path, "no list 'files'");
  std::set<std::string> names;
  uint64_t rows = 0;  // sums may wrap; a wrapped sum differs from the total, which is at most 2^62
  uint64_t bytes = 0;
  for (const Json& item : *files) {
    ManifestFile file;
    ARROW_RETURN_NOT_OK(ReadFile(item, path, &file));
    if (!names.insert(file.name).second) return Damaged(path, fmt::format("it names {} twice", file.name));
    rows += static_cast<uint64_t>(file.rows);
    bytes += static_cast<uint64_t>(file.bytes);
    manifest->files.push_back(std::move(file));
  }
  ARROW_ASSIGN_OR_RAISE(manifest->total_rows, Count(json, "total_rows", path));
  ARROW_ASSIGN_OR_RAISE(manifest->total_bytes, Count(json, "total_bytes", path));
  if (rows != static_cast<uint64_t>(manifest->total_rows) || bytes != static_cast<uint64_t>(manifest->total_bytes)) {
    return Damaged(path, "the totals are not the sums of the files");
  }
  return arrow::Status::OK();
}

arrow::Result<std::shared_ptr<arrow::Schema>> SchemaOf(const Json& json, const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto encoded, Text(json, "arrow_schema", path));
  auto decoded = arrow::util::base64_decode(encoded);
  if (!decoded.ok()) return Damaged(path, "'arrow_schema' is not base64");
  arrow::io::BufferReader reader(arrow::Buffer::FromString(*std::move(decoded)));
  arrow::ipc::DictionaryMemo memo;
  auto schema = arrow::ipc::ReadSchema(&reader, &memo);
  if (!schema.ok()) return Damaged(path, fmt::format("'arrow_schema' is not an Arrow schema: {}", schema.status().message()));
  return schema;
}

}  // namespace

arrow::Result<std::string> ManifestToJson(const Manifest& manifest) {
  ARROW_ASSIGN_OR_RAISE(auto schema, FromArrowSchema(*manifest.schema));
  ARROW_ASSIGN_OR_RAISE(auto arrow_schema, arrow::ipc::SerializeSchema(*manifest.schema));
  Json files = Json::array();
  for (const auto& file : manifest.files) {
    files.push_back({{"name", file.name}, {"rows", file.rows}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  Json json = {{"format_version", kManifestVersion},
               {"format", manifest.format},
               {"job_name", manifest.job_name},
               {"run_id", manifest.run_id},
               {"total_rows", manifest.total_rows},
               {"total_bytes", manifest.total_bytes},
               {"files", std::move(files)},
               {"schema", Json::parse(SchemaToJson(schema))},
               {"arrow_schema", arrow::util::base64_encode(std::string_view(*arrow_schema))},
               {"facts", manifest.facts}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

arrow::Result<Manifest> ManifestFromJson(std::string_view text, const std::string& path) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return Damaged(path, "not a JSON object");
  ARROW_ASSIGN_OR_RAISE(int64_t version, Count(json, "format_version", path));
  if (version != kManifestVersion) {
    return Unsupported(
        path, fmt::format("the manifest {} has format version {}, this program reads version {}", path, version, kManifestVersion));
  }
  Manifest manifest;
  ARROW_ASSIGN_OR_RAISE(manifest.format, Text(json, "format", path));
  ARROW_ASSIGN_OR_RAISE(manifest.job_name, Text(json, "job_name", path));
  ARROW_ASSIGN_OR_RAISE(manifest.run_id, Text(json, "run_id", path));
  ARROW_RETURN_NOT_OK(ReadFiles(json, path, &manifest));
  ARROW_ASSIGN_OR_RAISE(manifest.schema, SchemaOf(json, path));
  const Json* facts = Member(json, "facts");
  if (facts == nullptr || !facts->is_object()) return Damaged(path, "no object 'facts'");
  for (const auto& [key, value] : facts->items()) {
    if (!value.is_string()) return Damaged(path, fmt::format("the fact '{}' is no text", key));
    manifest.facts[key] = value.get<std::string>();
  }
  return manifest;
}

arrow::Result<Manifest> ReadManifest(FileSystem* files, const std::string& directory) {
  const std::string path = JoinPath(directory, kManifestName);
  auto content = files->ReadAll(path, kMaxManifestBytes);
  if (!content.ok() && CodeOf(content.status()) == Code::kNotFound) {
    return MakeError(
        {.code = Code::kFailedPrecondition, .service = "local files", .resource = directory, .reason = "NOT_A_RESULT"},
        fmt::format("{} is not a result: it has no {}. Either no job has written it, or one did not finish; a checkpointed one "
                    "goes on with `headrace resume`",
                    directory, kManifestName));
  }
  ARROW_RETURN_NOT_OK(content.status());
  return ManifestFromJson(*content, path);
}

arrow::Status CheckFilesThere(FileSystem* files, const std::string& directory, const std::vector<ManifestFile>& list) {
  for (const auto& file : list) {
    const std::string path = JoinPath(directory, file.name);
    ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(path));
    if (entry && entry->size == file.bytes) continue;
    return Lost(path,
                fmt::format("{} with {} rows was complete and is {}. Put it back as it was; or remove what is left of the result and "
                            "the checkpoint directory, and start the copy anew",
                            path, file.rows, entry ? fmt::format("now {} bytes long instead of {}", entry->size, file.bytes) : "gone"));
  }
  return arrow::Status::OK();
}

arrow::Status CheckResultThere(FileSystem* files, const std::string& directory, const std::string& run_id) {
  auto manifest = ReadManifest(files, directory);
  if (const ErrorInfo* info = GetErrorInfo(manifest.status()); info != nullptr && info->reason == "NOT_A_RESULT") {
    return Lost(directory,
                fmt::format("the job had finished, but its result is not in {} any more: there is no {}. If it was not moved away, "
                            "start the copy anew, with another checkpoint directory",
                            directory, kManifestName));
  }
  ARROW_RETURN_NOT_OK(manifest.status());
  if (manifest->run_id != run_id) {
    return Lost(directory, fmt::format("the job had finished, but {} holds the result of another job by now (run {}, not {})", directory,
                                       manifest->run_id, run_id));
  }
  return CheckFilesThere(files, directory, manifest->files);
}

arrow::Status VerifyManifest(FileSystem* files, const std::string& directory, const Manifest& manifest) {
  for (const auto& file : manifest.files) {
    const std::string path = JoinPath(directory, file.name);
    auto broken = [&](std::string_view why) {
      return MakeError({.code = Code::kDataLoss, .service = "local files", .resource = path, .reason = "FILE_DIFFERS"},
                       fmt::format("{} is not the file that the manifest names: {}", path, why));
    };
    ARROW_ASSIGN_OR_RAISE(auto entry, files->Stat(path));
    if (!entry) return broken("it is missing");
    if (entry->size != file.bytes) return broken(fmt::format("it has {} bytes instead of {}", entry->size, file.bytes));
    ARROW_ASSIGN_OR_RAISE(auto sha256, Sha256OfFile(files, path));
    if (sha256 != file.sha256) return broken("its content has another SHA-256");
  }
  return arrow::Status::OK();
}

}  // namespace headrace
