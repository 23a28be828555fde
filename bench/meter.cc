#include "bench/meter.h"

#include <sys/resource.h>

#include <chrono>

#include <nlohmann/json.hpp>

namespace headrace::bench {
namespace {

double Seconds(const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; }

rusage Usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

double Wall() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Meter::Meter() : wall_(Wall()) {
  const rusage usage = Usage();
  user_ = Seconds(usage.ru_utime);
  system_ = Seconds(usage.ru_stime);
  faults_ = usage.ru_minflt;
}

std::string Meter::Json(const Work& work) const {
  const rusage usage = Usage();
  const nlohmann::ordered_json json = {{"rows", work.rows},
                                       {"bytes", work.bytes},
                                       {"wall", Wall() - wall_},
                                       {"user", Seconds(usage.ru_utime) - user_},
                                       {"system", Seconds(usage.ru_stime) - system_},
                                       {"minor_faults", usage.ru_minflt - faults_},
                                       {"peak_kib", usage.ru_maxrss}};
  return json.dump();
}

}  // namespace headrace::bench
