// The seam through which Headrace draws random numbers: names, jitter. Implementations may be used from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <random>
#include <string>

namespace headrace {

class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t Next() = 0;
  /// Uniform in [0, 1).
  double Uniform();
  /// `digits` lower-case hexadecimal digits, at most 16.
  std::string Hex(int digits);
};

/// Seeded by the operating system; never destroyed.
Random* SystemRandom();

/// The same sequence for the same seed.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : engine_(seed) {}
  uint64_t Next() override;

 private:
  std::mutex mutex_;
  std::mt19937_64 engine_;
};

}  // namespace headrace
