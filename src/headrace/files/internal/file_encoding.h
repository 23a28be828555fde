// From a sink's options to the format and encoding of its files. Free functions, any thread.
#pragma once

#include "headrace/files/file_sink.h"
#include "headrace/files/internal/format_writer.h"

namespace headrace {

/// What `format` and the path say. InvalidOption when they contradict each other or say nothing.
arrow::Result<FileKind> KindOfOptions(const FileSinkOptions& options, bool single_file);

/// InvalidOption for a value that is none, and for an option of another format. `writer_memory` > 0 bounds what is held.
arrow::Result<FileEncoding> EncodingOfOptions(const FileSinkOptions& options, FileKind kind, bool single_file, int64_t writer_memory);

}  // namespace headrace
