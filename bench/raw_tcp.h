// A socket and nothing else: what the kernel's loopback costs the one who receives.
#pragma once

#include <cstdint>

#include "headrace/base/error.h"

namespace headrace::bench {

/// A process of its own that sends what is asked for, so that its work does not count as this one's. Ends with this object.
class TcpSender {
 public:
  /// Forks: to be made before the process has threads.
  static arrow::Result<TcpSender> Start();
  TcpSender(TcpSender&& other) noexcept;
  TcpSender& operator=(TcpSender&&) = delete;
  ~TcpSender();

  /// Receives `bytes` bytes in calls of 1 MiB and drops them.
  arrow::Status Receive(int64_t bytes) const;

 private:
  TcpSender(int process, int socket) : process_(process), socket_(socket) {}

  int process_;
  int socket_;
};

}  // namespace headrace::bench
