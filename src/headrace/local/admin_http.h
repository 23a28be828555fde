// The admin endpoint: health, counters and faults over HTTP on loopback. Start and Stop belong to one owner.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "headrace/base/error.h"

namespace headrace::local {

struct AdminHandlers {
  std::function<std::string()> counters{};  // JSON
  std::function<std::string()> faults{};    // JSON
  std::function<arrow::Status(const std::string&)> set_faults{};
};

class AdminHttp {
 public:
  AdminHttp();
  ~AdminHttp();  // as Stop
  /// Port 0 = any. Answers "127.0.0.1:PORT".
  arrow::Result<std::string> Start(int port, AdminHandlers handlers);
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::local
