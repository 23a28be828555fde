// A range of rows, [begin, end). A value.
#pragma once

#include <cstdint>

namespace headrace::local {

struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

}  // namespace headrace::local
