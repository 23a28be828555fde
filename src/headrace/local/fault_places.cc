#include "headrace/local/fault_places.h"

#include "headrace/local/split_mix.h"

namespace headrace::local {
uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325U;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

FaultPlace PlaceOf(uint64_t seed, std::string_view stream, int64_t every_rows, size_t actions, int64_t block) {
  uint64_t drawn = SplitMix(SplitMix(seed ^ HashOf(stream)) + static_cast<uint64_t>(block));
  return {.row = block * every_rows + static_cast<int64_t>(drawn % static_cast<uint64_t>(every_rows)),
          .action = static_cast<size_t>(SplitMix(drawn) % actions)};
}

}  // namespace headrace::local
