#include "headrace/base/random.h"

#include <fmt/format.h>

namespace headrace {
namespace {

class OsSeededRandom final : public Random {
 public:
  uint64_t Next() override {
    std::lock_guard<std::mutex> guard(mutex_);
    return (static_cast<uint64_t>(device_()) << 32) | device_();
  }

 private:
  std::mutex mutex_;
  std::random_device device_;
};

}  // namespace

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

std::string Random::Hex(int digits) { return fmt::format("{:016x}", Next()).substr(0, static_cast<size_t>(digits)); }

Random* SystemRandom() {
  static OsSeededRandom* random = new OsSeededRandom;
  return random;
}

uint64_t SeededRandom::Next() {
  std::lock_guard<std::mutex> guard(mutex_);
  return engine_();
}

}  // namespace headrace
