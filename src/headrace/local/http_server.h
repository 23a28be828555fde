// The HTTP port on loopback: health, counters and faults under /headrace/, BigQuery's REST API beside them. Start and Stop belong to one
// owner.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "headrace/base/error.h"
#include "headrace/local/rest_api.h"

namespace headrace::local {

struct HttpHandlers {
  std::function<std::string()> counters{};  // JSON
  std::function<std::string()> faults{};    // JSON
  std::function<arrow::Status(const std::string&)> set_faults{};
  std::function<RestAnswer(const RestRequest&)> rest{};
};

class HttpServer {
 public:
  HttpServer();
  ~HttpServer();  // as Stop
  /// Port 0 = any. Answers "127.0.0.1:PORT".
  arrow::Result<std::string> Start(int port, const HttpHandlers& handlers);
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::local
