// libFuzzer's entry points. With HEADRACE_FUZZ_SEEDS=DIR in the environment the program writes its seeds there and ends.
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* directory = std::getenv("HEADRACE_FUZZ_SEEDS");
  if (directory == nullptr) return 0;
  int number = 0;
  for (const std::string& seed : headrace::fuzz::Seeds()) {
    std::ofstream file(std::string(directory) + "/seed-" + std::to_string(number++), std::ios::binary);
    file << seed;
    if (!file.flush()) std::exit(1);
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headrace::fuzz::FuzzOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
