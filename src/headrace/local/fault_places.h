// Where a rule with a seed breaks a stream, and how. Free functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace::local {

/// FNV-1a.
uint64_t HashOf(std::string_view text);

struct FaultPlace {
  int64_t row = 0;  // of the stream
  size_t action = 0;
};

/// The place in the `block`-th `every_rows` rows of a stream: one in each. It depends on nothing but what is given, so that a run can be
/// repeated.
FaultPlace PlaceOf(uint64_t seed, std::string_view stream, int64_t every_rows, size_t actions, int64_t block);

}  // namespace headrace::local
