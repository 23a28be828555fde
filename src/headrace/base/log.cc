#include "headrace/base/log.h"

namespace headrace {

Logger* NullLogger() {
  class Null final : public Logger {
    void Log(LogLevel, std::string_view) override {}
  };
  static Null* logger = new Null;
  return logger;
}

}  // namespace headrace
