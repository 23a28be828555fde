// Walks over a value that nobody reads, building nothing. Free functions, any thread.
#pragma once

#include <cstdint>

#include "headrace/avro/schema.h"

namespace headrace::avro {

/// Answers the byte after the value at `at`, or null when the bytes are no value of `node` (also when a type that contains itself is nested
/// deeper than `depth` levels).
const uint8_t* SkipValue(const Node& node, const uint8_t* at, const uint8_t* end, int depth = Schema::kMaxDepth);

}  // namespace headrace::avro
