// A part of a file that is one split, as a plain value.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/files/file_format.h"

namespace headrace {

/// A file as it was found when the source was planned; a file that is another one later is an error.
struct FileIdentity {
  std::string path{};  // "-" = standard input, of which nothing else is known
  FileKind kind{};
  int64_t size = 0;
  int64_t modified_ns = 0;  // since 1970

  /// Whether it can have several parts.
  bool divisible() const { return path != "-" && kind.compression == FileCompression::kNone && kind.format != FileFormat::kArrowStream; }

  bool operator==(const FileIdentity&) const = default;
};

/// What `begin` and `end` count depends on the format: row groups (Parquet), record batches (Arrow files), bytes (CSV, NDJSON, Avro).
/// Formats without parts (Arrow streams, compressed text, standard input) have 0 and 0.
struct FilePart {
  FileIdentity file{};
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first_row = -1;  // in the file, negative = not known; for messages
  int64_t first_line = 1;  // of text, where it is known; for messages
  int64_t rows = -1;       // negative = not known; a reader that finds another number refuses the file
  int64_t bytes = 0;       // about; for progress

  bool operator==(const FilePart&) const = default;
};

}  // namespace headrace
