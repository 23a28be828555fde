// Accepts TCP connections for a gRPC server and can break any of them: gRPC itself gives no handle to a connection's socket.
//
// Each connection is handed over as a file descriptor; the listener keeps a duplicate, closed when the connection ends. Start and Stop
// belong to one owner; Break may be called from any thread.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "headrace/base/error.h"

namespace headrace::local {

class Listener {
 public:
  /// Takes over a connected, non-blocking socket. Called on the listener's thread.
  using Accepted = std::function<void(int fd)>;

  Listener() = default;
  ~Listener();  // as Stop
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// `address` is numeric; port 0 = any. Answers "address:port" as bound ("[address]:port" for IPv6).
  arrow::Result<std::string> Bind(const std::string& address, int port);
  arrow::Status Start(Accepted accepted);
  /// Accepts no more; the connections live on.
  void Stop();
  /// Shuts the connection down in both directions; false when it is gone already. `fd` is the number that was handed over.
  bool Break(int fd);
  /// Breaks every connection.
  void BreakAll();

 private:
  void Run(const Accepted& accepted);
  /// False when the process has no descriptor left: the connection goes on waiting.
  bool AcceptOne(const Accepted& accepted);

  int listening_ = -1;
  int wake_ = -1;
  std::thread thread_;
  std::mutex mutex_;
  std::map<int, int> duplicates_;  // by the number handed over
};

}  // namespace headrace::local
