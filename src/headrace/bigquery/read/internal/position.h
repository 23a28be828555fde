// The position of a read stream: how many of its rows were delivered, and between which fractions of it the next row lies.
//
// As text: "ROWS@LOW..HIGH", or "ROWS@LOW" or "ROWS" where less is known; empty is the start. The fractions let a later process tell a
// server that resumed the stream from one that ignored the offset and began anew, and notice that what it resumes with was lost on the way.
// Plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace::bigquery {

struct StreamPosition {
  int64_t rows = 0;
  double low = 0;    // 0..1, of the stream, reached before the row; 0 = unknown
  double high = -1;  // low..1: where the row lies at the latest. Equal to low between two responses; negative = unknown

  std::string ToString() const;
  bool operator==(const StreamPosition&) const = default;
};

/// DATA_LOSS for anything that ToString does not write.
arrow::Result<StreamPosition> ParseStreamPosition(std::string_view text);

}  // namespace headrace::bigquery
