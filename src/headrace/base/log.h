// Where the library says what a person should read. The library itself never prints: it calls the Logger it was given.
#pragma once

#include <string_view>

namespace headrace {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Called from any thread, possibly from several at once; must not block for long and must not throw.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void Log(LogLevel level, std::string_view message) = 0;
};

/// Drops everything; never destroyed.
Logger* NullLogger();

}  // namespace headrace
