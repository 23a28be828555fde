#include "headrace/files/file_format.h"

#include <algorithm>
#include <array>
#include <utility>

namespace headrace {
namespace {

constexpr std::array<std::pair<FileFormat, std::string_view>, 6> kFormats = {{
    {FileFormat::kParquet, "parquet"},
    {FileFormat::kArrow, "arrow"},
    {FileFormat::kArrowStream, "arrows"},
    {FileFormat::kCsv, "csv"},
    {FileFormat::kNdjson, "ndjson"},
    {FileFormat::kAvro, "avro"},
}};

struct Extension {
  std::string_view text;
  FileKind kind;
  bool ours;  // the one that a sink gives to files of the kind
};

constexpr std::array<Extension, 17> kExtensions = {{
    {".parquet", {FileFormat::kParquet, FileCompression::kNone}, true},
    {".arrow", {FileFormat::kArrow, FileCompression::kNone}, true},
    {".feather", {FileFormat::kArrow, FileCompression::kNone}, false},
    {".arrows", {FileFormat::kArrowStream, FileCompression::kNone}, true},
    {".csv", {FileFormat::kCsv, FileCompression::kNone}, true},
    {".csv.gz", {FileFormat::kCsv, FileCompression::kGzip}, true},
    {".csv.zst", {FileFormat::kCsv, FileCompression::kZstd}, true},
    {".ndjson", {FileFormat::kNdjson, FileCompression::kNone}, true},
    {".ndjson.gz", {FileFormat::kNdjson, FileCompression::kGzip}, true},
    {".ndjson.zst", {FileFormat::kNdjson, FileCompression::kZstd}, true},
    {".jsonl", {FileFormat::kNdjson, FileCompression::kNone}, false},
    {".jsonl.gz", {FileFormat::kNdjson, FileCompression::kGzip}, false},
    {".jsonl.zst", {FileFormat::kNdjson, FileCompression::kZstd}, false},
    {".json", {FileFormat::kNdjson, FileCompression::kNone}, false},
    {".json.gz", {FileFormat::kNdjson, FileCompression::kGzip}, false},
    {".json.zst", {FileFormat::kNdjson, FileCompression::kZstd}, false},
    {".avro", {FileFormat::kAvro, FileCompression::kNone}, true},
}};

}  // namespace

std::string_view FileFormatName(FileFormat format) { return kFormats[static_cast<size_t>(format)].second; }

std::optional<FileFormat> FileFormatFromName(std::string_view name) {
  for (const auto& [format, known] : kFormats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::string_view FileFormatNames() { return "parquet, arrow, arrows, csv, ndjson and avro"; }

std::optional<FileKind> FileKindOfName(std::string_view name) {
  for (const auto& extension : kExtensions) {
    if (name.ends_with(extension.text)) return extension.kind;
  }
  return std::nullopt;
}

FileCompression FileCompressionOfName(std::string_view name) {
  if (name.ends_with(".gz")) return FileCompression::kGzip;
  return name.ends_with(".zst") ? FileCompression::kZstd : FileCompression::kNone;
}

bool HasExtension(std::string_view name) {
  return name.find_last_not_of('.') != std::string_view::npos && name.find('.', 1) != std::string_view::npos;
}

std::string_view ExtensionOf(const FileKind& kind) {
  return std::find_if(kExtensions.begin(), kExtensions.end(),
                      [&](const Extension& extension) { return extension.kind == kind && extension.ours; })
      ->text;
}

bool IsExtensionOfOurs(std::string_view text) {
  return std::any_of(kExtensions.begin(), kExtensions.end(),
                     [&](const Extension& extension) { return extension.ours && extension.text == text; });
}

}  // namespace headrace
