// Runs a fuzz target over its seeds, every prefix and single-byte change of a short seed, and the files of the directory given, if it
// exists.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/fuzz_target.h"

int main(int argc, char** argv) {
  using headrace::fuzz::FuzzOne;
  // Longer seeds would make this quadratic work slow; the fuzzer proper covers them.
  constexpr size_t kShort = 2048;
  size_t inputs = 0;
  for (const std::string& seed : headrace::fuzz::Seeds()) {
    FuzzOne(seed);
    ++inputs;
    if (seed.size() > kShort) continue;
    for (size_t i = 0; i < seed.size(); ++i) {
      FuzzOne(std::string_view(seed).substr(0, i));
      std::string changed = seed;
      for (unsigned char bits : {0x01, 0x80, 0xff}) {
        changed[i] = static_cast<char>(static_cast<unsigned char>(seed[i]) ^ bits);
        FuzzOne(changed);
      }
      inputs += 4;
    }
  }
  std::error_code none;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i], none)) {
      std::ifstream file(entry.path(), std::ios::binary);
      FuzzOne(std::string(std::istreambuf_iterator<char>(file), {}));
      ++inputs;
    }
  }
  std::printf("%zu inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
