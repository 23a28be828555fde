// The metrics of a running job over HTTP on loopback (--metrics-port), as Prometheus reads them: GET /metrics.
//
// Owns the registry that the job counts in, the server and its threads. Start, Follow and the end belong to one owner.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "headrace/base/error.h"
#include "headrace/base/metrics.h"

namespace headrace::cli {

class MetricsServer {
 public:
  MetricsServer();
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// Listens on 127.0.0.1; port 0 = any free one. Answers the URL. UNAVAILABLE names the option when the port is taken.
  arrow::Result<std::string> Start(int port);
  MetricRegistry* registry() { return &registry_; }
  /// `refresh` is called before each answer, one at a time; null again before what it uses goes. Once this returns, the one set before is
  /// not running any more.
  void Follow(std::function<void()> refresh);

 private:
  struct Impl;
  std::string Text();

  MetricRegistry registry_;
  std::mutex mutex_;
  std::function<void()> refresh_;
  std::unique_ptr<Impl> impl_;  // last: its threads use the above
};

}  // namespace headrace::cli
