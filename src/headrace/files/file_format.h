// The formats of files, their names and the extensions by which files are known. Free functions and plain values, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace {

enum class FileFormat {
  kParquet,
  kArrow,        // IPC file, with a footer
  kArrowStream,  // IPC stream
  kCsv,
  kNdjson,  // one JSON object a line
  kAvro,    // object container file
};

/// How a whole file is compressed; formats that compress inside (Parquet, Arrow, Avro) are kNone.
enum class FileCompression { kNone, kGzip, kZstd };

/// What a file's name says.
struct FileKind {
  FileFormat format = FileFormat::kParquet;
  FileCompression compression = FileCompression::kNone;

  bool operator==(const FileKind&) const = default;
};

/// The option's value and the manifest's `format`: parquet, arrow, arrows, csv, ndjson, avro.
std::string_view FileFormatName(FileFormat format);
std::optional<FileFormat> FileFormatFromName(std::string_view name);
/// "parquet, arrow, arrows, csv, ndjson and avro".
std::string_view FileFormatNames();

/// By the end of the name: .parquet; .arrow, .feather; .arrows; .csv, .ndjson, .jsonl, .json, each also with .gz or .zst; .avro.
/// Nothing when the end is none of these.
std::optional<FileKind> FileKindOfName(std::string_view name);
/// kGzip for .gz, kZstd for .zst, else kNone.
FileCompression FileCompressionOfName(std::string_view name);
/// Whether the name has an extension at all: a leading dot begins a hidden name, "." and ".." are directories.
bool HasExtension(std::string_view name);
/// The extension that a sink gives: ".parquet", ".csv.gz" ...
std::string_view ExtensionOf(const FileKind& kind);
/// Whether `text`, with its dot, is an extension that a sink gives (a file of others may be called .json, ours is .ndjson).
bool IsExtensionOfOurs(std::string_view text);

}  // namespace headrace
