// The position of a read stream: how many of its rows were delivered, and how far the service said it was then.
//
// As text: "ROWS" or "ROWS@FRACTION"; empty is the start. The fraction lets a later process tell a server that resumed the stream from one
// that ignored the offset and began anew. Plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace::bigquery {

struct StreamPosition {
  int64_t rows = 0;
  double fraction = 0;  // 0..1, of the stream, reached before the row; 0 = unknown

  std::string ToString() const;
  bool operator==(const StreamPosition&) const = default;
};

/// DATA_LOSS for anything that ToString does not write.
arrow::Result<StreamPosition> ParseStreamPosition(std::string_view text);

}  // namespace headrace::bigquery
