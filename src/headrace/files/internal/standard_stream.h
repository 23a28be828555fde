// Standard input and output as files: descriptors that others opened and that stay open. One thread each.
#pragma once

#include <memory>

#include <arrow/io/interfaces.h>

#include "headrace/base/file_system.h"

namespace headrace {

/// Sync and Close do nothing. A reader that went away is CANCELLED with the reason OUTPUT_CLOSED.
std::unique_ptr<WritableFile> OpenOutputDescriptor(int descriptor);

/// Read answers fewer bytes than asked for only at the end.
std::shared_ptr<arrow::io::InputStream> OpenInputDescriptor(int descriptor);

}  // namespace headrace
