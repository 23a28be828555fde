// What a stretch of this process's work costs.
#pragma once

#include <cstdint>
#include <string>

namespace headrace::bench {

struct Work {
  int64_t rows = 0;
  int64_t bytes = 0;  // of the columns, or of the messages where nothing is decoded
};

/// Measures from its making on. The whole process, all threads.
class Meter {
 public:
  Meter();
  /// {"rows":..,"bytes":..,"wall":seconds,"user":seconds,"system":seconds,"minor_faults":..,"peak_kib":..}
  std::string Json(const Work& work) const;

 private:
  double wall_;
  double user_;
  double system_;
  int64_t faults_;
};

}  // namespace headrace::bench
