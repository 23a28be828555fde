// How the values of text files are read. Free function, any thread.
#pragma once

#include "headrace/base/error.h"
#include "headrace/files/file_source.h"
#include "headrace/types/coercion.h"

namespace headrace {

/// InvalidOption for a word that is none of an option's.
arrow::Result<ParseOptions> ParseOptionsOf(const FileSourceOptions& options);

}  // namespace headrace
