// Which ReadRows calls start at row 0 whatever offset they ask for, as some servers answer them: a client that does not notice doubles
// rows.
#pragma once

#include <string_view>

#include "headrace/base/error.h"

namespace headrace::local {

enum class IgnoredOffsets { kNone, kChildren, kAll };  // kChildren: of the children of streams that were split

/// "none", "children" or "all"; anything else is an error of the option `ignore_offsets`.
inline arrow::Result<IgnoredOffsets> ParseIgnoredOffsets(std::string_view text) {
  if (text == "none") return IgnoredOffsets::kNone;
  if (text == "children") return IgnoredOffsets::kChildren;
  if (text == "all") return IgnoredOffsets::kAll;
  return InvalidOption("ignore_offsets", "ignore_offsets is '" + std::string(text) + "': give none, children or all");
}

}  // namespace headrace::local
