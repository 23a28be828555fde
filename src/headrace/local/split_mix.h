// The finalizer of SplitMix64: neighbouring inputs give unrelated outputs. The numbers are the same on every machine.
#pragma once

#include <cstdint>

namespace headrace::local {

inline uint64_t SplitMix(uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace headrace::local
