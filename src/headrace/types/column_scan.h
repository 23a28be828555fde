// Looks at all numbers of a column at once, without a branch for any of them: the compiler makes vector instructions of it (CMakeLists.txt
// of this folder). Free functions, any thread.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

/// Whether every value is in [least, most]; least <= 0 <= most.
bool AreWithin(std::span<const int32_t> values, int32_t least, int32_t most);
bool AreWithin(std::span<const int64_t> values, int64_t least, int64_t most);

/// Whether no offset is negative or smaller than the one before it.
bool AreOrdered(std::span<const int32_t> offsets);
bool AreOrdered(std::span<const int64_t> offsets);

}  // namespace headrace
